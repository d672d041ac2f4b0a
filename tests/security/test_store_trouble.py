"""A store that is frozen or damaged: requests are answered in time, and health says what is wrong."""

from __future__ import annotations

import json
import signal
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from headwater.lab import process
from headwater.lab.clients import PostgresClient
from headwater.lab.lab import Lab
from headwater.server.store import open_store
from headwater.server.store.database.sqlite import SqliteDatabase
from tests.integration.server.making import event
from tests.security.attacks import eventually

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.integration.server.conftest import Process


@pytest.fixture
def own_postgres(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A PostgreSQL that no other test uses."""
    lab = Lab(tmp_path_factory.mktemp("frozen") / "lab")
    lab.up(["postgres"])
    yield lab
    lab.reset()


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
            assert time.monotonic() - began < 8, path  # 5 s on a machine of its own
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


def test_a_damaged_sqlite_file_is_found_and_named(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/headwater.db"
    store = open_store(url)
    made = [event("START", n % 50, run=n, job=f"j{n}", outputs=[f"d{n}"]) for n in range(300)]
    store.append([json.dumps(one).encode() for one in made])
    store.connection.tidy()  # empties the write-ahead log into the file
    store.close()
    database = SqliteDatabase(url)
    database.inspect()
    assert database.trouble() is None
    database.close()
    file = tmp_path / "headwater.db"
    with file.open("r+b") as damaged:
        for page in range(3, file.stat().st_size // 4096):
            damaged.seek(page * 4096)
            damaged.write(b"\xff" * 4096)
    database = SqliteDatabase(url)
    database.inspect()
    assert "the SQLite file is damaged" in (database.trouble() or "")
    database.close()
