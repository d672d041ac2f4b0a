"""Broker, catalog and executors are killed under load, and the lake has everything once."""

from __future__ import annotations

import json
import threading
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import psutil
import pytest

from headwater.lab import process
from headwater.lab.clients import CatalogClient, KafkaClient, unique
from headwater.lab.services import SERVICES
from headwater.lab.waiting import wait_until
from headwater.lake import tables
from tests.integration.server.test_forward import forwarded, logged
from tests.integration.server.test_kafka import until

from .lakes import TestLake
from .test_stream import estate, lake_edges, post, stored_edges

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headwater.lab.clients import SparkClient
    from headwater.lab.lab import Lab
    from tests.integration.pipelines import jobs
    from tests.integration.server.conftest import Process

pytestmark = [pytest.mark.full, pytest.mark.timeout(1500)]

OFTEN = ("--every", "1 second", "--derive-every", "2 seconds")
WAIT = 400
ESTATES = 60
EXECUTOR = "CoarseGrainedExecutorBackend"
TWO = {"spark.cores.max": 2, "spark.executor.cores": 1, "spark.executor.memory": "512m"}


class Stream:
    """The program as a supervisor runs it: started again whenever it ends."""

    def __init__(self, lake: TestLake, **how: Any) -> None:
        self._lake, self._how = lake, how
        self.job: jobs.Job = lake.start(*OFTEN, once=False, **how)
        self.starts = 1

    def tend(self) -> None:
        if self.job.process.poll() is not None:
            self.job = self._lake.start(*OFTEN, once=False, **self._how)
            self.starts += 1

    def wait_for(self, count: int) -> None:
        """Until the lake has so many events."""

        def has() -> bool:
            self.tend()
            return events(self._lake) >= count

        wait_until(has, seconds=WAIT, what=f"{count} events", interval=0.5)

    def kill(self) -> None:
        self.job.process.kill()
        self.job.process.wait()


def events(lake: TestLake) -> int:
    """How many there are; none while nobody can tell."""
    try:
        return len(lake.places())
    except Exception:  # noqa: BLE001  (the catalog is away, or the table is not made yet)
        return 0


def apart(number: int) -> list[dict[str, Any]]:
    """Events of one of many estates: of a job with thousands of schemas, each one costs more."""
    text = json.dumps(estate(number))
    for name in ("load", "report", "b"):
        text = text.replace(f'"{name}"', f'"{name}{number // 6 % ESTATES}"')
    found: list[dict[str, Any]] = json.loads(text)
    return found


@contextmanager
def load(server: Process) -> Iterator[None]:
    """Events that come without a pause."""
    stop = threading.Event()

    def feed() -> None:
        number = 0
        while not stop.is_set():
            post(server, *apart(number))
            number += 6
            stop.wait(0.2)

    feeder = threading.Thread(target=feed)
    feeder.start()
    try:
        yield
    finally:
        stop.set()
        feeder.join()


def holds_all(lake: TestLake, server: Process) -> None:
    """Each record of the topic stands once, and each of the server's log is among them."""
    records = logged(server)
    until(lambda: forwarded(server) == len(records))
    lake.run()
    places = lake.places()
    assert len(places) == len(set(places))
    assert places == sorted(topic_places(lake))
    assert {row["seq"] for row in lake.rows(tables.EVENTS)} == set(records)
    assert lake.rows(tables.REFUSED) == []
    assert lake_edges(lake) == stored_edges(server)


def topic_places(lake: TestLake) -> Iterator[tuple[int, int]]:
    from confluent_kafka import Consumer, TopicPartition

    consumer = Consumer({"bootstrap.servers": lake.kafka.bootstrap, "group.id": unique("reader")})
    try:
        for number in consumer.list_topics(lake.topic, 30).topics[lake.topic].partitions:
            at = TopicPartition(lake.topic, number)
            low, high = consumer.get_watermark_offsets(at, timeout=30)
            yield from ((number, offset) for offset in range(low, high))
    finally:
        consumer.close()


class TestServicesThatAreKilled:
    @pytest.fixture
    def lake(self, killed_lab: Lab, tmp_path: Path) -> TestLake:
        kafka, catalog = KafkaClient(killed_lab, "kafka"), CatalogClient(killed_lab, "catalog")
        return TestLake(killed_lab, kafka, catalog, tmp_path / "lake")

    def test_a_killed_broker_or_catalog_loses_and_doubles_nothing(
        self, killed_lab: Lab, lake: TestLake, server: Callable[[], Process]
    ) -> None:
        one = server()
        try:
            with load(one):
                stream = Stream(lake)
                try:
                    stream.wait_for(50)
                    for service in ("kafka", "catalog", "kafka", "catalog"):
                        before, sent = events(lake), len(logged(one))
                        process.find(killed_lab.home.root)[service].kill()
                        # Long enough that what the stream does at this moment meets it.
                        wait_until(
                            lambda: len(logged(one)) > sent + 90,  # noqa: B023
                            seconds=WAIT,
                            what="events while it is away",
                        )
                        stream.tend()
                        killed_lab.up([service])
                        stream.wait_for(before + 50)
                finally:
                    stream.kill()
            holds_all(lake, one)
        finally:
            killed_lab.up()


def executors(lab: Lab, application: str) -> list[psutil.Process]:
    """The processes on the cluster's workers that run an application's tasks."""
    master = SERVICES["spark"].env(lab.context)["SPARK_MASTER_UI"]
    active = httpx.get(f"{master}/json/", trust_env=False, timeout=30).json()["activeapps"]
    ids = [one["id"] for one in active if one["name"] == application]
    leaders = process.find(lab.home.root)
    found = []
    for worker in ("spark-worker-1", "spark-worker-2"):
        for child in leaders[worker].children(recursive=True):
            try:
                words = child.cmdline()
            except psutil.Error:
                continue
            if any(EXECUTOR in word for word in words) and any(i in words for i in ids):
                found.append(child)
    return found


def test_a_cluster_of_two_executors_that_are_killed_has_each_event_once(
    lab: Lab, spark_cluster: SparkClient, lake: TestLake, server: Callable[[], Process]
) -> None:
    one, name = server(), unique("lake")
    with load(one):
        stream = Stream(lake, cluster=spark_cluster.master, conf=TWO, name=name)
        try:
            stream.wait_for(30)
            for round_ in range(3):
                two = partial(_two, lab, name)
                found = wait_until(two, seconds=WAIT, what="two executors", interval=0.5)
                before = events(lake)
                found[round_ % 2].kill()
                stream.wait_for(before + 40)
            # A cluster replaces an executor: the program needs nobody for that.
            assert stream.starts == 1, stream.job.log.read_text(errors="replace")[-4000:]
        finally:
            stream.kill()
    holds_all(lake, one)


def _two(lab: Lab, name: str) -> list[psutil.Process] | None:
    found = executors(lab, name)
    return found if len(found) == 2 else None
