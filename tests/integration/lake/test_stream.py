"""The lake has what the server has: each event once, whatever is done again or killed."""

from __future__ import annotations

import json
import threading
import time
from functools import partial
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.lab.waiting import wait_until
from headwater.lake import tables
from headwater.lineage.moments import micros
from headwater.server.store import open_store
from tests.integration.server.making import columns, dataset, event, schema
from tests.integration.server.test_forward import forwarded, logged
from tests.integration.server.test_kafka import until

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.server.conftest import Process

    from .lakes import TestLake

POISON = [b"{", b'{"eventTime": 7}', b"\xff\xfe"]


def estate(start: int = 0) -> list[dict[str, Any]]:
    """Two jobs in a row, of which the second one stops to read `b` for a while, and comes back."""
    made = []
    for n in range(start, start + 6):
        read = "b" if n % 3 else "other"
        second = 10 * n
        made += [
            event("START", second, run=2 * n, job="load", inputs=["a"], outputs=["b"]),
            event("COMPLETE", second + 4, run=2 * n, job="load", inputs=["a"], outputs=[
                dataset("b", schema=schema("id", f"c{n % 2}"), columnLineage=columns(id=("a", "id")))
            ]),
            event("COMPLETE", second + 5, run=2 * n + 1, job="report", inputs=[read], outputs=["c"]),
        ]  # fmt: skip
    return made


def post(server: Process, *events: dict[str, Any]) -> None:
    for one in events:
        assert httpx.post(f"{server.url}/api/v1/lineage", json=one).status_code == 201


def stored_edges(server: Process) -> list[Any]:
    store = open_store(server.store)
    rows = store.connection.all(
        "SELECT j.name, d.name, e.direction, e.since, e.until FROM edge e"
        " JOIN job j ON j.id = e.job JOIN dataset d ON d.id = e.dataset"
    )
    store.close()
    return sorted(rows, key=repr)


def lake_edges(lake: TestLake) -> list[Any]:
    def moment(value: Any) -> int | None:
        return None if value is None else micros(value)

    found = [
        (row["job_name"], row["dataset_name"], ("input", "output").index(row["direction"]),
         moment(row["valid_from"]), moment(row["valid_to"]))
        for row in lake.rows(tables.EDGES)
    ]  # fmt: skip
    return sorted(found, key=repr)


@pytest.mark.timeout(900)
def test_the_lake_has_what_the_server_has_each_once(
    lake: TestLake, server: Callable[[], Process]
) -> None:
    one = server()
    post(one, *estate())
    url = f"{one.url}/api/v1/namespaces/s3%3A%2F%2Flake/datasets/b/tags/PII"
    assert httpx.post(url).status_code == 201
    lake.kafka.produce(lake.topic, [*POISON, json.dumps(event("START", 7, run=99, job="direct"))])
    records = logged(one)
    until(lambda: forwarded(one) == len(records))
    lake.run()

    rows = {row["seq"]: row for row in lake.rows(tables.EVENTS) if row["seq"]}
    assert {seq: json.loads(row["body"]) for seq, row in rows.items()} == records
    page = httpx.get(f"{one.url}/api/v2/events", params={"limit": 1000}).json()["records"]
    assert {r["seq"]: r["hash"] for r in page} == {s: row["hash"].hex() for s, row in rows.items()}
    assert [row["type"] for row in rows.values() if row["kind"] == "command"] == ["tagged"]
    assert [r["node"] for r in lake.rows(tables.EVENTS) if not r["seq"]] == ["job:jobs:direct"]
    refused = lake.rows(tables.REFUSED)
    assert sorted(row["size"] for row in refused) == sorted(map(len, POISON))
    assert all(row["reason"] for row in refused)
    assert lake_edges(lake) == stored_edges(one)
    assert any(edge[4] is not None for edge in lake_edges(lake))


@pytest.mark.full
@pytest.mark.timeout(900)
def test_what_is_done_again_changes_nothing(lake: TestLake, server: Callable[[], Process]) -> None:
    one = server()
    post(one, *estate())
    until(lambda: forwarded(one) == len(logged(one)))
    lake.run()

    # The same epoch again, and all derived again, changes nothing: not even a commit is made.
    before = [(t.name, lake.rows(t), lake.snapshots(t)) for t in tables.TABLES]
    lake.forget_last_epoch()
    lake.forget_derived()
    lake.run()
    assert [(t.name, lake.rows(t), lake.snapshots(t)) for t in tables.TABLES] == before

    # Nor does everything again, with the checkpoint gone; what is new is taken in.
    lake.forget_checkpoint()
    post(one, *estate(6), *estate()[:3])
    records = logged(one)
    until(lambda: forwarded(one) == len(records))
    lake.run()
    assert sorted(r["seq"] for r in lake.rows(tables.EVENTS) if r["seq"]) == sorted(records)
    assert len(set(lake.places())) == len(lake.places())
    assert lake_edges(lake) == stored_edges(one)
    said = json.loads(lake.snapshots(tables.EVENTS)[-1]["headwater.offsets"])
    assert sum(said[lake.topic].values()) == len(records)
    assert "headwater.offsets" in lake.snapshots(tables.EDGES)[-1]


@pytest.mark.full
@pytest.mark.timeout(1200)
def test_a_killed_driver_loses_and_doubles_nothing(
    lake: TestLake, server: Callable[[], Process]
) -> None:
    one = server()
    stop = threading.Event()

    def feed() -> None:
        number = 0
        while not stop.is_set():
            post(one, *estate(number))
            number += 6
            time.sleep(0.2)

    feeder = threading.Thread(target=feed)
    feeder.start()
    arguments = ("--every", "1 second", "--derive-every", "2 seconds")
    job = lake.start(*arguments, once=False)
    try:
        for wanted in (30, 90, 150):
            has = partial(_has, lake, wanted)
            wait_until(has, seconds=240, what=f"{wanted} events", interval=0.5)
            job.process.kill()
            job.process.wait()
            job = lake.start(*arguments, once=False)
    finally:
        stop.set()
        feeder.join()
        job.process.kill()
        job.process.wait()
    records = logged(one)
    until(lambda: forwarded(one) == len(records))
    lake.run()
    assert sorted(row["seq"] for row in lake.rows(tables.EVENTS)) == sorted(records)
    assert lake_edges(lake) == stored_edges(one)


def _has(lake: TestLake, wanted: int) -> bool:
    try:
        return len(lake.rows(tables.EVENTS)) >= wanted
    except Exception:  # noqa: BLE001  (the table is not made yet)
        return False
