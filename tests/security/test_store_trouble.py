"""A store that is frozen or damaged: requests are answered in time, and health says what is wrong."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import itertools
import json
import os
import re
import signal
import sqlite3
import threading
import time
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import zstandard

from headwater.cli.main import _run
from headwater.lab import process
from headwater.lab.clients import PostgresClient
from headwater.lab.lab import Lab
from headwater.lab.waiting import wait_until
from headwater.server import app
from headwater.server.ingest import group_commit, upkeep
from headwater.server.store import StoreUnavailableError, open_store
from headwater.server.store.database.sqlite import SqliteDatabase
from tests.integration.server.conftest import Client
from tests.integration.server.making import event
from tests.security.attacks import eventually, first_quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from headwater.server.store import Store
    from tests.integration.server.conftest import Process


@pytest.fixture
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A PostgreSQL that no other test uses."""
    lab = Lab(tmp_path_factory.mktemp("frozen") / "lab")
    lab.up(["postgres"])
    yield lab
    lab.reset()


@pytest.mark.full
@pytest.mark.timed
def test_a_frozen_postgresql_is_503_within_seconds_and_passes(
    own_postgres: Lab, launch: Callable[..., Process]
) -> None:
    server = launch(PostgresClient(own_postgres, "postgres").database(), "--no-page")
    body = json.dumps(event("START", 0))
    assert httpx.post(f"{server.url}/api/v1/lineage", content=body).status_code == 201
    frozen = process.family(process.find(own_postgres.home.root)["postgres"])
    for one in frozen:
        one.send_signal(signal.SIGSTOP)
    try:
        for method, path in (("POST", "/api/v1/lineage"), ("GET", "/api/v2/health"),
                             ("GET", "/api/v1/jobs"), ("POST", "/api/v2/events")):  # fmt: skip
            began = time.monotonic()
            answer = httpx.request(method, server.url + path, content=body, timeout=30)
            assert answer.status_code == 503, (path, answer.text)
            assert time.monotonic() - began < 5, path
        assert httpx.get(f"{server.url}/api/v2/health", timeout=30).json()["problems"]
    finally:
        for one in frozen:
            one.send_signal(signal.SIGCONT)
    eventually(
        lambda: (
            httpx.post(f"{server.url}/api/v1/lineage", content=body, timeout=30).status_code == 201
        )
    )
    eventually(lambda: httpx.get(f"{server.url}/api/v2/health", timeout=30).status_code == 200)


@pytest.mark.parametrize("store_url", ["sqlite"], indirect=True)
def test_a_reading_that_fails_after_its_503_is_no_error_in_the_log(
    client: Client, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(app, "PATIENCE", 0.05)
    read, released, failed = client.app._read, threading.Event(), threading.Event()

    def late(*request: Any) -> Any:
        released.wait(20)
        try:
            return read(*request)
        finally:
            failed.set()

    async def silent(seconds: float) -> int:
        raise StoreUnavailableError("the store did not answer")

    monkeypatch.setattr(client.app, "_read", late)
    monkeypatch.setattr(client.app, "probe", silent)
    assert client.call("GET", "/api/v1/jobs?limit=-1").status_code == 503
    released.set()
    assert failed.wait(20)
    assert client.call("POST", "/api/v2/none").status_code == 404  # the loop has seen it end
    gc.collect()
    assert not [record for record in caplog.records if record.name == "asyncio"]


@pytest.mark.parametrize("computes", [True, False], ids=["computing", "waiting"])
def test_only_a_writer_that_waits_for_the_store_is_given_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, computes: bool
) -> None:
    """On a machine short of CPU a commit takes long and the store answers late: that is no 503."""
    monkeypatch.setattr(upkeep, "PATIENCE", 0.5)
    client = Client(open_store(f"sqlite:///{tmp_path}/headwater.db"))
    client.post(event("START", 0))
    append, released = client.store.append, threading.Event()
    used, asked = itertools.count(), itertools.count()

    def slow(bodies: Any, **how: Any) -> Any:
        released.wait(60)
        return append(bodies, **how)

    def cpu_seconds(_: threading.Thread) -> float:
        if next(asked) == 6:  # seconds after the writer began
            released.set()
        return next(used) if computes else 0.0

    async def no_answer(_: float) -> int:
        raise StoreUnavailableError("the store did not answer")

    monkeypatch.setattr(client.store, "append", slow)
    monkeypatch.setattr(client.app, "probe", no_answer)
    monkeypatch.setattr(group_commit, "_cpu_seconds", cpu_seconds)
    answer = client.call("POST", "/api/v1/lineage", content=json.dumps(event("START", 1)))
    released.set()
    assert answer.status_code == (201 if computes else 503), answer.text
    client.close()


def test_a_writer_that_only_wakes_now_and_then_is_waiting(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A client of PostgreSQL wakes ten times a second, which adds up to more than a short commit."""
    released = threading.Event()
    wakes = itertools.count()
    monkeypatch.setattr(group_commit, "_cpu_seconds", lambda _: next(wakes) * 0.001)

    async def longest_wait() -> float:
        ingest = group_commit.Ingest(store)
        work = ingest.perform(lambda _: released.wait(60))
        waits = []
        for _ in range(8):  # as upkeep asks, in half the time
            await asyncio.sleep(0.125)
            waits.append(ingest.waited())
        released.set()
        await work
        await ingest.close()
        return max(waits)

    assert asyncio.run(longest_wait()) > 0.9


def test_the_cpu_of_a_writer_is_known() -> None:
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            pass

    computing = threading.Thread(target=compute)
    waiting = threading.Thread(target=stop.wait)
    computing.start()
    waiting.start()
    wait_until(
        lambda: group_commit._cpu_seconds(computing) > group_commit.COMPUTING,
        seconds=60,
        what="CPU of a thread that computes",
    )
    assert group_commit._cpu_seconds(waiting) < group_commit.COMPUTING
    stop.set()
    for thread in (computing, waiting):
        thread.join()
        assert group_commit._cpu_seconds(thread) == 0.0


def test_a_damaged_sqlite_file_is_found_and_named(tmp_path: Path) -> None:
    file = filled_store(tmp_path)
    url = f"sqlite:///{file}"
    database = SqliteDatabase(url)
    database.inspect()
    assert database.trouble() is None
    database.close()
    with file.open("r+b") as damaged:
        for page in range(3, file.stat().st_size // 4096):
            damaged.seek(page * 4096)
            damaged.write(b"\xff" * 4096)
    database = SqliteDatabase(url)
    database.inspect()
    assert "the SQLite file is damaged" in (database.trouble() or "")
    database.close()


def filled_store(folder: Path, count: int = 300) -> Path:
    """An SQLite file with events, none of them in its write-ahead log."""
    store = open_store(f"sqlite:///{folder}/headwater.db")
    made = [event("START", n % 50, run=n, job=f"j{n}", outputs=[f"d{n}"]) for n in range(count)]
    store.append([json.dumps(one).encode() for one in made])
    store.connection.tidy()
    store.close()
    return folder / "headwater.db"


def health(server: Process) -> tuple[int, str]:
    answer = httpx.get(f"{server.url}/api/v2/health", timeout=30)
    return answer.status_code, " ".join(answer.json().get("problems", ()))


def test_a_file_damaged_under_a_running_server_is_named_by_health(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    file = filled_store(tmp_path)
    server = launch(f"sqlite:///{file}", "--no-page")
    assert health(server) == (200, "")
    with file.open("r+b") as damaged:
        for page in range(2, file.stat().st_size // 4096):
            damaged.seek(page * 4096)
            damaged.write(b"\xff" * 4096)
    # Readers let go of the pages that they hold when something was written.
    made = event("START", 0, run=0, job="j0")
    assert httpx.post(f"{server.url}/api/v1/lineage", json=made, timeout=30).status_code in (
        201,
        503,
    )
    assert httpx.get(f"{server.url}/api/v2/events", timeout=30).status_code == 503
    code, problems = health(server)
    assert code == 503
    assert "the SQLite file is damaged" in problems


def test_a_body_that_cannot_be_unpacked_is_named_by_health(client: Client) -> None:
    client.post(event("START", 0))
    client.store.connection.run("UPDATE log SET body = ?", (b"\x28\xb5\x2f\xfd garbage",))
    answer = client.call("GET", "/api/v2/events")
    assert answer.status_code == 503, answer.text
    found = client.call("GET", "/api/v2/health")
    assert found.status_code == 503
    assert "cannot be unpacked" in found.json()["problems"][0]


@pytest.mark.parametrize("replaced", first_quick([False, True]))
def test_a_file_that_is_not_there_any_more_is_named_by_health(
    launch: Callable[..., Process], tmp_path: Path, replaced: bool
) -> None:
    server = launch(None, "--no-page")
    file = tmp_path / "headwater.db"
    file.rename(tmp_path / "moved.db")
    if replaced:
        file.write_bytes((tmp_path / "moved.db").read_bytes())
    code, problems = health(server)
    assert code == 503
    assert "another file, or none" in problems
    (tmp_path / "moved.db").replace(file)
    assert health(server) == (200, "")


def test_damage_that_nothing_reads_is_looked_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(upkeep, "HOUR", 0.05)
    file = filled_store(tmp_path)
    client = Client(open_store(f"sqlite:///{file}"))
    try:
        assert client.get("/api/v2/health")["status"] == "ok"
        with file.open("r+b") as damaged:
            damaged.seek(file.stat().st_size - 4096)
            damaged.write(b"\xff" * 4096)
        eventually(lambda: client.call("GET", "/api/v2/health").status_code == 503)
    finally:
        client.close()


def page_of_zeros(file: Path) -> None:
    with file.open("r+b") as damaged:
        damaged.seek(3 * 4096)
        damaged.write(bytes(8 * 4096))


def half(file: Path) -> None:
    os.truncate(file, file.stat().st_size // 2)


def other_file(file: Path) -> None:
    file.write_bytes(b"no database\n" * 400)


def body(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("UPDATE log SET body = x'28b52ffd00' WHERE seq = 7")


def dictionary(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("UPDATE log SET dictionary = 99 WHERE seq = 7")


def other_body(file: Path) -> None:
    packed = zstandard.ZstdCompressor().compress(b"{no JSON")
    with contextlib.closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("UPDATE log SET dictionary = 0, body = ? WHERE seq = 7", (packed,))


def hashes(file: Path) -> None:
    with contextlib.closing(sqlite3.connect(file)) as raw, raw:
        raw.execute("UPDATE log SET chain = zeroblob(32) WHERE seq = 7")


@pytest.mark.parametrize(
    "damage", first_quick([body, page_of_zeros, half, other_file, dictionary, other_body, hashes])
)
def test_rebuild_says_that_the_store_is_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], damage: Callable[[Path], None]
) -> None:
    file = filled_store(tmp_path, 40)
    damage(file)
    assert _run(["rebuild", "--store", f"sqlite:///{file}"], debug=False) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert re.search("the SQLite file is damaged|the store is damaged|the log was changed", said)
    assert "restore a backup of it" in said
    assert "headwater's own" not in said
