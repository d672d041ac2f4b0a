"""Search over names, columns and tags, by letters in order: held in memory, kept up by ids."""

from __future__ import annotations

import re
import threading
import time
from typing import TYPE_CHECKING, Any, NamedTuple, TypedDict
from weakref import WeakKeyDictionary

from headwater.server.api import describe
from headwater.server.api.parameters import integer, text
from headwater.server.api.types import Object
from headwater.server.routing import Routes
from headwater.server.store.database import within
from headwater.server.store.read.tagged import sent_tags

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.read.namespace_limit import Limit
    from headwater.server.store.view import View

__all__ = ["Names", "api", "names_of", "score"]

api = Routes()

MOST = 200_000
EVERY = 1.0
LIMITS = 16
_names: WeakKeyDictionary[App, dict[Limit | None, Names]] = WeakKeyDictionary()
"""What can be found, for all who read everything, and for those who read some namespaces only."""
_lock = threading.Lock()
ALIKE = 0.4
PART = re.compile(r"[/.]")
STEP, TRIED = 100, 10_000
"""How many of what fits are looked up at once, and in all, to find some that are not hidden."""


class Entry(NamedTuple):
    """One thing that can be found."""

    kind: str
    namespace: str
    name: str
    field: str
    text: str


def score(pattern: re.Pattern[str], text: str, query: str) -> int:
    """How well a text fits: whole words and starts first, scattered letters last; 0 is not at all."""
    found = pattern.search(text)
    if found is None:
        return 0
    spread = found.end() - found.start() - len(query)
    edge = found.start() == 0 or not text[found.start() - 1].isalnum()
    exact = text == query
    return (
        1_000 * exact + 200 * (spread == 0) + 100 * edge + max(1, 90 - spread * 4 - len(text) // 8)
    )


def _shown(view: View, entries: list[Entry]) -> list[Entry]:
    """Those that are there and not hidden, each once, a dataset by its own name."""
    there: dict[tuple[str, str, str], tuple[str, str]] = {}
    for table, own in (("job", "id"), ("dataset", "root")):
        keys = {(e.namespace, e.name) for e in entries if _table(e) == table}
        sql = (
            "WITH k (space, name) AS ({in}) SELECT k.space, k.name, m.name, o.name FROM k"  # noqa: S608
            f" JOIN namespace n ON n.name = k.space JOIN {table} t ON t.namespace = n.id"
            f" AND t.name = k.name JOIN {table} o ON o.id = t.{own}"
            " JOIN namespace m ON m.id = o.namespace WHERE t.hidden = 0 AND o.hidden = 0"
        )
        for space, name, *owner in within(view.connection, sql, keys):
            there[table, space, name] = (owner[0], owner[1])
    found: dict[tuple[str, ...], Entry] = {}
    for entry in entries:
        shown = there.get((_table(entry), entry.namespace, entry.name))
        if shown is not None:
            named = entry._replace(namespace=shown[0], name=shown[1])
            found.setdefault(_known_as(named), named)
    return list(found.values())


def _known_as(entry: Entry) -> tuple[str, ...]:
    """What makes two entries one: a dataset may be found by several names."""
    text = entry.text if "tag" in entry.kind else ""
    return entry.kind, entry.namespace, entry.name, entry.field, text


class Found(TypedDict):
    """What was found, the best first."""

    results: list[Object]
    truncated: bool


@api.get("/api/v2/search", answer=Found)
def search(
    app: App,
    view: View,
    request: Request,
    q: str = text(required=True, example="load"),
    kind: str = text(),
    limit: int = integer(30, 1, 100),
) -> dict[str, Any]:
    """Names, columns and tags."""
    query = q.strip().lower()[:100]
    if not query:
        raise request.bad("q", "is missing")
    return names_of(app, view).answer(view, query, kind, limit)


def names_of(app: App, view: View) -> Names:
    """What a reader can find; whoever reads some namespaces only must not fill the index of all."""
    with _lock:
        held = _names.setdefault(app, {})
        if view.limit not in held and len(held) >= LIMITS:
            held.clear()
        return held.setdefault(view.limit, Names())


def _pairs(text: str) -> set[str]:
    """The pairs of letters next to each other, and the first and the last letter on their own."""
    framed = f" {text} "
    return {framed[i : i + 2] for i in range(len(framed) - 1)}


def _alike(pairs: set[str], text: str) -> float:
    """How much a text resembles another of these pairs of letters, from 0 to 1."""
    found = _pairs(text[:200])
    return 2 * len(pairs & found) / (len(pairs) + len(found))


class Names:
    """What can be found; each refresh adds what is new since the last one."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._forget(-1)

    def _forget(self, epoch: int) -> None:
        self._epoch = epoch
        self._after = {"job": 0, "dataset": 0}
        self._refreshed_at = float("-inf")
        self._seq = -1
        self._named: list[Entry] = []
        self._datasets: dict[int, Entry] = {}
        self._columns: dict[int, tuple[int, list[Entry]]] = {}
        self._tags: list[Entry] = []
        self._aliases: list[Entry] = []

    def answer(self, view: View, query: str, kind: str, limit: int) -> dict[str, Any]:
        """The best of what fits a text; `kind` narrows it to job, dataset, column or tag."""
        with self._lock:
            self._refresh(view)
            entries = [*self._named, *self._aliases, *self._tags]
            for _, fields in self._columns.values():
                entries += fields
        letters = "".join(query.split())
        pattern = re.compile(".*?".join(map(re.escape, letters)), re.DOTALL)
        plain = re.compile(re.escape(query))
        ranked = []
        for entry in entries:
            if kind and kind != _kind(entry):
                continue
            points = score(plain, entry.text, query) or score(pattern, entry.text, letters)
            if points > 20:
                ranked.append((-points, len(entry.text), entry))
        ranked.sort(key=lambda item: (item[0], item[1], item[2]))
        shown: dict[tuple[str, ...], Entry] = {}
        tried = 0
        while tried < min(len(ranked), TRIED) and len(shown) <= limit:
            for entry in _shown(view, [entry for _, _, entry in ranked[tried : tried + STEP]]):
                shown.setdefault(_known_as(entry), entry)
            tried += STEP
        rows = [_row(entry) for entry in list(shown.values())[:limit]]
        return {"results": rows, "truncated": len(shown) > limit or tried < len(ranked)}

    def nearest(self, view: View, name: str, kind: str, limit: int = 5) -> list[dict[str, Any]]:
        """The jobs or datasets whose names are most like one that is not there."""
        sought = name.lower()[:100]
        own, last = _pairs(sought), _pairs(PART.split(sought)[-1])
        with self._lock:
            self._refresh(view)
            entries = [entry for entry in self._named if entry.kind == kind]
        ranked = []
        for entry in entries:
            points = max(_alike(own, entry.text), _alike(last, PART.split(entry.text)[-1]) - 0.05)
            if points >= ALIKE:
                ranked.append((-points, entry))
        ranked.sort()
        return [_row(entry) for entry in _shown(view, [e for _, e in ranked[:STEP]])[:limit]]

    def _refresh(self, view: View) -> None:
        if time.monotonic() - self._refreshed_at < EVERY:
            return
        ((seq, epoch),) = view.all("SELECT seq, epoch FROM head WHERE id = 1")
        if epoch != self._epoch:
            self._forget(epoch)
        self._refreshed_at = time.monotonic()
        if seq == self._seq:
            return
        self._seq = seq
        for table in ("job", "dataset"):
            sql = (
                f"SELECT t.id, n.name, t.name FROM {table} t"  # noqa: S608
                " JOIN namespace n ON n.id = t.namespace WHERE t.id > ? ORDER BY t.id LIMIT ?"
            )
            room = MOST - len(self._named)
            for number, namespace, name in view.all(sql, (self._after[table], max(0, room))):
                entry = Entry(table, namespace, name, "", name.lower())
                self._named.append(entry)
                self._after[table] = number
                if table == "dataset":
                    self._datasets[number] = entry
        sql = (
            "SELECT n.name, d.name, a.name FROM alias a JOIN dataset d ON d.id = a.dataset"
            " JOIN namespace n ON n.id = d.namespace LIMIT ?"
        )
        self._aliases = [
            Entry("dataset", namespace, name, "", alias.lower())
            for namespace, name, alias in view.all(sql, (MOST,))
        ]
        self._read_columns(view)
        self._read_tags(view)

    def _read_columns(self, view: View) -> None:
        """The columns that datasets have now, whichever report decided that and whenever it came."""
        # Of each dataset the last schema alone: one that changes all day must not displace the others.
        sql = (
            "SELECT d.root, c.facet FROM (SELECT entity, max(time) AS time FROM facet_change"
            " WHERE kind = 0 AND name = 'schema' GROUP BY entity) m"
            " JOIN facet_change c ON c.kind = 0 AND c.name = 'schema' AND c.entity = m.entity"
            " AND c.time = m.time JOIN dataset d ON d.id = c.entity"
            " ORDER BY c.time DESC, c.entity LIMIT ?"
        )
        newest: dict[int, int] = {}
        for dataset, facet in view.all(sql, (MOST,)):
            if dataset in self._datasets:
                newest.setdefault(dataset, facet)
        held = self._columns
        self._columns = {d: held[d] for d, f in newest.items() if d in held and held[d][0] == f}
        fresh = {d: f for d, f in newest.items() if f and d not in self._columns}
        for start in range(0, len(fresh), 1_000):
            part = dict(list(fresh.items())[start : start + 1_000])
            bodies = view.bodies(part.values())
            for dataset, facet in part.items():
                owner = self._datasets[dataset]
                fields = [f["name"] for f in describe.flat(bodies.get(facet), 200)]
                found = [Entry("column", owner.namespace, owner.name, f, f.lower()) for f in fields]
                self._columns[dataset] = (facet, found)

    def _read_tags(self, view: View) -> None:
        found: set[Entry] = set()
        sql = (
            "SELECT u.kind, n.name, t.name, u.field, u.tag FROM tag_use u JOIN {0} t ON t.id = u.entity"
            " JOIN namespace n ON n.id = t.namespace WHERE u.kind = {1} LIMIT ?"
        )
        for number, table in enumerate(("dataset", "job")):
            for _, namespace, name, field, tag in view.all(sql.format(table, number), (MOST,)):
                found.add(_tag(table, namespace, name, field, tag))
        sql = (
            "SELECT t.id, n.name, t.name, c.facet FROM facet_change c"
            " JOIN {0} t ON t.id = c.entity JOIN namespace n ON n.id = t.namespace"
            " WHERE c.kind = {1} AND c.name = 'tags' ORDER BY c.time DESC LIMIT ?"
        )
        for number, table in enumerate(("dataset", "job")):
            newest: dict[int, tuple[str, str, int]] = {}
            for entity, *row in view.all(sql.format(table, number), (MOST // 10,)):
                newest.setdefault(entity, (row[0], row[1], row[2]))
            bodies = view.bodies(facet for _, _, facet in newest.values())
            for namespace, name, facet in newest.values():
                for field, tag in sent_tags(bodies.get(facet)):
                    found.add(_tag(table, namespace, name, field, tag))
        self._tags = sorted(found)


def _tag(table: str, namespace: str, name: str, field: str, tag: str) -> Entry:
    return Entry("tag" if table == "dataset" else "job-tag", namespace, name, field, tag.lower())


def _table(entry: Entry) -> str:
    return "job" if entry.kind in ("job", "job-tag") else "dataset"


def _kind(entry: Entry) -> str:
    return "tag" if entry.kind == "job-tag" else entry.kind


def _row(entry: Entry) -> dict[str, Any]:
    row: dict[str, Any] = {
        "kind": _kind(entry),
        "namespace": entry.namespace,
        "name": entry.name,
        "node": f"{_table(entry)}:{entry.namespace}:{entry.name}",
    }
    if entry.field:
        row["field"] = entry.field
    if entry.kind in ("tag", "job-tag"):
        row["tag"] = entry.text
    return row
