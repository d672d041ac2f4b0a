"""Brings entities into the writer's working set, each once, in few queries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.server.store import entities
from headwater.server.store.database import Connection, within
from headwater.server.store.entities import Dataset, Job, Namespace, Run

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Key", "Loading"]

Key = tuple[str, str]


_KEYS = "WITH k (space, name) AS ({in}) "


_BY_KEY = " FROM k JOIN namespace n ON n.name = k.space"


_DATASET = (
    "SELECT d.id, d.namespace, n.name, d.name, d.root, d.source, d.kind, d.created, d.updated,"
    " d.hidden, d.version, d.state FROM dataset d JOIN namespace n ON n.id = d.namespace"
)


_JOB = (
    "SELECT j.id, j.namespace, n.name, j.name, j.kind, j.created, j.updated, j.hidden, j.latest,"
    " j.version, j.state FROM job j JOIN namespace n ON n.id = j.namespace"
)


_DATASETS_BY_KEY = (
    _KEYS
    + _DATASET.split(" FROM ", maxsplit=1)[0]
    + _BY_KEY
    + " JOIN dataset d ON d.namespace = n.id AND d.name = k.name"
)


_JOBS_BY_KEY = (
    _KEYS
    + _JOB.split(" FROM ", maxsplit=1)[0]
    + _BY_KEY
    + " JOIN job j ON j.namespace = n.id AND j.name = k.name"
)


class Loading:
    """Entities by name and by id, as far as they have been needed."""

    def __init__(self, connection: Connection) -> None:
        self.connection = connection
        self.namespaces: dict[str, Namespace] = {}
        self.datasets: dict[Key, Dataset] = {}
        self.datasets_by_id: dict[int, Dataset] = {}
        self.jobs: dict[Key, Job] = {}
        self.jobs_by_id: dict[int, Job] = {}
        self.runs: dict[bytes, Run] = {}
        self.aliases: dict[Key, int] = {}

    def load_datasets(self, keys: Iterable[Key]) -> None:
        """Bring datasets in by name, with what their names stand for."""
        missing = [key for key in keys if key not in self.datasets]
        if not missing:
            return
        self._keep_datasets(within(self.connection, _DATASETS_BY_KEY, missing))
        unknown = [key for key in missing if key not in self.datasets and key not in self.aliases]
        if unknown:
            sql = _KEYS + (  # noqa: S608
                "SELECT a.namespace, a.name, a.dataset FROM k JOIN alias a"
                " ON a.namespace = k.space AND a.name = k.name"
            )
            for namespace, name, target in within(self.connection, sql, unknown):
                self.aliases[namespace, name] = target
        self.load_namespaces({key[0] for key in missing})

    def datasets_of(self, ids: Iterable[int]) -> list[Dataset]:
        """The datasets with these ids."""
        wanted = list(ids)
        missing = [i for i in wanted if i not in self.datasets_by_id]
        if missing:
            rows = within(self.connection, _DATASET + " WHERE d.id IN ({in})", missing)
            self._keep_datasets(rows)
        return [self.datasets_by_id[i] for i in wanted if i in self.datasets_by_id]

    def datasets_in(self, namespace: str) -> list[Dataset]:
        """Every dataset of a namespace."""
        rows = self.connection.all(_DATASET + " WHERE n.name = ?", (namespace,))
        self._keep_datasets(rows)
        return [d for d in self.datasets_by_id.values() if d.space == namespace]

    def _keep_datasets(self, rows: list[tuple[Any, ...]]) -> None:
        for row in rows:
            if row[0] not in self.datasets_by_id:
                dataset = entities.to_dataset(row)
                self.datasets[dataset.space, dataset.name] = dataset
                self.datasets_by_id[dataset.id] = dataset

    def load_jobs(self, keys: Iterable[Key]) -> None:
        """Bring jobs in by name."""
        missing = [key for key in keys if key not in self.jobs]
        if missing:
            self._keep_jobs(within(self.connection, _JOBS_BY_KEY, missing))
            self.load_namespaces({key[0] for key in missing})

    def job_of(self, job_id: int) -> Job:
        """The job with this id."""
        if job_id not in self.jobs_by_id:
            self._keep_jobs(self.connection.all(_JOB + " WHERE j.id = ?", (job_id,)))
        return self.jobs_by_id[job_id]

    def _keep_jobs(self, rows: list[tuple[Any, ...]]) -> None:
        for row in rows:
            if row[0] not in self.jobs_by_id:
                job = entities.to_job(row)
                self.jobs[job.space, job.name] = job
                self.jobs_by_id[job.id] = job

    def load_runs(self, uuids: Iterable[bytes]) -> None:
        """Bring runs in by their UUID."""
        missing = [uuid for uuid in uuids if uuid not in self.runs]
        if missing:
            sql = "SELECT id, uuid, job, state FROM run WHERE uuid IN ({in})"
            for run_id, uuid, job, state in within(self.connection, sql, missing):
                self.runs[bytes(uuid)] = entities.to_run((run_id, uuid, job, state))

    def load_namespaces(self, names: set[str]) -> None:
        """Bring namespaces in by name."""
        missing = [name for name in names if name not in self.namespaces]
        if missing:
            sql = (
                "SELECT id, name, owner, description, created, updated, hidden FROM namespace"
                " WHERE name IN ({in})"
            )
            for row in within(self.connection, sql, missing):
                self.namespaces[row[1]] = Namespace(*row)
