"""What Spark's workers call: batches of Arrow in, batches of Arrow out.

Functions here are found by name on an executor, so what a reader met is kept as long as its worker is.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]

from headwater.lake.analysis import EstateRow, Member, Part, analyse_component, join_estate
from headwater.lake.projection import LogRecord, Projector
from headwater.lake.purged import Purges
from headwater.lake.records import Arrival, RecordReader
from headwater.lake.tables import ANALYSED_COLUMNS, ANALYSED_DATASETS, DERIVED, EVENTS, REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from headwater.lake.tables import LakeColumn

__all__ = [
    "ANALYSED", "JOINED", "PROJECTED", "PURGED", "READ",
    "analyse_batches", "join_batches", "project_batches", "purged_batches", "read_batches",
]  # fmt: skip

_TYPES: dict[str, Any] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "boolean": pa.bool_(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_COLUMNS: dict[str, LakeColumn] = {c.name: c for c in (*EVENTS.columns, *REFUSED.columns)}
READ = "destination string, " + ", ".join(f"{c.name} {c.type}" for c in _COLUMNS.values())
"""The rows of both tables as one: `destination` is the table that each belongs to."""
_DERIVED: dict[str, LakeColumn] = {
    c.name: c for table in (*DERIVED, REFUSED) for c in table.columns
}
PROJECTED = "destination string, " + ", ".join(f"{c.name} {c.type}" for c in _DERIVED.values())
"""The rows of all derived tables and of `refused` as one, with the columns of all of them."""
PURGED = "topic string, kafka_partition int, kafka_offset bigint, node string"
"""Where records came from that are to go, and what they are about."""
JOINED = (
    "kind string, namespace string, name string, number bigint, component bigint, leads boolean"
)
"""What a dataset's name or a job counts as: the fields of `Member`."""
_FIGURES: dict[str, LakeColumn] = {
    c.name: c
    for c in (*ANALYSED_DATASETS.columns, *ANALYSED_COLUMNS.columns)
    if c.name not in ("analysed", "since")
}
ANALYSED = "destination string, " + ", ".join(f"{c.name} {c.type}" for c in _FIGURES.values())
"""The rows of both tables of an analysis as one."""
FIGURES = 50_000
"""Rows of a batch of an analysis: they are small."""
ROWS = 2_000
"""Rows of a batch: bodies are large, and a batch is held twice."""
_JOINED = pa.schema(
    [("kind", pa.string()), ("namespace", pa.string()), ("name", pa.string()),
     ("number", pa.int64()), ("component", pa.int64()), ("leads", pa.bool_())]
)  # fmt: skip


def _schema(columns: dict[str, LakeColumn]) -> Any:
    return pa.schema(
        [("destination", pa.string()), *((c.name, _TYPES[c.type]) for c in columns.values())]
    )


_READ, _PROJECTED, _ANALYSED = map(_schema, (_COLUMNS, _DERIVED, _FIGURES))


@lru_cache(maxsize=1)
def _reader() -> RecordReader:
    return RecordReader()


@lru_cache(maxsize=1)
def _projector() -> Projector:
    return Projector()


def read_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of `events` and of `refused` from records as Spark's Kafka source has them."""
    reader = _reader()
    for batch in batches:
        rows = []
        for one in batch.to_pylist():
            headers = {h["key"]: h["value"] or b"" for h in one["headers"] or ()}
            record = Arrival(
                one["topic"], one["partition"], one["offset"], one["arrived"], one["value"], headers
            )
            table, row = reader.read(record)
            rows.append({**row, "destination": table})
        reader.trim()
        yield pa.RecordBatch.from_pylist(rows, schema=_READ)


def project_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """Rows of the derived tables from rows of `events` that come node by node.

    What of them the projection fails on is a row of `refused`.
    """
    projector = _projector()
    events = (row for batch in batches for row in batch.to_pylist())
    rows: list[dict[str, Any]] = []
    for node, found in itertools.groupby(events, key=lambda row: str(row["node"])):
        for table, row in projector.rows(node, map(_record, found)):
            rows.append({**row, "destination": table})
            if len(rows) == ROWS:
                yield pa.RecordBatch.from_pylist(rows, schema=_PROJECTED)
                rows = []
    yield pa.RecordBatch.from_pylist(rows, schema=_PROJECTED)


def purged_batches(
    purges: Mapping[str, int], batches: Iterable[pa.RecordBatch]
) -> Iterator[pa.RecordBatch]:
    """The places of the records that name what was purged after they arrived."""
    known = Purges(purges)
    for batch in batches:
        arrived, bodies = batch.column("arrived").to_pylist(), batch.column("body").to_pylist()
        gone = [known.took(body.encode(), at) for at, body in zip(arrived, bodies, strict=True)]
        yield batch.filter(pa.array(gone, pa.bool_())).select(
            ["topic", "kafka_partition", "kafka_offset", "node"]
        )


def join_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """What the names of the estate count as, from everything that is known of names."""
    reported = (EstateRow(*row) for batch in batches for row in _rows(batch, EstateRow._fields))
    found = join_estate(reported)
    while some := list(itertools.islice(found, FIGURES)):
        columns = zip(Member._fields, zip(*some, strict=True), strict=True)
        yield pa.RecordBatch.from_pydict({k: list(v) for k, v in columns}, schema=_JOINED)


def analyse_batches(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of an analysis from parts that come component by component."""
    fields = ("component", *Part._fields)
    rows = (row for batch in batches for row in _rows(batch, fields))
    found = (
        (table, {**row, "component": component})
        for component, parts in itertools.groupby(rows, key=lambda row: row[0])
        for table, row in analyse_component(Part(*part[1:]) for part in parts)
    )
    while some := list(itertools.islice(found, FIGURES)):
        columns: dict[str, list[Any]] = {"destination": [table for table, _ in some]}
        for name in _FIGURES:
            columns[name] = [row.get(name) for _, row in some]
        yield pa.RecordBatch.from_pydict(columns, schema=_ANALYSED)


def _rows(batch: pa.RecordBatch, fields: tuple[str, ...]) -> Iterator[tuple[Any, ...]]:
    return zip(*(batch.column(name).to_pylist() for name in fields), strict=True)


def _record(row: dict[str, Any]) -> LogRecord:
    place = (row["topic"], row["kafka_partition"], row["kafka_offset"])
    return LogRecord(int(row["kind"] == "command"), row["arrived"], row["body"].encode(), place)
