"""A query that runs on: heartbeats, new topics, samples of flow, and a real server that takes them."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from confluent_kafka.admin import AdminClient

from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until
from tests.integration.server.conftest import Process

from .drivers import Drivers, Told, check_lives, names

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import KafkaClient


@pytest.mark.full
def test_beats_topics_and_flow(tmp_path: Path, kafka: KafkaClient) -> None:
    server = Process(f"sqlite:///{tmp_path}/headwater.db", tmp_path / "server.log")
    drivers = Drivers(tmp_path)
    drivers.environment = {
        key: value for key, value in drivers.environment.items() if "TRANSPORT" not in key
    }
    (tmp_path / "openlineage.yml").write_text(
        "transport:\n  type: composite\n  continue_on_failure: true\n  transports:\n"
        f"    server: {{type: http, url: '{server.url}'}}\n"
        f"    log: {{type: file, log_file_path: '{drivers.file}', append: true}}\n"
    )
    prefix = unique("beat")
    first, stop = kafka.topic(prefix), tmp_path / "stop"
    kafka.produce(first, ["a"] * 5)
    found: list[Told] = []
    group = unique("audit")
    argv = ("beats.py", kafka.bootstrap, f"{prefix}.*", kafka.topic("out"), str(stop), group)
    program = threading.Thread(
        target=lambda: found.append(
            drivers.run(*argv, HEADWATER_HEARTBEAT_SECONDS="2", HEADWATER_FLOW_SECONDS="2")
        )
    )
    program.start()

    def beats() -> list[dict[str, Any]]:
        told = [event for event in drivers.events() if event["job"]["name"] == "beating"]
        return [event for event in told if event["eventType"] == "RUNNING"]

    try:
        wait_until(lambda: len(beats()) >= 2, seconds=120, what="two heartbeats")
        second = kafka.topic(prefix)
        kafka.produce(second, ["b"] * 5)
        wait_until(
            lambda: any(second in names(event["inputs"]) for event in beats()),
            seconds=120,
            what="the new topic in an event",
        )
        run = beats()[0]["run"]["runId"]

        def flow() -> list[dict[str, Any]]:
            answer = httpx.get(f"{server.url}/api/v2/flow", params={"run": run}).json()
            return list(answer["flow"])

        wait_until(lambda: len(flow()) >= 2, seconds=120, what="flow on the server")
        # A group that the brokers show, and of which the server knows whose it is.
        admin = AdminClient({"bootstrap.servers": kafka.bootstrap})

        def listed() -> set[str]:
            found = admin.list_consumer_groups(request_timeout=10).result()
            return {one.group_id for one in found.valid}

        wait_until(lambda: group in listed(), seconds=60, what="the group at the brokers")
        cluster = {"namespace": f"kafka://{kafka.bootstrap}"}
        named = httpx.get(f"{server.url}/api/v2/consumer-groups", params=cluster).json()
        assert named["topics"][first] == [group]
    finally:
        stop.touch()
        program.join()
        server.stop()
    (told,) = found
    assert told.code == 0, told.error
    check_lives(told.events)
    assert told.types("beating")[-1] == "ABORT"
    assert names(told.last("beating")["inputs"]) == {first, second}
    (output,) = told.last("beating")["outputs"]
    columns = output["facets"]["columnLineage"]["fields"]
    assert {one["name"] for one in columns["value"]["inputFields"]} == {first, second}
    last = told.last("beating")["run"]["facets"]["headwater_streaming"]
    assert sum(t["end"] for o in last["offsets"] for t in o["topics"].values()) == 10
    pattern = told.last("beating")["job"]["facets"]["jobType"]["emissionPattern"]
    assert pattern["windowDuration"] == 2


@pytest.mark.full
def test_a_worker_that_is_behind_tells_the_right_ends_within_bounds(tmp_path: Path) -> None:
    told = Drivers(tmp_path).run("behind.py")
    assert told.code == 0, told.error
    check_lives(told.events)
    assert told.types("brief") == ["START", "COMPLETE"]
    assert "open: 5" in told.output
    assert "looked: little" in told.output
    assert "calls run at once" in told.error
