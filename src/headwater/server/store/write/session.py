"""The writer's working set: entities by key, what changed in this commit, and how it is written."""

from __future__ import annotations

import hashlib
import sys
from collections import defaultdict
from itertools import count, islice
from typing import TYPE_CHECKING, Any, TypeVar

from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage import lineage_facet
from headwater.lineage.openlineage.events import canonical
from headwater.lineage.schema import SchemaOrigin, attributed, read_fields, replace_fields
from headwater.server.store import entities
from headwater.server.store.database import within
from headwater.server.store.database.schema import TABLES
from headwater.server.store.deciding_run import latest_news
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
from headwater.server.store.planned_ends import is_stream
from headwater.server.store.write import named_parents
from headwater.server.store.write.store_types import type_of
from headwater.server.store.write.task_jobs import PART_OF, ParentJobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.lineage.schema import Field
    from headwater.server.store.database import Connection
    from headwater.server.store.database.packing import Packer
    from headwater.server.store.write.incoming.prepared import EventPart, PreparedEvent

__all__ = ["HIGHEST", "SHARES_RUNS", "Key", "WriteSession"]

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
NUMBERED = (
    "namespace", "source", "dataset", "job", "run", "facet", "dataset_version", "job_version",
)  # fmt: skip
HIGHEST = "highest."
"""Before the name of a table: the highest number that a purge took out of it.

Records that stay name it, and must not be taken for those of what is numbered next.
"""
SHARES_RUNS = "shares_runs"
"""The setting of a store in which a job reported under the id of another job's run."""
_NONE: list[Any] = []
_OF_JOBS = {"jobType", PART_OF}
ASSERTIONS, ORIGIN = "dataQualityAssertions", "headwater_schemaSource"
_OF_DATASETS = {"symlinks", "lineage", "lifecycleStateChange", ASSERTIONS}

_READ = {"schema", "columnLineage", ORIGIN, *_OF_JOBS, *_OF_DATASETS}
"""The facets that are read once for all events that send them."""

KEPT = 20_000
RUNS_KEPT = 5_000
RUNS_READ = 64
BODIES_BYTES = 32 * 1024 * 1024
"""Bytes of new facets after which those in memory are dropped: a few could be as large as many."""
FIELDS_KEPT = 500_000
"""Columns of schemas that were read, some 100 MB, after which all of them are dropped from memory."""
FACETS_KEPT = 150_000
K = TypeVar("K")
V = TypeVar("V")


class WriteSession:
    """Entities loaded once and kept; after a failed commit, forgotten and loaded again."""

    def __init__(self, connection: Connection, packer: Packer) -> None:
        self.connection = connection
        self.packer = packer
        self.namespaces: dict[str, Namespace] = {}
        self.sources: dict[str, Source] = {}
        self.datasets: dict[Key, Dataset] = {}
        self.datasets_by_id: dict[int, Dataset] = {}
        self.jobs: dict[Key, Job] = {}
        self.jobs_by_id: dict[int, Job] = {}
        self.runs: dict[bytes, Run] = {}
        self.aliases: dict[Key, int] = {}
        self.clusters: dict[str, str] = {}
        self.facets: dict[bytes, int] = {}
        self.bodies: dict[int, bytes] = {}
        self._new_bytes = 0
        self._fields_kept = 0
        self.column_sources: dict[int, set[Key]] = {}
        self.symlinks: dict[int, tuple[Key, ...]] = {}
        self.contested: set[int] = set()
        self.schemas: dict[int, tuple[Field, ...]] = {}
        self.merged: set[int] = set()
        """Datasets that other names stand for since this event."""
        self.fresh: set[int] = set()
        self.moved: dict[int, Dataset] = {}
        """What this commit has made, and what stands for another dataset since."""
        self.log_end = sys.maxsize
        """The last record of the log that stands under its job and run."""
        self.floor = 0
        """The moment before which schemas are kept as they were computed."""
        self.counts: dict[tuple[int, int], int] = {}
        self.dirty: dict[str, dict[Any, Any]] = defaultdict(dict)
        self.rows: dict[str, list[tuple[Any, ...]]] = defaultdict(list)
        self.edges: dict[int, list[tuple[Any, ...]]] = {}
        self._touched: dict[int, dict[int, Run]] = defaultdict(dict)
        self._next: dict[str, int] = {}
        self.parent_jobs = ParentJobs()
        self._shares_runs: bool | None = None
        self._named_parents: set[tuple[str, str, int]] = set()

    def forget(self) -> None:
        """Drop everything; the next use loads it from the database."""
        for held in (
            self.facets, self.namespaces, self.sources, self.datasets, self.datasets_by_id,
            self.jobs, self.jobs_by_id, self.runs, self.aliases, self.clusters, self.counts,
            self.bodies, self.column_sources, self.symlinks, self.contested, self.schemas,
            self.merged, self.fresh, self.moved,
            self._next, self.dirty, self.rows, self.edges, self._touched, self._named_parents,
        ):  # fmt: skip
            held.clear()
        self.log_end = sys.maxsize
        self.parent_jobs = ParentJobs()
        self._shares_runs = None

    def load(self, group: Iterable[PreparedEvent]) -> None:
        """Bring in whatever the events of one group touch, in a few queries."""
        datasets: set[Key] = set()
        jobs: set[Key] = set()
        runs: set[bytes] = set()
        parts: list[EventPart] = []
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
            sql = "SELECT id, uuid, job, state FROM run WHERE uuid "
            if len(missing) == 1:  # PostgreSQL plans this once, a list of any length at each use
                rows = self.connection.all(sql + "= ?", missing)
            else:
                rows = within(self.connection, sql + "IN ({in})", missing)
            for run_id, uuid, job, state in rows:
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

    def number(self, table: str) -> int:
        """The next free id of a table."""
        if table not in self._next:
            for name in NUMBERED:
                rows = self.connection.all(f"SELECT max(id) FROM {name}")  # noqa: S608
                self._next[name] = int(rows[0][0] or 0) + 1
            sql = "SELECT name, value FROM setting WHERE name LIKE ?"
            for name, highest in self.connection.all(sql, (f"{HIGHEST}%",)):
                table_of = name[len(HIGHEST) :]
                self._next[table_of] = max(self._next[table_of], int(highest) + 1)
            clusters = self.connection.all("SELECT dataset_namespace, id FROM cluster")
            self.clusters.update(dict(clusters))
        self._next[table] += 1
        return self._next[table] - 1

    def number_parts(self, parts: list[EventPart]) -> None:
        """Give the facets of new parts their numbers; facets not met before get new ones."""
        parts = list(dict.fromkeys(parts))  # one part may stand in several events of a group
        unnumbered = [f for part in parts for _, f in part.facets if f.number < 0]
        unnumbered += [f for part in parts if part.io for _, f in part.io if f.number < 0]
        new = {f.hash: f for f in unnumbered if f.hash not in self.facets}
        if new:
            sql = "SELECT hash, id FROM facet WHERE hash IN ({in})"
            self.facets.update({bytes(h): i for h, i in within(self.connection, sql, new)})
        for digest, facet in new.items():
            if digest not in self.facets:
                number = self.facets[digest] = 0 if facet.deleted else self.number("facet")
                if number:
                    self.bodies[number] = facet.body
                    self._new_bytes += len(facet.body)
                    if facet.sources is not None:
                        self.column_sources[number] = facet.sources
                    packed = self.packer.pack(facet.body)
                    self.rows["facet"].append((number, digest, *packed))
        for facet in unnumbered:
            facet.number = self.facets[facet.hash]
            facet.body, facet.sources = b"", None
        for part in parts:
            part.numbers = [(name, f.number) for name, f in part.facets]
            part.io_numbers = [(name, f.number) for name, f in part.io] if part.io else []
            part.facets = part.io = _NONE
            self._understand(part)

    def _understand(self, part: EventPart) -> None:
        """Note what the parts' facets report of lineage and life, once for all its events."""
        source = None
        for name, number in part.numbers or ():
            if name not in _READ:
                continue
            if name == "schema":
                part.schema = number
            elif name == "columnLineage":
                if not part.explicit:
                    part.columns = number
            elif name in _OF_JOBS:
                self._understand_job(part, name, number)
            elif name == ORIGIN:
                source = known.read(self.body(number), SchemaOrigin) if number else None
            elif name in _OF_DATASETS:
                self._understand_dataset(part, name, number)
        if part.change == "OVERWRITE" and self._is_partial(part):
            part.change = ""  # what others wrote stays, so it is a write like any other
        if source is not None and part.schema:
            self._attribute(part, source)

    def _understand_dataset(self, part: EventPart, name: str, number: int) -> None:
        if name == "symlinks":
            part.symlinks = number
        elif name == ASSERTIONS:
            # What checks found belongs to one use of a dataset; some producers put it beside the schema.
            if all(own != ASSERTIONS for own, _ in part.io_numbers):
                part.io_numbers.append((name, number))
        elif number and name == "lineage":
            read = known.read(self.body(number), known.LineageFacet)
            explicit = lineage_facet.of_dataset(read) if read else None
            if explicit is not None:
                part.columns, part.explicit = self.intern(explicit), True
            if read and read.entries:
                stated = lineage_facet.of_job(read).items()
                part.stated = {key: self.intern(body) for key, body in stated}
        elif number:
            change = known.read(self.body(number), known.LifecycleFacet)
            part.change = (change.lifecycleStateChange if change else None) or ""

    def _is_partial(self, part: EventPart) -> bool:
        for name, number in part.io_numbers:
            if name == known.OVERWRITTEN and number:
                read = known.read(self.body(number), known.OverwriteFacet)
                return bool(read and read.partial)
        return False

    def _understand_job(self, part: EventPart, name: str, number: int) -> None:
        if name == PART_OF:
            part.names_parent = True
        elif number and (kind := known.read(self.body(number), known.JobTypeFacet)):
            part.streaming, part.pattern = kind.streaming, _pattern(kind)

    def _attribute(self, part: EventPart, source: SchemaOrigin) -> None:
        """Split a schema by the subjects that a registry or catalog answered it from."""
        fields = self.fields(part.schema)
        origins, rest = attributed(source, fields)
        part.origins = tuple(
            (subject, version, self.facet_of(part.schema, covered))
            for subject, version, covered in origins
        )
        part.schema = self.facet_of(part.schema, rest) if rest else 0

    def facet_of(self, like: int, fields: tuple[Field, ...]) -> int:
        """The number of the schema facet with these fields, by the producer of another one."""
        if fields == self.fields(like):
            return like
        return self.intern(canonical(replace_fields(self.body(like), fields)))

    def fields(self, number: int) -> tuple[Field, ...]:
        """The fields of a stored schema facet; none where it cannot be read."""
        found = self.schemas.get(number)
        if found is None:
            found = self.schemas[number] = read_fields(self.body(number))
            self._fields_kept += len(found)
        return found

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
            read = known.read(self.body(number), known.ColumnLineageFacet)
            found = self.column_sources[number] = known.sources(read) if read else set()
        return found

    def symlinks_of(self, number: int) -> tuple[Key, ...]:
        """The names in a stored `symlinks` facet."""
        found = self.symlinks.get(number)
        if found is None:
            read = known.read(self.body(number), known.SymlinksFacet)
            found = self.symlinks[number] = read.names() if read else ()
        return found

    def alias_of(self, key: Key) -> int | None:
        """The dataset that a name was declared to stand for, also where the name is a dataset too."""
        if key not in self.aliases:
            sql = "SELECT dataset FROM alias WHERE namespace = ? AND name = ?"
            for (target,) in self.connection.all(sql, key):
                self.aliases[key] = target
        return self.aliases.get(key)

    def root_of(self, key: Key) -> int | None:
        """The dataset that a loaded name stands for; None where it is new."""
        found = self.datasets.get(key)
        if found is None and (target := self.aliases.get(key)) is not None:
            found = next(iter(self.datasets_of([target])), None)
        return found.root if found is not None else None

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

    def is_only_run(self, job: Job, run: Run) -> bool:
        """Whether a job that is new in this commit has no run but this one."""
        return job.fresh and self._touched[job.id].keys() == {run.id}

    def latest_of(self, job: Job) -> Run | None:
        """The run of a job that began last, as it stands in this commit."""
        touched = self._touched.get(job.id, {})
        found = [run for run in touched.values() if not run.state.static]
        if not job.fresh:
            rows = (row for row in self._newest_first(job) if row[0] not in touched)
            stored = (run for run in map(entities.to_run, rows) if not run.state.static)
            found += islice(stored, 1)
        return max(found, key=lambda run: (run.state.life.first or 0, run.uuid), default=None)

    def _newest_first(self, job: Job) -> Iterator[tuple[Any, ...]]:
        """The stored runs of a job, read step by step: among them is what job events declared."""
        sql = (
            "SELECT id, uuid, job, state FROM run WHERE job = ?"
            " ORDER BY created DESC, uuid DESC LIMIT ? OFFSET ?"
        )
        for start in count(0, RUNS_READ):
            rows = self.connection.all(sql, (job.id, RUNS_READ, start))
            yield from rows
            if len(rows) < RUNS_READ:
                return

    def deciding_runs(self, job: Job, run: Run | None) -> list[Run]:
        """The runs of which one decides about a job's state, as they stand in this commit.

        In a stream, those that reported less lately than `run`, or else than the newest, cannot.
        """
        found = dict(self._touched.get(job.id, {}))
        streaming = is_stream(job)
        if run is None or not streaming:
            self.load_runs([job.state.latest_uuid])
            run = self.runs.get(job.state.latest_uuid) or self.latest_of(job)
        if run is None:
            return []
        if streaming:
            where, since = "updated >= ?", latest_news(run.state.life)
        elif run.state.life.end is None:
            return [run]
        else:
            found[run.id] = run
            where, since = "ended IS NULL AND updated > ?", run.state.life.end
        if not job.fresh:
            sql = f"SELECT id, uuid, job, state FROM run WHERE job = ? AND {where}"  # noqa: S608
            for row in self.connection.all(sql, (job.id, since)):
                found.setdefault(row[0], self.runs.get(bytes(row[1])) or entities.to_run(row))
        return [one for one in found.values() if not one.state.static]

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
        self.write("deletion")
        kind = int(isinstance(entity, Job))
        sql = "SELECT since FROM deletion WHERE kind = ? AND entity = ? AND until IS NULL"
        for (since,) in self.connection.all(sql, (kind, entity.id)):
            self.rows["deletion"].append((kind, entity.id, since, max(since, time)))
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
        kind = type_of(key[0], "DB_TABLE")
        dataset = Dataset(
            number, space.id, key[0], key[1], number, None, kind, time, time, 0, None,
            DatasetState(),
        )  # fmt: skip
        self.datasets[key] = self.datasets_by_id[number] = dataset
        self.dirty["dataset"][number] = dataset
        self.fresh.add(number)
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

    @property
    def shares_runs(self) -> bool:
        """Whether a job ever reported under the id of another job's run."""
        if self._shares_runs is None:
            rows = self.connection.all("SELECT 1 FROM setting WHERE name = ?", (SHARES_RUNS,))
            self._shares_runs = bool(rows)
        return self._shares_runs

    def share_runs(self) -> None:
        """Note that a job reports under the id of another job's run."""
        if not self.shares_runs:
            sql = "INSERT INTO setting (name, value) VALUES (?, '1')"
            self.connection.run(sql, (SHARES_RUNS,))
            self._shares_runs = True

    def name_parent(self, job: Job, parent: known.ParentFacet | None) -> None:
        """Note which job a run of a job names as its parent."""
        key = named_parents.named(parent)
        if key is not None and (row := (*key, job.id)) not in self._named_parents:
            self._named_parents.add(row)
            self.rows["named_parent"].append(row)

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
        self.fresh.clear()
        self.moved.clear()

    def write(self, name: str) -> None:
        """Write what is still to be written of one table, so that it can be read."""
        if rows := self.rows.get(name):
            self.connection.upsert(TABLES[name], rows)
            rows.clear()

    def trim(self) -> None:
        """Keep the working set bounded; the oldest half goes when it has grown too large."""
        _halve(self.facets, FACETS_KEPT)
        _halve(self.runs, RUNS_KEPT)
        if self._new_bytes > BODIES_BYTES:
            self.bodies.clear()
            self._new_bytes = 0
        _halve(self.bodies, 4_000)
        _halve(self.column_sources, 4_000)
        _halve(self.symlinks, 4_000)
        if self._fields_kept > FIELDS_KEPT:
            self.schemas.clear()
            self._fields_kept = 0
        _halve(self.schemas, 4_000)
        _halve(self.counts, 5_000)
        if len(self._named_parents) > KEPT:
            self._named_parents.clear()
        _halve(self.aliases, KEPT)
        _halve(self.sources, KEPT)
        _halve(self.namespaces, KEPT)
        if len(self.datasets) > KEPT:
            for dropped in _halve(self.datasets, KEPT):
                self.datasets_by_id.pop(dropped.id, None)
        if len(self.jobs) > KEPT:
            for gone in _halve(self.jobs, KEPT):
                self.jobs_by_id.pop(gone.id, None)


def _pattern(kind: known.JobTypeFacet) -> tuple[int | None, bool] | None:
    """How often a job promises to report, and whether its events name all of its datasets."""
    pattern = kind.emissionPattern
    if pattern is None:
        return None
    found = pattern.interval, pattern.eventContentMode == "COMPLETE_SNAPSHOT"
    return found if found != (None, False) else None


def _halve(held: dict[K, V], limit: int) -> list[V]:
    if len(held) <= limit:
        return []
    oldest = list(held)[: len(held) // 2]
    return [held.pop(key) for key in oldest]
