"""Events as the agent words them, names that collide, and a file of clusters that changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from jsonschema import Draft202012Validator
from msgspec.structs import replace

from headwater.connect.agent.cluster_lineage import ClusterLineage, JobNames
from headwater.connect.config import ClusterConfig
from headwater.connect.life.state import (
    Condition,
    TrackedConnector,
    condition,
    dump,
    load,
    shown_config,
)
from headwater.connect.life.steps import Emission, next_step
from headwater.connect.model import Connector, ConnectorStatus, Derived, Task, job_of
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.errors import UsageError
from headwater.lineage.model import End
from headwater.lineage.openlineage.events import EventKind, EventType, read

FACETS = Path(__file__).parents[3] / "docs" / "facets"
CONFIG = {
    "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
    "topics": "orders",
    "file": "/data/out",
    "transforms": "r",
    "transforms.r.type": "org.apache.kafka.connect.transforms.RegexRouter",
    "secret.password": "hunter2",
}


def teller(**more: Any) -> ClusterLineage:
    config = ClusterConfig(name="lab", endpoint=Endpoint(("http://c",)), namespace="ns", **more)
    made = ClusterLineage(config, LiveMetadata(bootstrap="k:9092"))
    made.read_root({"version": "4.3.1", "kafka_cluster_id": "id-1"})
    return made


def tracked(made: ClusterLineage, config: dict[str, str] = CONFIG, **more: Any) -> TrackedConnector:
    lineage = made.derive(Connector("c", "sink", config))
    return TrackedConnector(
        cluster="lab", name="c", type="sink", config_shown=shown_config(config), derived=lineage.derived,
        status=ConnectorStatus("RUNNING", tasks=(Task(0, "RUNNING", "w:1"),)), **more,
    )  # fmt: skip


def test_an_event_is_whole_and_the_same_bytes_each_time() -> None:
    made = teller()
    (said,) = next_step(tracked(made), Condition.RUNNING, 1_790_000_000_000_000).emissions
    body = made.event(said)
    assert body is not None
    assert body == made.event(said)
    event = read(body)
    assert (event.kind, event.type) == (EventKind.RUN, EventType.START)
    found = json.loads(body)
    assert found["inputs"][0]["namespace"] == "kafka://k:9092"
    assert found["inputs"][0]["facets"]["headwater_cluster"]["clusterId"] == "id-1"
    assert found["run"]["facets"]["processing_engine"]["version"] == "4.3.1"
    assert found["job"]["facets"]["jobType"]["emissionPattern"]["windowDuration"] == 300
    assert b"hunter2" not in body


def test_a_failure_names_its_tasks_even_where_connect_only_says_degraded() -> None:
    made = teller()
    for status, words in (
        (ConnectorStatus("RUNNING", tasks=(Task(2, "FAILED", trace="Boom\n\tat x"),)), "task 2"),
        (ConnectorStatus("DEGRADED", trace="something"), "DEGRADED"),
    ):
        assert condition(status) is Condition.FAILED
        seen = replace(tracked(made), status=status)
        start, fail = next_step(seen, Condition.FAILED, 1_790_000_000_000_000).emissions
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
    seen = replace(tracked(made, REPORTED), emitted_at=1_790_000_000_000_000)
    document = json.loads((FACETS / "headwater_partOf.json").read_text())
    run = "01a1e245-affa-7afa-9152-c0de9c3ae55c"
    for kind, told, expected in (
        (EventType.OTHER, seen, EventKind.JOB),
        (EventType.ABORT, replace(seen, run=run, suppressed=True), EventKind.RUN),
    ):
        body = made.event(Emission(kind, told, task=2))
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
    seen = replace(tracked(made, REPORTED, suppressed=True), type="source", derived=lineage.derived)
    (start,) = next_step(seen, Condition.RUNNING, 1_790_000_000_000_000).emissions
    body = made.event(start)
    assert body is not None
    event = read(body)
    assert event.kind is EventKind.JOB
    assert event.job is not None
    assert (event.job.namespace, event.job.name) == ("debezium", "pg.0")
    assert event.outputs
    assert made.event(Emission(EventType.COMPLETE, start.tracked)) is None


def test_an_end_that_somebody_ordered_names_them_and_nobody_else_is_named() -> None:
    made = teller()
    begun = next_step(tracked(made), Condition.RUNNING, 1_790_000_000_000_000)
    (over,) = next_step(begun.tracked, Condition.PAUSED, 1_790_000_001_000_000).emissions
    facets = [
        json.loads(made.event(one) or b"")["run"]["facets"]
        for one in (over, replace(over, end=End("paused", by="ann")))
    ]
    assert "headwater_end" not in facets[0]
    end = {key: value for key, value in facets[1]["headwater_end"].items() if key[0] != "_"}
    assert end == {"reason": "paused", "inferred": False, "by": "ann"}


def test_two_clusters_with_one_name_are_told() -> None:
    names = JobNames()
    made = tracked(teller())
    assert names.claim(made) is None
    assert names.claim(made) is None
    said = names.claim(replace(made, cluster="other"))
    assert said is not None
    assert "namespace of its own" in said


def test_state_survives_the_store_and_odd_state_is_left_out() -> None:
    made = replace(tracked(teller()), run="01a1e245-affa-7afa-9152-c0de9c3ae55c", emitted_at=5)
    assert load(dump(made)) == made
    assert load(b"odd") is None
    older = {**msgspec.msgpack.decode(dump(made)), "derived": {"family": "file", "job_name": "c"}}
    assert load(msgspec.msgpack.encode(older)) == replace(made, derived=None), "the run goes on"
    assert made.started == 0x01A1E245AFFA * 1000
    assert TrackedConnector(cluster="a", name="b").started == 0


def test_the_state_of_an_earlier_version_is_taken_up() -> None:
    old = {"cluster": "a", "name": "b", "run": "r", "said": "RUNNING", "at": 5, "told": "f"}
    more = {"theirs": True, "parts": 2, "folded": "x/2", "unsure": [1], "mute": True, "config": "d"}
    assert load(msgspec.msgpack.encode(old | more)) == TrackedConnector(
        cluster="a", name="b", run="r", last_event=EventType.RUNNING, emitted_at=5,
        fingerprint="f", by_debezium=True, task_jobs=2, tasks_declared="x/2",
        tasks_to_check=(1,), suppressed=True, config_digest="d",
    )  # fmt: skip


def test_mappings_that_cannot_be_read_are_said(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="No such file"):
        teller(mappings=(str(tmp_path / "none.yml"),))


def test_nothing_is_known_of_a_connector_that_cannot_be_read() -> None:
    assert teller().unknown("c") == Derived(job_of("ns", "c"))
