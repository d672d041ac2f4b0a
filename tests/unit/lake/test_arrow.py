"""What Spark's workers do with batches, without Spark."""

from __future__ import annotations

from typing import Any

import pyarrow as pa  # type: ignore[import-untyped]

from headwater.lake.arrow import project_batches, read_batches
from headwater.lineage.moments import micros

from .estates import BASE
from .test_projection import made

NOW = (BASE + 1_000) * 1_000_000


def records(*values: bytes | None) -> pa.RecordBatch:
    header = [{"key": "headwater.seq", "value": b"7"}, {"key": "other", "value": None}]
    rows = [
        {"topic": "t", "partition": 1, "offset": n, "arrived": NOW, "value": value,
         "headers": header if n else None}
        for n, value in enumerate(values)
    ]  # fmt: skip
    return pa.RecordBatch.from_pylist(rows)


def test_records_become_rows_of_both_tables() -> None:
    values = [made("load", 0, "a"), b"{", None, made("load", 1, "a")]
    first, second = read_batches([records(*values[:3]), records(*values[3:])])
    rows = [*first.to_pylist(), *second.to_pylist()]
    assert [row["destination"] for row in rows] == ["events", "refused", "refused", "events"]
    assert [row["kafka_offset"] for row in rows] == [0, 1, 2, 0]
    assert [row["size"] for row in rows] == [None, 1, 0, None]
    assert micros(rows[0]["arrived"]) == NOW
    assert rows[0]["body"] == values[0].decode() if values[0] else False


def events(*rows: tuple[str, bytes]) -> list[dict[str, Any]]:
    return [
        {"node": node, "kind": "run", "arrived": NOW, "body": body.decode()} for node, body in rows
    ]


def test_a_node_that_spans_batches_is_one() -> None:
    rows = events(
        ("job:jobs:a", made("a", 0, "x", run=1)),
        ("job:jobs:a", made("a", 5, "x", "y", run=3)),
        ("job:jobs:b", made("b", 0, "x", run=2)),
    )
    batches = [pa.RecordBatch.from_pylist(rows[:1]), pa.RecordBatch.from_pylist(rows[1:])]
    found = [row for batch in project_batches(batches) for row in batch.to_pylist()]
    edges = [row for row in found if row["destination"] == "edges"]
    assert [(edge["job_name"], micros(edge["valid_from"])) for edge in edges] == [
        ("a", BASE * 1_000_000),
        ("b", BASE * 1_000_000),
    ]
    schemas = [row for row in found if row["destination"] == "schemas"]
    assert [row["node"] for row in schemas] == ["job:jobs:a", "job:jobs:a", "job:jobs:b"]


def test_nothing_is_no_rows() -> None:
    assert sum(batch.num_rows for batch in project_batches([])) == 0
