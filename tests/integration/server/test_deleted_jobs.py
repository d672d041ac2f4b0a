"""A job that its producer reports as deleted reads and writes nothing from then on, on either store."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING, Any

import pytest

from headwater.server.app import ServerSettings
from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import rebuild

from .conftest import Client
from .making import P, at, columns, dataset, event, facet, schema

if TYPE_CHECKING:
    from collections.abc import Iterator

STREAM = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT", jobType="SINK")}
TOPIC = dataset("topic", schema=schema("id"))
TABLE = dataset("table", schema=schema("id"), columnLineage=columns(id=("topic", "id")))


def sink(state: str, second: int, run: int = 1, job: str = "sink", **more: Any) -> dict[str, Any]:
    ends = {"inputs": [TOPIC], "outputs": [TABLE]}
    return event(state, second, run=run, job=job, job_facets=STREAM, **{**ends, **more})


def deleted(second: int, job: str = "sink") -> dict[str, Any]:
    return {
        "eventTime": at(second),
        "producer": P,
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent",
        "job": {
            "namespace": "jobs",
            "name": job,
            "facets": {"headwater_deleted": facet(at=at(second))},
        },
    }


@pytest.fixture
def estate(store_url: str) -> Iterator[Client]:
    """A server that closes no silent run."""
    client = Client(open_store(store_url), ServerSettings(stale_every=3_600))
    yield client
    client.close()


def hit(client: Client) -> set[str]:
    change = {"node": "dataset:s3://lake:topic", "changes": [{"kind": "drop", "column": "id"}]}
    found = client.call("POST", "/api/v2/impact", json=change).json()
    return {one["name"] for one in found["jobs"]} | set(found["unaffected"])


def behind(client: Client, second: int | None = None, node: str = "topic") -> set[str]:
    when = {} if second is None else {"at": at(second)}
    found = client.get("/api/v2/trace", node=f"dataset:s3://lake:{node}", direction="down", **when)
    return {row["node"].rpartition(":")[2] for row in found["rows"]} - {node}


LIFE = [
    sink("START", 10),
    sink("COMPLETE", 20),
    deleted(20),
    sink("START", 30, run=2, outputs=["other"]),
    sink("COMPLETE", 40, run=2, outputs=["other"]),
    deleted(45),
]


def test_a_deleted_connector_is_hit_by_nothing_and_was_there_before(estate: Client) -> None:
    estate.post(sink("START", 10), event("START", 10, run=9, job="other", inputs=["topic"]))
    assert hit(estate) == {"sink", "other"}
    estate.post(sink("COMPLETE", 20))
    assert hit(estate) == {"sink", "other"}  # a connector that is paused goes on when resumed
    estate.post(deleted(25))
    assert hit(estate) == {"other"}
    assert behind(estate) == {"other"}
    assert behind(estate, 24) == {"sink", "other", "table"}
    column = {"node": "datasetField:s3://lake:topic:id", "direction": "down"}
    for second, rows in ((24, 2), (26, 1)):
        assert len(estate.get("/api/v2/trace", **column, at=at(second))["rows"]) == rows, second
    gone = estate.get("/api/v2/graph/diff", **{"from": at(22), "to": at(30)})
    assert [(one["origin"], one["destination"]) for one in gone["removed"]] == [
        ("dataset:s3://lake:topic", "job:jobs:sink"),
        ("job:jobs:sink", "dataset:s3://lake:table"),
    ]
    runs = estate.get("/api/v2/jobs/jobs/sink/runs")
    assert [run["state"] for run in runs["runs"]] == ["COMPLETED"]


def test_why_names_the_deleted_writer_of_what_nobody_writes_and_doctor_is_quiet(
    estate: Client,
) -> None:
    estate.post(sink("START", 10), sink("COMPLETE", 20), deleted(20))
    found = estate.get("/api/v2/datasets/s3%3A%2F%2Flake/table/why")
    (cause,) = found["causes"]
    assert (cause["kind"], cause["planned"], cause["since"]) == ("stopped", True, at(20))
    assert cause["detail"] == "sink, which wrote it, was deleted"
    doubts = estate.get("/api/v2/doctor")["findings"]
    assert [one for one in doubts if one["node"] == "job:jobs:sink"] == []
    # Another connector takes its place: the table is as live as that is.
    estate.post(sink("START", 30, run=2, job="sink-2"))
    found = estate.get("/api/v2/datasets/s3%3A%2F%2Flake/table/why")
    assert (found["verdict"], found["causes"]) == ("live", [])


@pytest.mark.parametrize(
    "order", [range(6), range(5, -1, -1), (2, 5, 0, 3, 1, 4), (3, 4, 5, 0, 1, 2)]
)
def test_whatever_the_order_the_edges_of_each_life_end_with_it(estate: Client, order: Any) -> None:
    for number in order:
        estate.post(LIFE[number])

    truth = [{"sink", "table"}, set(), {"sink", "other"}, {"sink", "other"}, set()]
    for _ in range(2):
        assert [behind(estate, second) for second in (15, 25, 35, 42, 50)] == truth
        assert hit(estate) == set()
        rebuild(estate.store)
    estate.post(sink("START", 60, run=3))
    for _ in range(2):
        assert [behind(estate, second) for second in (15, 25, 35, 42, 50)] == truth
        assert hit(estate) == {"sink"}
        rebuild(estate.store)


def test_a_run_that_lives_on_shows_that_the_job_is_there(estate: Client) -> None:
    # The clock of whoever saw the deletion is ahead of the producer's.
    estate.post(sink("START", 10), deleted(12))
    assert hit(estate) == set()
    estate.post(sink("RUNNING", 20))
    assert hit(estate) == {"sink"}


def test_the_parts_of_a_connector_end_one_by_one(estate: Client) -> None:
    part = {"headwater_partOf": facet(namespace="jobs", name="sink"), **STREAM}
    estate.post(
        sink("START", 10),
        event(
            "START", 11, run=2, job="sink.1", inputs=["second"], outputs=[TABLE], job_facets=part
        ),
    )
    assert behind(estate, node="second") == {"sink", "table"}
    for number, job in itertools.product((20, 21), ("sink", "sink.1")):
        estate.post(deleted(number, job))
    assert behind(estate, node="second") == set()
    assert hit(estate) == set()
