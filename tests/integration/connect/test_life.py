"""The life of real connectors as the agent tells it, and the hands-on commands that change it."""

from __future__ import annotations

import json
import os
from pwd import getpwuid
from typing import TYPE_CHECKING

import pytest

from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

from .watching import names, runs

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import ConnectClient, KafkaClient

    from .shop import Shop
    from .watching import ClusterAgent, Event


USER = getpwuid(os.getuid()).pw_name


def ended_by(event: Event) -> tuple[str, str] | None:
    """Why a run is over and by whom, where its last event says so."""
    end = event["run"]["facets"].get("headwater_end")
    return end and (end["reason"], end["by"])


def test_a_poison_record_fails_one_task_and_a_restart_is_a_new_run(
    agent: ClusterAgent, shop: Shop, kafka: KafkaClient, connect: ConnectClient
) -> None:
    topic = kafka.topic("poisoned", partitions=3)
    sink = connect.create(shop.json_sink(topic, tasks=3), "poisoned")
    agent.wait_for(sink, "START")
    kafka.produce(topic, ['{"n": 1}', "this is no JSON"])
    fail = agent.wait_for(sink, "START", "FAIL")
    said = fail["run"]["facets"]["errorMessage"]
    assert "task" in said["message"]
    assert "DataException" in said["stackTrace"]
    assert names(fail, "inputs") == [f"kafka://{kafka.bootstrap} {topic}"]
    tasks = fail["run"]["facets"]["headwater_connect"]["tasks"]
    failed = [task["id"] for task in tasks if task["state"] == "FAILED"]
    assert len(tasks) == 3
    assert failed
    assert all(f"task {number}" in said["message"] for number in failed)
    assert connect.status(sink)["connector"]["state"] == "RUNNING"
    shown = agent.command("status", sink, code=1)
    assert "failed" in shown
    assert "DataException" in shown
    agent.command("restart", sink)
    agent.wait_for(sink, "START", "FAIL", "START", "FAIL")
    config = {**shop.json_sink(topic, tasks=3), "errors.tolerance": "all", "name": sink}
    connect.http.put(
        f"/connectors/{sink}/config", json={k: str(v) for k, v in config.items()}
    ).raise_for_status()
    agent.wait_for(sink, "START", "FAIL", "START", "FAIL", "START")
    assert len(runs(agent.events(sink))) == 3
    connect.delete(sink)


def test_pause_resume_stop_and_delete(
    agent: ClusterAgent, shop: Shop, kafka: KafkaClient, connect: ConnectClient
) -> None:
    topic = kafka.topic("lines")
    source = connect.create(shop.file_source(topic), "lines")
    start = agent.wait_for(source, "START")
    assert names(start, "outputs") == [f"kafka://{kafka.bootstrap} {topic}"]
    agent.command("pause", source)
    paused = agent.wait_for(source, "START", "COMPLETE")
    assert ended_by(paused) == ("paused", USER)
    assert names(paused, "outputs") == names(start, "outputs")
    agent.command("resume", source)
    agent.wait_for(source, "START", "COMPLETE", "START")
    agent.command("stop", source)
    stopped = agent.wait_for(source, "START", "COMPLETE", "START", "ABORT")
    assert ended_by(stopped) == ("stopped", USER)
    agent.command("resume", source)
    agent.wait_for(source, "START", "COMPLETE", "START", "ABORT", "START")
    agent.command("restart", source)
    sequence = ["START", "COMPLETE", "START", "ABORT", "START", "ABORT", "START"]
    agent.wait_for(source, *sequence)
    restarted = [event for event in agent.events(source) if event["eventType"] == "ABORT"][-1]
    assert ended_by(restarted) == ("restarted", USER)
    agent.command("delete", source)
    gone = agent.wait_for(source, *sequence, "COMPLETE")
    assert names(gone, "outputs") == names(start, "outputs")
    assert names(gone, "inputs") == names(start, "inputs") != []
    wait_until(lambda: agent.deleted(source), seconds=60, what="the deletion to be reported")
    events = agent.events(source)
    assert len(runs(events)) == 4
    times = [event["eventTime"] for event in events]
    assert times == sorted(times)


@pytest.mark.full
def test_a_pause_by_another_tool_is_nobodys(
    agent: ClusterAgent, shop: Shop, kafka: KafkaClient, connect: ConnectClient
) -> None:
    source = connect.create(shop.file_source(kafka.topic("lines")), "lines")
    agent.wait_for(source, "START")
    connect.http.put(f"/connectors/{source}/pause").raise_for_status()
    assert ended_by(agent.wait_for(source, "START", "COMPLETE")) is None
    connect.delete(source)


def test_first_seen_failed(agent: ClusterAgent, connect: ConnectClient) -> None:
    name = unique("mm2")
    config = {
        "connector.class": "org.apache.kafka.connect.mirror.MirrorSourceConnector",
        "source.cluster.alias": "a",
        "target.cluster.alias": "b",
        "source.cluster.bootstrap.servers": "not a server",
        "target.cluster.bootstrap.servers": "127.0.0.1:1",
        "topics": "x",
    }
    connect.http.put(f"/connectors/{name}/config", json=config).raise_for_status()
    fail = agent.wait_for(name, "START", "FAIL")
    assert "bootstrap" in fail["run"]["facets"]["errorMessage"]["stackTrace"]
    connect.delete(name)


@pytest.mark.full
def test_heartbeats_carry_tasks_and_flow(
    agent: ClusterAgent, shop: Shop, kafka: KafkaClient, connect: ConnectClient
) -> None:
    topic = kafka.topic("beating")
    kafka.produce(topic, ['{"n": 1}'] * 20)
    sink = connect.create(shop.json_sink(topic), "beating")
    agent.wait_for(sink, "START")

    def measured() -> bool:
        beats = [e for e in agent.events(sink) if e["eventType"] == "RUNNING"]
        return any('"lag"' in json.dumps(e) for e in beats)

    wait_until(measured, seconds=120, what="a heartbeat with lag", interval=0.3)
    last = agent.events(sink)[-1]
    assert last["job"]["facets"]["jobType"]["emissionPattern"]["windowDuration"] == 5
    assert last["run"]["facets"]["processing_engine"]["name"] == "kafka-connect"
    connect.delete(sink)


def test_apply_validates_shows_a_diff_and_leaves_a_transform_out(
    agent: ClusterAgent, shop: Shop, kafka: KafkaClient, connect: ConnectClient, tmp_path: Path
) -> None:
    topic, name = kafka.topic("applied"), unique("applied")
    config = {key: str(value) for key, value in shop.file_source(topic).items()}
    file = tmp_path / "connector.json"
    lineage = {
        "transforms": "openlineage",
        "transforms.openlineage.type": "com.acme.OpenLineageLifecycleSmt",
        "transforms.openlineage.topics": topic,
        "transforms.openlineage.dataset.names": "shop.applied",
    }
    file.write_text(json.dumps({"name": name, "config": {**config, **lineage}}))
    shown = agent.command("apply", str(file), "--dry-run")
    assert "left out" in shown
    assert "what it declares is kept as headwater.dataset.names" in shown
    assert f"+ topic = {topic}" in shown
    assert connect.http.get(f"/connectors/{name}").status_code == 404
    agent.command("apply", str(file))
    agent.wait_for(name, "START")
    assert agent.command("apply", str(file)).count("as it was") == 1
    file.write_text(json.dumps({"name": name, "config": {**config, "batch.size": "7"}}))
    assert "+ batch.size = 7" in agent.command("apply", str(file))
    file.write_text(json.dumps({"name": name, "config": {**config, "batch.size": "many"}}))
    assert "batch.size" in agent.command("apply", str(file), code=1)
    listed = json.loads(agent.command("list", "--json"))
    assert name in {row["name"] for row in listed}
    explained = agent.command("explain", name)
    assert topic in explained
    assert "config key" in explained
    agent.command("delete", name)
    agent.wait_for(name, "START", "COMPLETE")
