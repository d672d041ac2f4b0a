"""The cases on a real Spark Connect server: what is told is true, and what is not is said."""

from __future__ import annotations

import json
import sys
from collections import Counter
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark
import pytest

import headwater.spark
from headwater.lineage.naming import DatasetName
from headwater.spark.job_names import operation

from ..cases import CASES, Case
from ..cases.truth import read, writers
from ..drivers import TERMINAL, check_lives, check_valid
from .judged import EXACT, UNKNOWN, WRONG, judge, problems, told
from .stage import WAIT

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient, PostgresClient, S3Client

    from .stage import RemoteStage

# The first test plays every case: minutes on an idle machine, and far more beside other lanes.
pytestmark = [pytest.mark.full, pytest.mark.timeout(1500)]

IMPOSSIBLE = {"rdd_round_trip", "rows_from_python"}
"""Jobs that a client cannot do: RDDs and a context are not in its reach."""

NEWEST = not pyspark.__version__.startswith(("3.", "4.0"))
SLICE = {
    "create_table_as_select",
    "append_by_name",
    "overwrite_partitions",
    "inner_join",
    "group_by_having",
    "windows",
    "subqueries",
    "structs",
    "explode_structs",
    "python_udf",
    "masking",
    "merge_by_clause",
    "update",
    "write_parquet",
    "read_jdbc_table",
    "time_travel_by_snapshot",
    "views_through_to_tables",
    "read_json",
    "write_json",
    "topic_to_topic",
    "topic_to_table",
    "files_to_files",
}
"""What is played on older Sparks, whose texts differ in places."""

CHOSEN = [case for case in CASES if case.name not in IMPOSSIBLE and (NEWEST or case.name in SLICE)]
LEAST_EXACT = 110 if NEWEST else len(SLICE)


class Verdict(NamedTuple):
    """What was told of one case, and what is to be said of that."""

    said: str
    lines: list[str]
    problems: list[str]


@pytest.fixture(scope="module")
def stage(
    tmp_path_factory: pytest.TempPathFactory,
    kafka: KafkaClient,
    catalog: CatalogClient,
    s3: S3Client,
    postgres: PostgresClient,
) -> Iterator[RemoteStage]:
    from .stage import RemoteStage

    folder: Path = tmp_path_factory.mktemp("remote")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        patch.setenv("SPARK_CONNECT_MODE_ENABLED", "1")
        patch.setenv("HEADWATER_STATE_DIR", str(folder / "state"))
        patch.setenv("HEADWATER_WATCHDOG", "off")
        made = RemoteStage(folder, kafka, catalog, s3, postgres)
        headwater.spark.attach(made.spark, namespace="remote", app_name="cases")
        try:
            yield made
        finally:
            headwater.spark.detach(made.spark)
            made.spark.stop()
            made.server.stop()


@pytest.fixture(scope="module")
def verdicts(stage: RemoteStage) -> dict[str, Verdict]:
    return {case.name: verdict(stage, case) for case in CHOSEN}


SLOW = "Python worker failed to connect back"
"""Spark gives a Python worker ten seconds to start, which a busy machine may not."""


def verdict(stage: RemoteStage, case: Case) -> Verdict:
    """What is to be said of one case; one that cannot be played says why, and stops no other."""
    for tries_left in (1, 0):
        try:
            return played(stage, case)
        except Exception as error:  # noqa: BLE001
            headwater.spark.flush(WAIT)  # the end of a query that failed is not the next one's
            if SLOW not in str(error) or not tries_left:
                return Verdict(WRONG, [f"{type(error).__name__}: {error}"[:2000]], [])
    raise AssertionError


def played(stage: RemoteStage, case: Case) -> Verdict:
    """Run a case, and judge the one run that does what its truth is about."""
    stage.case = case.name
    before = len(stage.events())
    words = case.job(stage)
    if case.stream:
        if case.name == "rate_to_memory":
            words.stop()
        words.awaitTermination(WAIT)
        stage.wait_ended(str(words.name) if words.name else "", before)
    assert headwater.spark.flush(WAIT), "not everything was told in time"
    text = case.truth.format(**words) if isinstance(words, dict) else case.truth
    truth = read(text)
    truth.operation = "" if case.stream else operation(truth.operation) if truth.operation else ""
    ended = [event for event in stage.events()[before:] if event["eventType"] in TERMINAL]
    writing = [event for event in ended if event.get("outputs")]
    if case.stream:
        writing = [event for event in ended if kind(event) == "STREAMING_QUERY"]
    if not writing:
        return Verdict(WRONG, ["nothing was told"], [])
    if truth.outputs and not case.stream:
        # One that is unclear may have no outputs that are known, but never a second run.
        seen = [(told(event, stage.names, ""), event) for event in writing]
        own = writers(truth, [one for one, _ in seen])
        if len(own) > 1:
            jobs = [event["job"]["name"] for one, event in seen if one in own]
            return Verdict(WRONG, [f"one write is {len(own)} runs: {jobs}"], [])
    if case.stream and len(writing) > 1:
        return Verdict(WRONG, [f"one query is {len(writing)} runs"], [])
    last = writing[-1]
    reasons = problems(last)
    worst = Verdict(EXACT, [], reasons)
    for output in sorted(truth.outputs) or [""]:
        said, lines = judge(truth, told(last, stage.names, output), reasons)
        if said != EXACT:
            worst = Verdict(said, lines, reasons)
    return worst


def kind(event: dict[str, Any]) -> str:
    return str(event["job"]["facets"]["jobType"]["jobType"])


def test_nothing_is_wrong_and_most_is_exact(verdicts: dict[str, Verdict]) -> None:
    counts = Counter(verdict.said for verdict in verdicts.values())
    print(dict(counts))
    print(json.dumps({n: v.problems for n, v in verdicts.items() if v.said == UNKNOWN}, indent=1))
    wrong = {name: verdict for name, verdict in verdicts.items() if verdict.said == WRONG}
    assert not wrong, json.dumps(wrong, indent=1)
    assert counts[EXACT] >= LEAST_EXACT, counts


def test_what_is_unknown_says_why(verdicts: dict[str, Verdict]) -> None:
    unknown = {name: v.problems for name, v in verdicts.items() if v.said == UNKNOWN}
    known = {"topics_by_pattern", "checkpoint", "merge_for_each_batch", "metadata_by_path"}
    assert set(unknown) <= known
    assert all(unknown.values())


@pytest.mark.usefixtures("verdicts")
def test_every_run_has_one_life(stage: RemoteStage) -> None:
    closed = {e["run"]["runId"] for e in stage.events() if e["eventType"] in TERMINAL}
    events = [event for event in stage.events() if event["run"]["runId"] in closed]
    check_lives(events)
    check_valid(events)


@pytest.mark.usefixtures("verdicts")
def test_a_password_is_never_told(stage: RemoteStage) -> None:
    assert stage.pg_options()["password"] not in stage.file.read_text()


def last(stage: RemoteStage, before: int, part: str) -> dict[str, Any]:
    """The last event of the only job with such a name since then."""
    assert headwater.spark.flush(60)
    found = [event for event in stage.events()[before:] if part in event["job"]["name"]]
    assert len({event["run"]["runId"] for event in found}) == 1
    return found[-1]


def test_a_stream_by_pattern_knows_its_topics_from_its_first_batch(stage: RemoteStage) -> None:
    stage.case, before = "by_pattern", len(stage.events())
    for name in ("north", "south"):
        topic = f"zone_{stage.namespace}_{name}"
        stage.names[DatasetName(f"kafka://{stage.kafka.bootstrap}", topic)] = name
        stage.kafka.produce(topic, [b"x"])
    stage.sql("create table {out} (raw string) using iceberg")
    reader = stage.spark.readStream.format("kafka").option("startingOffsets", "earliest")
    reader = reader.option("kafka.bootstrap.servers", stage.kafka.bootstrap)
    read_ = reader.option("subscribePattern", f"zone_{stage.namespace}_.*").load()
    writer = read_.selectExpr("cast(value as string) raw").writeStream.queryName("zones")
    writer.trigger(availableNow=True).toTable(stage.out).awaitTermination(60)
    stage.wait_ended("zones", before)
    truth = read("north, south -> out\nraw <- north.value, south.value")
    event = last(stage, before, "zones")
    assert judge(truth, told(event, stage.names, "out"), problems(event)) == (EXACT, [])


@pytest.mark.parametrize("way", ["parameters", "frames"])
def test_a_statement_with_parameters_or_over_frames_is_read(stage: RemoteStage, way: str) -> None:
    if way == "frames" and pyspark.__version__.startswith("3."):
        pytest.skip("a client of Spark 3.5 cannot name frames in a statement")
    stage.case, before = f"given_{way}", len(stage.events())
    orders = stage.table("orders")
    if way == "parameters":
        text = (
            f"create table {stage.out} using iceberg as select id from {orders} where id > :least"
        )
        stage.spark.sql(text, args={"least": 0})
    else:
        text = f"create table {stage.out} using iceberg as select id from {{frame}} where id > 0"
        stage.spark.sql(text, frame=stage.orders)
    event = last(stage, before, f"given_{way}")
    truth = read("orders -> out\nid <- orders.id\nrows <- orders.id FILTER")
    said, lines = judge(truth, told(event, stage.names, "out"), problems(event))
    # Spark 3.5 does not explain a statement with parameters.
    assert said == (UNKNOWN if pyspark.__version__.startswith("3.") else EXACT), lines


def test_lineage_takes_no_frame_from_the_statements_that_name_it(stage: RemoteStage) -> None:
    if pyspark.__version__.startswith("3."):
        pytest.skip("a client of Spark 3.5 cannot name frames in a statement")
    stage.case = "frames_in_a_row"
    stage.spark.sql(f"create table {stage.out} (id bigint) using iceberg")
    text = f"insert into {stage.out} select id from {{frame}} where id > 0"
    for _ in range(10):  # no wait between: each is read while the next one runs
        stage.spark.sql(text, frame=stage.orders)
    assert headwater.spark.flush(60)


def test_merge_into_keeps_its_datasets_and_says_that_columns_are_unknown(
    stage: RemoteStage,
) -> None:
    from pyspark.sql import functions as F  # noqa: N812

    stage.case, before = "merged_into", len(stage.events())
    stage.sql("create table {out} (id bigint, city string) using iceberg")
    frame: Any = stage.orders.select("id", "city").alias("s")
    if not hasattr(frame, "mergeInto"):
        pytest.skip("a client of Spark 3.5 has no mergeInto")
    matched = F.expr(f"{stage.out}.id = s.id")
    frame.mergeInto(stage.out, matched).whenNotMatched().insertAll().merge()
    event = last(stage, before, "merge_into_table")
    seen = told(event, stage.names, "out")
    assert (seen.inputs, seen.outputs) == (frozenset({"orders"}), frozenset({"out"}))
    assert seen.unknown == {"everything"}
    assert any("mergeInto" in problem for problem in problems(event))
