from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.server.app import ServerSettings
from headwater.server.http.auth import create_token
from headwater.server.store import Store, StoreError, open_store
from headwater.server.store.keep.checkpoint import PROJECTED
from headwater.server.store.keep.rebuild import export, rebuild, verify
from headwater.server.store.keep.stale_runs import close_stale

from .conftest import Client, dataset_url, job_url
from .making import at, dataset, event, facet, run_id, schema

MINUTE = 60_000_000


def put(client: Client, method: str, path: str, body: Any = None, status: int = 200) -> Any:
    content = json.dumps(body) if body is not None else None
    response = client.call(method, path, content=content)
    assert response.status_code == status, response.text
    return response.json()


def append(store: Store, *events: dict[str, Any]) -> None:
    for receipt in store.append([json.dumps(e).encode() for e in events]):
        assert receipt.error is None


def state(store: Store, number: int = 1) -> tuple[int, int | None]:
    sql = "SELECT status, ended FROM run WHERE uuid = ?"
    ((status, ended),) = store.connection.all(
        sql, (bytes.fromhex(run_id(number).replace("-", "")),)
    )
    return status, ended


def test_a_run_is_closed_by_hand(client: Client) -> None:
    client.post(event("START", 0, outputs=["b"]))
    assert put(client, "POST", f"/api/v2/runs/{run_id(1)}/abort")["state"] == "ABORTED"
    put(client, "POST", f"/api/v2/runs/{run_id(7)}/abort", status=404)
    refused = put(client, "POST", "/api/v2/runs/nope/abort", status=400)
    assert [one["field"] for one in refused["problems"]] == ["id"]
    assert (
        put(client, "POST", f"/api/v1/jobs/runs/{run_id(1)}/complete?at=2026-01-01T00:00:30Z")[
            "endedAt"
        ]
        == "2026-01-01T00:00:30Z"
    )


def test_a_run_closed_by_hand_names_whoever_did(store_url: str) -> None:
    store = open_store(store_url)
    token = create_token(store, "night shift", "admin")
    client = Client(store, ServerSettings(tokens=["boss"]))

    def call(method: str, path: str, token: str, content: str | None = None) -> Any:
        headers = {"authorization": f"Bearer {token}"}
        response = client.call(method, path, headers=headers, content=content)
        assert response.is_success, response.text
        return response.json() if response.content else None

    try:
        for number, job in ((1, "copy"), (2, "load"), (3, "late")):
            begun = event("START", 0, run=number, job=job, outputs=["b"])
            call("POST", "/api/v1/lineage", "boss", json.dumps(begun))
        closed = call("POST", f"/api/v2/runs/{run_id(1)}/abort", token)
        end = closed["facets"]["headwater_end"]
        assert (end["reason"], end["by"]) == ("aborted by hand", "night shift")
        closed = call("POST", f"/api/v2/runs/{run_id(2)}/abort", "boss")
        assert "by" not in closed["facets"]["headwater_end"]  # a token given at start has no name
        call("POST", f"/api/v2/runs/{run_id(3)}/abort", token)
        call("POST", f"/api/v1/jobs/runs/{run_id(3)}/complete?at={at(30)}", "boss")
        why = call("GET", "/api/v2/datasets/s3%3A%2F%2Flake/b/why", "boss")
        assert {(one["named"]["name"], one["kind"], one["by"]) for one in why["causes"]} == {
            ("copy", "aborted", "night shift"),
            ("load", "aborted", None),
        }
        end = {"headwater_end": facet(reason="stopped", inferred=False)}
        stopped = event("ABORT", 9, run=4, job="stream", outputs=["c"], run_facets=end)
        call("POST", "/api/v1/lineage", "boss", json.dumps(stopped))
        again = call("POST", f"/api/v2/runs/{run_id(4)}/abort", token)
        assert again["facets"]["headwater_end"]["reason"] == "stopped"  # it had ended before
    finally:
        client.close()


def test_metadata_is_put_as_marquez_takes_it(client: Client) -> None:
    assert put(client, "PUT", "/api/v1/namespaces/team", {"ownerName": "ann"})["ownerName"] == "ann"
    source = {"type": "POSTGRESQL", "connectionUrl": "postgres://db:5432", "description": "shop"}
    assert (
        put(client, "PUT", "/api/v1/sources/shop", source)["connectionUrl"] == "postgres://db:5432"
    )
    body = {"type": "DB_TABLE", "physicalName": "orders", "sourceName": "shop", "tags": ["PII"],
            "fields": [{"name": "id", "type": "int", "tags": ["KEY"]}], "description": "orders"}  # fmt: skip
    made = put(client, "PUT", "/api/v1/namespaces/team/datasets/orders", body)
    assert (made["sourceName"], made["description"], made["tags"]) == ("shop", "orders", ["PII"])
    assert made["fields"] == [{"name": "id", "type": "int", "tags": ["KEY"], "description": None}]
    body = {"type": "STREAM", "inputs": [{"namespace": "team", "name": "orders"}], "outputs": [],
            "location": "https://example.com/repo"}  # fmt: skip
    made = put(client, "PUT", "/api/v1/namespaces/team/jobs/copy", body)
    assert (made["location"], made["inputs"][0]["name"]) == ("https://example.com/repo", "orders")
    run = put(client, "POST", "/api/v1/namespaces/team/jobs/copy/runs", {"args": {"a": "b"}}, 201)
    assert (run["state"], run["args"]) == ("NEW", {"a": "b"})
    assert put(client, "POST", f"/api/v1/jobs/runs/{run['id']}/start")["state"] == "RUNNING"
    put(client, "PUT", "/api/v1/sources/shop", {"type": 5}, status=422)


def test_tags_come_and_go(client: Client) -> None:
    client.post(event("START", 0, outputs=[dataset("b", schema=schema("x"))]))
    assert put(client, "PUT", "/api/v1/tags/PII", {"description": "personal"})["name"] == "PII"
    assert put(client, "POST", dataset_url("b", "tags", "PII"), status=201)["tags"] == ["PII"]
    tagged = put(client, "POST", dataset_url("b", "fields", "x", "tags", "KEY"), status=201)
    assert tagged["fields"][0]["tags"] == ["KEY"]
    assert put(client, "POST", job_url("load", "tags", "HOT"), status=201)["tags"] == ["HOT"]
    assert {t["name"] for t in client.get("/api/v1/tags")["tags"]} == {"PII", "KEY", "HOT"}
    assert put(client, "DELETE", dataset_url("b", "tags", "PII"))["tags"] == []


def test_what_is_deleted_hides_until_it_is_heard_of(client: Client) -> None:
    client.post(event("START", 0, inputs=["a"], outputs=["b"]))
    put(client, "DELETE", dataset_url("a"))
    assert client.call("GET", dataset_url("a")).status_code == 404
    nodes = client.get("/api/v1/lineage", nodeId="job:jobs:load")["graph"]
    assert [n["id"] for n in nodes] == ["dataset:s3://lake:b", "job:jobs:load"]
    client.post(event("RUNNING", 5, inputs=["a"], outputs=["b"]))
    assert client.get(dataset_url("a"))["name"] == "a"
    put(client, "DELETE", "/api/v1/namespaces/jobs")
    assert client.get("/api/v1/jobs")["totalCount"] == 0
    assert client.call("GET", "/api/v1/namespaces/jobs/jobs").status_code == 404
    client.post(event("RUNNING", 6))
    assert client.get("/api/v1/namespaces/jobs/jobs")["totalCount"] == 1
    put(client, "DELETE", "/api/v1/namespaces/s3%3A%2F%2Flake")
    client.post(event("RUNNING", 7, outputs=["b"]))
    assert client.get(dataset_url("b"))["name"] == "b"
    rebuild(client.store)
    assert client.get(dataset_url("b"))["name"] == "b"
    put(client, "DELETE", job_url("nope"), status=404)


def test_a_run_that_misses_three_heartbeats_is_closed(store: Store) -> None:
    pattern = facet(eventTrigger="PERIODIC", windowDuration=60)
    beating = {"jobType": facet(processingType="STREAMING", emissionPattern=pattern)}
    append(
        store,
        event("START", 0, run=1, job_facets=beating, outputs=["b"]),
        event("START", 0, run=2, job="batch"),
    )
    start = store.connection.all("SELECT min(created) FROM run")[0][0]
    assert close_stale(store, start + 2 * MINUTE) == []
    assert [str(run) for run in close_stale(store, start + 4 * MINUTE)] == [run_id(1)]
    assert state(store) == (4, start + 3 * MINUTE)
    append(store, event("RUNNING", 90, run=1, job_facets=beating))
    assert state(store) == (1, None)
    append(store, event("FAIL", 95, run=1))
    assert state(store)[0] == 3
    assert close_stale(store, start + 9999 * MINUTE) == []
    assert [str(r) for r in close_stale(store, start + 99 * MINUTE, 60 * MINUTE)] == [run_id(2)]


def snapshot(store: Store) -> dict[str, list[Any]]:
    found = {}
    for table in PROJECTED:
        rows = store.connection.all(f"SELECT * FROM {table}")
        plain = [tuple(bytes(v) if isinstance(v, memoryview) else v for v in row) for row in rows]
        if table == "facet":
            plain = [(row[0], row[1]) for row in plain]
        found[table] = sorted(plain, key=repr)
    return found


def test_a_rebuild_gives_the_same_graph(client: Client) -> None:
    store = client.store
    client.post(
        event("START", 0, inputs=[dataset("a", schema=schema("x"))], outputs=["b"]),
        event("COMPLETE", 9, outputs=["b", "c"]),
        event("START", 20, run=2, outputs=["d"]),
    )
    put(client, "POST", dataset_url("b", "tags", "PII"), status=201)
    put(client, "POST", f"/api/v2/runs/{run_id(2)}/abort")
    put(client, "DELETE", dataset_url("a"))
    before = snapshot(store)
    assert rebuild(store) == 6
    assert snapshot(store) == before
    client.post(event("START", 30, run=3, outputs=["e"]))
    assert verify(store) == 7


@pytest.mark.parametrize(
    "tampering",
    [
        "UPDATE log SET hash = chain WHERE seq = 2",
        "DELETE FROM log WHERE seq = 2",
        "UPDATE log SET at = at + 1 WHERE seq = 2",
    ],
)
def test_a_changed_log_is_found_out(store: Store, tampering: str) -> None:
    append(store, *(event("START", n, run=n) for n in (1, 2, 3)))
    assert verify(store) == 3
    store.connection.run(tampering)
    with pytest.raises(StoreError, match="the log was changed"):
        verify(store)


def test_events_come_out_as_they_went_in(store: Store) -> None:
    sent = [json.dumps(event("START", n, run=n, outputs=["b"])).encode() for n in range(150)]
    store.append(sent)
    assert list(export(store)) == sent


def test_the_log_is_read_by_cursor(client: Client) -> None:
    client.post(*(event("START", n, run=n) for n in range(5)))
    first = client.get("/api/v2/events", limit=3)
    rest = client.get("/api/v2/events", after=first["next"])
    seqs = [r["seq"] for r in first["records"] + rest["records"]]
    assert seqs == [1, 2, 3, 4, 5]
    assert first["records"][0]["event"] == event("START", 0, run=0)


def test_any_past_moment_can_be_drawn(client: Client) -> None:
    client.post(
        event("START", 0, run=1, inputs=["a"], outputs=["b"]),
        event("COMPLETE", 10, run=1),
        event("START", 20, run=2, inputs=["a"], outputs=["c"]),
        event("COMPLETE", 30, run=2),
    )

    def outputs(at: str | None) -> set[str]:
        query = {"at": at} if at else {}
        graph = client.get("/api/v2/map", node="job:jobs:load", **query)
        return {e["destination"] for e in graph["edges"] if e["origin"] == "job:jobs:load"}

    b, c = "dataset:s3://lake:b", "dataset:s3://lake:c"
    assert outputs("2025-12-31T00:00:00Z") == set()
    assert outputs("2026-01-01T00:00:05Z") == {b}
    assert outputs("2026-01-01T00:00:25Z") == {b, c}
    assert outputs(None) == {c}
    change = client.get(
        "/api/v2/graph/diff", node="job:jobs:load", **{"from": "2026-01-01T00:00:15Z"}
    )
    assert [e["destination"] for e in change["added"]] == [c]
    assert [e["destination"] for e in change["removed"]] == [b]


def test_a_bounded_graph_says_what_it_left_out(client: Client) -> None:
    client.post(
        *(event("START", n, run=n, job=f"j{n}", inputs=["a"], outputs=[f"o{n}"]) for n in range(9))
    )
    graph = client.get("/api/v2/map", node="job:jobs:j0", depth=1, limit=4)
    assert (len(graph["nodes"]), graph["truncated"]) == (4, True)
    (shared,) = [n for n in graph["nodes"] if n["id"] == "dataset:s3://lake:a"]
    assert shared["more"] == {"upstream": 0, "downstream": 8}
    whole = client.get("/api/v2/map", node="job:jobs:j0", depth=1)
    assert (len(whole["nodes"]), whole["truncated"]) == (19, False)


def test_metrics_are_prometheus_text(client: Client) -> None:
    client.post(event("START", 0))
    client.call("POST", "/api/v1/lineage", content="{")
    text = client.call("GET", "/api/v2/metrics").text
    assert "headwater_events_accepted_total 1" in text
    assert 'headwater_refused_total{reason="$: ends too early"} 1' in text
