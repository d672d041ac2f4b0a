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
from .test_answers import Command

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
    estate: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    estate.post(sink("START", 10), sink("COMPLETE", 20), deleted(20))
    found = estate.get("/api/v2/datasets/s3%3A%2F%2Flake/table/why")
    (cause,) = found["causes"]
    assert (cause["kind"], cause["planned"], cause["since"]) == ("stopped", True, at(20))
    assert cause["detail"] == "sink, which wrote it, was deleted"
    said = Command(estate, monkeypatch)("why", "table")
    assert "is of unknown freshness (nothing writes it any more)" in said
    assert f"because table is written by nothing any more (planned) since {at(20)}" in said
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


def drawn(client: Client, **query: Any) -> dict[str, str]:
    found = client.get("/api/v2/map", **query)["nodes"]
    return {one["id"].rpartition(":")[2]: one.get("change", "") for one in found}


def listed(client: Client, **query: Any) -> dict[str, str]:
    found = client.get("/api/v2/graph/diff", **query)
    return {
        one.rpartition(":")[2]: change
        for key, change in (("appeared", "added"), ("vanished", "removed"))
        for one in found[key]
    }


def test_a_deleted_connector_belongs_to_the_past(estate: Client) -> None:
    other = event("START", 10, run=9, job="other", inputs=["topic"], outputs=["copy"])
    estate.post(other, sink("START", 10), sink("FAIL", 20))
    assert len(estate.get("/api/v2/connectors")["connectors"]) == 1
    assert estate.get("/api/v2/overview")["troubles"]["jobs"] != []
    estate.post(deleted(25))
    for _ in range(2):
        assert estate.get("/api/v2/connectors")["connectors"] == []
        now = estate.get("/api/v2/overview")
        assert (now["jobs"]["total"], now["jobs"]["FAILED"], now["datasets"]) == (1, 0, 2)
        assert (now["troubles"]["jobs"], now["stale"], now["halted"]) == ([], [], [])
        assert drawn(estate).keys() == {"other", "topic", "copy"}
        assert drawn(estate, namespace="jobs").keys() == {"other", "topic", "copy"}
        assert drawn(estate, at=at(30)).keys() == {"other", "topic", "copy"}
        groups = estate.get("/api/v2/map", limit=1)
        assert groups["total"] == {"jobs": 1, "datasets": 2}
        (jobs,) = [one for one in groups["groups"] if one["namespace"] == "jobs"]
        assert (jobs["jobs"], jobs["states"]["FAILED"]) == (1, 0)
        # It is there by its name, by search, and in the past.
        page = estate.get("/api/v2/jobs/jobs/sink")
        assert (page["state"], page["deleted"]) == ("FAILED", at(25))
        assert estate.get("/api/v2/jobs/jobs/other")["deleted"] is None
        found = estate.get("/api/v2/search", q="sink")["results"]
        assert [one["node"] for one in found] == ["job:jobs:sink"]
        assert drawn(estate, at=at(15)).keys() == {"sink", "other", "topic", "table", "copy"}
        rebuild(estate.store)
    estate.post(sink("START", 40, run=2))  # made anew
    assert len(estate.get("/api/v2/connectors")["connectors"]) == 1
    assert estate.get("/api/v2/overview")["jobs"]["total"] == 2
    assert drawn(estate).keys() == {"sink", "other", "topic", "table", "copy"}
    assert drawn(estate, at=at(30)).keys() == {"other", "topic", "copy"}
    assert estate.get("/api/v2/jobs/jobs/sink")["deleted"] is None


def test_what_is_deleted_by_hand_besides_is_not_counted_twice(estate: Client) -> None:
    estate.post(event("START", 10, run=9, job="other", inputs=["topic"], outputs=["copy"]))
    ends = [{**TABLE, "namespace": "hive://m"}]
    estate.post(sink("START", 10, outputs=ends), sink("COMPLETE", 20, outputs=ends), deleted(25))
    for deletes in (False, True):
        if deletes:
            path = "/api/v1/namespaces/hive%3A%2F%2Fm/datasets/table"
            assert estate.call("DELETE", path).status_code == 200
        assert estate.get("/api/v2/overview")["datasets"] == 2
        answer = estate.get("/api/v2/map", limit=1)
        assert answer["total"] == {"jobs": 1, "datasets": 2}
        groups = {one["namespace"]: (one["jobs"], one["datasets"]) for one in answer["groups"]}
        assert groups == {"jobs": (1, 0), "s3://lake": (0, 2)}


def test_a_connector_is_there_as_long_as_one_of_its_parts_is(estate: Client) -> None:
    part = {"headwater_partOf": facet(namespace="jobs", name="sink"), **STREAM}
    second: dict[str, Any] = {"inputs": ["second"], "outputs": [TABLE], "job_facets": part}
    estate.post(sink("START", 10), event("START", 11, run=2, job="sink.1", **second))
    estate.post(sink("COMPLETE", 20), deleted(20))
    assert estate.get("/api/v2/overview")["jobs"]["total"] == 1
    estate.post(event("COMPLETE", 21, run=2, job="sink.1", **second), deleted(21, "sink.1"))
    assert estate.get("/api/v2/overview")["jobs"]["total"] == 0
    assert estate.get("/api/v2/connectors")["connectors"] == []
    assert drawn(estate) == {}


def test_the_picture_of_a_difference_marks_what_its_list_names(estate: Client) -> None:
    estate.post(event("START", 5, run=9, job="other", inputs=["topic"], outputs=["copy"]))
    estate.post(event("START", 6, run=8, job="idle"))  # no edges: in neither
    estate.post(sink("START", 10), sink("COMPLETE", 20), deleted(20))
    estate.post(sink("START", 40, run=2), sink("COMPLETE", 50, run=2), deleted(50))
    for start, end, truth in (
        (7, 15, {"sink": "added", "table": "added"}),
        (7, 30, {}),  # came and went
        (15, 30, {"sink": "removed", "table": "removed"}),
        (15, 45, {}),
        (30, 45, {"sink": "added", "table": "added"}),
        (45, None, {"sink": "removed", "table": "removed"}),
        (1, 2, {}),
    ):
        period = {"from": at(start), **({"to": at(end)} if end else {})}
        assert listed(estate, **period) == truth, period
        marked = {name: change for name, change in drawn(estate, **period).items() if change}
        assert marked == truth, period
    # Deleted by hand: the first moment still has it.
    assert estate.call("DELETE", "/api/v1/namespaces/jobs/jobs/other").status_code == 200
    period = {"from": at(30)}
    truth = {"other": "removed", "topic": "removed", "copy": "removed"}
    assert listed(estate, **period) == truth
    assert {n: c for n, c in drawn(estate, **period).items() if c} == truth
