"""What was acknowledged is there, whatever happens to the server, its disk or its database."""

from __future__ import annotations

import contextlib
import http.client
import itertools
import json
import random
import resource
import subprocess
import threading
from collections import Counter
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import httpx
import psycopg
import psycopg.sql
import pytest

from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import export, verify

from .making import columns, dataset, event, schema

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from .conftest import Process

CONNECTIONS = 8


class Load:
    """Eight connections that send events and note which were acknowledged."""

    def __init__(self, url: str, numbers: Iterator[int]) -> None:
        parts = urlsplit(url)
        self._address = (parts.hostname or "", parts.port or 80)
        self._numbers = numbers
        self._stop = threading.Event()
        self._changed = threading.Condition()
        self.acked: list[bytes] = []
        self.unsure: list[bytes] = []
        self.answers: Counter[int] = Counter()
        self._threads = [threading.Thread(target=self._send) for _ in range(CONNECTIONS)]
        for thread in self._threads:
            thread.start()

    def _send(self) -> None:
        connection = http.client.HTTPConnection(*self._address, timeout=30)
        while not self._stop.is_set():
            body = made(next(self._numbers))
            try:
                connection.request("POST", "/api/v1/lineage", body)
                response = connection.getresponse()
                response.read()
            except (OSError, http.client.HTTPException):
                self.unsure.append(body)
                return
            with self._changed:
                self.answers[response.status] += 1
                (self.acked if response.status == 201 else self.unsure).append(body)
                if response.status == 503:
                    assert response.headers["retry-after"]
                self._changed.notify_all()
            if response.status == 503:
                self._stop.wait(0.05)

    def wait(self, condition: Callable[[], bool], seconds: float = 60) -> None:
        with self._changed:
            assert self._changed.wait_for(condition, seconds), self.answers

    def stop(self) -> None:
        self._stop.set()
        for thread in self._threads:
            thread.join()


def resend(server: Process, bodies: list[bytes]) -> None:
    """Send what was not acknowledged once more, over one connection."""
    with httpx.Client(base_url=server.url) as client:
        for body in bodies:
            assert client.post("/api/v1/lineage", content=body).status_code == 201


def made(number: int) -> bytes:
    out = dataset(f"d{number % 40}", schema=schema("id", f"c{number % 9}"),
                  columnLineage=columns(id=(f"d{(number + 1) % 40}", "id")))  # fmt: skip
    state = ("START", "RUNNING", "COMPLETE")[number % 3]
    run, job = number // 3, f"j{number % 20}"
    padding = {"padding": {"text": random.Random(number).randbytes(600).hex()}}
    sent = event(state, number % 3, run=run, job=job, outputs=[out], run_facets=padding)
    return json.dumps(sent, separators=(",", ":")).encode()


def check(store: str, acked: list[bytes]) -> None:
    """Every acknowledged event is in the log, and none is there twice."""
    opened = open_store(store)
    kept = Counter(export(opened))
    assert not [body for body in acked if body not in kept]
    assert not [body for body, count in kept.items() if count > 1]
    assert verify(opened) == len(kept)
    opened.close()


def killed(launch: Callable[..., Process], store: str, times: int) -> None:
    numbers, acked = iter(itertools.count()), []
    server = launch(store)
    for round_number in range(times):
        load = Load(server.url, numbers)
        enough = random.Random(round_number).randrange(20, 200)
        load.wait(lambda: len(load.acked) >= enough)  # noqa: B023
        server.kill()
        load.stop()
        acked += load.acked
        server.start()
        resend(server, load.unsure)
        acked += load.unsure
    server.stop()
    check(store, acked)


def test_a_killed_server_has_what_it_acknowledged(
    store_url: str, launch: Callable[..., Process]
) -> None:
    killed(launch, store_url, 3)


@pytest.mark.full
def test_a_server_killed_twenty_times_has_what_it_acknowledged(
    store_url: str, launch: Callable[..., Process]
) -> None:
    killed(launch, store_url, 20)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_a_server_killed_a_thousand_times_has_what_it_acknowledged(
    store_url: str, launch: Callable[..., Process]
) -> None:
    killed(launch, store_url, 1000)


class Disk:
    """A file system of a few megabytes; where none can be mounted, a limit on the server's files."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        command = ["mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", str(folder)]
        try:
            self.mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0
        except OSError:
            self.mounted = False

    def narrow(self, server: Process) -> None:
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,size=4m", str(self.folder)], check=True)
        else:
            self._limit(server, 2_000_000)

    def widen(self, server: Process) -> None:
        if self.mounted:
            subprocess.run(["mount", "-o", "remount,size=256m", str(self.folder)], check=True)
        else:
            self._limit(server, resource.RLIM_INFINITY)

    @staticmethod
    def _limit(server: Process, size: int) -> None:
        _, most = resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(server.process.pid, resource.RLIMIT_FSIZE, (size, most))

    def remove(self) -> None:
        if self.mounted:
            subprocess.run(["umount", "-l", str(self.folder)], check=True)


@pytest.fixture
def disk(tmp_path: Path) -> Iterator[Disk]:
    found = Disk(tmp_path / "disk")
    yield found
    found.remove()


def test_a_full_disk_is_503_and_passes(disk: Disk, launch: Callable[..., Process]) -> None:
    store = f"sqlite:///{disk.folder}/headwater.db"
    server = launch(store)
    disk.narrow(server)
    load = Load(server.url, itertools.count())
    load.wait(lambda: load.answers[503] > 20)
    answer = httpx.get(f"{server.url}/api/v2/health")
    assert answer.status_code == 503
    said = " ".join(answer.json()["problems"])
    assert "writing: " in said
    assert "full" in said or not disk.mounted
    disk.widen(server)
    before = load.answers[201]
    load.wait(lambda: load.answers[201] > before + 20)
    load.stop()
    assert httpx.get(f"{server.url}/api/v2/health").json().get("problems", []) == []
    assert set(load.answers) == {201, 503}
    resend(server, load.unsure)
    server.stop()
    check(store, load.acked + load.unsure)


class Away:
    """Makes one database of a PostgreSQL refuse everyone, and let them in again."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        self._name = parts.path.lstrip("/")
        self._admin = parts._replace(path="/postgres").geturl()

    def _run(self, *statements: Any) -> None:
        with contextlib.closing(psycopg.connect(self._admin, autocommit=True)) as connection:
            for statement in statements:
                connection.execute(statement)

    def __enter__(self) -> None:
        name = psycopg.sql.Identifier(self._name)
        text = psycopg.sql.Literal(self._name)
        self._run(
            psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS false").format(name),
            psycopg.sql.SQL(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = {}"
            ).format(text),
        )

    def __exit__(self, *_: object) -> None:
        name = psycopg.sql.Identifier(self._name)
        self._run(psycopg.sql.SQL("ALTER DATABASE {} ALLOW_CONNECTIONS true").format(name))


def test_a_lost_database_is_503_and_passes(postgres: Any, launch: Callable[..., Process]) -> None:
    store = postgres.database()
    server = launch(store)
    load = Load(server.url, itertools.count())
    load.wait(lambda: load.answers[201] > 50)
    with Away(store):
        load.wait(lambda: load.answers[503] > 20)
        assert httpx.get(f"{server.url}/api/v1/jobs").status_code == 503
    before = load.answers[201]
    load.wait(lambda: load.answers[201] > before + 20)
    load.stop()
    assert set(load.answers) == {201, 503}
    resend(server, load.unsure)
    assert httpx.get(f"{server.url}/api/v1/jobs").status_code == 200
    server.stop()
    check(store, load.acked + load.unsure)
