"""Streaming queries: their job names, what they count, and two readings of one query."""

from __future__ import annotations

import json
from functools import partial, wraps
from types import SimpleNamespace
from typing import Any

import pytest
from msgspec.structs import replace

from headwater.lineage.model import ColumnLineage, ColumnSource, Dataset, Transformation
from headwater.spark import job_names
from headwater.spark.columns.source import Source
from headwater.spark.driver.config import SparkSettings
from headwater.spark.model import PlanLineage
from headwater.spark.plan.compose import Query, _inputs
from headwater.spark.plan.multi_insert import together
from headwater.spark.plan.writes import Write
from headwater.spark.streaming import progress
from headwater.spark.streaming.flow import WriteRates, samples_of
from headwater.spark.streaming.queries import merged, renewed
from headwater.spark.streaming.runs import refused_job, unnamed_job
from headwater.spark.streaming.statistics import QueryStatistics

TOPIC = Dataset("kafka://b:9092", "orders", type="TOPIC")
FILES = Dataset("file", "/lake/orders")
TABLE = Dataset("s3://w", "shop/orders")
SETTINGS = SparkSettings(app_name="shop")


def write(_frame: Any, _number: int) -> None: ...


class Sink:
    def write(self, _frame: Any, _number: int) -> None: ...

    def __call__(self, _frame: Any, _number: int) -> None: ...


def test_a_function_has_the_name_it_has_in_every_run() -> None:
    def local(_frame: Any, _number: int) -> None: ...

    assert job_names.of_function(write) == "write"
    assert job_names.of_function(local) == "local"
    assert job_names.of_function(partial(partial(write, 1), 2)) == "write"
    assert job_names.of_function(wraps(partial(write))(lambda: None)) == "write"
    assert job_names.of_function(Sink().write) == "Sink.write"
    assert job_names.of_function(Sink()) == "Sink"
    assert job_names.of_function(lambda _frame, _number: None) == ""


@pytest.mark.parametrize(
    ("outputs", "function", "expected"),
    [
        ((TABLE,), "", ["streaming.shop_orders", "streaming.shop_orders.from_orders"]),
        ((), "write", ["foreach_batch.write", "foreach_batch.write.from_orders"]),
        ((), "Sink.write", ["foreach_batch.sink_write"]),
        ((), "", ["streaming.from_orders", "streaming.from_orders_2", "streaming.from_orders_3"]),
    ],
)
def test_queries_without_a_name_that_run_at_once_are_jobs_of_their_own(
    outputs: tuple[Dataset, ...], function: str, expected: list[str]
) -> None:
    lineage = PlanLineage(inputs=(TOPIC,), outputs=outputs)
    taken: list[str] = []
    for _ in expected:
        taken.append(unnamed_job(SETTINGS, lineage, function, taken.__contains__))
    assert taken == [f"shop.{name}" for name in expected]
    assert unnamed_job(SETTINGS, lineage, function, taken[1:].__contains__) == taken[0]


def test_a_refused_query_is_named_as_if_it_had_started() -> None:
    assert refused_job(SETTINGS, "lab.shop.orders", "") == "shop.streaming.shop_orders"
    assert refused_job(SETTINGS, "s3://lake/shop/orders/", "") == "shop.streaming.shop_orders"
    assert refused_job(SETTINGS, "", "write") == "shop.foreach_batch.write"


def report(batch: int, start: Any, end: Any, rows: int, written: int = -1) -> progress.Progress:
    source = {"description": "s", "startOffset": start, "endOffset": end, "numInputRows": rows}
    return progress.read(
        json.dumps({"batchId": batch, "sources": [source], "sink": {"numOutputRows": written}})
    )


def counted(*reports: progress.Progress, initial: Any = None, **lineage: Any) -> list[Any]:
    statistics = QueryStatistics(lambda _: initial or {})
    statistics.add(reports)
    plan = PlanLineage(**{"inputs": (TOPIC,), "outputs": (TABLE,), **lineage})
    found = statistics.read(plan), statistics.written(plan)
    return [next((count["rowCount"] for count in side.values()), None) for side in found]


def test_records_are_counted_by_offsets_and_rows_by_batches() -> None:
    first = report(0, None, {"orders": {"0": 9, "1": 4}}, 26, 5)
    second = report(1, {"orders": {"0": 9, "1": 4}}, {"orders": {"0": 9, "1": 8, "2": 2}}, 12, 6)
    initial = {"orders": {"0": 5, "1": 0}}
    # A micro-batch that is read twice has twice the rows in its report.
    assert counted(first, second, initial=initial) == [4 + 8 + 2, 11]
    assert counted(first, first, second, initial=initial) == [14, 11], "a report may come again"
    assert counted(second) == [6, 6], "a query goes on from its checkpoint"
    assert counted(first) == [26, 5], "without its first offsets, by the report's own rows"


def test_what_is_not_exact_is_not_counted() -> None:
    first, third = report(0, None, {"at": 1}, 3, 3), report(2, {"at": 1}, {"at": 2}, 4, 4)
    assert counted(first, third, inputs=(FILES,)) == [None, None]
    assert counted(first, inputs=(FILES,)) == [3, 3]
    assert counted(first, inputs=(FILES, TABLE)) == [None, 3], "which of the two was read?"
    assert counted(report(0, None, {"at": 1}, 3)) == [None, None], "a sink that does not count"


def columns(field: str, way: str) -> ColumnLineage:
    source = ColumnSource(TOPIC.id, field, (Transformation("DIRECT", way),))
    return ColumnLineage(fields={"price": (source,)})


def test_two_commands_that_write_one_table_both_count() -> None:
    def wrote(lineage: ColumnLineage) -> PlanLineage:
        one = Dataset(*TABLE.id, columns=lineage)
        return PlanLineage(inputs=(TOPIC,), outputs=(one,))

    first, second = wrote(columns("price", "IDENTITY")), wrote(columns("fee", "IDENTITY"))
    deleted = wrote(ColumnLineage())
    (output,) = merged(merged(first, second), deleted).outputs
    assert output.columns is not None
    assert [source.field for source in output.columns.fields["price"]] == ["price", "fee"]
    again = merged(merged(first, second), first)
    assert merged(again, second).outputs == again.outputs


def test_a_query_that_is_read_again_keeps_what_its_commands_read() -> None:
    before = PlanLineage(inputs=(TOPIC, TABLE), outputs=(TABLE, FILES))
    again = renewed(before, PlanLineage(inputs=(TOPIC,)))
    assert again.inputs == before.inputs
    assert again.outputs == before.outputs


def test_the_groups_of_all_that_reads_a_topic_are_the_querys() -> None:
    def reads(*groups: str) -> PlanLineage:
        return PlanLineage(inputs=(FILES, replace(TOPIC, groups=groups)), outputs=(TABLE,))

    first, second = reads("etl"), reads("audit-*")
    again = merged(merged(first, second), first)
    assert again.inputs == reads("audit-*", "etl").inputs
    # Read again, the query has what its commands named besides, and nothing that looks new.
    assert renewed(again, first).inputs == again.inputs
    assert together([first, second]).inputs == again.inputs
    twice = [Source((one,)) for lineage in (first, second) for one in lineage.inputs]
    found = _inputs(Query([], [], {}, twice, (), 0, known=True), Write("append"), ())
    assert found == again.inputs


def running(
    last: progress.Progress, statistics: QueryStatistics, outputs: tuple[Dataset, ...]
) -> Any:
    """A query that runs, after a report of its progress."""
    return SimpleNamespace(
        progress=last,
        life=SimpleNamespace(over=False),
        ref=SimpleNamespace(run_id="run"),
        spark_run="spark-run",
        settings=SETTINGS,
        lineage=PlanLineage(inputs=(TOPIC,), outputs=outputs),
        counted=lambda: ({}, statistics.outputs),
    )


@pytest.mark.parametrize(
    ("rows", "rate", "written", "expected"),
    [
        (500, 100.0, 500, {"input": 100.0, "output": 100.0}),
        (500, 100.0, 50, {"input": 100.0, "output": 10.0}),
        (500, 100.0, 0, {"input": 100.0, "output": 0.0}),
        (0, 0.0, 0, {"input": 0.0, "output": 0.0}),
        # Windows that close while nothing comes; a first batch, which follows no other.
        (0, 0.0, 7, {"input": 0.0}),
        (500, "Infinity", 500, {"input": 0.0}),
    ],
)
def test_rates_in_and_out_are_over_the_same_time(
    rows: int, rate: float | str, written: int, expected: dict[str, float]
) -> None:
    # A batch every five seconds that takes one: Spark's input rate is over the five.
    source = {"description": "s", "endOffset": {"orders": {"0": 9}}, "inputRowsPerSecond": rate}
    said = {
        "numInputRows": rows,
        "inputRowsPerSecond": rate,
        "durationMs": {"triggerExecution": 1000},
        "sources": [source],
        "sink": {"numOutputRows": written},
    }
    last = progress.read(json.dumps(said))
    samples = samples_of(running(last, QueryStatistics(lambda _: {}), (TABLE,)), WriteRates())
    assert {sample.direction: sample.records_per_second for sample in samples} == expected


def test_rows_that_commands_of_micro_batches_write_have_a_rate() -> None:
    statistics = QueryStatistics(lambda _: {})
    last = report(0, None, {"orders": {"0": 9}}, 9)
    query = running(last, statistics, (TABLE, FILES))
    now = [100.0]
    written = WriteRates(lambda: now[0])

    def rates() -> dict[str, float | None]:
        samples = samples_of(query, written)
        return {s.dataset.name: s.records_per_second for s in samples if s.direction == "output"}

    statistics.add_written({TABLE.id: {"rowCount": 40}})
    assert rates() == {}, "a sum alone is no rate"
    statistics.add_written({TABLE.id: {"rowCount": 60}, FILES.id: {"rowCount": 1}})
    now[0] += 10
    assert rates() == {TABLE.name: 6.0}
    now[0] += 10
    assert rates() == {TABLE.name: 0.0, FILES.name: 0.0}, "nothing came"
    written.forget_others(set())
    assert rates() == {}
