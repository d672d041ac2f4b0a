"""What Spark's workers call: batches of Arrow in, batches of Arrow out.

Functions here are found by name on an executor, so what a reader met is kept as long as its worker is.
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import msgspec
import pyarrow as pa  # type: ignore[import-untyped]

from headwater.lake.projection import LogRecord, Projector
from headwater.lake.purged import Purges
from headwater.lake.records import Arrival, RecordReader
from headwater.lake.tables import EVENTS, REFUSED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from headwater.lake.tables import LakeColumn

__all__ = ["PROJECTED", "PURGED", "READ", "project_batches", "purged_batches", "read_batches"]

_TYPES: dict[str, Any] = {
    "string": pa.string(),
    "binary": pa.binary(),
    "int": pa.int32(),
    "bigint": pa.int64(),
    "timestamp": pa.timestamp("us", tz="UTC"),
}
_COLUMNS: dict[str, LakeColumn] = {c.name: c for c in (*EVENTS.columns, *REFUSED.columns)}
READ = "destination string, " + ", ".join(f"{c.name} {c.type}" for c in _COLUMNS.values())
"""The rows of both tables as one: `destination` is the table that each belongs to."""
PROJECTED = "destination string, node string, content string"
"""The rows of all derived tables as one: their content as JSON, moments in microseconds."""
PURGED = "topic string, kafka_partition int, kafka_offset bigint, node string"
"""Where records came from that are to go, and what they are about."""
ROWS = 2_000
"""Rows of a batch: bodies are large, and a batch is held twice."""
_READ = pa.schema(
    [("destination", pa.string()), *((c.name, _TYPES[c.type]) for c in _COLUMNS.values())]
)
_PROJECTED = pa.schema([(name, pa.string()) for name in ("destination", "node", "content")])


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
    """Rows of the derived tables from rows of `events` that come node by node."""
    projector = _projector()
    events = (row for batch in batches for row in batch.to_pylist())
    rows: list[dict[str, str]] = []
    for node, found in itertools.groupby(events, key=lambda row: str(row["node"])):
        for table, row in projector.rows(node, map(_record, found)):
            content = msgspec.json.encode(row).decode()
            rows.append({"destination": table, "node": node, "content": content})
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


def _record(row: dict[str, Any]) -> LogRecord:
    return LogRecord(int(row["kind"] == "command"), row["arrived"], row["body"].encode())
