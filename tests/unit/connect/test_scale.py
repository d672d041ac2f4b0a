"""A thousand connectors a poll, and an hour without a server."""

from __future__ import annotations

import json
import threading
import time
from collections import defaultdict
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any
from uuid import NAMESPACE_URL, uuid5

import httpx
import pytest

from headwater.connect.agent.cluster_agent import ClusterAgent
from headwater.connect.agent.cluster_lineage import ClusterLineage
from headwater.connect.config import ClusterConfig
from headwater.connect.debezium import runs as debezium_runs
from headwater.connect.debezium import task_jobs
from headwater.connect.services.endpoint import Endpoint
from headwater.connect.services.lineage_server import LineageServers
from headwater.connect.services.live_metadata import LiveMetadata
from headwater.connect.services.registry import SchemaRegistry
from headwater.connect.services.rest import ConnectRest
from headwater.emit import Outbox, Sender, destinations

from .fake_connect import FakeConnect

if TYPE_CHECKING:
    from pathlib import Path

COUNT = 1_000
CONFIG = {
    "connector.class": "io.confluent.connect.jdbc.JdbcSinkConnector",
    "tasks.max": "3",
    "connection.url": "jdbc:postgresql://db:5432/shop",
    "connection.password": "${file:/run/secrets/db:password}",
    "pk.mode": "record_value",
    "auto.create": "true",
}
AVRO = {
    "type": "record",
    "name": "Order",
    "fields": [{"name": f"field_{n}", "type": "string"} for n in range(20)],
}


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


class Rendered(FakeConnect):
    """Connectors whose listing is written once and served many times."""

    rendered = b"{}"

    def render(self) -> None:
        self.rendered = json.dumps(self.connectors).encode()


def watcher(
    folder: Path, fake: Rendered, clock: Clock, runs: LineageServers | None = None
) -> tuple[ClusterAgent, dict[str, int], ConnectRest, LiveMetadata]:
    """The real agent, client and registry over answers that are made up at the edge."""
    asked: dict[str, int] = defaultdict(int)

    def connect_answers(request: httpx.Request) -> httpx.Response:
        path = request.url.path
        asked["topics" if path.endswith("/topics") else path] += 1
        if path == "/":
            return httpx.Response(200, json=fake.root())
        if path == "/connectors":
            return httpx.Response(200, content=fake.rendered)
        if path.endswith("/topics"):
            name = path.split("/")[2]
            return httpx.Response(200, json={name: {"topics": [f"orders-{name}"]}})
        return httpx.Response(200, json={"status": "healthy"})

    def registry_answers(request: httpx.Request) -> httpx.Response:
        if request.url.path == "/subjects":
            return httpx.Response(200, json=[f"orders-{name}-value" for name in fake.connectors])
        found = {"version": 1, "id": 7, "schema": json.dumps(AVRO)}
        return httpx.Response(200, json=found)

    endpoint = Endpoint(("http://connect:8083",))
    config = ClusterConfig(name="shop", endpoint=endpoint)
    connect = ConnectRest(endpoint, transport=httpx.MockTransport(connect_answers))
    registry = SchemaRegistry(
        Endpoint(("http://registry",)),
        transport=httpx.MockTransport(registry_answers),
        clock=clock,
    )
    metadata = LiveMetadata(registry=registry, bootstrap="k:9092")
    outbox = Outbox(str(folder / "state.db"))
    assert outbox.lead()
    outbox.register({"all": "all"})
    agent = ClusterAgent(
        "shop", connect, outbox, ClusterLineage(config, metadata), clock=clock, lookup=runs
    )
    return agent, asked, connect, metadata


@pytest.mark.full
def test_a_thousand_connectors_cost_little_when_nothing_changes(tmp_path: Path) -> None:
    fake, clock = Rendered(), Clock()
    for number in range(COUNT):
        name = f"sink-{number:04}"
        fake.put(name, tasks=("RUNNING",) * 3, config={**CONFIG, "topics": f"orders-{name}"})
    fake.render()
    agent, asked, connect, metadata = watcher(tmp_path, fake, clock)
    try:
        assert agent.poll() == COUNT
        for _ in range(40):  # past the first minute, in which young runs are looked at more often
            clock.now += 5
            agent.poll()
        asked.clear()
        polls = 24
        began = time.thread_time()
        for _ in range(polls):
            clock.now += 5
            agent.poll()
        spent = (time.thread_time() - began) / polls
        assert asked["/connectors"] == asked["/health"] == polls
        assert asked["topics"] >= COUNT  # two minutes: each was looked at again
        assert asked["topics"] <= 3 * COUNT
        assert spent < 0.3
    finally:
        connect.close()
        metadata.close()
        agent.outbox.close()
        agent.outbox.forget_connection()


REPORTING = {
    "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
    "tasks.max": "3",
    "connection.url": "jdbc:postgresql://db:5432/shop",
    "openlineage.integration.enabled": "true",
}


@pytest.mark.full
def test_a_thousand_connectors_that_report_themselves_cost_little_too(tmp_path: Path) -> None:
    fake, clock = Rendered(), Clock()
    for number in range(COUNT):
        name = f"sink-{number:04}"
        fake.put(name, tasks=("RUNNING",) * 3, config={**REPORTING, "topics": f"orders-{name}"})
    fake.render()
    asked: list[str] = []

    def answer(request: httpx.Request) -> httpx.Response:
        job = request.url.path.split("/")[6]
        asked.append(job)
        run = {"id": str(uuid5(NAMESPACE_URL, job)), "state": "RUNNING"}
        return httpx.Response(200, json={"runs": [run]})

    runs = LineageServers([("http://server", {})], httpx.MockTransport(answer))
    agent, _, connect, metadata = watcher(tmp_path, fake, clock, runs)
    most, total = debezium_runs.LOOKUPS_PER_POLL + task_jobs.LOOKUPS_PER_POLL, 0.0
    try:
        for poll in range(120):  # ten minutes: all are taken up, and each has beaten twice
            clock.now += 5
            asked.clear()
            began = time.thread_time()
            agent.poll()
            total += time.thread_time() - began if poll >= 60 else 0.0
            assert len(asked) <= most
            if poll == 15:
                assert sum(tracked.by_debezium for tracked in agent.tracked) == COUNT
        assert total / 60 < 0.3
        assert not [tracked.name for tracked in agent.tracked if not tracked.tasks_declared]
    finally:
        runs.close()
        connect.close()
        metadata.close()
        agent.outbox.close()
        agent.outbox.forget_connection()


@pytest.mark.full
def test_an_hour_without_a_server_is_told_in_order_afterwards(tmp_path: Path) -> None:
    fake, clock = Rendered(), Clock()
    names = [f"sink-{number}" for number in range(20)]
    for name in names:
        fake.put(name, config={**CONFIG, "topics": f"orders-{name}"})
    fake.render()
    took: list[dict[str, Any]] = []

    class Takes(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            took.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
            self.send_response(201)
            self.end_headers()

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Takes, bind_and_activate=False)
    server.server_bind()  # bound and deaf: a server that is down
    url = f"http://127.0.0.1:{server.server_port}"
    agent, _, connect, metadata = watcher(tmp_path, fake, clock)
    outbox = agent.outbox
    targets = destinations({"type": "http", "url": url})
    outbox.register({target.name: target.shown for target in targets})
    sender = Sender(outbox, targets)
    sender.start()
    try:
        count = agent.poll()
        for poll in range(720):  # an hour of polls
            clock.now += 5
            if poll % 60 == 30:
                name = names[poll // 60]
                fake.put(name, "PAUSED", ("PAUSED",), config=CONFIG | {"topics": f"orders-{name}"})
                fake.render()
            count += agent.poll()
        assert took == []
        assert count >= 20 * 10
        server.server_activate()
        threading.Thread(target=server.serve_forever, daemon=True).start()
        assert sender.stop(flush=60)
    finally:
        sender.stop()
        connect.close()
        metadata.close()
        outbox.close()
        outbox.forget_connection()
        server.shutdown()
        server.server_close()
    assert len(took) == count
    by_run: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for event in took:
        by_run[event["run"]["runId"]].append(event)
    assert len(by_run) == 20
    for told in by_run.values():
        times = [event["eventTime"] for event in told]
        assert times == sorted(times)
        kinds = [event["eventType"] for event in told]
        assert kinds[0] == "START"
        assert set(kinds[1:-1]) <= {"RUNNING"}
    ended = [told for told in by_run.values() if told[-1]["eventType"] == "COMPLETE"]
    assert len(ended) == 12
