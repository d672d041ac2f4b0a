"""From the records of one node to its rows in the derived tables, by the server's own projection.

The records go into a store of the server that is rolled back again: what a job's runs, edges and
columns are, and when, is computed in one place only. It is a pure function of the records: neither
their order nor their repetition counts, nor what other jobs report.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
from collections import defaultdict
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from headwater.lake.records import UNLIMITED, job_node, reason_of
from headwater.lake.tables import (
    ALIASES,
    COLUMN_EDGES,
    DATASETS,
    EDGES,
    OWNERS,
    REFUSED,
    RUNS,
    SCHEMAS,
)
from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.facets import ABOUT
from headwater.server.store import StoreError, UnstorableError, open_store
from headwater.server.store.entities import OUTPUT, to_dataset, to_job, to_run
from headwater.server.store.keep.rebuild import project
from headwater.server.store.read.column_graph import column_edges
from headwater.server.store.view import DATASETS as STORED_DATASETS
from headwater.server.store.view import JOBS as STORED_JOBS
from headwater.server.store.write.commands import NoSuchError
from headwater.server.store.write.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headwater.lineage.columns import ColumnEdge
    from headwater.server.store import Store
    from headwater.server.store.database import ReadConnection
    from headwater.server.store.entities import Dataset, Job

__all__ = ["LogRecord", "Projector"]

STEP = 512
Row = dict[str, Any]
Interval = tuple[int, "int | None"]
_JOBS = "SELECT j.id, n.name, j.name FROM job j JOIN namespace n ON n.id = j.namespace"
_DATASETS = (
    "SELECT d.id, n.name, d.name, d.created FROM dataset d JOIN namespace n ON n.id = d.namespace"
)
_EDGES = (
    "SELECT job, dataset, direction, since, until FROM edge ORDER BY job, dataset, direction, since"
)
_SCHEMAS = (
    "SELECT entity, time, facet FROM facet_change WHERE kind = 0 AND name = 'schema'"
    " ORDER BY entity, time"
)
_MAPS = "SELECT dataset, job, time, facet FROM column_map ORDER BY dataset, job, time, facet"
_ALIASES = (
    "SELECT 'dataset', a.namespace, a.name, n.name, d.name FROM alias a"
    " JOIN dataset d ON d.id = a.dataset JOIN namespace n ON n.id = d.namespace"
    " UNION ALL SELECT 'namespace', dataset_namespace, '', id, '' FROM cluster"
    " UNION ALL SELECT 'job', n.name, j.name, f.namespace, f.name FROM fold f"
    " JOIN job j ON j.id = f.job JOIN namespace n ON n.id = j.namespace"
)
_SIDES = ("input", "output")
_OWNED = (ABOUT, "ownership")
"""The facets that name owners, as for the server: what people set on the page counts first."""
_encode = msgspec.json.Encoder(order="sorted").encode


class LogRecord(NamedTuple):
    """A record as a server's log has it: 0 for an event and 1 for a command, arrival, and body.

    `place` is its topic, partition and offset, where it has been in one.
    """

    kind: int
    at: int
    body: bytes
    place: tuple[str, int, int] | None = None


class Projector:
    """Computes the rows of one node after the other."""

    def __init__(self) -> None:
        self._folder = tempfile.mkdtemp(prefix="headwater-lake-")
        self._store = open_store(f"sqlite:///{Path(self._folder) / 'scratch.db'}", limits=UNLIMITED)

    def close(self) -> None:
        """Let go of the store."""
        self._store.close()
        shutil.rmtree(self._folder, ignore_errors=True)

    def rows(self, node: str, records: Iterable[LogRecord]) -> Iterator[tuple[str, Row]]:
        """The rows of a node, each with the name of its table, from all its records in any order.

        A record that the projection fails on is a row of `refused`, and the others are as without it.
        So is the last one where the rows cannot all be made of what was projected.
        """
        store = self._store
        refused: list[Row] = []
        newest: LogRecord | None = None

        def watched() -> Iterator[LogRecord]:
            nonlocal newest
            for newest in records:  # noqa: UP028  (the last one is looked at)
                yield newest

        store.begin()
        try:
            replay(store, watched(), lambda *failed: refused.append(_refused(*failed)))
            yield from _Rows(store, node).all()
        except Exception as error:
            if newest is None or _of_the_machine(error):
                raise
            refused.append(_refused(newest, error))
        finally:
            store.abandon()
        yield from ((REFUSED.name, row) for row in refused)


def replay(
    store: Store,
    records: Iterable[LogRecord],
    refuse: Callable[[LogRecord, Exception], None] = lambda *_: None,
) -> None:
    """Apply records to the projection of a store, in the transaction that is open.

    Those that it fails on are left out, each by itself, and handed to `refuse`.
    """
    waiting = iter(records)
    while some := list(itertools.islice(waiting, STEP)):
        if _failure(store, some) is None:
            continue
        for record in some:
            if (error := _failure(store, [record])) is not None:
                refuse(record, error)


def _failure(store: Store, records: list[LogRecord]) -> Exception | None:
    """Apply some records, all or none; why it was none."""
    store.connection.run("SAVEPOINT records")
    try:
        projection = Projection(store.session)
        for kind, at, body, _ in records:
            # A command may be about what other records brought, or what was purged since.
            with suppress(NoSuchError):
                project(store, projection, kind, at, body)
        store.session.flush()
    except Exception as error:
        if _of_the_machine(error):
            raise
        store.connection.run("ROLLBACK TO records")
        store.forget()
        return error
    store.connection.run("RELEASE records")
    store.session.trim()
    store.reader.trim()
    return None


def _of_the_machine(error: Exception) -> bool:
    """Whether no record is to blame, so that all of them may be taken the next time."""
    store = isinstance(error, StoreError) and not isinstance(error, UnstorableError)
    return store or isinstance(error, (OSError, MemoryError))


def _refused(record: LogRecord, error: Exception) -> Row:
    topic, partition, offset = record.place or (None, None, None)
    return {
        "arrived": record.at,
        "reason": reason_of(f"the projection failed on it: {error!r}"),
        "topic": topic,
        "kafka_partition": partition,
        "kafka_offset": offset,
        "size": len(record.body),
        "body": record.body.decode(),
    }


class _Rows:
    """What a store has of one node, by names."""

    def __init__(self, store: Store, node: str) -> None:
        self._store = store
        self._connection: ReadConnection = store.connection
        self._node = node
        self._jobs = {row[0]: (row[1], row[2]) for row in self._connection.all(_JOBS)}
        self._datasets = {row[0]: row[1:] for row in self._connection.all(_DATASETS)}

    def all(self) -> Iterator[tuple[str, Row]]:
        written: dict[tuple[int, int], list[Interval]] = defaultdict(list)
        maps = self._maps()
        for job, dataset, direction, since, until in self._connection.all(_EDGES):
            stated = None
            if direction == OUTPUT:
                written[dataset, job].append((since, until))
                if until is None:
                    stated = self._stated(maps.get((dataset, job), []))
            row = {
                **self._job(job), **self._dataset(dataset), "direction": _SIDES[direction],
                "valid_from": since, "valid_to": until, "stated": stated,
            }  # fmt: skip
            yield EDGES.name, row
        for row in self._runs():
            yield RUNS.name, row
        for row in self._schemas():
            yield SCHEMAS.name, row
        for row in self._columns(maps, written):
            yield COLUMN_EDGES.name, row
        for number, (_, _, first) in self._datasets.items():
            yield DATASETS.name, {"node": self._node, **self._dataset(number), "first": first}
        for found in self._connection.all(_ALIASES):
            yield ALIASES.name, dict(zip(ALIASES.names, (self._node, *found), strict=True))
        for row in self._owners():
            yield OWNERS.name, row

    def _job(self, number: int) -> Row:
        namespace, name = self._jobs[number]
        return {"node": job_node(namespace, name), "job_namespace": namespace, "job_name": name}

    def _dataset(self, number: int) -> Row:
        namespace, name, _ = self._datasets[number]
        return {"dataset_namespace": namespace, "dataset_name": name}

    def _body(self, number: int) -> bytes:
        sql = "SELECT dictionary, body FROM facet WHERE id = ?"
        ((dictionary, packed),) = self._connection.all(sql, (number,))
        return self._store.packer.unpack(dictionary, bytes(packed))

    def _owners(self) -> Iterator[Row]:
        entities: list[tuple[str, Job | Dataset]] = [
            *(("job", to_job(row)) for row in self._connection.all(STORED_JOBS)),
            *(("dataset", to_dataset(row)) for row in self._connection.all(STORED_DATASETS)),
        ]
        for kind, entity in entities:
            for facet in (name for name in _OWNED if name in entity.state.facets):
                number, since = entity.state.facets[facet][:2]
                names = dict.fromkeys(_owner_names(self._body(number)) if number else ())
                for owner in names:
                    yield {
                        "node": self._node, "kind": kind, "namespace": entity.space,
                        "name": entity.name, "owner": owner, "edited": facet == ABOUT,
                        "since": since,
                    }  # fmt: skip
                if names:
                    break

    def _runs(self) -> Iterator[Row]:
        for found in self._connection.all("SELECT id, uuid, job, state FROM run"):
            run = to_run(found)
            if run.state.static:
                continue
            life = run.state.life
            yield {
                **self._job(run.job),
                "run": str(UUID(bytes=run.uuid)),
                "state": life.state.value,
                "first": life.first,
                "started": life.started,
                "ended": life.end,
                "inferred": life.is_inferred,
                "last": life.last,
                "parent": run.state.parent,
            }

    def _schemas(self) -> Iterator[Row]:
        rows = self._connection.all(_SCHEMAS)
        for dataset, found in itertools.groupby(rows, key=lambda row: int(row[0])):
            changes = [(time, facet) for _, time, facet in found]
            for (since, until), facet in _in_force(changes):
                fields = msgspec.json.decode(self._body(facet)).get("fields")
                yield {
                    "node": self._node,
                    **self._dataset(dataset),
                    "valid_from": since,
                    "valid_to": until,
                    "fields": _encode(fields).decode(),
                }

    def _maps(self) -> dict[tuple[int, int], list[tuple[Interval, int]]]:
        """What was in force of what each job reported of the columns of a dataset, and when."""
        rows = self._connection.all(_MAPS)
        grouped = itertools.groupby(rows, key=lambda row: (int(row[0]), int(row[1])))
        return {
            key: list(_in_force([(time, facet) for _, _, time, facet in found]))
            for key, found in grouped
            if key[1]
        }

    def _stated(self, maps: list[tuple[Interval, int]]) -> str | None:
        """What an explicit facet in force says that a dataset is made of."""
        if not maps or maps[-1][0][1] is not None:
            return None
        read = known.read(self._body(maps[-1][1]), known.ColumnLineageFacet)
        return _encode(sorted(known.sources(read))).decode() if read and read.explicit else None

    def _columns(
        self,
        maps: dict[tuple[int, int], list[tuple[Interval, int]]],
        written: dict[tuple[int, int], list[Interval]],
    ) -> Iterator[Row]:
        """Where columns come from, while the job wrote the dataset and reported nothing else."""
        for key, found in maps.items():
            dataset, job = key
            held: dict[ColumnEdge, list[Interval]] = defaultdict(list)
            for span, facet in found:
                for edge in column_edges(self._body(facet)):
                    held[edge] += _within(span, written.get(key, []))
            for edge, spans in held.items():
                for since, until in _joined(spans):
                    yield {
                        **self._job(job),
                        "source_namespace": edge.namespace,
                        "source_name": edge.name,
                        "source_field": edge.field,
                        **self._dataset(dataset),
                        "field": edge.output,
                        "valid_from": since,
                        "valid_to": until,
                        "transformations": _encode(edge.transformations).decode(),
                    }


def _owner_names(body: bytes) -> list[str]:
    facet = msgspec.json.decode(body)
    listed = facet.get("owners") if isinstance(facet, dict) else None
    found = listed if isinstance(listed, list) else []
    return [str(one["name"]) for one in found if isinstance(one, dict) and one.get("name")]


def _in_force(changes: list[tuple[int, int]]) -> Iterator[tuple[Interval, int]]:
    """From when until when each facet was the one in force; of one moment the last one is, 0 is none."""
    latest = dict(sorted(changes))
    kept: list[tuple[int, int]] = []
    for time, facet in latest.items():
        if not kept or kept[-1][1] != facet:
            kept.append((time, facet))
    for (since, facet), following in itertools.zip_longest(kept, kept[1:]):
        if facet:
            yield (since, following[0] if following else None), facet


def _within(span: Interval, others: list[Interval]) -> list[Interval]:
    """The parts of a span that lie within one of the others."""
    found: list[Interval] = []
    for since, until in others:
        ends = [end for end in (span[1], until) if end is not None]
        first, last = max(span[0], since), min(ends, default=None)
        if last is None or first < last:
            found.append((first, last))
    return found


def _joined(spans: list[Interval]) -> list[Interval]:
    """Spans in order, those that meet as one."""
    found: list[Interval] = []
    for since, until in sorted(spans, key=lambda span: span[0]):
        if found and found[-1][1] == since:
            found[-1] = (found[-1][0], until)
        else:
            found.append((since, until))
    return found
