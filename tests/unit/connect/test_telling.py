"""Events as the agent words them, names that collide, and a file of clusters that changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]
from msgspec.structs import replace

from headwater.connect.access import Access
from headwater.connect.config import ClusterConfig
from headwater.connect.life import Said, live
from headwater.connect.model import Connector, Derived, Status, Task
from headwater.connect.state import Condition, Tracked, condition, dump, load, shown_of
from headwater.connect.telling import Teller
from headwater.connect.watch import Names
from headwater.connect.world import LiveWorld
from headwater.errors import UsageError
from headwater.lineage.events import EventType, Kind, read

FACETS = Path(__file__).parents[3] / "docs" / "facets"
CONFIG = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "topics": "orders",
    "file": "/data/out",
    "transforms": "r",
    "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "secret.password": "hunter2",
}


def teller(**more: Any) -> Teller:
    config = ClusterConfig(name="lab", access=Access(("http://c",)), namespace="ns", **more)
    made = Teller(config, LiveWorld(bootstrap="k:9092"), None)
    made.on_root({"version": "4.3.1", "kafka_cluster_id": "id-1"})
    return made


def tracked(made: Teller, config: dict[str, str] = CONFIG, **more: Any) -> Tracked:
    lineage = made.derive(Connector("c", "sink", config))
    return Tracked(
        cluster="lab", name="c", type="sink", shown=shown_of(config), derived=lineage.derived,
        status=Status("RUNNING", tasks=(Task(0, "RUNNING", "w:1"),)), **more,
    )  # fmt: skip


def test_an_event_is_whole_and_the_same_bytes_each_time() -> None:
    made = teller()
    (said,) = live(tracked(made), Condition.RUNNING, 1_790_000_000_000_000).said
    body = made.event(said)
    assert body is not None
    assert body == made.event(said)
    event = read(body)
    assert (event.kind, event.type) == (Kind.RUN, EventType.START)
    found = json.loads(body)
    assert found["inputs"][0]["namespace"] == "kafka://k:9092"
    assert found["inputs"][0]["facets"]["headwater_cluster"]["clusterId"] == "id-1"
    assert found["run"]["facets"]["processing_engine"]["version"] == "4.3.1"
    assert found["job"]["facets"]["jobType"]["emissionPattern"]["windowDuration"] == 300
    assert b"hunter2" not in body


def test_a_failure_names_its_tasks_even_where_connect_only_says_degraded() -> None:
    made = teller()
    for status, words in (
        (Status("RUNNING", tasks=(Task(2, "FAILED", trace="Boom\n\tat x"),)), "task 2"),
        (Status("DEGRADED", trace="something"), "DEGRADED"),
    ):
        assert condition(status) is Condition.FAILED
        seen = replace(tracked(made), status=status)
        start, fail = live(seen, Condition.FAILED, 1_790_000_000_000_000).said
        assert (start.type, fail.type) == (EventType.START, EventType.FAIL)
        body = made.event(fail)
        assert body is not None
        assert words in json.loads(body)["run"]["facets"]["errorMessage"]["message"]


REPORTED = {
    "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
    "topic.prefix": "pg",
    "database.hostname": "db",
    "database.dbname": "shop",
    "table.include.list": "public.orders",
    "openlineage.integration.enabled": "true",
    "openlineage.integration.job.namespace": "debezium",
}


def test_a_part_names_its_whole_and_nothing_else() -> None:
    made = teller()
    seen = replace(tracked(made, REPORTED), at=1_790_000_000_000_000)
    document = json.loads((FACETS / "headwater_partOf.json").read_text())
    run = "01a1e245-affa-7afa-9152-c0de9c3ae55c"
    for kind, told, expected in (
        (EventType.OTHER, seen, Kind.JOB),
        (EventType.ABORT, replace(seen, run=run, mute=True), Kind.RUN),
    ):
        body = made.event(Said(kind, told, part=2))
        assert body is not None
        event, facets = read(body), json.loads(body)["job"]["facets"]
        assert event.kind is expected
        assert event.job is not None
        assert (event.job.namespace, event.job.name) == ("debezium", "pg.2")
        assert list(facets) == ["headwater_partOf"]
        Draft202012Validator(document).validate(facets["headwater_partOf"])
        named = facets["headwater_partOf"]
        assert (named["namespace"], named["name"]) == ("debezium", "pg.0")
        assert not event.inputs
        assert not event.outputs


def test_a_job_that_another_producer_reports_gets_lineage_and_no_second_run() -> None:
    made = teller()
    lineage = made.derive(Connector("c", "source", REPORTED, ("pg.public.orders",)))
    assert lineage.derived.joined == "debezium"
    seen = replace(tracked(made, REPORTED, mute=True), type="source", derived=lineage.derived)
    (start,) = live(seen, Condition.RUNNING, 1_790_000_000_000_000).said
    body = made.event(start)
    assert body is not None
    event = read(body)
    assert event.kind is Kind.JOB
    assert event.job is not None
    assert (event.job.namespace, event.job.name) == ("debezium", "pg.0")
    assert event.outputs
    assert made.event(Said(EventType.COMPLETE, start.tracked)) is None


def test_two_clusters_with_one_name_are_told() -> None:
    names = Names()
    made = tracked(teller())
    assert names.claim(made) is None
    assert names.claim(made) is None
    said = names.claim(replace(made, cluster="other"))
    assert said is not None
    assert "namespace of its own" in said


def test_state_survives_the_store_and_odd_state_is_left_out() -> None:
    made = replace(tracked(teller()), run="01a1e245-affa-7afa-9152-c0de9c3ae55c", at=5)
    assert load(dump(made)) == made
    assert load(b"odd") is None
    assert made.started == 0x01A1E245AFFA * 1000
    assert Tracked(cluster="a", name="b").started == 0


def test_mappings_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        teller(mappings=(str(tmp_path / "none.yml"),))


def test_nothing_is_known_of_a_connector_that_cannot_be_read() -> None:
    assert teller().nothing("c") == Derived("unknown", "ns", "c")
