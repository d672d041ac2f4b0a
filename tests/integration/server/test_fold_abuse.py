"""What `headwater_partOf` says is not trusted, and parts in great number are in nobody's way."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

import pytest

from headwater.server.store import Store, open_store
from headwater.server.store.keep.rebuild import export, rebuild, verify
from headwater.server.store.keep.retention import retain

from .conftest import Client, job_url
from .making import dataset, event, facet
from .test_folding import (
    CONNECT,
    DEBEZIUM,
    PART,
    TABLE,
    TOPIC,
    WHOLE,
    connector,
    names,
    part_of,
    send,
    state,
    task,
)

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

MANY = 2_100
"""More than the connectors that are looked at."""


@pytest.mark.parametrize(
    ("said", "status"),
    [
        (5, 201),
        ([], 201),
        ("shop", 201),
        (None, 201),
        ({}, 201),
        ({"namespace": "jobs"}, 201),
        ({"namespace": 5, "name": True}, 201),
        ({"namespace": "jobs", "name": None}, 201),
        ({"namespace": "jobs", "name": ["shop"]}, 201),
        ({"namespace": "jobs", "name": {"shop": "shop"}}, 201),
        ({"namespace": "jobs", "name": ""}, 201),
        ({"namespace": "jobs", "name": "sh\0op"}, 422),
        ({"namespace": "jobs", "name": "shop" * 2_000_000}, 201),
        ({"namespace": "jobs" * 2_000_000, "name": "shop"}, 201),
    ],
    ids=lambda value: str(value)[:40],
)
def test_what_names_no_job_folds_nothing(client: Client, said: Any, status: int) -> None:
    client.post(connector(), task())
    wrong = part_of(WHOLE, 3)
    wrong["job"]["facets"]["headwater_partOf"] = said
    response = client.call("POST", "/api/v1/lineage", content=json.dumps(wrong))
    assert response.status_code == status, response.text
    assert names(client) == [WHOLE, PART]
    rows = client.store.connection.all("SELECT length(namespace), length(name) FROM fold")
    assert all(size <= 4_096 for row in rows for size in row), "what is too long is not kept"
    client.post(part_of(WHOLE, 4))
    assert names(client) == [WHOLE]
    wrong["eventTime"] = part_of(WHOLE, 5)["eventTime"]
    client.call("POST", "/api/v1/lineage", content=json.dumps(wrong))
    unsaid = isinstance(said, dict)
    assert names(client) == ([WHOLE, PART] if unsaid and status == 201 else [WHOLE])


def counted(store: Store, work: Callable[[], None]) -> int:
    """How many statements a piece of work takes, and rows that it writes."""
    connection: Any = store.connection
    ways = {name: getattr(connection, name) for name in ("all", "run", "upsert")}
    count = 0

    def counting(way: Callable[..., Any]) -> Callable[..., Any]:
        def asked(*args: Any) -> Any:
            nonlocal count
            count += len(args[1]) if way == ways["upsert"] else 1
            return way(*args)

        return asked

    for name, way in ways.items():
        setattr(connection, name, counting(way))
    try:
        work()
    finally:
        for name in ways:
            delattr(connection, name)
    return count


def test_an_event_of_a_part_costs_the_same_however_many_there_are(store: Store) -> None:
    taken = []
    send(store, connector())
    for size in (3, 600):
        parts = [f"{WHOLE}.{size}.{n}" for n in range(size)]
        send(store, *(event("START", 1, run=size * 10 + n, job=p) for n, p in enumerate(parts)))
        send(store, *(part_of(WHOLE, 3, part) for part in parts))
        work = [
            event("RUNNING", 9, run=size * 10, job=parts[0], outputs=[TOPIC]),
            part_of(None, 10, parts[1]),
            part_of(WHOLE, 11, parts[1]),
            event("RUNNING", 12 + size, job=WHOLE),
        ]
        taken.append([counted(store, lambda sent=sent: send(store, sent)) for sent in work])  # type: ignore[misc]
    assert all(more <= few for few, more in zip(*taken, strict=True)), taken


def fan(store: Store, count: int, whole: str = WHOLE) -> None:
    """Parts that are all heard of before their whole, each with a dataset of its own."""
    for start in range(0, count, 500):
        numbers = range(start, min(count, start + 500))
        send(store, *(part_of(whole, 3, f"{whole}.{n}") for n in numbers))
        send(store, *(
            event("START", 1, run=1_000 + n, job=f"{whole}.{n}", job_facets=DEBEZIUM,
                  inputs=[TABLE, f"{whole}_{n}"], outputs=[TOPIC])
            for n in numbers
        ))  # fmt: skip


@pytest.mark.full
def test_many_parts_leave_room_for_others(client: Client) -> None:
    fan(client.store, MANY)
    client.post(connector())
    client.post(
        event("START", 5, run=2, job="other", job_facets=CONNECT, inputs=[TABLE], outputs=[TOPIC])
    )
    client.post(event("START", 5, run=3, job="a_shop_of_another_kind", outputs=["x"]))
    shown = client.get("/api/v2/connectors")["connectors"]
    assert {one["name"] for one in shown} == {WHOLE, "other"}
    found = client.get("/api/v2/search", q="shop", kind="job", limit=5)["results"]
    assert [one["name"] for one in found] == [WHOLE, "a_shop_of_another_kind"]
    changes = client.get("/api/v2/overview")["changes"]
    assert [one["job"]["name"] for one in changes if one["change"] == "edges"] == [
        "a_shop_of_another_kind", "other", WHOLE,
    ]  # fmt: skip
    ends = {"origin": f"dataset:s3://lake:{TABLE}", "destination": f"dataset:s3://lake:{TOPIC}"}
    proof = client.get("/api/v2/evidence", **ends)
    assert {one["job"]["name"] for one in proof["jobs"]} == {WHOLE, "other"}
    assert proof["truncated"] is False
    assert len(client.get(job_url(WHOLE))["inputs"]) == MANY + 1
    nodes = client.get("/api/v2/map", node=f"job:jobs:{WHOLE}", depth=0, limit=5_000)["nodes"]
    assert len(nodes) == 1 + MANY + 2
    client.call("DELETE", job_url(WHOLE))
    assert names(client) == ["a_shop_of_another_kind", "other"]


def test_what_only_parts_bring_is_brought_by_the_whole(client: Client) -> None:
    reads = event("START", 1, run=11, job=PART, inputs=["one"])
    writes = event("START", 2, run=12, job=f"{WHOLE}.2", outputs=["two"])
    client.post(reads, writes, event("START", 0, job=WHOLE))
    ends = {"origin": "dataset:s3://lake:one", "destination": "dataset:s3://lake:two"}
    assert client.call("GET", "/api/v2/evidence", params=ends).status_code == 404
    client.post(part_of(WHOLE, 3), part_of(WHOLE, 3, f"{WHOLE}.2"))
    (brought,) = client.get("/api/v2/evidence", **ends)["jobs"]
    assert (brought["job"]["name"], brought["since"][:19]) == (WHOLE, "2026-01-01T00:00:02")


def test_it_survives_retention_and_can_be_unsaid_after_it(store: Store, tmp_path: Path) -> None:
    send(store, task(), task(2, 2), part_of(WHOLE, 3), part_of(WHOLE, 3, f"{WHOLE}.2"), connector())
    for job, run in ((WHOLE, 1), (PART, 11), (f"{WHOLE}.2", 12)):
        send(store, event("COMPLETE", 9, run=run, job=job))
    before = state(store)
    assert [row[1] for row in before] == [0, 2, 2]
    assert retain(store, time.time_ns() // 1000).events == 8
    assert state(store) == before
    send(store, part_of(None, 20))
    rebuild(store)
    assert verify(store) == 2
    after = state(store)
    assert [row[:2] for row in after] == [(WHOLE, 0), (PART, 0), (f"{WHOLE}.2", 2)]
    copy = open_store(f"sqlite:///{tmp_path}/copy.db")
    copy.append(list(export(store)))
    assert [row[:2] for row in state(copy)] == [(PART, 0)], "what was let go of is not exported"
    copy.close()


def test_parts_and_wholes_of_several_namespaces(client: Client) -> None:
    elsewhere = connector()
    elsewhere["job"]["namespace"] = "connect://cluster"
    client.post(elsewhere, task(), part_of(WHOLE, 3, space="connect://cluster"))
    assert client.get(job_url(PART))["namespace"] == "connect://cluster"
    assert client.get("/api/v1/namespaces/jobs/jobs")["jobs"] == []
    assert client.call("DELETE", "/api/v1/namespaces/connect%3A%2F%2Fcluster").status_code == 200
    assert names(client) == []
    client.post(event("RUNNING", 30, run=11, job=PART, outputs=[dataset("more", x=facet())]))
    assert client.get(job_url(PART))["name"] == PART
    client.post({**elsewhere, "eventType": "RUNNING"})
    assert client.get(job_url(PART))["name"] == WHOLE
    listed = client.get("/api/v1/namespaces/connect%3A%2F%2Fcluster/jobs")["jobs"]
    assert [job["name"] for job in listed] == [WHOLE]
