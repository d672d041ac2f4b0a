"""The writer's working set: entities by key, what changed in this commit, and how it is written."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.server.store import entities
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
from headwater.server.store.folding import Folds
from headwater.server.store.numbering import Numbering
from headwater.server.store.schema import TABLES

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.database import Connection
    from headwater.server.store.loading import Key
    from headwater.server.store.packing import Packer
    from headwater.server.store.parts import Part, Prepared

__all__ = ["Session"]

KEPT = 20_000
RUNS_KEPT = 5_000
FACETS_KEPT = 150_000
K = TypeVar("K")
V = TypeVar("V")


class Session(Numbering):
    """Entities loaded once and kept; after a failed commit, forgotten and loaded again."""

    def __init__(self, connection: Connection, packer: Packer) -> None:
        super().__init__(connection, packer)
        self.sources: dict[str, Source] = {}
        self.counts: dict[tuple[int, int], int] = {}
        self.dirty: dict[str, dict[Any, Any]] = defaultdict(dict)
        self.edges: dict[int, list[tuple[Any, ...]]] = {}
        self._touched: dict[int, dict[int, Run]] = defaultdict(dict)
        self.folds = Folds()

    def forget(self) -> None:
        """Drop everything; the next use loads it from the database."""
        for held in (
            self.facets, self.namespaces, self.sources, self.datasets, self.datasets_by_id,
            self.jobs, self.jobs_by_id, self.runs, self.aliases, self.clusters, self.counts,
            self.bodies, self.column_sources,
            self._next, self.dirty, self.rows, self.edges, self._touched,
        ):  # fmt: skip
            held.clear()
        self.folds = Folds()

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
            self.number_parts(parts)

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

    def namespace(self, name: str, time: int) -> Namespace:
        """The namespace of this name, made if it is new."""
        found = self.namespaces.get(name)
        if found is None:
            found = Namespace(self.number("namespace"), name, None, None, time, time)
            self.namespaces[name] = found
            self.dirty["namespace"][found.id] = found
        elif time < found.created or found.hidden:
            found.created, found.hidden = min(found.created, time), 0
            self.dirty["namespace"][found.id] = found
        return found

    def revive(self, entity: Dataset | Job, time: int) -> None:
        """Show again what was deleted, in a namespace that is shown."""
        entity.hidden = 0
        self.load_namespaces({entity.space})
        self.namespace(entity.space, time)

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
        if folds := list(self.dirty["fold"].values()):
            self.connection.upsert(TABLES["fold"], folds)
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
        _halve(self.runs, RUNS_KEPT)
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
