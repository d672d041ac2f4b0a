"""Readers and writers that nobody reports, on a real broker: jobs of their own, and unknown to `impact`."""

from __future__ import annotations

import json
import subprocess
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.emit.run_emitter import new_run_id
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
        "--skip-producers", "skipped-*",
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


@pytest.mark.parametrize("protocol", [pytest.param("classic", marks=pytest.mark.full), "consumer"])
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


@pytest.mark.full
def test_a_group_of_a_spark_query_is_no_reader_of_its_own(
    agent: ClusterAgent, kafka: KafkaClient, server: str
) -> None:
    """The group is real; of the query there is the event that Spark's listener would send."""
    topic = kafka.topic("bids")
    kafka.produce(topic, ["1", "2"])
    own, other = Reader(kafka, topic, "classic", "etl"), Reader(kafka, topic, "classic")
    run = {"runId": new_run_id(datetime.now(timezone.utc))}
    named = {"_producer": "urn:t", "_schemaURL": "urn:t", "groups": [own.group]}
    query = {
        "job": {"namespace": "lab", "name": unique("query")},
        "inputs": [{"namespace": f"kafka://{kafka.bootstrap}", "name": topic}],
        "outputs": [],
        "producer": "urn:t",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
    }

    def tell(kind: str) -> None:
        now = datetime.now(timezone.utc).isoformat()
        told = {"facets": {"headwater_consumerGroups": named}, **run}
        sent = {**query, "eventType": kind, "eventTime": now, "run": told}
        httpx.post(f"{server}/api/v2/events", json=sent, timeout=30).raise_for_status()

    def wait(one: Reader) -> None:
        shown = Server(server, "lab", one.job)
        wait_until(
            lambda: shown.states() == ["RUNNING"],
            seconds=120,
            what=f"a run of {one.group}:\n{agent.log[-3000:]}",
        )

    tell("START")
    try:
        for one in (own, other):
            one.read(1)
        wait(other)
        assert Server(server, "lab", own.job).jobs(own.group) == []
        # The query has ended, and somebody still reads in its group.
        tell("COMPLETE")
        wait(own)
    finally:
        own.close()
        other.close()


@pytest.mark.full
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


class Writer:
    """A program that writes in transactions, and tells nobody."""

    def __init__(self, kafka: KafkaClient, name: str, number: int) -> None:
        from confluent_kafka import Producer

        settings = {"bootstrap.servers": kafka.bootstrap, "transactional.id": f"{name}-{number}"}
        self._producer = Producer(settings)
        self._producer.init_transactions(60)

    def write(self, *topics: str) -> None:
        """One transaction."""
        self._producer.begin_transaction()
        for topic in topics:
            self._producer.produce(topic, b"1")
        self._producer.commit_transaction(60)


def test_a_writer_that_nobody_reports_is_a_job_until_it_is_silent(
    agent: ClusterAgent, kafka: KafkaClient, server: str
) -> None:
    letters = str.maketrans("0123456789", "ghijklmnop")
    name, skipped = unique("ledger").translate(letters), unique("skipped-by-us").translate(letters)
    orders, bids = kafka.topic("orders"), kafka.topic("bids")
    writers = [Writer(kafka, name, number) for number in range(2)]
    other = Writer(kafka, skipped, 0)
    shown = Server(server, "lab", f"producer.{name}-*")

    def wait(met: Callable[[], bool], what: str) -> None:
        wait_until(
            met, seconds=120, what=f"{what}; {shown.states()}:\n{agent.log[-3000:]}", interval=0.2
        )

    def writing(state: str) -> bool:
        writers[0].write(orders)
        writers[1].write(bids)
        other.write(orders)
        return shown.states() == [state]

    wait(lambda: writing("RUNNING"), "a run of the producers")
    topics = {f"dataset:kafka://{kafka.bootstrap}:{topic}" for topic in (orders, bids)}
    wait(lambda: shown.graph() >= {f"job:lab:producer.{name}-*", *topics}, "both topics")
    assert shown.facets()["headwater_transactionalProducer"]["transactionalId"] == f"{name}-*"
    assert shown.jobs(skipped) == []
    asked = [HEADWATER, "why", bids, "--url", server, "--json"]
    done = subprocess.run(asked, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert json.loads(done.stdout)["verdict"] == "live"
    wait(lambda: shown.states() == ["COMPLETED"], "the end of the run")
    end = shown.facets()["headwater_end"]
    assert (end["reason"], end["inferred"]) == ("no transactions", True)
