"""Texts of errors and settings: no plan and no credential of them is told."""

from __future__ import annotations

import logging
import subprocess
import sys
from datetime import datetime, timezone
from types import SimpleNamespace
from typing import Any

import pytest

from headwater.emit import internal_errors
from headwater.lineage.model import Catalog, Dataset, Job
from headwater.lineage.openlineage.writer import Writer
from headwater.spark import reporting
from headwater.spark.driver.bridge import JvmBridge, trace_of
from headwater.spark.driver.config import SparkSettings
from headwater.spark.error_text import LEFT_OUT, raised_in, without_plan
from headwater.spark.model import PlanLineage
from headwater.spark.plan import plan_lineage

ANALYSIS = """[UNRESOLVED_COLUMN] A column with name `nothing` cannot be resolved; line 1 pos 7;
'InsertIntoStatement 'UnresolvedRelation [stats], [__required_write_privileges__=INSERT], false
+- 'Project ['nothing]
   +- SubqueryAlias fresh
      :- View (`fresh`, [supplier#1, price#2])
      :  +- Relation [supplier#1,price#2] parquet
      +- LocalRelation [x#3]

\tat org.apache.spark.sql.Dataset.ofRows(Dataset.scala:99)"""
STREAM = """Job aborted
=== Streaming Query ===
Current State: ACTIVE

Logical Plan:
WriteToMicroBatchDataSource file, 1f, [path=/x], Append
+- Project [bad(id#0L) AS id#5L]
   +- StreamingExecutionRelation FileStreamSource[file:/come], [id#0L]

Caused by: java.lang.Exception: x - y"""


def test_a_drawn_plan_is_left_out_of_an_error() -> None:
    said = without_plan(ANALYSIS)
    assert said.splitlines() == [
        ANALYSIS.splitlines()[0],
        LEFT_OUT,
        "",
        "\tat org.apache.spark.sql.Dataset.ofRows(Dataset.scala:99)",
    ]
    said = without_plan(STREAM)
    assert "id#" not in said
    assert said.endswith(f"Logical Plan:\n{LEFT_OUT}\n\nCaused by: java.lang.Exception: x - y")


def test_a_plan_of_one_node_is_left_out() -> None:
    text = (
        "[TABLE_OR_VIEW_NOT_FOUND] `nope` cannot be found;\n'UnresolvedRelation [nope], [], false"
    )
    assert without_plan(text).splitlines()[1:] == [LEFT_OUT]


def test_a_text_without_a_plan_stays_as_it_is() -> None:
    text = "a - b\n+ c\n'quoted' word\n:-)\n- item\n  +-3"
    assert without_plan(text) == text


LONG = "x" * 180 + " jdbc:postgresql://user:hunter22hunter22hunter22hunter22@host/db"


def test_a_message_is_not_cut_in_the_middle_of_a_password() -> None:
    def fail() -> PlanLineage:
        raise ValueError(LONG)

    (problem,) = plan_lineage._guarded(fail).problems
    assert "hunter" not in problem


def test_a_fault_of_ours_is_logged_without_credentials(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "headwater")
    internal_errors._reported.clear()
    try:
        raise ValueError("y" * 80 + LONG)
    except ValueError as error:
        internal_errors.report("testing", error)
    assert "error while testing" in caplog.text
    assert "ValueError" in caplog.text
    assert "hunter" not in caplog.text


def test_a_property_that_is_called_a_secret_is_not_shown() -> None:
    asked = ("spark.hadoop.fs.s3a.secret.key", "spark.master")
    conf = {asked[0]: "abcdefgh", asked[1]: "local[2]"}
    found = reporting.properties(conf, SparkSettings(properties=asked))
    assert found == {asked[0]: "***", asked[1]: "local[2]"}


def written(plan: PlanLineage, settings: SparkSettings, counts: Any = None) -> Any:
    lineage = reporting.lineage(plan, settings, counts, counts)
    writer = Writer("urn:test", settings.disabled_facets)
    return writer.job_event(datetime.now(timezone.utc), Job("n", "j"), lineage)


def test_a_catalog_does_not_show_the_keys_in_its_addresses() -> None:
    catalog = Catalog("spark", "hive", "spark_catalog", "thrift://u:pw1@h:9083", "s3a://k:pw2@b/w")
    one = Dataset("s3://b", "w/t", catalog=catalog, source="s3a://k:pw3@b")
    (told,) = written(PlanLineage(inputs=(one,)), SparkSettings())["inputs"]
    assert "pw" not in str(told)
    assert told["facets"]["catalog"]["warehouseUri"].endswith("@b/w")


def test_counts_may_be_left_out() -> None:
    one = Dataset("s3://b", "t")
    off = SparkSettings(disabled_facets=frozenset({"inputStatistics", "outputStatistics"}))
    lineage = PlanLineage(inputs=(one,), outputs=(one,))
    counts = {one.id: {"rowCount": 3}}
    shown = written(lineage, SparkSettings(), counts)
    assert shown["inputs"][0]["inputFacets"]["inputStatistics"]["rowCount"] == 3
    assert shown["outputs"][0]["outputFacets"]["outputStatistics"]["rowCount"] == 3
    hidden = written(lineage, off, counts)
    assert "inputFacets" not in hidden["inputs"][0]
    assert "outputFacets" not in hidden["outputs"][0]


@pytest.mark.parametrize("attribute", ["stackTrace", "_stackTrace"])
def test_the_jvms_trace_is_found_in_errors_of_every_spark(attribute: str) -> None:
    error = ValueError("no price")
    setattr(error, attribute, "org.apache.spark.SparkException: no price")
    assert trace_of(error) == "org.apache.spark.SparkException: no price"
    assert trace_of(ValueError("no price")) == ""


def test_a_jvm_that_answers_no_more_is_waited_for_until_it_is_seen_dead() -> None:
    bridge: Any = JvmBridge.__new__(JvmBridge)
    bridge.stopped, bridge._shutting_down = False, False
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as process:
        bridge.gateway = SimpleNamespace(proc=process)
        bridge.wait_for_exit(0.05)
        assert not bridge.lost, "one that lives on is not waited for without end"
        process.kill()
        bridge.wait_for_exit(20)
        assert bridge.lost


PROXY = "py4j.Py4JException: An exception was raised by the Python Proxy. Return Message: Traceback (most recent call last):"
CALLED = "py4j.protocol.Py4JJavaError: An error occurred while calling o14.sql."
MISSING = "org.x.ServiceFailureException: Location does not exist: s3://lake/orders"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("org.x.SparkException: out of memory\nmore", "org.x.SparkException: out of memory"),
        (f"{PROXY}\n  File 'job.py', line 3\n    work()\nValueError: no such supplier\n", "ValueError: no such supplier"),
        (f"{PROXY}\n  File 'job.py', line 3\n    sql()\n{CALLED}\n: {MISSING}\n\tat a.b(C.java:1)", MISSING),
        (f"{PROXY}\n  File 'job.py', line 3", PROXY),
        (PROXY, PROXY),
        ("", ""),
    ],
)  # fmt: skip
def test_a_query_failed_by_what_its_function_raised(text: str, said: str) -> None:
    assert raised_in(text) == said
