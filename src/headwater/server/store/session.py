"""The writer's working set: entities by key, what changed in this commit, and how it is written."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.lineage import explicit
from headwater.lineage import facets as known
from headwater.server.store import entities
from headwater.server.store.database import Connection, within
from headwater.server.store.entities import (
    Dataset,
    DatasetState,
    Job,
    JobState,
    Namespace,
    Run,
    RunState,
    Source,
)
from headwater.server.store.loading import Key, Loading
from headwater.server.store.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.packing import Packer
    from headwater.server.store.parts import Facet, Part, Prepared

__all__ = ["Session"]

KEPT = 20_000
FACETS_KEPT = 150_000
NUMBERED = (
    "namespace", "source", "dataset", "job", "run", "facet", "dataset_version", "job_version",
)  # fmt: skip
_NONE: list[Any] = []
K = TypeVar("K")
V = TypeVar("V")


class Session(Loading):
    """Entities loaded once and kept; after a failed commit, forgotten and loaded again."""

    def __init__(self, connection: Connection, packer: Packer) -> None:
        super().__init__(connection)
        self.packer = packer
        self.facets: dict[bytes, int] = {}
        self.sources: dict[str, Source] = {}
        self.clusters: dict[str, str] = {}
        self.counts: dict[tuple[int, int], int] = {}
        self.bodies: dict[int, bytes] = {}
        self.column_sources: dict[int, set[Key]] = {}
        self._next: dict[str, int] = {}
        self.dirty: dict[str, dict[Any, Any]] = defaultdict(dict)
        self.rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.edges: dict[int, list[tuple[Any, ...]]] = {}
        self._touched: dict[int, dict[int, Run]] = defaultdict(dict)

    def forget(self) -> None:
        """Drop everything; the next use loads it from the database."""
        for held in (
            self.facets, self.namespaces, self.sources, self.datasets, self.datasets_by_id,
            self.jobs, self.jobs_by_id, self.runs, self.aliases, self.clusters, self.counts,
            self.bodies, self.column_sources,
            self._next, self.dirty, self.rows, self.edges, self._touched,
        ):  # fmt: skip
            held.clear()

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

    def load(self, group: Iterable[Prepared]) -> None:
        """Bring in whatever the events of one group touch, in a few queries."""
        datasets: set[Key] = set()
        jobs: set[Key] = set()
        runs: set[bytes] = set()
        parts: list[Part] = []
        for item in group:
            for _, part in item.datasets:
                if part.key not in self.datasets:
                    datasets.add(part.key)
                if part.numbers is None:
                    parts.append(part)
            if item.job is not None and item.job.key not in self.jobs:
                jobs.add(item.job.key)
            if item.run is not None and item.run.key not in self.runs:
                runs.add(item.run.key)
            for other in (item.job, item.run):
                if other is not None and other.numbers is None:
                    parts.append(other)  # noqa: PERF401
        if datasets:
            self.load_datasets(datasets)
        if jobs:
            self.load_jobs(jobs)
        if runs:
            self.load_runs(runs)
        if parts:
            self._number(parts)

    def runs_of(self, job: Job, low: int) -> list[Run]:
        """The runs whose edges may reach beyond `low`, as they stand in this commit."""
        found: dict[int, Run] = {}
        if not job.fresh:
            columns = "SELECT id, uuid, job, state FROM run WHERE job = ? AND linked = 1 AND "
            rows = self.connection.all(columns + "ended IS NULL", (job.id,))
            rows += self.connection.all(columns + "ended > ?", (job.id, low))
            sql = columns + "ended <= ? ORDER BY ended DESC, uuid DESC LIMIT 1"
            rows += self.connection.all(sql, (job.id, low))
            for run_id, uuid, owner, state in rows:
                run = self.runs.get(bytes(uuid))
                found[run_id] = run or entities.to_run((run_id, uuid, owner, state))
        for run in self._touched.get(job.id, {}).values():
            if run.state.io:
                found[run.id] = run
        return list(found.values())

    def latest_of(self, job: Job) -> Run | None:
        """The run of a job that began last, as it stands in this commit."""
        found = list(self._touched.get(job.id, {}).values())
        if not job.fresh:
            sql = (
                "SELECT id, uuid, job, state FROM run WHERE job = ?"
                " ORDER BY created DESC, uuid DESC LIMIT ?"
            )
            known = {run.id for run in found}
            rows = self.connection.all(sql, (job.id, len(found) + 1))
            found += [entities.to_run(row) for row in rows if row[0] not in known]
        found = [run for run in found if not run.state.static]
        return max(found, key=lambda run: (run.state.life.first or 0, run.uuid), default=None)

    def _number(self, parts: list[Part]) -> None:
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
            facet.body = b""
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

    def namespace(self, name: str, time: int) -> Namespace:
        """The namespace of this name, made if it is new."""
        found = self.namespaces.get(name)
        if found is None:
            found = Namespace(self.number("namespace"), name, None, None, time, time)
            self.namespaces[name] = found
            self.dirty["namespace"][found.id] = found
        elif time < found.created:
            found.created = time
            self.dirty["namespace"][found.id] = found
        return found

    def source(self, name: str, kind: str, url: str, time: int) -> Source:
        """The source of this name, made if it is new."""
        found = self.sources.get(name)
        if found is None:
            sql = "SELECT id, name, kind, url, description, created, updated FROM source WHERE name = ?"
            rows = self.connection.all(sql, (name,))
            found = Source(*rows[0]) if rows else None
        if found is None:
            found = Source(self.number("source"), name, kind, url, None, time, time)
            self.dirty["source"][found.id] = found
        self.sources[name] = found
        return found

    def new_dataset(self, key: Key, time: int) -> Dataset:
        """A dataset row for a name not seen before."""
        space = self.namespace(key[0], time)
        number = self.number("dataset")
        dataset = Dataset(
            number, space.id, key[0], key[1], number, None, "DB_TABLE", time, time, 0, None,
            DatasetState(),
        )  # fmt: skip
        self.datasets[key] = self.datasets_by_id[number] = dataset
        self.dirty["dataset"][number] = dataset
        return dataset

    def new_job(self, key: Key, time: int) -> Job:
        """A job row for a name not seen before."""
        space = self.namespace(key[0], time)
        number = self.number("job")
        job = Job(
            number, space.id, key[0], key[1], "BATCH", time, time, 0, None, None, JobState(),
            fresh=True,
        )  # fmt: skip
        self.jobs[key] = self.jobs_by_id[number] = job
        self.dirty["job"][number] = job
        return job

    def new_run(self, uuid: bytes, job: int, state: RunState) -> Run:
        """A run row for a UUID not seen before."""
        run = Run(self.number("run"), uuid, job, state, fresh=True)
        self.runs[uuid] = run
        return run

    def count(self, hour: int, kind: int) -> None:
        """Count one event of its kind in its hour."""
        key = (hour, kind)
        if key not in self.counts:
            sql = "SELECT n FROM event_count WHERE hour = ? AND type = ?"
            rows = self.connection.all(sql, key)
            self.counts[key] = int(rows[0][0]) if rows else 0
        self.counts[key] += 1
        self.dirty["count"][key] = None

    def touch(self, run: Run) -> None:
        """Note that a run has changed."""
        self.dirty["run"][run.id] = run
        self._touched[run.job][run.id] = run

    def flush(self) -> None:
        """Write everything that changed, table by table."""
        for name in ("namespace", "source", "dataset", "job"):
            changed = self.dirty.get(name)
            if changed:
                self.connection.upsert(TABLES[name], [e.row() for e in changed.values()])
        runs = [run.row() for run in self.dirty["run"].values()]
        self.rows["run"] += [row for row in runs if len(row) > 4]
        self.rows["run_state"] += [row for row in runs if len(row) == 4]
        edges = [row for rows in self.edges.values() for row in rows]
        if edges:
            self.connection.upsert(TABLES["edge"], edges)
        counted = [(*key, self.counts[key]) for key in self.dirty["count"]]
        if counted:
            self.connection.upsert(TABLES["event_count"], counted)
        for name, rows in self.rows.items():
            if rows:
                self.connection.upsert(TABLES[name], rows)
        for job in self.dirty["job"].values():
            job.fresh = False
        for run in self.dirty["run"].values():
            run.fresh = False
        self.dirty.clear()
        self.rows.clear()
        self.edges.clear()
        self._touched.clear()

    def trim(self) -> None:
        """Keep the working set bounded; the oldest half goes when it has grown too large."""
        _halve(self.facets, FACETS_KEPT)
        _halve(self.runs, KEPT)
        _halve(self.bodies, 4_000)
        _halve(self.column_sources, 4_000)
        _halve(self.counts, 5_000)
        _halve(self.aliases, KEPT)
        _halve(self.sources, KEPT)
        _halve(self.namespaces, KEPT)
        if len(self.datasets) > KEPT:
            for dropped in _halve(self.datasets, KEPT):
                self.datasets_by_id.pop(dropped.id, None)
        if len(self.jobs) > KEPT:
            for gone in _halve(self.jobs, KEPT):
                self.jobs_by_id.pop(gone.id, None)


def _halve(held: dict[K, V], limit: int) -> list[V]:
    if len(held) <= limit:
        return []
    oldest = list(held)[: len(held) // 2]
    return [held.pop(key) for key in oldest]
