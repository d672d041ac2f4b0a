"""Events reach the server they were emitted to and no other, whoever shares the state directory.

Two real servers, real programs and agents, killed in between. Kafka Connect's REST interface is a
stub here: it answers with one running connector.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.emit import Outbox
from headwater.lab.waiting import wait_until
from tests.integration.server.conftest import Process

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PROGRAM = """
import sys, time
import headwater

job, how = sys.argv[1:]
with headwater.run(job, namespace="shared") as run:
    run.inputs("s3://raw/" + job)
    time.sleep(0.5)
    print("running", flush=True)
    if how == "hang":
        time.sleep(600)
    time.sleep(float(how))
"""
# How long a program lives, so that it has looked at what others left.
ADOPTS = "3"


class Estate:
    """Two servers and the programs that send to one of them, all with one state directory."""

    def __init__(self, work: Path) -> None:
        self.state = work / "state"
        self.work = work
        self.servers = {
            name: Process(f"sqlite:///{work / name}.db", work / f"{name}.log") for name in "ab"
        }
        self._children: list[subprocess.Popen[bytes]] = []

    def environment(self, to: str, **more: str) -> dict[str, str]:
        kept = {k: v for k, v in os.environ.items() if not k.startswith("OPENLINEAGE")}
        named = {"OPENLINEAGE_URL": self.servers[to].url} if to else {}
        return kept | {"HEADWATER_STATE_DIR": str(self.state)} | named | more

    def start(self, command: list[str], to: str, **more: str) -> subprocess.Popen[bytes]:
        child = subprocess.Popen(command, env=self.environment(to, **more), stdout=subprocess.PIPE)
        self._children.append(child)
        return child

    def run(self, job: str, to: str, **more: str) -> None:
        """A program that ends well, after it has had the time to find what others left."""
        command = [sys.executable, "-c", PROGRAM, job, ADOPTS]
        assert self.start(command, to, **more).wait(60) == 0

    def goes_on(self, job: str, to: str, **more: str) -> None:
        """A program that lives until the test ends, and sends what others left when it finds it."""
        self.start([sys.executable, "-c", PROGRAM, job, "hang"], to, **more)

    def killed(self, job: str, to: str, **more: str) -> None:
        """A program that is killed in the middle of its run."""
        child = self.start([sys.executable, "-c", PROGRAM, job, "hang"], to, **more)
        assert child.stdout is not None
        assert child.stdout.readline() == b"running\n"
        child.send_signal(signal.SIGKILL)
        child.wait()

    def events(self, server: str, job: str) -> list[str]:
        """The types of the events that a server has of a job, oldest first."""
        url = f"{self.servers[server].url}/api/v1/events/lineage"
        found = httpx.get(url, params={"limit": 100}).raise_for_status().json()["events"]
        mine = [event for event in found if event["job"]["name"] == job]
        return [event["eventType"] for event in sorted(mine, key=lambda one: one["eventTime"])]

    def waiting(self) -> int:
        """How many events wait in all outboxes, by what is on disk."""
        count = 0
        for path in self.state.rglob("*.db"):
            outbox = Outbox(str(path))
            count += sum(outbox.waiting().values())
            outbox.forget_connection()
        return count

    def close(self) -> None:
        for child in self._children:
            if child.poll() is None:
                child.kill()
                child.wait()
        for server in self.servers.values():
            if server.process.poll() is None:
                server.stop()


@pytest.fixture
def estate(tmp_path: Path) -> Iterator[Estate]:
    made = Estate(tmp_path)
    yield made
    made.close()


def test_a_program_for_another_server_leaves_what_waits(estate: Estate) -> None:
    estate.servers["a"].kill()
    estate.killed("of-a", "a", HEADWATER_WATCHDOG="off")
    waiting = estate.waiting()
    assert waiting
    estate.run("of-b", "b")
    assert estate.events("b", "of-b")[-1] == "COMPLETE"
    assert estate.events("b", "of-a") == []
    assert estate.waiting() == waiting
    estate.servers["a"].start()
    estate.goes_on("also-of-a", "a")
    wait_until(lambda: estate.events("a", "of-a")[-1:] == ["ABORT"], seconds=120, what="ABORT at a")
    assert estate.events("a", "of-a")[0] == "START"
    assert estate.events("b", "of-a") == estate.events("a", "of-b") == []


@pytest.mark.full
def test_an_end_goes_where_the_start_went(estate: Estate) -> None:
    """Everything of the run was taken when its program was killed: only its end is missing."""
    estate.killed("of-a", "a", HEADWATER_WATCHDOG="off")
    wait_until(lambda: estate.events("a", "of-a"), seconds=120, what="START at a")
    estate.run("of-b", "b")
    assert estate.events("b", "of-a") == []
    assert "ABORT" not in estate.events("a", "of-a")
    estate.goes_on("also-of-a", "a")
    wait_until(lambda: estate.events("a", "of-a")[-1:] == ["ABORT"], seconds=120, what="ABORT at a")


@pytest.mark.full
def test_a_watchdog_sends_to_nobody_else(estate: Estate) -> None:
    """The file that names the destination is changed while the program runs."""
    file = estate.work / "openlineage.yml"

    def name(server: str) -> None:
        url = estate.servers[server].url
        file.write_text(json.dumps({"transport": {"type": "http", "url": url}}))

    name("a")
    child = estate.start(
        [sys.executable, "-c", PROGRAM, "of-a", "hang"], "", OPENLINEAGE_CONFIG=str(file)
    )
    assert child.stdout is not None
    assert child.stdout.readline() == b"running\n"
    name("b")
    child.kill()
    child.wait()
    estate.run("of-b", "b")
    assert estate.events("b", "of-a") == []
    name("a")
    estate.goes_on("also-of-a", "", OPENLINEAGE_CONFIG=str(file))
    wait_until(lambda: estate.events("a", "of-a")[-1:] == ["ABORT"], seconds=120, what="ABORT at a")


@pytest.mark.full
def test_an_outbox_of_an_earlier_version_goes_where_it_was_meant_to(estate: Estate) -> None:
    """Earlier versions kept all outboxes in one folder, with one row for all destinations."""
    estate.servers["a"].kill()
    estate.killed("of-a", "a", HEADWATER_WATCHDOG="off")
    (path,) = estate.state.rglob("*.db")
    old = path.parent.parent / path.name
    with sqlite3.connect(path) as database:
        database.executescript(
            "CREATE TABLE emit_event (seq INTEGER PRIMARY KEY AUTOINCREMENT, run TEXT, body BLOB);"
            "CREATE TABLE emit_cursor (destination TEXT PRIMARY KEY, seq INTEGER NOT NULL);"
            "CREATE TABLE emit_parked (seq INTEGER, destination TEXT, reason TEXT, body BLOB);"
            "INSERT INTO emit_event (run, body) SELECT run, body FROM emit_queue ORDER BY seq;"
            "INSERT INTO emit_cursor SELECT name, 0 FROM emit_destination;"
            "DROP TABLE emit_queue; DROP TABLE emit_destination;"
        )
    database.close()
    path.rename(old)
    estate.run("of-b", "b")
    assert estate.events("b", "of-a") == []
    assert old.exists()
    estate.servers["a"].start()
    estate.goes_on("also-of-a", "a")
    wait_until(lambda: estate.events("a", "of-a")[-1:] == ["ABORT"], seconds=120, what="ABORT at a")
    wait_until(lambda: not old.exists(), seconds=120, what="the emptied outbox to go")


class OneConnector(BaseHTTPRequestHandler):
    """Kafka Connect with one sink that runs."""

    def do_GET(self) -> None:
        config = {
            "name": "of-a",
            "connector.class": "org.apache.kafka.connect.file.FileStreamSinkConnector",
            "topics": "orders",
            "file": "/data/out.txt",
        }
        state = {"state": "RUNNING", "worker_id": "127.0.0.1:8083"}
        status = {"name": "of-a", "connector": state, "tasks": [{"id": 0, **state}], "type": "sink"}
        info = {"name": "of-a", "config": config, "tasks": [], "type": "sink"}
        path = self.path.partition("?")[0]
        answers: dict[str, Any] = {
            "/": {"version": "4.3.1", "kafka_cluster_id": "k"},
            "/connectors": {"of-a": {"status": status, "info": info}},
            "/connectors/of-a/topics": {"of-a": {"topics": ["orders"]}},
        }
        body = json.dumps(answers.get(path, {})).encode()
        self.send_response(200 if path in answers else 404)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *args: Any) -> None:
        pass


@pytest.fixture
def connect() -> Iterator[str]:
    server = ThreadingHTTPServer(("127.0.0.1", 0), OneConnector)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()


@pytest.mark.full
def test_an_agent_with_another_server_leaves_what_waits(estate: Estate, connect: str) -> None:
    program = "from headwater.cli.main import main; main()"
    command = [sys.executable, "-c", program, "connect", "watch", "--url", connect]
    command += ["--state", str(estate.work / "agent.db"), "--poll", "0.5", "--heartbeat", "2"]

    def queued() -> int:
        outbox = Outbox(str(estate.work / "agent.db"))
        count = sum(outbox.waiting().values())
        outbox.forget_connection()
        return count

    def stop(agent: subprocess.Popen[bytes]) -> None:
        agent.send_signal(signal.SIGKILL)
        agent.wait()

    estate.servers["a"].kill()
    agent = estate.start(command, "a")
    wait_until(queued, seconds=120, what="START in the outbox")
    stop(agent)
    left = queued()
    agent = estate.start(command, "b")
    wait_until(lambda: estate.events("b", "of-a"), seconds=120, what="a heartbeat at b")
    stop(agent)
    assert "START" not in estate.events("b", "of-a")
    assert queued() >= left
    estate.servers["a"].start()
    agent = estate.start(command, "a")
    wait_until(lambda: estate.events("a", "of-a"), seconds=120, what="START at a")
    stop(agent)
    assert estate.events("a", "of-a")[0] == "START"
    assert "START" not in estate.events("b", "of-a")
