"""What Spark's workers do with batches, without Spark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest

from headwater.lake import projection as projection_module
from headwater.lake.arrow import project_batches, read_batches
from headwater.lineage.moments import micros
from headwater.server.store.keep.rebuild import project

from .estates import BASE
from .test_projection import made

if TYPE_CHECKING:
    from headwater.server.store import Store
    from headwater.server.store.write.projection import Projection

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
        {"node": node, "kind": "run", "arrived": NOW, "body": body.decode(), "topic": "t",
         "kafka_partition": 1, "kafka_offset": offset}
        for offset, (node, body) in enumerate(rows)
    ]  # fmt: skip


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


def test_an_event_that_breaks_the_projection_is_refused_and_nothing_else_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    good = [("job:jobs:a", made("a", n, "x", run=n)) for n in range(1, 4)]
    good += [("job:jobs:b", made("b", 0, "x", run=9))]
    bad = ("job:jobs:a", made("a", 2, "poison", run=8))
    unread = ("job:jobs:b", b'{"password=hunter2": ')

    def breaks(store: Store, projection: Projection, kind: int, at: int, body: bytes) -> Any:
        done = project(store, projection, kind, at, body)  # half of it is done when it fails
        if b"poison" in body:
            raise KeyError("password=hunter2")
        return done

    def rows(*given: tuple[str, bytes]) -> list[dict[str, Any]]:
        batches = project_batches([pa.RecordBatch.from_pylist(events(*given))])
        return [row for batch in batches for row in batch.to_pylist()]

    expected = rows(*good)
    monkeypatch.setattr(projection_module, "project", breaks)
    found = rows(good[0], bad, *good[1:], unread)
    assert [row for row in found if row["destination"] != "refused"] == expected
    refused = [row for row in found if row["destination"] == "refused"]
    assert [row["kafka_offset"] for row in refused] == [1, 5]
    assert [row["body"] for row in refused] == [bad[1].decode(), unread[1].decode()]
    assert refused[0]["reason"] == "the projection failed on it: KeyError('password=***')"
    assert "EventError" in refused[1]["reason"]


def test_a_job_whose_rows_cannot_be_made_holds_up_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    made_of = projection_module._Rows._schemas

    def breaks(rows: Any) -> Any:
        if rows._node == "job:jobs:a":
            raise ValueError("no schema")
        return made_of(rows)

    monkeypatch.setattr(projection_module._Rows, "_schemas", breaks)
    given = events(
        *((f"job:jobs:{job}", made(job, 0, "x", run=n)) for n, job in enumerate("ab", 1))
    )
    found = [r for b in project_batches([pa.RecordBatch.from_pylist(given)]) for r in b.to_pylist()]
    (refused,) = (row for row in found if row["destination"] == "refused")
    assert (refused["kafka_offset"], "no schema" in refused["reason"]) == (0, True)
    assert [r["node"] for r in found if r["destination"] == "schemas"] == ["job:jobs:b"]


def test_a_machine_in_trouble_refuses_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: Any) -> Any:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(projection_module, "project", full)
    batch = pa.RecordBatch.from_pylist(events(("job:jobs:a", made("a", 0, "x", run=1))))
    with pytest.raises(OSError, match="No space"):
        list(project_batches([batch]))
