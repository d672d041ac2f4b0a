"""Two server processes on one PostgreSQL: one log, one live stream, one that closes silent runs."""

from __future__ import annotations

import json
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import httpx
import psycopg
import pytest

from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import verify

from .making import event, facet, run_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Process


def post(url: str, sent: dict[str, Any]) -> None:
    response = httpx.post(f"{url}/api/v1/lineage", content=json.dumps(sent))
    assert response.status_code == 201, response.text


def hear(url: str, wanted: str, heard: threading.Event, ready: threading.Event) -> None:
    with httpx.stream("GET", f"{url}/api/v2/live", timeout=20) as stream:
        for line in stream.iter_lines():
            ready.set()
            if wanted in line:
                heard.set()
                return


def test_what_one_server_takes_in_the_other_shows_and_streams(
    postgres: Any, launch: Callable[..., Process]
) -> None:
    store = postgres.database()
    one, two = launch(store), launch(store)
    heard, ready = threading.Event(), threading.Event()
    listener = threading.Thread(target=hear, args=(two.url, "load7", heard, ready), daemon=True)
    listener.start()
    assert ready.wait(60)
    post(one.url, event("START", 0, job="load7", inputs=["a"], outputs=["b"]))
    assert httpx.get(f"{two.url}/api/v1/namespaces/jobs/jobs/load7").status_code == 200
    assert heard.wait(60)
    listener.join(10)


@pytest.mark.full
def test_both_write_at_once_and_the_log_has_one_order(
    postgres: Any, launch: Callable[..., Process]
) -> None:
    store = postgres.database()
    servers = launch(store), launch(store)
    sent = [event("START", n, run=n, job=f"j{n % 5}", outputs=[f"d{n % 7}"]) for n in range(80)]
    with ThreadPoolExecutor(8) as pool:
        # Each event goes to both: whoever comes second finds it there.
        for server in servers:
            for item in sent:
                pool.submit(post, server.url, item)
    for server in servers:
        server.stop()
    opened = open_store(store)
    assert verify(opened) == len(sent)
    assert opened.connection.all("SELECT count(*) FROM job") == [(5,)]
    assert opened.connection.all("SELECT count(*) FROM dataset") == [(7,)]
    opened.close()


@pytest.mark.full
def test_one_of_them_closes_silent_runs_and_the_other_takes_over(
    postgres: Any, launch: Callable[..., Process]
) -> None:
    store = postgres.database()
    beat = facet(processingType="STREAMING", integration="X",
                 emissionPattern={"eventTrigger": "PERIODIC", "windowDuration": 1})  # fmt: skip
    servers = [launch(store), launch(store)]
    opened = open_store(store)
    past = datetime.now(timezone.utc) - timedelta(minutes=5)

    def closed_once(number: int, url: str) -> None:
        made = event("START", 0, run=number, job_facets={"jobType": beat})
        post(url, {**made, "eventTime": past.isoformat()})
        sql = "SELECT count(*) FROM log WHERE kind = 1"
        deadline = threading.Event()
        for _ in range(900):  # who takes over gives producers half a minute
            if httpx.get(f"{url}/api/v1/jobs/runs/{run_id(number)}").json()["state"] == "ABORTED":
                break
            deadline.wait(0.1)
        else:
            raise AssertionError("the run was not closed")
        assert opened.connection.all(sql) == [(number,)]

    closed_once(1, servers[0].url)
    holders = opened.connection.all(
        "SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND granted"
    )
    assert len(holders) == 1
    servers[0].kill()
    closed_once(2, servers[1].url)
    opened.close()


def test_the_one_that_leads_gathers_statistics_of_tables_nobody_looked_at(postgres: Any) -> None:
    url = postgres.database()
    store = open_store(url)
    with psycopg.connect(url, autocommit=True) as database:
        database.execute("ALTER TABLE edge SET (autovacuum_enabled = false)")

        def rows() -> Any:
            return database.execute(
                "SELECT reltuples FROM pg_class WHERE relname = 'edge'"
            ).fetchone()

        sides = [[f"{side}{k}" for k in range(10)] for side in ("in", "out")]
        sent = [
            event("START", 0, run=n, job=f"j{n}", inputs=sides[0], outputs=sides[1])
            for n in range(250)
        ]
        store.append([json.dumps(one).encode() for one in sent])
        store.database.tend()
        assert rows() == (-1,)  # it does not lead
        assert store.database.lead()
        store.database.tend()
        assert rows() == (5_000,)
    store.close()
