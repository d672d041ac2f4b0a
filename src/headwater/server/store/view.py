"""Reads the projection: entities and facets in bulk, in one consistent snapshot."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.graph import Direction
from headwater.lineage.openlineage.events import canonical
from headwater.server.store.database import ReadConnection, Row, within
from headwater.server.store.entities import (
    DELETED,
    MERGED,
    Dataset,
    Job,
    Run,
    decode_job,
    to_dataset,
    to_job,
    to_run,
)
from headwater.server.store.read.column_graph import ColumnGraph, column_edges
from headwater.server.store.read.deleted import deleted_jobs
from headwater.server.store.read.graph import RunGraph, StoredGraph
from headwater.server.store.read.namespace_limit import LimitedConnection
from headwater.server.store.read.observed import StoredObservedGraph
from headwater.server.store.read.output_sources import OutputSources
from headwater.server.store.read.tagged import TaggedColumns

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from uuid import UUID

    from headwater.server.store.database.packing import Packer
    from headwater.server.store.entities import Node
    from headwater.server.store.read.graph import LastRecords
    from headwater.server.store.read.namespace_limit import Limit
    from headwater.server.store.read.observed import Lags

__all__ = ["Bodies", "ColumnGraph", "StoredGraph", "View"]

Name = tuple[str, str]
"""Namespace and name."""

DATASETS = (
    "SELECT d.id, d.namespace, n.name, d.name, d.root, d.source, d.kind, d.created, d.updated,"
    " d.hidden, d.version, d.state FROM dataset d JOIN namespace n ON n.id = d.namespace"
)
JOBS = (
    "SELECT j.id, j.namespace, n.name, j.name, j.kind, j.created, j.updated, j.hidden, j.latest,"
    " j.version, j.state FROM job j JOIN namespace n ON n.id = j.namespace"
)
RUNS = "SELECT r.id, r.uuid, r.job, r.state FROM run r"
TOGETHER = 100
"""Jobs in one question for their runs; SQLite takes up to 500 parts in one statement."""


def uuid_text(uuid: bytes) -> str:
    """A stored UUID as text; `UUID` takes five times as long, and lists have thousands."""
    text = uuid.hex()
    return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class RunAnswers:
    """Runs as they were last shown, kept between reads.

    What is shown of a run follows from its row and from what is never changed, only deleted. Every
    deletion leaves a checkpoint, so a run is shown again from here as long as both are the same.
    """

    def __init__(self, limit: int = 16_000_000) -> None:
        self._limit = limit
        self._held: dict[int, tuple[int, Row, msgspec.Raw]] = {}
        self._size = 0

    def get(self, checkpoint: int, row: Row) -> msgspec.Raw | None:
        """What was shown of the run in this row, if that is still so."""
        held = self._held.get(row[0])
        return held[2] if held is not None and held[:2] == (checkpoint, row) else None

    def keep(self, checkpoint: int, row: Row, shown: msgspec.Raw) -> None:
        """Show this of the run the next time."""
        self._size += len(shown) + len(row[3])
        if self._size > self._limit:
            self.forget()
        self._held[row[0]] = (checkpoint, row, shown)

    def forget(self) -> None:
        """Let go of all."""
        self._held, self._size = {}, 0


class Bodies:
    """Facet bodies kept between reads; a facet never changes, so it never goes stale."""

    def __init__(self, packer: Packer, limit: int = 16_000_000) -> None:
        self.packer = packer
        self.runs = RunAnswers()
        self._limit = limit
        self._held: dict[int, bytes] = {}
        self._size = 0

    def get(self, connection: ReadConnection, numbers: Iterable[int]) -> dict[int, bytes]:
        """The canonical JSON of each facet."""
        wanted = set(numbers)
        wanted.discard(0)
        held = self._held
        found = {n: held[n] for n in wanted if n in held}
        missing = wanted - found.keys()
        if missing:
            sql = "SELECT id, dictionary, body FROM facet WHERE id IN ({in})"
            for number, dictionary, packed in within(connection, sql, missing):
                body = self.unpack(connection, dictionary, bytes(packed))
                found[number] = held[number] = body
                self._size += len(body)
            if self._size > self._limit:
                self._held, self._size = {}, 0
        return found

    def forget(self) -> None:
        """Let go of every body: one of them may have been deleted."""
        self._held, self._size = {}, 0
        self.runs.forget()

    def unpack(self, connection: ReadConnection, dictionary: int, packed: bytes) -> bytes:
        """A packed body as it was; learns a dictionary that another process stored."""
        if not self.packer.knows(dictionary):
            sql = "SELECT data FROM dictionary WHERE id = ?"
            ((data,),) = connection.all(sql, (dictionary,))
            self.packer.learn(dictionary, bytes(data))
        return self.packer.unpack(dictionary, packed)


class View:
    """One moment of the store."""

    def __init__(self, connection: ReadConnection, bodies: Bodies) -> None:
        self.connection = connection
        self._limit = connection if isinstance(connection, LimitedConnection) else None
        self._bodies = bodies
        self._datasets: dict[int, Dataset] = {}
        self._deleted: dict[int | None, dict[int, int]] = {}

    @property
    def limit(self) -> Limit | None:
        """The namespaces that may be read; None for all."""
        return self._limit.limit if self._limit else None

    def all(self, sql: str, params: Iterable[Any] = ()) -> list[tuple[Any, ...]]:
        """The rows of any query."""
        return self.connection.all(sql, tuple(params))

    def release(self) -> None:
        """Let go of the moment, before something else is waited for; queries behind it see later ones.

        SQLite's write-ahead log grows for as long as somebody reads a moment, and PostgreSQL keeps
        every row that was replaced since.
        """
        self.connection.rollback()

    def datasets(self, ids: Iterable[int]) -> dict[int, Dataset]:
        """Datasets by id."""
        wanted, held = set(ids), self._datasets
        sql = DATASETS + " WHERE d.id IN ({in})"
        for row in within(self.connection, sql, wanted - held.keys()):
            held[row[0]] = to_dataset(row)
        return {number: held[number] for number in wanted if number in held}

    def dataset(self, namespace: str, name: str) -> Dataset | None:
        """The dataset of this name, as it was sent."""
        sql = DATASETS + " WHERE n.name = ? AND d.name = ?"
        rows = self.connection.all(sql, (namespace, name))
        if rows:
            return to_dataset(rows[0])
        sql = "SELECT dataset FROM alias WHERE namespace = ? AND name = ?"
        alias = self.connection.all(sql, (namespace, name))
        return self.datasets([alias[0][0]]).get(alias[0][0]) if alias else None

    def jobs(self, ids: Iterable[int]) -> dict[int, Job]:
        """Jobs by id; in the place of a task job, its parent."""
        rows = within(self.connection, JOBS + " WHERE j.id IN ({in})", set(ids))
        found = {row[0]: to_job(row) for row in rows}
        merged = [number for number, job in found.items() if job.hidden == MERGED]
        if merged:
            sql = "SELECT job, whole FROM fold WHERE whole IS NOT NULL AND job IN ({in})"
            parent_jobs: dict[int, int] = dict(within(self.connection, sql, merged))
            shown = self.jobs(set(parent_jobs.values()) - found.keys())
            found |= {part: shown.get(n) or found[n] for part, n in parent_jobs.items()}
        return found

    def shown(self, namespace: str, name: str) -> Job | None:
        """The job shown for this name: a task job's parent; None for a deleted job."""
        found = self.job(namespace, name)
        if found is not None and found.hidden == MERGED:
            found = self.jobs([found.id]).get(found.id)
        return None if found is None or found.hidden == DELETED else found

    def parent_jobs(self, names: Iterable[Name]) -> dict[Name, Name]:
        """Map each task job among these names to the parent job it is merged into."""
        return self._renamed(
            names,
            " JOIN job j ON j.namespace = n.id AND j.name = k.name JOIN fold f ON f.job = j.id"
            " JOIN job s ON s.id = f.whole",
        )

    def root_names(self, names: Iterable[Name]) -> dict[Name, Name]:
        """The name under which each of these datasets is shown: that of the one it is an alias of."""
        return self._renamed(
            names,
            " JOIN dataset d ON d.namespace = n.id AND d.name = k.name"
            " JOIN dataset s ON s.id = d.root",
        )

    def _renamed(self, names: Iterable[Name], shown: str) -> dict[Name, Name]:
        """The name that each of these is shown by: that of `s`, which `shown` joins to it."""
        sql = (
            "WITH k (space, name) AS ({in}) SELECT k.space, k.name, m.name, s.name FROM k"  # noqa: S608
            f" JOIN namespace n ON n.name = k.space{shown} JOIN namespace m ON m.id = s.namespace"
        )
        rows = within(self.connection, sql, set(names))
        return {(row[0], row[1]): (row[2], row[3]) for row in rows}

    def job_facets(self, name: str) -> list[tuple[int, int]]:
        """Jobs that ever had a facet of this name, with its number; a task job counts as its parent."""
        sql = (
            "SELECT DISTINCT coalesce(f.whole, c.entity), c.facet FROM facet_change c"
            " LEFT JOIN fold f ON f.job = c.entity WHERE c.kind = 1 AND c.name = ?"
        )
        return self.all(sql, (name,))

    def deleted_jobs(self, at: int | None = None) -> dict[int, int]:
        """The jobs that their producers reported as deleted, now or at a moment, and since when."""
        if at not in self._deleted:
            self._deleted[at] = deleted_jobs(self, at)
        return self._deleted[at]

    def namespace_edges(self) -> list[tuple[str, str, int, int]]:
        """How many edges lead from jobs of a namespace to datasets of another, by direction."""
        return self.all(
            # The edges of a task job are its parent's, unless the parent has them itself.
            "SELECT a.name, b.name, e.direction, count(*) FROM edge e LEFT JOIN fold f ON f.job = e.job"
            " JOIN job j ON j.id = coalesce(f.whole, e.job) JOIN dataset d ON d.id = e.dataset"
            " JOIN namespace a ON a.id = j.namespace JOIN namespace b ON b.id = d.namespace"
            " WHERE e.until IS NULL AND j.hidden = 0 AND d.hidden = 0 AND (f.whole IS NULL"
            " OR NOT EXISTS (SELECT 1 FROM edge o WHERE o.job = f.whole AND o.dataset = e.dataset"
            " AND o.direction = e.direction AND o.until IS NULL)) GROUP BY a.name, b.name, e.direction"
        )

    def opened(self, jobs: Iterable[Job]) -> dict[int, list[int]]:
        """The datasets, with directions, that jobs have now: their own and those of their task jobs."""
        found = {job.id: dict.fromkeys(job.state.open) for job in jobs}
        sql = (
            "SELECT f.whole, j.state FROM fold f JOIN job j ON j.id = f.job WHERE f.whole IN ({in})"
        )
        for number, state in within(self.connection, sql, list(found)):
            found[number] |= dict.fromkeys(decode_job(bytes(state)).open)
        return {number: list(slots) for number, slots in found.items()}

    def job(self, namespace: str, name: str) -> Job | None:
        """The job of this name."""
        sql = JOBS + " WHERE n.name = ? AND j.name = ?"
        rows = self.connection.all(sql, (namespace, name))
        return to_job(rows[0]) if rows else None

    def first_record(self, node: Node) -> int | None:
        """When a job or a dataset was first reported, under any of its names."""
        kind, number = node
        if kind == "dataset":
            sql = "SELECT min(created) FROM dataset WHERE id = ? OR (root = ? AND root <> id)"
            ((first,),) = self.all(sql, (number, number))
        else:
            sql = (
                "SELECT min(created) FROM job WHERE id = ?"
                " OR id IN (SELECT job FROM fold WHERE whole = ?)"
            )
            ((first,),) = self.all(sql, (number, number))
        found: int | None = first
        return found

    def runs(self, ids: Iterable[int]) -> dict[int, Run]:
        """Runs by id."""
        rows = within(self.connection, RUNS + " WHERE r.id IN ({in})", set(ids))
        return {row[0]: to_run(row) for row in rows}

    def run(self, uuid: UUID) -> Run | None:
        """The run of this UUID."""
        rows = self.connection.all(RUNS + " WHERE r.uuid = ?", (uuid.bytes,))
        return to_run(rows[0]) if rows else None

    def newest_runs(self, job: int, limit: int) -> list[Run]:
        """The newest runs of a job, the newest first."""
        sql = RUNS + " WHERE r.job = ? ORDER BY r.created DESC, r.id DESC LIMIT ?"
        return [to_run(row) for row in self.all(sql, (job, limit))]

    def recent_runs(self, jobs: Iterable[int], limit: int) -> list[Row]:
        """The rows of the newest runs of many jobs, each job's newest first."""
        newest = f"{RUNS} WHERE r.job = ? ORDER BY r.created DESC, r.id DESC LIMIT ?"
        wanted = list(jobs)
        found: list[Row] = []
        for start in range(0, len(wanted), TOGETHER):
            some = wanted[start : start + TOGETHER]
            sql = " UNION ALL ".join([f"SELECT * FROM ({newest}) q"] * len(some))  # noqa: S608
            found += self.all(sql, [value for job in some for value in (job, limit)])
        return found

    def run_answers(self) -> tuple[int, RunAnswers]:
        """The last checkpoint, and what was shown of runs; to a limited reader they look different."""
        if self._limit is not None:
            return 0, RunAnswers()
        ((seq,),) = self.all("SELECT max(seq) FROM checkpoint")
        return seq or 0, self._bodies.runs

    def graph(
        self,
        at: int | None = None,
        since: int | None = None,
        *,
        deleted_in: tuple[int, int] | None = None,
        records: LastRecords | None = None,
    ) -> StoredGraph:
        """The jobs and datasets as a graph: now, at a moment in microseconds, or from one to another.

        What is deleted is in none of them, unless that happened in the period `deleted_in`. With
        `records`, it also knows what flows.
        """
        return StoredGraph(self, at, since, deleted_in, records)

    def observed_graph(self, lags: Lags, records: LastRecords | None = None) -> StoredObservedGraph:
        """The jobs and datasets of now as a graph, with what was observed on them."""
        return StoredObservedGraph(self, lags, records)

    def column_graph(
        self,
        at: int | None = None,
        since: int | None = None,
        *,
        rows: bool = False,
        deleted_in: tuple[int, int] | None = None,
    ) -> ColumnGraph:
        """The columns as a graph: now, at a moment in microseconds, or from one to another.

        With `rows`, also along columns that decide about the rows of whole datasets. What deleted jobs
        wrote is in none of them, unless that happened in the period `deleted_in`.
        """
        return ColumnGraph(self, at, since, rows=rows, deleted_in=deleted_in)

    def tagged_columns(self) -> TaggedColumns:
        """The columns of now as a graph, with the tags that were set on them."""
        return TaggedColumns(self)

    def output_sources(self, at: int | None = None, since: int | None = None) -> OutputSources:
        """Which inputs of jobs feed which of their outputs: now, at a moment, or in a period."""
        return OutputSources(self, at, since)

    def run_graph(self) -> RunGraph:
        """The runs as a graph."""
        return RunGraph(self)

    def facets(self, numbers: Iterable[int]) -> dict[int, msgspec.Raw]:
        """Facets by number, ready to be put into an answer."""
        found = self.bodies(numbers)
        return {number: msgspec.Raw(body) for number, body in found.items()}

    def bodies(self, numbers: Iterable[int]) -> dict[int, bytes]:
        """Facets by number, as canonical JSON."""
        found = self._bodies.get(self.connection, numbers)
        return {number: self._seen(body) for number, body in found.items()}

    def hidden_sources(self, numbers: Iterable[int]) -> dict[int, set[str]]:
        """The columns that facets of column lineage make of what may not be read."""
        if (limit := self.limit) is None:
            return {}
        found = self._bodies.get(self.connection, numbers)
        return {
            number: {e.output for e in column_edges(body) if not limit.allows(e.namespace)}
            for number, body in found.items()
        }

    def _seen(self, body: bytes) -> bytes:
        """A body without what lies in namespaces that may not be read."""
        if self._limit is None:
            return body
        return canonical(self._limit.without_others(msgspec.json.decode(body)))

    def only_readable(self, answer: dict[str, Any]) -> tuple[dict[str, Any], int]:
        """An answer without what may not be read, and how much of that lies next to the rest.

        The app does the same with every answer of JSON; this is for what is written otherwise.
        """
        if self._limit is None:
            return answer, 0
        kept = self._limit.without_others(msgspec.json.decode(msgspec.json.encode(answer)))
        return kept, self._limit.beside(kept)

    def partly_hidden(
        self, nodes: Collection[Node], way: Direction | None = None
    ) -> dict[Node, set[Node]]:
        """Of some jobs and datasets, the neighbours of now which may not be read."""
        found: dict[Node, set[Node]] = {}
        if self._limit is None:
            return found
        for kind, other in (("job", "dataset"), ("dataset", "job")):
            numbers = {number for one, number in nodes if one == kind}
            for number, there in self._limit.hidden_edges(kind, numbers, way).items():
                found[kind, number] = {(other, one) for one in there}
        return found

    def hidden_beside(self, *nodes: Node) -> int:
        """How many jobs and datasets next to some may not be read."""
        return len(set().union(*self.partly_hidden(nodes).values()))

    def hidden_before(self, *nodes: Node) -> int:
        """How many jobs and datasets right upstream of some may not be read."""
        return len(set().union(*self.partly_hidden(nodes, Direction.UPSTREAM).values()))

    def hidden_behind(self, *nodes: Node) -> int:
        """How many jobs and datasets right downstream of some may not be read."""
        return len(set().union(*self.partly_hidden(nodes, Direction.DOWNSTREAM).values()))

    def hidden_anywhere(self) -> int:
        """How many jobs and datasets may not be read."""
        return 0 if self._limit is None else sum(self._limit.hidden().values())

    def body(self, dictionary: int, packed: bytes) -> bytes:
        """A packed log record as it was sent."""
        return self._seen(self._bodies.unpack(self.connection, dictionary, bytes(packed)))

    def versions(self, table: str, ids: Iterable[int | None]) -> dict[int, str]:
        """The UUIDs of versions by id."""
        sql = {
            "dataset": "SELECT id, uuid FROM dataset_version WHERE id IN ({in})",
            "job": "SELECT id, uuid FROM job_version WHERE id IN ({in})",
        }[table]
        rows = within(self.connection, sql, {i for i in ids if i is not None})
        return {number: uuid_text(uuid) for number, uuid in rows}

    def roots(self, ids: Iterable[int]) -> dict[int, int]:
        """What each dataset stands for."""
        sql = "SELECT id, root FROM dataset WHERE id IN ({in})"
        return dict(within(self.connection, sql, set(ids)))

    def tags(self, kind: int, ids: Iterable[int]) -> dict[int, list[tuple[str, str]]]:
        """The tags set on entities of a kind: field (empty for the whole) and tag."""
        sql = "SELECT entity, field, tag FROM tag_use WHERE kind = ? AND entity IN ({in})"
        found: dict[int, list[tuple[str, str]]] = {}
        for entity, field, tag in within(self.connection, sql, set(ids), (kind,)):
            found.setdefault(entity, []).append((field, tag))
        return found
