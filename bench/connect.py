"""The Connect agent against 1,000 connectors of 3 tasks: CPU a poll, memory, time to tell a change.

Connect's REST and the registry are stand-ins at the edge that answer as the real ones do; the
agent is the real process. Prints one table.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import psutil
from rich.console import Console
from rich.table import Table

POLL = 5.0
CONNECTORS = 1_000
CLASS = "io.confluent.connect.jdbc.JdbcSinkConnector"
AVRO = json.dumps(
    {
        "type": "record",
        "name": "Order",
        "fields": [{"name": f"field_{n}", "type": "string"} for n in range(20)],
    }
)


class Edge:
    """What the stand-ins answer."""

    def __init__(self, count: int) -> None:
        self.entries = {f"sink-{n:04}": self._entry(n) for n in range(count)}
        self.subjects = [f"orders-{n:04}-value" for n in range(count)]
        self.requests: dict[str, int] = {}
        self._render()

    def _entry(self, number: int) -> dict[str, Any]:
        name = f"sink-{number:04}"
        part = {"state": "RUNNING", "worker_id": "10.0.0.1:8083", "version": "4.3.1"}
        return {
            "status": {
                "name": name,
                "connector": part,
                "tasks": [{"id": n, **part} for n in range(3)],
                "type": "sink",
            },
            "info": {
                "name": name,
                "config": {
                    "connector.class": CLASS,
                    "name": name,
                    "tasks.max": "3",
                    "topics": f"orders-{number:04}",
                    "connection.url": "jdbc:postgresql://db:5432/shop",
                    "connection.user": "sink",
                    "connection.password": "${file:/run/secrets/db:password}",
                    "insert.mode": "upsert",
                    "pk.mode": "record_value",
                    "pk.fields": "field_0",
                    "auto.create": "true",
                    "value.converter": "io.confluent.connect.avro.AvroConverter",
                    "value.converter.schema.registry.url": "http://registry:8081",
                },
                "tasks": [{"connector": name, "task": n} for n in range(3)],
                "type": "sink",
            },
        }

    def _render(self) -> None:
        self.body = json.dumps(self.entries).encode()

    def fail(self, name: str) -> None:
        """Let a task fail."""
        task = self.entries[name]["status"]["tasks"][1]
        task |= {"state": "FAILED", "trace": "java.lang.IllegalStateException: boom\n\tat x"}
        self._render()

    def answer(self, path: str) -> bytes:
        kind = path.split("?", maxsplit=1)[0].strip("/").split("/")
        label = "/".join(
            p if i == 0 or p in ("topics", "latest") else "*" for i, p in enumerate(kind)
        )
        self.requests[label] = self.requests.get(label, 0) + 1
        if path == "/":
            return b'{"version": "4.3.1", "commit": "c", "kafka_cluster_id": "bench"}'
        if path == "/health":
            return b'{"status": "healthy"}'
        if path.startswith("/connectors?"):
            return self.body
        if path.endswith("/topics"):
            name = kind[1]
            return json.dumps({name: {"topics": [f"orders-{name[-4:]}"]}}).encode()
        if path == "/subjects":
            return json.dumps(self.subjects).encode()
        if path.endswith("/versions/latest"):
            found = {"subject": kind[1], "version": 1, "id": 7, "schema": AVRO}
            return json.dumps(found).encode()
        return b"[]"


def serve(edge: Edge) -> tuple[ThreadingHTTPServer, str]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_GET(self) -> None:
            body = edge.answer(self.path)
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server, f"http://127.0.0.1:{server.server_port}"


def lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def until(condition: Any, seconds: float) -> float:
    """Wait and return how long it took."""
    began = time.monotonic()
    while not condition():
        if time.monotonic() - began > seconds:
            raise SystemExit("the agent took too long")
        time.sleep(0.01)
    return time.monotonic() - began


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--connectors", type=int, default=CONNECTORS)
    parser.add_argument("--polls", type=int, default=13, help="how many polls to measure")
    options = parser.parse_args()
    edge = Edge(options.connectors)
    server, url = serve(edge)
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        events = Path(folder, "events.ndjson")
        command = [
            str(Path(sys.executable).with_name("headwater")), "connect", "watch", "--url", url,
            "--registry-url", url, "--state", str(Path(folder, "state.db")), "--poll", str(POLL),
        ]  # fmt: skip
        env = {
            **{k: v for k, v in os.environ.items() if not k.startswith("OPENLINEAGE")},
            "OPENLINEAGE__TRANSPORT__TYPE": "file",
            "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(events),
            "OPENLINEAGE__TRANSPORT__APPEND": "true",
        }
        with Path(folder, "agent.log").open("wb") as log:
            process = subprocess.Popen(command, env=env, stderr=log, stdout=log)
        try:
            first = until(lambda: lines(events) >= options.connectors, 180)
            watched = psutil.Process(process.pid)
            # The first minute looks at young runs more often.
            time.sleep(70)
            edge.requests.clear()
            before, began, emitted = _cpu(watched), time.monotonic(), lines(events)
            time.sleep(POLL * options.polls)
            took = time.monotonic() - began
            cpu = (_cpu(watched) - before) / (took / POLL) * 1000
            quiet = lines(events) - emitted
            memory = watched.memory_info().rss / (1 << 20)
            asked = dict(edge.requests)
            delays = []
            for number in (1, 2, 3):
                count = lines(events)
                edge.fail(f"sink-{number:04}")
                delays.append(until(lambda c=count: b"FAIL" in _tail(events, c), 30))
        finally:
            process.terminate()
            process.wait(30)
            server.shutdown()
    polls = took / POLL
    table = Table(
        title=f"Connect agent, {options.connectors:,} connectors x 3 tasks (stand-in REST)"
    )
    for name in ("measure", "result", "target", ""):
        table.add_column(name, justify="right" if name in ("result", "target") else "left")
    rows = [
        ("CPU a poll, nothing changed", f"{cpu:.0f} ms", "≤ 300 ms", cpu <= 300),
        ("memory", f"{memory:.0f} MB", "≤ 150 MB", memory <= 150),
        (
            "a state change is out, worst of 3",
            f"{max(delays):.2f} s",
            f"≤ {POLL + 1:.0f} s",
            max(delays) <= POLL + 1,
        ),
        (
            "requests a poll for states and configs",
            f"{asked.get('connectors', 0) / polls:.1f}",
            "1",
            True,
        ),
        (
            "requests a poll for topics",
            f"{asked.get('connectors/*/topics', 0) / polls:.0f}",
            "",
            True,
        ),
        (
            "requests a poll for schemas",
            f"{asked.get('subjects/*/*/latest', 0) / polls:.0f}",
            "",
            True,
        ),
        ("heartbeats meanwhile", f"{quiet:,}", "", True),
        ("from start to the first 1,000 events", f"{first:.1f} s", "", True),
    ]
    for name, result, target, good in rows:
        table.add_row(name, result, target, "" if not target else "ok" if good else "MISSED")
    Console(width=100).print(table)
    if not all(good for *_, good in rows):
        raise SystemExit(1)


def _cpu(process: psutil.Process) -> float:
    times = process.cpu_times()
    return times.user + times.system


def _tail(path: Path, count: int) -> bytes:
    return b"\n".join(path.read_bytes().split(b"\n")[count:])


if __name__ == "__main__":
    main()
