"""One of each kind that long runs have in full, by `headwater spark run` and in one driver.

All shapes: test_streaming_shapes.py; ends with every shape: test_ends_of_drivers.py; heartbeats with new
topics and flow: test_streaming_beats.py; plug-ins: test_table_format_plugin.py; what `spark run` takes
from its options: test_life_of_batches.py.
"""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING, Any, NamedTuple

import pyspark
import pytest

from .drivers import PROGRAMS, Drivers, Told, check_lives, check_valid, names
from .test_ends_of_drivers import place
from .test_table_format_plugin import PLUGIN

if TYPE_CHECKING:
    from headwater.lab.clients import CatalogClient, KafkaClient

HEARTBEAT = 1
BOUNDED = ("kafka_to_kafka", "kafka_to_iceberg", "stream_static")
ENDS = {"stopped": "ABORT", "broken": "FAIL", "cut": "FAIL"} | dict.fromkeys(BOUNDED, "COMPLETE")


class Ran(NamedTuple):
    """What the program told, and where it read and wrote."""

    told: Told
    where: dict[str, Any]


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaClient, catalog: CatalogClient
) -> Ran:
    drivers = Drivers(tmp_path_factory.mktemp("each"), catalog)
    where = json.loads(place(kafka, catalog, drivers.work / "place"))
    told = drivers.run(
        "headwater", "spark", "run",
        "--conf", "spark.openlineage.namespace=from-conf",
        str(PROGRAMS / "one_of_each.py"), json.dumps(where), ",".join(BOUNDED),
        HEADWATER_HEARTBEAT_SECONDS=str(HEARTBEAT),
        PYTHONPATH=os.pathsep.join([str(PLUGIN), drivers.environment["PYTHONPATH"]]),
    )  # fmt: skip
    assert told.code == 1, told.error
    check_lives(told.events)
    check_valid(told.events)
    return Ran(told, where)


def sources(ran: Ran, job: str, column: str) -> set[tuple[str, str]]:
    """The dataset and the column that a column of a job's only output comes from."""
    (output,) = ran.told.last(job)["outputs"]
    found = output["facets"]["columnLineage"]["fields"][column]["inputFields"]
    return {(one["name"], one["field"]) for one in found}


def test_a_program_runs_without_touching_its_code(ran: Ran) -> None:
    assert {event["job"]["namespace"] for event in ran.told.events} == {"from-conf"}
    assert ran.told.types("one_of_each")[0] == "START"


@pytest.mark.parametrize("job", ENDS)
def test_a_query_is_one_run_with_the_right_end(ran: Ran, job: str) -> None:
    assert ran.told.types(job)[-1] == ENDS[job]
    assert len({event["run"]["runId"] for event in ran.told.of(job)}) == 1
    assert ran.told.last(job)["outputs"], "the end still says where the query wrote"
    facets = ran.told.last(job)["run"]["facets"]
    assert ("errorMessage" in facets) == (ENDS[job] == "FAIL")


def test_a_failure_has_the_traces_of_python_and_of_the_jvm(ran: Ran) -> None:
    error = ran.told.last("broken")["run"]["facets"]["errorMessage"]
    assert "no such supplier" in error["stackTrace"], "the Python trace"
    assert "org.apache.spark" in error["stackTrace"], "the JVM's trace"


def test_a_jvm_that_is_killed_fails_its_query_and_the_application(ran: Ran) -> None:
    for job in ("cut", "one_of_each"):
        assert ran.told.types(job)[-1] == "FAIL"
        assert "JVM" in ran.told.last(job)["run"]["facets"]["errorMessage"]["message"]


def test_heartbeats(ran: Ran) -> None:
    assert ran.told.types("stopped").count("RUNNING") >= 3
    pattern = ran.told.last("stopped")["job"]["facets"]["jobType"]["emissionPattern"]
    assert pattern["windowDuration"] == HEARTBEAT


def test_shapes(ran: Ran) -> None:
    topic, folder = ran.where["topic"], ran.where["work"]
    for job in BOUNDED:
        kind = ran.told.last(job)["job"]["facets"]["jobType"]
        assert (kind["processingType"], kind["jobType"]) == ("STREAMING", "STREAMING_QUERY")
        assert topic in names(ran.told.last(job)["inputs"])
    assert names(ran.told.last("kafka_to_kafka")["outputs"]) == {ran.where["out"]}
    assert sources(ran, "kafka_to_kafka", "doubled") == {(topic, "price")}
    (table,) = ran.told.last("kafka_to_iceberg")["outputs"]
    links = table["facets"]["symlinks"]["identifiers"]
    assert any(link["name"].endswith(f"{ran.where['namespace']}.orders") for link in links)
    assert sources(ran, "kafka_to_iceberg", "supplier") == {(topic, "supplier")}
    assert names(ran.told.last("stream_static")["inputs"]) == {topic, f"{folder}/names"}
    assert sources(ran, "stream_static", "name") == {(f"{folder}/names", "name")}
    facet = ran.told.last("kafka_to_kafka")["run"]["facets"]["headwater_streaming"]
    assert facet["offsets"][0]["topics"][topic]["end"] == facet["inputRows"] == 20


@pytest.mark.skipif(pyspark.__version__ < "4", reason="Spark 4 has data sources in Python")
def test_a_table_of_a_plug_in(ran: Ran) -> None:
    table = f"{ran.where['work']}/ledger"
    written = [
        output
        for event in ran.told.events
        for output in event["outputs"]
        if output["name"] == table and event["eventType"] == "COMPLETE"
    ]
    assert written, sorted(ran.told.jobs)
    assert written[-1]["facets"]["datasetType"]["subType"] == "ledger"
    assert written[-1]["facets"]["storage"]["storageLayer"] == "ledger"
    (job,) = {name for name in ran.told.jobs if name.endswith("cities")}
    (read,) = ran.told.last(job)["inputs"]
    assert (read["name"], read["facets"]["version"]["datasetVersion"]) == (table, "0")
    assert sources(ran, job, "city") == {(table, "city")}
