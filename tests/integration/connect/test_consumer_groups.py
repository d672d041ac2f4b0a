"""Readers that nobody reports, on a real broker: jobs of their own, and unknown to `impact`."""

from __future__ import annotations

import json
import subprocess
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

from .reporting import Server
from .watching import HEADWATER, ClusterAgent

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headwater.lab.clients import ConnectClient, KafkaClient

SENT, READ = 20, 8


class Reader:
    """A program that reads a topic in a group of its own, and tells nobody."""

    def __init__(
        self, kafka: KafkaClient, topic: str, protocol: str, name: str = "billing-api"
    ) -> None:
        from confluent_kafka import Consumer

        # In letters only: a generated part with digits in it would stand for all groups of its kind.
        self.group = unique(name).translate(str.maketrans("0123456789", "ghijklmnop"))
        self.job = f"consumer-group.{self.group}"
        self._consumer = Consumer(
            {
                "bootstrap.servers": kafka.bootstrap,
                "group.id": self.group,
                "group.protocol": protocol,
                "auto.offset.reset": "earliest",
                "enable.auto.commit": False,
            }
        )
        self._consumer.subscribe([topic])

    def read(self, count: int) -> None:
        """Read so many records, and commit how far it has come."""
        for _ in range(count):
            message = None
            while message is None:
                message = self._consumer.poll(1.0)
            assert message.error() is None
            self._consumer.commit(message=message, asynchronous=False)

    def close(self) -> None:
        self._consumer.close()


@pytest.fixture
def agent(
    tmp_path: Path, connect: ConnectClient, kafka: KafkaClient, server: str
) -> Iterator[ClusterAgent]:
    made = ClusterAgent(
        tmp_path, connect.url, "--kafka-bootstrap", kafka.bootstrap,
        "--poll", "0.3", "--heartbeat", "2", "--grace", "8", "--skip-groups", "skipped-*",
        env={"OPENLINEAGE_URL": server, "OPENLINEAGE_NAMESPACE": "lab"},
    ).start()  # fmt: skip
    yield made
    made.kill()


def impact(server: str, topic: str) -> dict[str, Any]:
    done = subprocess.run(
        [HEADWATER, "impact", topic, "--drop", "price", "--url", server, "--json"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_reader_that_nobody_reports_is_a_job_and_unknown_to_impact(
    agent: ClusterAgent, kafka: KafkaClient, connect: ConnectClient, server: str, protocol: str,
    tmp_path: Path,
) -> None:  # fmt: skip
    topic = kafka.topic("orders")
    kafka.produce(topic, [json.dumps({"price": n}) for n in range(SENT)])
    sink = connect.create(
        {
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "topics": topic,
            "file": str(tmp_path / "out.txt"),
            "value.converter": "org.apache.kafka.connect.storage.StringConverter",
        },
        "watched",
    )
    reader = Reader(kafka, topic, protocol)
    shown = Server(server, "lab", reader.job)

    def wait(met: Callable[[], bool], what: str) -> None:
        lately = f"{shown.jobs('')}, {shown.states()}:\n{agent.log[-3000:]}"
        wait_until(met, seconds=120, what=f"{what}; {lately}", interval=0.2)

    try:
        reader.read(READ)
        wait(lambda: shown.states() == ["RUNNING"], "a run of the group")
        wait(lambda: Server(server, "lab", sink).states() == ["RUNNING"], "a run of the sink")
        node = f"dataset:kafka://{kafka.bootstrap}:{topic}"
        job = f"job:lab:{reader.job}"
        assert {job, node} <= shown.graph()

        def lag() -> int | None:
            found = shown.facets().get("headwater_consumerGroup", {}).get("lag")
            return int(found) if found is not None else None

        wait(lambda: lag() == SENT - READ, "the lag")
        answer = impact(server, topic)
        judged = {one["name"]: (one["effect"], one["why"]) for one in answer["jobs"]}
        assert judged[reader.job] == (
            "unknown", "it reads the dataset and nobody knows which columns",
        )  # fmt: skip
        assert answer["verdict"] == "unknown"
        assert shown.jobs(f"consumer-group.connect-{sink}") == []
        listed = httpx.get(f"{server}/api/v1/namespaces/lab/jobs/{reader.job}", timeout=30).json()
        assert listed["type"] == "STREAM"
        reader.close()
        wait(lambda: shown.states() == ["ABORTED"], "the end of the run")
        assert shown.facets()["headwater_end"]["inferred"] is True
    finally:
        reader.close()
        connect.delete(sink)


def test_groups_can_be_left_out(agent: ClusterAgent, kafka: KafkaClient, server: str) -> None:
    topic = kafka.topic("bids")
    kafka.produce(topic, ["1", "2"])
    skipped = Reader(kafka, topic, "classic", "skipped-by-us")
    watched = Reader(kafka, topic, "classic")
    try:
        for one in (skipped, watched):
            one.read(1)
        shown = Server(server, "lab", watched.job)
        wait_until(lambda: shown.states() == ["RUNNING"], seconds=120, what="a run of the group")
        assert shown.jobs(skipped.group) == []
    finally:
        watched.close()
        skipped.close()
