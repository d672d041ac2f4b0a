"""The agent as a process, watched from outside through its own /health and /metrics."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from tests.dashboards import lacking, undocumented
from tests.unit.connect.fake_connect import FakeConnect

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

HEADWATER = str(Path(sys.executable).with_name("headwater"))


@pytest.fixture
def connect() -> Iterator[tuple[str, FakeConnect]]:
    """Connect's REST interface over connectors in memory."""
    fake = FakeConnect()

    class Answers(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.partition("?")[0].strip("/").split("/")
            found: Any = fake.root()
            if path == ["connectors"]:
                found = fake.connectors
            elif path[-1] == "topics":
                found = {path[1]: {"topics": ["orders"]}}
            raw = json.dumps(found).encode()
            self.send_response(404 if path[0] == "health" else 503 if fake.broken else 200)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Answers)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}", fake
    server.shutdown()
    server.server_close()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


@pytest.fixture
def watch(connect: tuple[str, FakeConnect], tmp_path: Path) -> Iterator[Any]:
    """Starts agents on one state, which send to an address where nobody listens."""
    started: list[subprocess.Popen[str]] = []

    def start(*options: str) -> tuple[subprocess.Popen[str], str]:
        port = free_port()
        words = ["--url", connect[0], "--state", str(tmp_path / "state.db"), "--name", "main"]
        words += ["--poll", "0.2", "--log-format", "json", "--metrics-port", str(port), *options]
        with (tmp_path / f"agent{len(started)}.log").open("w") as log:
            agent = subprocess.Popen(
                [HEADWATER, "connect", "watch", *words],
                stderr=log,
                text=True,
                env={**os.environ, "OPENLINEAGE_URL": "http://127.0.0.1:9"},
            )
        started.append(agent)
        return agent, f"http://127.0.0.1:{port}"

    yield start
    for agent in started:
        agent.send_signal(signal.SIGKILL)
        agent.wait()


def until(address: str, holds: Callable[[dict[str, float]], bool]) -> tuple[str, dict[str, float]]:
    """The figures of the agent, once something holds of them."""
    deadline = time.monotonic() + 60
    while True:
        text = ""
        with suppress(httpx.HTTPError):
            text = httpx.get(f"{address}/metrics").text
        found = re.findall(r"^(\w+(?:\{.*\})?) (\S+)$", text, re.MULTILINE)
        figures = {name: float(value) for name, value in found}
        if text and holds(figures):
            return text, figures
        assert time.monotonic() < deadline, text
        time.sleep(0.05)


def test_figures_and_health_of_an_agent(
    connect: tuple[str, FakeConnect], watch: Any, tmp_path: Path
) -> None:
    _, fake = connect
    fake.put("good")
    fake.put("odd")
    fake.connectors["odd"]["status"]["connector"] = "not an object"
    _, address = watch()
    polls = 'headwater_agent_polls_total{cluster="main",outcome="ok"}'
    text, found = until(address, lambda now: now.get(polls, 0) > 3)
    assert lacking(text, agent=True) == {}
    assert undocumented(text) == set()
    assert found["headwater_agent_leading"] == 1
    assert found['headwater_agent_quarantined{cluster="main"}'] == 1
    assert found['headwater_agent_problems{cluster="main"}'] == 1
    assert time.time() - found['headwater_agent_last_poll_timestamp_seconds{cluster="main"}'] < 60
    waiting = [name for name in found if name.startswith("headwater_agent_outbox_events")]
    assert [found[name] for name in waiting] == [1]
    lag = waiting[0].replace("_events", "_lag_seconds")
    assert until(address, lambda now: now[lag] > 0.5)
    health = httpx.get(f"{address}/health")
    assert (health.status_code, health.json()["status"]) == (200, "ok")
    (problem,) = health.json()["clusters"][0]["problems"]
    assert problem["connector"] == "odd"
    assert httpx.get(f"{address}/other").status_code == 404
    lines = (tmp_path / "agent0.log").read_text().splitlines()
    records = [json.loads(line) for line in lines]
    (started,) = [one for one in records if "START of run" in one["message"]]
    assert started["run_id"] in started["message"]


@pytest.mark.full
def test_a_cluster_that_is_silent_for_its_grace_time_is_failing(
    connect: tuple[str, FakeConnect], watch: Any
) -> None:
    _, fake = connect
    fake.put("good")
    _, address = watch("--grace", "1")
    polls = 'headwater_agent_polls_total{cluster="main",outcome="%s"}'
    until(address, lambda now: now.get(polls % "ok", 0) > 0)
    fake.broken = Exception("503")  # type: ignore[assignment]
    until(address, lambda now: now.get(polls % "failed", 0) > 0)
    deadline = time.monotonic() + 60
    while (health := httpx.get(f"{address}/health")).status_code == 200:
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert (health.status_code, health.json()["status"]) == (503, "failing")


@pytest.mark.full
def test_an_agent_that_stands_by_says_so(connect: tuple[str, FakeConnect], watch: Any) -> None:
    _, first = watch()
    until(first, lambda now: now.get("headwater_agent_leading") == 1)
    _, second = watch()
    until(second, lambda now: now.get("headwater_agent_leading") == 0)
    health = httpx.get(f"{second}/health")
    assert (health.status_code, health.json()["status"]) == (200, "standby")
