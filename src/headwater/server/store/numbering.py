"""Gives new rows their ids and facets their numbers; a facet seen before keeps the one it has."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any

from headwater.lineage import explicit
from headwater.lineage import facets as known
from headwater.server.store.database import Connection, within
from headwater.server.store.loading import Key, Loading

if TYPE_CHECKING:
    from headwater.server.store.packing import Packer
    from headwater.server.store.parts import Facet, Part

__all__ = ["Numbering"]

NUMBERED = (
    "namespace", "source", "dataset", "job", "run", "facet", "dataset_version", "job_version",
)  # fmt: skip


_NONE: list[Any] = []


class Numbering(Loading):
    """Facets by hash and number, and the rows that wait to be written."""

    def __init__(self, connection: Connection, packer: Packer) -> None:
        super().__init__(connection)
        self.packer = packer
        self.facets: dict[bytes, int] = {}
        self.clusters: dict[str, str] = {}
        self.bodies: dict[int, bytes] = {}
        self.column_sources: dict[int, set[Key]] = {}
        self.rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self._next: dict[str, int] = {}

    def number(self, table: str) -> int:
        """The next free id of a table."""
        if table not in self._next:
            for name in NUMBERED:
                rows = self.connection.all(f"SELECT max(id) FROM {name}")  # noqa: S608
                self._next[name] = int(rows[0][0] or 0) + 1
            clusters = self.connection.all("SELECT dataset_namespace, id FROM cluster")
            self.clusters.update(dict(clusters))
        self._next[table] += 1
        return self._next[table] - 1

    def number_parts(self, parts: list[Part]) -> None:
        """Give the facets of new parts their numbers; facets not met before get new ones."""
        new = {
            f.hash: f for p in parts for _, f in (*p.facets, *p.io)
            if f.number < 0 and f.hash not in self.facets
        }  # fmt: skip
        if new:
            sql = "SELECT hash, id FROM facet WHERE hash IN ({in})"
            self.facets.update({bytes(h): i for h, i in within(self.connection, sql, new)})
        for digest, facet in new.items():
            if digest not in self.facets:
                number = self.facets[digest] = 0 if facet.deleted else self.number("facet")
                if number:
                    self.bodies[number] = facet.body
                    if facet.sources is not None:
                        self.column_sources[number] = facet.sources
                    packed = self.packer.pack(facet.body)
                    self.rows["facet"].append((number, digest, *packed))
        for part in parts:
            if part.numbers is not None:  # one part may stand in several events of a group
                continue
            part.numbers = [(name, self._settled(f)) for name, f in part.facets]
            part.io_numbers = [(name, self._settled(f)) for name, f in part.io]
            part.facets = part.io = _NONE
            self._understand(part)

    def _understand(self, part: Part) -> None:
        """Note what the parts' facets say of lineage and life, once for all its events."""
        for name, number in part.numbers or ():
            if name == "columnLineage" and not part.explicit:
                part.columns = number
            elif name == "lineage" and number:
                read = known.read(name, self.body(number), known.Lineage)
                said = explicit.of_dataset(read) if read else None
                if said is not None:
                    part.columns, part.explicit = self.intern(said), True
                if read and read.entries:
                    stated = explicit.of_job(read).items()
                    part.stated = {key: self.intern(body) for key, body in stated}
            elif name == "lifecycleStateChange" and number:
                change = known.read(name, self.body(number), known.Lifecycle)
                part.change = (change.lifecycleStateChange if change else None) or ""

    def intern(self, body: bytes) -> int:
        """The number of a facet in canonical form, stored if it is new."""
        digest = hashlib.sha256(body).digest()
        if digest not in self.facets:
            rows = self.connection.all("SELECT id FROM facet WHERE hash = ?", (digest,))
            number = rows[0][0] if rows else self.number("facet")
            if not rows:
                self.rows["facet"].append((number, digest, *self.packer.pack(body)))
            self.facets[digest] = number
            self.bodies[number] = body
        return self.facets[digest]

    def _settled(self, facet: Facet) -> int:
        if facet.number < 0:
            facet.number = self.facets[facet.hash]
            facet.body, facet.sources = b"", None
        return facet.number

    def body(self, number: int) -> bytes:
        """The canonical bytes of a facet."""
        body = self.bodies.get(number)
        if body is None:
            sql = "SELECT dictionary, body FROM facet WHERE id = ?"
            ((dictionary, packed),) = self.connection.all(sql, (number,))
            body = self.bodies[number] = self.packer.unpack(dictionary, bytes(packed))
        return body

    def sources_of(self, number: int) -> set[Key]:
        """The datasets that a stored `columnLineage` facet names."""
        found = self.column_sources.get(number)
        if found is None:
            read = known.read("columnLineage", self.body(number), known.ColumnLineage)
            found = self.column_sources[number] = known.sources(read) if read else set()
        return found
