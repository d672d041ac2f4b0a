from __future__ import annotations

import gzip
import json
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any

import psycopg
import pytest
import zstandard
from hypothesis import HealthCheck, given
from hypothesis import strategies as st

from headwater.errors import NotFoundError, UsageError
from headwater.server.app import ServerSettings
from headwater.server.http.auth import create_token, list_tokens, revoke_token
from headwater.server.http.hosts import is_loopback
from headwater.server.http.serve import serve
from headwater.server.store import Store, StoreUnavailableError, open_store
from tests.properties import examples

from .conftest import Client, Process
from .making import dataset, event, run_id
from .test_live import until

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path


def send(client: Client, content: Any, path: str = "/api/v1/lineage", **headers: str) -> Any:
    body = content if isinstance(content, (str, bytes)) else json.dumps(content)
    return client.call("POST", path, content=body, headers=headers)


def test_an_event_is_there_once_it_is_acknowledged(client: Client) -> None:
    sent = event("START", 0, inputs=["a"], outputs=["b"])
    for _ in range(2):
        response = send(client, sent)
        assert (response.status_code, response.content) == (201, b"")
    found = client.get("/api/v1/events/lineage")
    assert found == {"events": [sent], "totalCount": 1}


@pytest.mark.parametrize("packing", ["gzip", "zstd", "identity"])
def test_packed_bodies_are_read(client: Client, packing: str) -> None:
    body = json.dumps(event("START", 0)).encode()
    packed = {"gzip": gzip.compress(body), "zstd": zstandard.compress(body), "identity": body}[
        packing
    ]
    assert send(client, packed, **{"content-encoding": packing}).status_code == 201


BAD: dict[str, tuple[Any, int, str]] = {
    "truncated": (json.dumps(event("START", 0))[:-9], 400, "$"),
    "wrong type": ({**event("START", 0), "inputs": "x"}, 422, "inputs"),
    "nan": ('{"eventTime": NaN}', 400, "$"),
    "no run id": ({**event("START", 0), "run": {"runId": ""}}, 422, "run.runId"),
    "year 9999": ({**event("START", 0), "eventTime": "9999-01-01T00:00:00Z"}, 422, "eventTime"),
    "nul": (event("START", 0, job="a\0b"), 422, "job.name"),
    "lone surrogate": (json.dumps(event("START", 0)).replace("load", "\\ud800"), 400, "$"),
    "repeated key": ('{"eventTime":"2026-01-01T00:00:00Z","job":{"namespace":"n","name":"a","name":"b"}}',
                     422, "name"),
    "100,000 fields": (event("START", 0, outputs=[dataset("d", schema={"fields": [
        {"name": f"c{i}"} for i in range(100_000)]})]), 422, "outputs[0].facets.schema.fields"),
    "bad schema": (event("START", 0, outputs=[dataset("d", schema={"fields": 5})]),
                   422, "outputs[0].facets.schema"),
    "facets no object": ({**event("START", 0), "job": {"namespace": "n", "name": "j", "facets": 5}},
                         422, "job.facets"),
    "deep": (json.dumps(event("START", 0, job_facets={"x": {"v": 1}})).replace(
        '{"v": 1}', '{"a":' * 500 + "1" + "}" * 500), 422, "job.facets.x"),
    "not packed": (b"no gzip", 400, ""),
}  # fmt: skip


@pytest.mark.parametrize("case", BAD)
def test_bad_input_is_refused_by_name(client: Client, case: str) -> None:
    content, code, field = BAD[case]
    headers = {"content-encoding": "gzip"} if case == "not packed" else {}
    response = send(client, content, **headers)
    assert response.status_code == code, response.text[:300]
    body = response.json()
    assert body["code"] == code
    assert isinstance(body["message"], str)
    if field:
        assert body["problems"][0]["field"].startswith(field)
        assert all(isinstance(error, str) for error in body["errors"])
    assert client.get("/api/v2/health")["status"] == "ok"
    assert client.get("/api/v1/events/lineage")["totalCount"] == 0


def test_a_body_too_large_is_413(client: Client) -> None:
    client.app.settings.body_limit = 1000
    assert send(client, event("START", 0, job="x" * 2000)).status_code == 413
    bomb = gzip.compress(b" " * 1_000_000)
    assert send(client, bomb, **{"content-encoding": "gzip"}).status_code == 413


@pytest.mark.parametrize("form", ["lines", "array"])
def test_a_batch_has_a_result_for_each_line(client: Client, form: str) -> None:
    good, other = event("START", 0), event("COMPLETE", 5)
    bad: dict[str, Any] = {"eventType": "START"}
    sent = [good, bad, other, good]
    body = json.dumps(sent) if form == "array" else "\n".join(map(json.dumps, sent))
    response = send(client, body, "/api/v2/events")
    assert response.status_code == 207
    answer = response.json()
    assert (answer["accepted"], answer["duplicates"], answer["refused"]) == (2, 1, 1)
    assert [r["status"] for r in answer["results"]] == [201, 422, 201, 200]
    assert answer["results"][1]["problems"][0]["field"] == "eventTime"
    assert send(client, "", "/api/v2/events").status_code == 201
    assert send(client, json.dumps(bad), "/api/v2/events").status_code == 422


def test_an_odd_event_costs_its_neighbours_nothing(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    from headwater.server.store.write.projection import Projection

    whole = Projection.apply

    def fragile(self: Projection, item: Any, at: int) -> Any:
        if item.run.key[-1] == 2:
            raise ZeroDivisionError("odd")
        return whole(self, item, at)

    monkeypatch.setattr(Projection, "apply", fragile)
    sent = "\n".join(json.dumps(event("START", n, run=n)) for n in (1, 2, 3))
    answer = send(client, sent, "/api/v2/events").json()
    assert [r["status"] for r in answer["results"]] == [201, 500, 201]
    assert client.get("/api/v1/events/lineage")["totalCount"] == 2


def test_a_store_that_is_away_is_503(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    def away(_: Any) -> None:
        raise StoreUnavailableError("the disk is full")

    monkeypatch.setattr(type(client.store.connection), "commit", away)
    response = send(client, event("START", 0))
    assert (response.status_code, response.headers["retry-after"]) == (503, "2")
    monkeypatch.undo()
    assert send(client, event("START", 0)).status_code == 201
    assert client.get("/api/v1/events/lineage")["totalCount"] == 1


def test_roles(store_url: str) -> None:
    store = open_store(store_url)
    writer, reader = create_token(store, "spark", "write"), create_token(store, "page", "read")
    client = Client(store, ServerSettings(tokens=["boss"]))
    try:

        def status(method: str, path: str, token: str | None) -> int:
            headers = {"authorization": f"Bearer {token}"} if token else {}
            content = json.dumps(event("START", 0)) if method == "POST" else None
            return client.call(method, path, headers=headers, content=content).status_code

        assert status("GET", "/api/v2/health", None) == 200
        assert status("GET", "/api/v1/jobs", None) == 401
        assert status("GET", "/api/v1/jobs", "wrong") == 401
        assert status("GET", "/api/v1/jobs", writer) == 403
        assert status("GET", "/api/v1/jobs", reader) == 200
        assert status("POST", "/api/v1/lineage", reader) == 403
        assert status("POST", "/api/v1/lineage", writer) == 201
        assert status("GET", "/api/v1/jobs", "boss") == 200

        def may(token: str) -> list[str]:
            headers = {"authorization": f"Bearer {token}"}
            found: list[str] = client.call("GET", "/api/v2/health", headers=headers).json()["may"]
            return found

        assert client.get("/api/v2/health")["may"] == []
        assert (may("wrong"), may(reader), may(writer)) == ([], ["read"], ["write"])
        assert may("boss") == ["admin", "read", "write"]
        tokens = list_tokens(store.connection)
        assert [t.role for t in tokens] == ["write", "read"]
        revoke_token(store, tokens[1].id)
        client.app.auth._read_at = 0
        assert status("GET", "/api/v1/jobs", reader) == 401
        with pytest.raises(NotFoundError):
            revoke_token(store, "nope")
    finally:
        client.close()


def test_only_this_machine_unless_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HEADWATER_TOKEN", raising=False)
    assert is_loopback("127.0.0.1")
    assert is_loopback("::1")
    assert not is_loopback("0.0.0.0")
    with pytest.raises(UsageError, match="no token is set"):
        serve(host="0.0.0.0", port=0, store=f"sqlite:///{tmp_path}/x.db")


def test_methods_that_do_not_fit_are_405(client: Client) -> None:
    response = client.call("DELETE", "/api/v2/health")
    assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
    assert client.call("HEAD", "/api/v2/health").status_code == 200


def test_what_was_written_survives_a_restart(store_url: str) -> None:
    first = open_store(store_url)
    bodies = [json.dumps(event("START", n, run=n, outputs=["b"])).encode() for n in range(200)]
    assert all(r.seq for r in first.append(bodies))
    first.close()
    second = open_store(store_url)
    assert all(r.duplicate for r in second.append(bodies))
    assert second.append([json.dumps(event("COMPLETE", 300, run=1)).encode()])[0].seq == 201
    second.close()


def test_events_are_told_apart_within_one_moment_and_known_again(store: Store) -> None:
    """An event is known by its time and its hash, also one whose clock is wrong."""
    later = datetime.now(timezone.utc) + timedelta(hours=1)
    ahead = {**event("START", 0, run=900), "eventTime": later.isoformat()}
    sent = [json.dumps(event("START", 0, run=number)).encode() for number in range(1, 40)]
    sent += [json.dumps(ahead).encode()]
    first, second = store.append(sent), store.append(sent)
    assert not any(one.duplicate for one in first)
    assert all(one.duplicate for one in second)
    assert [one.seq for one in second] == [one.seq for one in first]


def test_two_writers_on_one_store_see_each_other(store_url: str) -> None:
    one, two = open_store(store_url), open_store(store_url)
    for n in range(6):
        body = json.dumps(event("START", n, run=n, outputs=[f"d{n % 2}"])).encode()
        assert (one, two)[n % 2].append([body])[0].seq == n + 1
    rows = two.connection.all("SELECT count(*), max(id) FROM dataset")
    assert rows == [(2, 2)]
    one.close()
    two.close()


values = st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@examples(60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    place=st.sampled_from(
        ["eventType", "eventTime", "run", "job", "inputs", "outputs", "producer", "x"]
    ),
    value=values,
    facet=st.sampled_from(["schema", "columnLineage", "symlinks", "jobType", "parent", "odd"]),
    content=values,
)
def test_no_event_makes_the_server_fail(
    client: Client, place: str, value: Any, facet: str, content: Any
) -> None:
    made = event(
        "START", 0, outputs=[dataset("b", **{facet: content})], job_facets={facet: content}
    )
    for sent in (made, {**made, place: value}):
        assert send(client, sent).status_code in (201, 400, 422)


def test_a_minimal_abort_closes_its_run(client: Client) -> None:
    client.post(event("START", 0, inputs=["a"]))
    client.post(
        {
            "eventType": "ABORT",
            "eventTime": "2026-01-01T00:00:09Z",
            "run": {"runId": run_id(1)},
            "job": {"namespace": "jobs", "name": "load"},
        }
    )
    assert client.get(f"/api/v1/jobs/runs/{run_id(1)}")["state"] == "ABORTED"


def test_any_run_id_and_event_kind_is_taken(client: Client, store: Store) -> None:
    client.post(
        event("START", 0) | {"run": {"runId": "f81d4fae-7dec-11d0-a765-00a0c91e6bf6"}},
        {"eventTime": "2026-01-01T00:00:00Z", "job": {"namespace": "jobs", "name": "static"},
         "inputs": [dataset("system.events", "kafka://k:9092")], "outputs": [dataset("SYS.x")]},
        {"eventTime": "2026-01-01T00:00:00Z", "dataset": dataset("lonely", odd={"kept": True})},
    )  # fmt: skip
    job = client.get("/api/v1/namespaces/jobs/jobs/static")
    assert [d["name"] for d in job["inputs"] + job["outputs"]] == ["system.events", "SYS.x"]
    assert job["latestRun"] is None
    lonely = client.get("/api/v1/namespaces/s3%3A%2F%2Flake/datasets/lonely")
    assert lonely["facets"] == {"odd": {"kept": True}}


def test_a_server_that_stops_leaves_no_connection_behind(store_url: str, tmp_path: Path) -> None:
    client = Client(open_store(store_url))
    send(client, event("START", 0, outputs=["b"]))
    assert client.get("/api/v1/jobs")["totalCount"] == 1
    client.close()
    if store_url.startswith("sqlite"):
        assert [path.name for path in tmp_path.iterdir()] == ["headwater.db"], "no log beside it"
        return
    with psycopg.connect(store_url, autocommit=True) as own:
        sql = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND pid <> %s"
        until(lambda: own.execute(sql, (own.info.backend_pid,)).fetchone() is None)


def test_a_second_server_does_not_get_in_through_a_link(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    launch()
    folder = tmp_path / "elsewhere"
    folder.symlink_to(tmp_path)
    (tmp_path / "link.db").symlink_to("headwater.db")
    for name in ("headwater.db", "link.db", "elsewhere/headwater.db"):
        with pytest.raises(UsageError, match="another server has"):
            serve(port=0, store=f"sqlite:///{tmp_path}/{name}")
    (tmp_path / "hard.db").hardlink_to(tmp_path / "headwater.db")
    with pytest.raises(UsageError, match=r"has 2 names \(hard links\)"):
        serve(port=0, store=f"sqlite:///{tmp_path}/hard.db")
    assert not (tmp_path / "hard.db.lock").exists()


def test_a_folder_is_no_store(tmp_path: Path) -> None:
    folder = tmp_path / "stores"
    (folder / "another").mkdir(parents=True)  # with it the folder has three names
    with pytest.raises(UsageError, match="stores is no file") as refused:
        serve(port=0, store=f"sqlite:///{folder}")
    assert refused.value.hint == f"name a file in a folder, such as {folder}/headwater.db"
    assert list(tmp_path.iterdir()) == [folder]
