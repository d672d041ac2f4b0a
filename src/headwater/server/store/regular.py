"""The parts of an event in their usual form, each read in one pass and once only.

Most producers write compact JSON with the members that OpenLineage names, and few escapes. Such
a part is decoded in one go; any other is read step by step (`Examined`). Runs, jobs and datasets
come again and again byte for byte, so each is known by the digest of its bytes.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec
from msgspec import UNSET, Raw, UnsetType

from headwater.lineage import secrets
from headwater.lineage.events import part_hash
from headwater.server.store.examine import NULL, Examined, OddError, decode_items
from headwater.server.store.parts import Facet, Part, safe

if TYPE_CHECKING:
    from headwater.lineage.events import Limits

__all__ = ["Regular"]

Sent = dict[str, Raw]
Held = list[tuple[str, Facet]]


class _Named(msgspec.Struct, forbid_unknown_fields=True):
    """A job or a dataset."""

    namespace: str
    name: str
    facets: Sent | UnsetType = UNSET
    inputFacets: Sent | UnsetType = UNSET  # noqa: N815
    outputFacets: Sent | UnsetType = UNSET  # noqa: N815


class _Run(msgspec.Struct, forbid_unknown_fields=True):
    runId: str  # noqa: N815
    facets: Sent | UnsetType = UNSET


_named = msgspec.json.Decoder(_Named).decode
_names = msgspec.json.Decoder(list[_Named]).decode
_run = msgspec.json.Decoder(_Run).decode
_encode = msgspec.json.Encoder(order="sorted").encode
_NAMED = len('{"namespace":"","name":""}')
_RUN = len('{"runId":""}')
_OTHERWISE = (OddError, msgspec.DecodeError)


class Regular(Examined):
    """The parts met so far."""

    def __init__(self, limits: Limits) -> None:
        super().__init__(limits)
        self._parts: dict[bytes, Part] = {}
        self._spaces: dict[str, bool] = {}

    def part(self, raw: Raw, path: str, compact: bool) -> Part:
        """The run, job or dataset in `raw`; `path` says where in the event it stood."""
        digest = sha256(raw).digest()
        part = self._parts.get(digest)
        if part is None:
            try:
                part, size = (
                    self._one_run(_run(raw)) if path == "run" else self._one(_named(raw), path)
                )
                if size != len(raw):
                    raise OddError
            except _OTHERWISE:
                part = self._examine(raw, path, compact)
            self._parts[digest] = part
        return part

    def datasets(self, raw: Raw, path: str, compact: bool) -> list[Part]:
        """The parts of a list of inputs or outputs."""
        try:
            found = [self._one(named, path) for named in _names(raw)]
            if len(raw) != (1 + sum(size + 1 for _, size in found) if found else 2):
                raise OddError
        except _OTHERWISE:
            return [self.part(item, path, compact) for item in decode_items(raw)]
        return [part for part, _ in found]

    def _one(self, named: _Named, path: str) -> tuple[Part, int]:
        """A job or dataset, and how long it is if nothing of it was lost.

        A repeated key, an escape, a space or a letter that takes more than one byte makes what
        was sent longer than that.
        """
        space, own = named.namespace, named.name
        longest = self.limits.name
        if not (0 < len(space) <= longest and 0 < len(own) <= longest):
            raise OddError
        tainted = self._spaces.get(space)
        if tainted is None:
            tainted = self._spaces[space] = secrets.suspicious(space.encode())
        tainted = tainted or secrets.suspicious(own.encode())
        size = _NAMED + len(space) + len(own)
        whole: dict[str, Any] = {"namespace": space, "name": own}
        facets: Held = []
        io: Held = []
        for key, sent, held in (
            ("facets", named.facets, facets),
            ("inputFacets", named.inputFacets, io if path == "inputs" else []),
            ("outputFacets", named.outputFacets, [] if path == "inputs" else io),
        ):
            if sent is not UNSET:
                length, odd = self._take(whole, key, sent, held)
                size += length
                tainted = tainted or odd
        return Part(part_hash(_encode(whole)), safe(space, own), facets, io, tainted), size

    def _one_run(self, run: _Run) -> tuple[Part, int]:
        whole: dict[str, Any] = {"runId": run.runId}
        facets: Held = []
        size, tainted = _RUN + len(run.runId), False
        if run.facets is not UNSET:
            length, tainted = self._take(whole, "facets", run.facets, facets)
            size += length
        known_as = msgspec.convert(run.runId, UUID).bytes
        return Part(part_hash(_encode(whole)), known_as, facets, [], tainted), size

    def _take(self, whole: dict[str, Any], key: str, sent: Sent, held: Held) -> tuple[int, bool]:
        """Hold the facets of one member; how long the member is, and whether one is suspicious."""
        hashes: dict[str, str] = {}
        whole[key] = hashes
        size, tainted = len(key) + 5 + 4 * len(sent) + (not sent), False
        for name, body in sent.items():
            facet = self._facet(name, body)
            hashes[name] = facet.hex
            size += len(name) + len(body)
            if facet.tainted:
                tainted = True
            if facet.body != NULL:
                held.append((name, facet))
        return size, tainted
