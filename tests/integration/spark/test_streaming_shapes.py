"""Each streaming query is one job with one run, from its sources to its sink, columns included."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest

from .drivers import Drivers, Told, check_lives, check_valid, names
from .test_ends_of_drivers import SHAPES, place

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import CatalogClient, KafkaClient


# Short runs have three shapes (test_one_of_each.py), queries with `foreachBatch` (test_queries.py) and
# the lineage of every kind of sink (test_cases.py).
pytestmark = pytest.mark.full


class Ran(NamedTuple):
    """What the shapes told, and where each read and wrote."""

    told: Told
    places: dict[str, dict[str, Any]]
    work: Path


@pytest.fixture(scope="module")
def ran(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaClient, catalog: CatalogClient
) -> Ran:
    drivers = Drivers(tmp_path_factory.mktemp("shapes"), catalog)
    places = {shape: json.loads(place(kafka, catalog, drivers.work / shape)) for shape in SHAPES}
    told = drivers.run("streaming.py", json.dumps(places))
    assert told.code == 0, told.error
    return Ran(told, places, drivers.work)


def test_every_shape_is_one_job_with_one_run(ran: Ran) -> None:
    check_lives(ran.told.events)
    check_valid(ran.told.events)
    for shape in SHAPES:
        told = ran.told.of(shape)
        assert len({event["run"]["runId"] for event in told}) == 1, shape
        assert told[-1]["eventType"] == "COMPLETE", shape
        job = told[-1]["job"]["facets"]["jobType"]
        assert (job["processingType"], job["jobType"]) == ("STREAMING", "STREAMING_QUERY")
        parent = told[0]["run"]["facets"]["parent"]
        assert parent["job"]["name"] == parent["root"]["job"]["name"] == "shapes"
    other = ran.told.jobs - set(SHAPES)
    assert not [job for job in other if "merge" in job], "a batch of a query is no job of its own"


def test_sources_and_sinks(ran: Ran) -> None:
    expected = {
        "kafka_to_kafka": ({"topic"}, {"out"}),
        "stream_stream": ({"topic", "other"}, {"out"}),
    }
    for shape, (inputs, outputs) in expected.items():
        where, last = ran.places[shape], ran.told.last(shape)
        assert names(last["inputs"]) == {where[key] for key in inputs}, shape
        assert names(last["outputs"]) == {where[key] for key in outputs}, shape
    for shape, table in (("kafka_to_iceberg", "orders"), ("merge", "latest")):
        where, last = ran.places[shape], ran.told.last(shape)
        assert where["topic"] in names(last["inputs"]), shape
        (output,) = last["outputs"]
        assert output["namespace"].startswith("s3://"), shape
        links = output["facets"]["symlinks"]["identifiers"]
        assert any(link["name"].endswith(f"{where['namespace']}.{table}") for link in links)
    files = ran.told.last("file_to_file")
    assert names(files["inputs"]) == {ran.places["file_to_file"]["work"] + "/in"}
    assert names(files["outputs"]) == {ran.places["file_to_file"]["work"] + "/copied"}
    static = ran.told.last("stream_static")
    where = ran.places["stream_static"]
    assert names(static["inputs"]) == {where["topic"], where["work"] + "/names"}


def test_columns(ran: Ran) -> None:
    def sources(shape: str, column: str) -> set[str]:
        (output,) = ran.told.last(shape)["outputs"]
        fields = output["facets"]["columnLineage"]["fields"]
        return {item["field"] for item in fields[column]["inputFields"]}

    assert sources("kafka_to_kafka", "doubled") == {"price"}
    assert sources("kafka_to_iceberg", "supplier") == {"supplier"}
    assert sources("merge", "price") == {"price"}
    assert sources("stream_stream", "paid") == {"price"}
    assert sources("stream_static", "name") == {"name"}
    assert sources("file_to_file", "price") == {"price"}


def test_progress(ran: Ran) -> None:
    facet = ran.told.last("kafka_to_kafka")["run"]["facets"]["headwater_streaming"]
    (source,) = facet["offsets"]
    topic = ran.places["kafka_to_kafka"]["topic"]
    assert source["topics"][topic] == {"partitions": 1, "end": 20, "latest": 20, "lag": 0}
    assert facet["inputRows"] == 20
    assert facet["lag"] == 0
