"""A server as a process, and what calls it: one event at a time, or many in one request."""

from __future__ import annotations

import http.client
import os
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

import psycopg

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

PROGRAM = (
    "import typer; from headwater.cli.server import register; a = typer.Typer(); register(a); a()"
)


class Caller:
    """One connection that is kept open."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._http = http.client.HTTPConnection(parts.hostname or "127.0.0.1", parts.port or 80)
        self._http.connect()
        self._http.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def call(self, method: str, path: str, body: bytes | None = None) -> float:
        """How many seconds the answer took; ends the program if it is no success."""
        started = time.perf_counter()
        headers = {"content-type": "application/json"} if body else {}
        self._http.request(method, path, body, headers)
        response = self._http.getresponse()
        response.read()
        if response.status >= 300:
            raise SystemExit(f"{method} {path[:100]} answered {response.status}")
        return time.perf_counter() - started


def ingest(
    url: str, work: list[list[bytes]], connections: int, path: str = "/api/v1/lineage"
) -> tuple[float, list[float]]:
    """Send groups of bodies, each group in order on one connection; the wall time and each call's."""
    pending, lock, taken = iter(work), threading.Lock(), []
    failed: list[BaseException] = []

    def send() -> None:
        caller = Caller(url)
        try:
            while True:
                with lock:
                    group = next(pending, None)
                if group is None:
                    return
                taken.extend([caller.call("POST", path, body) for body in group])
        except BaseException as error:  # noqa: BLE001  (handed to the thread that waits)
            failed.append(error)

    threads = [threading.Thread(target=send) for _ in range(connections)]
    started = time.perf_counter()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if failed:
        raise failed[0]
    return time.perf_counter() - started, taken


def batch(url: str, sent: list[bytes], connections: int) -> float:
    """Seconds to send events through the batch endpoint, 1,000 a request."""
    bodies = [b"\n".join(sent[place : place + 1_000]) for place in range(0, len(sent), 1_000)]
    return ingest(url, [[body] for body in bodies], connections, "/api/v2/events")[0]


def fill(url: str, made: Callable[[int], list[bytes]], jobs: Iterable[int]) -> None:
    """Send the events of many jobs, some at a time. A Marquez takes them one by one."""
    pending = list(jobs)
    for first in range(0, len(pending), 2_000):
        groups = [made(number) for number in pending[first : first + 2_000]]
        try:
            batch(url, [body for group in groups for body in group], 1)
        except SystemExit:
            ingest(url, groups, 8)


def cpu(pid: int | None, database: int | None = None) -> float:
    """CPU seconds of a process, and of a database's process with all that it started."""
    if pid is None:
        return 0.0
    tick = os.sysconf("SC_CLK_TCK")
    parents, used = {}, {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rsplit(")", 1)[1].split()
        except OSError:
            continue
        parents[int(folder.name)] = int(fields[1])
        used[int(folder.name)] = (int(fields[11]) + int(fields[12])) / tick
    return used[pid] + sum(
        seconds for one, seconds in used.items() if database in (one, parents[one])
    )


def memory(pid: int) -> float:
    """The most memory a process has had so far, in MB."""
    text = Path(f"/proc/{pid}/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


def size(store: str) -> float:
    """The MB that a store takes, without what is written ahead."""
    if store.startswith("sqlite:///"):
        return Path(store.removeprefix("sqlite:///")).stat().st_size / 1e6
    with psycopg.connect(store) as connection:
        found = connection.execute("SELECT pg_database_size(current_database())").fetchone()
    return float(found[0]) / 1e6 if found else 0.0


def serve(store: str) -> tuple[subprocess.Popen[bytes], str]:
    """A server on a store of its own, once it answers."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    command = [sys.executable, "-c", PROGRAM, "server", "--port", str(port), "--store", store]
    process = subprocess.Popen(command, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"
    deadline = time.monotonic() + 30
    while time.monotonic() < deadline:
        try:
            Caller(url).call("GET", "/api/v2/health")
        except OSError:
            time.sleep(0.05)
        else:
            return process, url
    process.kill()
    raise SystemExit("the server did not start")
