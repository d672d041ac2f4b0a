"""A job that says it is a part of another is shown as that one, everywhere and in any order."""

from __future__ import annotations

import json
import tempfile
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.server.store import Store, open_store
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import export, rebuild
from headwater.server.store.keep.stale_runs import close_stale
from headwater.server.store.view import Bodies, View
from tests.properties import examples, in_another_order

from .conftest import Client, dataset_url, job_url
from .making import at, columns, dataset, event, facet, run_id, schema
from .test_live import listen, until

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Process

WHOLE, PART, OTHER = "shop", "shop.1", "shop.2"
CONNECT = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}
DEBEZIUM = {"jobType": facet(processingType="STREAMING", integration="DEBEZIUM")}
TABLE, TOPIC = "orders_table", "orders_topic"


def part_of(name: str | None, second: int, job: str = PART, space: str = "jobs") -> dict[str, Any]:
    """The event, without a run, that says what a job is a part of."""
    said = facet(_deleted=True) if name is None else facet(namespace=space, name=name)
    return {
        "eventTime": at(second),
        "producer": "https://example.com/producer",
        "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/JobEvent",
        "job": {"namespace": "jobs", "name": job, "facets": {"headwater_partOf": said}},
    }


def connector(second: int = 0) -> dict[str, Any]:
    return event("START", second, run=1, job=WHOLE, job_facets=CONNECT,
                 inputs=[TABLE], outputs=[dataset(TOPIC, schema=schema("id"))])  # fmt: skip


def task(second: int = 1, number: int = 1, *extra: str) -> dict[str, Any]:
    named = columns(id=(TABLE, "id"))
    return event("START", second, run=10 + number, job=f"{WHOLE}.{number}", job_facets=DEBEZIUM,
                 inputs=[TABLE, *extra], outputs=[dataset(TOPIC, columnLineage=named)])  # fmt: skip


def names(client: Client) -> list[str]:
    return sorted(job["name"] for job in client.get("/api/v1/jobs")["jobs"])


def mentions(value: Any, name: str) -> bool:
    """Whether an answer names a job, as a whole word or as a node id."""
    text = json.dumps(value)
    return f'"{name}"' in text or f":{name}" in text


READS: list[tuple[str, dict[str, Any]]] = [
    ("/api/v1/jobs", {}),
    ("/api/v1/namespaces/jobs/jobs", {}),
    (job_url(WHOLE), {}),
    (job_url(WHOLE, "runs"), {}),
    (job_url(WHOLE, "versions"), {}),
    (dataset_url(TOPIC, "versions"), {}),
    ("/api/v1/search", {"q": "shop"}),
    ("/api/v2beta/search/jobs", {"q": "shop"}),
    ("/api/v2/search", {"q": "shop"}),
    ("/api/v1/lineage", {"nodeId": f"dataset:s3://lake:{TOPIC}"}),
    ("/api/v1/lineage", {"nodeId": f"job:jobs:{WHOLE}"}),
    ("/api/v1/column-lineage", {"nodeId": f"dataset:s3://lake:{TOPIC}"}),
    ("/api/v1/runlineage/upstream", {"runId": run_id(30)}),
    ("/api/v2/map", {"node": f"dataset:s3://lake:{TOPIC}"}),
    ("/api/v2/map", {"node": f"dataset:s3://lake:{TOPIC}", "at": at(100)}),
    ("/api/v2/graph/diff", {"node": f"dataset:s3://lake:{TOPIC}", "from": at(0), "to": at(100)}),
    ("/api/v2/map", {}),
    ("/api/v2/map", {"namespace": "jobs"}),
    ("/api/v2/map", {"node": f"job:jobs:{WHOLE}", "columns": "true", "from": at(0)}),
    ("/api/v2/columns", {"node": f"dataset:s3://lake:{TOPIC}"}),
    ("/api/v2/overview", {}),
    ("/api/v2/connectors", {}),
    (f"/api/v2/jobs/jobs/{WHOLE}", {}),
    (f"/api/v2/jobs/jobs/{WHOLE}/runs", {}),
    (f"/api/v2/datasets/s3%3A%2F%2Flake/{TOPIC}", {}),
    (f"/api/v2/datasets/s3%3A%2F%2Flake/{TOPIC}/runs", {}),
    (f"/api/v2/datasets/s3%3A%2F%2Flake/{TOPIC}/freshness", {}),
    ("/api/v2/evidence",
     {"origin": f"dataset:s3://lake:{TABLE}", "destination": f"dataset:s3://lake:{TOPIC}"}),
    ("/api/v2/evidence",
     {"origin": f"job:jobs:{WHOLE}", "destination": f"dataset:s3://lake:{TOPIC}"}),
]  # fmt: skip


def test_no_answer_but_its_own_names_a_part(client: Client) -> None:
    reader = event("START", 5, run=30, job="reader", inputs=[TOPIC])
    client.post(task(1, 1), task(2, 2), connector(0), reader)
    assert names(client) == ["reader", "shop", "shop.1", "shop.2"]
    shown = [path for path, query in READS if mentions(client.get(path, **query), PART)]
    assert len(set(shown)) > 12, "the readers below must be able to name a job"
    client.post(part_of(WHOLE, 3), part_of(WHOLE, 3, OTHER), event("RUNNING", 20, run=11, job=PART))
    for path, query in READS:
        answer = client.get(path, **query)
        assert not mentions(answer, PART), (path, query)
        assert not mentions(answer, OTHER), (path, query)
    assert names(client) == ["reader", "shop"]
    assert client.get("/api/v1/stats/jobs")[-1]["count"] == 2
    assert client.get("/api/v2/overview")["jobs"]["total"] == 2
    assert [c["name"] for c in client.get("/api/v2/connectors")["connectors"]] == [WHOLE]
    assert "headwater_jobs_running 2\n" in client.call("GET", "/api/v2/metrics").text


def test_a_part_leads_to_its_whole_and_keeps_its_own_runs(client: Client) -> None:
    client.post(connector(), task(), part_of(WHOLE, 3))
    for part, whole in (
        (job_url(PART), job_url(WHOLE)),
        (job_url(PART, "versions"), job_url(WHOLE, "versions")),
        (f"/api/v2/jobs/jobs/{PART}", f"/api/v2/jobs/jobs/{WHOLE}"),
        (f"/api/v2/jobs/jobs/{PART}/runs", f"/api/v2/jobs/jobs/{WHOLE}/runs"),
    ):
        assert client.get(part) == client.get(whole)
    for path, key in (("/api/v1/lineage", "nodeId"), ("/api/v2/map", "node"),
                      ("/api/v2/map", "node"), ("/api/v1/column-lineage", "nodeId")):  # fmt: skip
        found = [client.get(path, **{key: f"job:jobs:{name}"}) for name in (PART, WHOLE)]
        assert found[0] == found[1], path
    (own,) = client.get(job_url(PART, "runs"))["runs"]
    assert (own["id"], own["state"]) == (run_id(11), "RUNNING")
    (others,) = client.get(job_url(WHOLE, "runs"))["runs"]
    assert others["id"] == run_id(1)
    run = client.get(f"/api/v1/jobs/runs/{run_id(11)}")
    assert (run["state"], run["jobVersion"]["name"]) == ("RUNNING", WHOLE)
    client.post(event("COMPLETE", 50, run=11, job=PART))
    assert client.get(job_url(PART, "runs"))["runs"][0]["state"] == "COMPLETED"
    response = client.call("POST", job_url(PART, "tags", "PII"))
    assert (response.status_code, response.json()["tags"]) == (201, ["PII"])


def test_what_only_the_part_reads_is_read_by_the_whole(client: Client) -> None:
    client.post(connector(), task(1, 1, "signals"), part_of(WHOLE, 3))
    found = client.get("/api/v2/map", node="dataset:s3://lake:signals")
    edge = {"origin": "dataset:s3://lake:signals", "destination": f"job:jobs:{WHOLE}"}
    assert edge in found["edges"]
    assert sorted(d["name"] for d in client.get(job_url(WHOLE))["inputs"]) == [TABLE, "signals"]
    (shown,) = client.get("/api/v2/connectors")["connectors"]
    assert {"namespace": "s3://lake", "name": "signals"} in shown["inputs"]
    proof = client.get("/api/v2/evidence", **edge)
    assert proof["current"] is True
    around = client.get("/api/v1/lineage", nodeId=f"job:jobs:{WHOLE}")["graph"]
    assert {n["id"] for n in around if n["type"] == "DATASET"} >= {"dataset:s3://lake:signals"}


def test_a_part_is_shown_until_its_whole_is_there(client: Client) -> None:
    client.post(task(), part_of(WHOLE, 3))
    assert names(client) == [PART]
    assert client.get(job_url(PART))["name"] == PART
    client.post(connector(4))
    assert names(client) == [WHOLE]
    client.post(part_of(None, 9))
    assert names(client) == [WHOLE, PART]
    client.post(part_of(WHOLE, 8))
    assert names(client) == [WHOLE, PART], "what was said earlier does not count any more"


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ([("a", "a")], ["a", "b", "c", "d"]),
        ([("a", "b"), ("b", "a")], ["a", "b", "c", "d"]),
        ([("a", "b"), ("b", "c"), ("c", "a"), ("d", "a")], ["a", "b", "c", "d"]),
        ([("a", "b"), ("b", "c"), ("c", "d")], ["d"]),
        ([("a", "b"), ("b", "nobody")], ["b", "c", "d"]),
    ],
    ids=["itself", "each-other", "ring", "chain", "open-chain"],
)
def test_rings_hide_nothing_and_chains_lead_to_their_end(
    client: Client, said: list[tuple[str, str]], shown: list[str]
) -> None:
    jobs = [event("START", n, run=n, job=name) for n, name in enumerate("abcd", 1)]
    client.post(*jobs, *(part_of(whole, 9, job) for job, whole in said))
    assert names(client) == shown
    for name in "abcd":
        client.get(job_url(name))


def test_a_chain_too_long_to_follow_is_shown(store: Store) -> None:
    rows = [part_of(f"j{n + 1}", 9, f"j{n}") for n in range(30)]
    send(store, event("START", 1, job="j30"), *rows)
    sql = "SELECT name FROM job WHERE hidden = 0"
    shown = {row[0] for row in store.connection.all(sql)}
    assert "j30" in shown
    assert {"j22", "j29"}.isdisjoint(shown)
    assert {"j0", "j21"} <= shown


def send(store: Store, *events: dict[str, Any]) -> None:
    for receipt in store.append([json.dumps(e).encode() for e in events]):
        assert receipt.error is None


def test_a_whole_is_deleted_with_its_parts_until_they_are_heard_of(client: Client) -> None:
    client.post(connector(), task(1, 1), task(2, 2), part_of(WHOLE, 3), part_of(WHOLE, 3, OTHER))
    assert client.call("DELETE", job_url(WHOLE)).status_code == 200
    assert names(client) == []
    assert client.call("GET", job_url(PART)).status_code == 404
    client.post(event("RUNNING", 30, run=11, job=PART))
    assert names(client) == [PART]
    client.post(event("RUNNING", 31, run=1, job=WHOLE))
    assert names(client) == [WHOLE]
    assert client.get(job_url(PART))["name"] == WHOLE
    assert client.call("DELETE", "/api/v1/namespaces/jobs").status_code == 200
    client.post(event("RUNNING", 40, run=11, job=PART))
    assert names(client) == [PART]
    assert rebuild(client.store) > 0
    assert names(client) == [PART]


def test_a_whole_that_is_purged_leaves_its_parts_as_jobs(client: Client) -> None:
    client.post(connector(), task(1), part_of(WHOLE, 3))
    purge(client.store, PurgeTarget("job", "jobs", WHOLE))
    assert names(client) == [PART]
    rebuild(client.store)
    assert names(client) == [PART]
    client.post(event("START", 60, run=2, job=WHOLE))
    assert names(client) == [WHOLE, PART], "what the part said went with the whole"


def test_listeners_hear_of_the_whole_only(client: Client) -> None:
    client.post(connector(), part_of(WHOLE, 1))
    start = client.get("/api/v2/health")["events"]
    client.post(task(2, 1, "signals"), event("COMPLETE", 9, run=11, job=PART))
    client.post(event("COMPLETE", 10, run=1, job=WHOLE))
    until(lambda: client.app.live._kept and client.app.live._kept[-1].id == start + 3)
    count = sum(message.id > start for message in client.app.live._kept)
    heard = listen(client.app, start, count)
    assert {m["data"]["name"] for m in heard if m["event"] != "dataset"} == {WHOLE}
    assert [m["event"] for m in heard].count("edges") == 1
    client.post(part_of(None, 20))
    until(lambda: client.app.live._kept[-1].id == start + 4)
    (last,) = listen(client.app, start + 3, 1)
    assert (last["event"], last["data"]["name"]) == ("job", PART)


def test_a_silent_run_of_a_part_is_closed(client: Client) -> None:
    beat = facet(processingType="STREAMING", integration="DEBEZIUM",
                 emissionPattern={"eventTrigger": "PERIODIC", "windowDuration": 60})  # fmt: skip
    client.post(connector(), event("START", 1, run=11, job=PART, job_facets={"jobType": beat}))
    client.post(part_of(WHOLE, 3))
    long_ago = int(datetime(2026, 1, 1, tzinfo=timezone.utc).timestamp())
    closed = close_stale(client.store, (long_ago + 3_600) * 1_000_000)
    assert [str(run) for run in closed] == [run_id(11)]
    assert client.get(job_url(PART, "runs"))["runs"][0]["state"] == "ABORTED"
    assert names(client) == [WHOLE]


moments = st.integers(1, 6)
jobs = st.sampled_from(["a", "b", "c", "d"])
unfit: list[dict[str, Any]] = [{}, {"namespace": "jobs"}, {"namespace": "jobs", "name": 7}]


@st.composite
def said(draw: st.DrawFn) -> list[dict[str, Any]]:
    """Runs, and words of what is a part of what: with a run, without one, and unfit ones."""
    made = []
    for _ in range(draw(st.integers(1, 8))):
        job, second = draw(jobs), draw(moments)
        word = part_of(draw(st.none() | jobs), second, job)
        if draw(st.booleans()):
            facets = word["job"]["facets"] if draw(st.booleans()) else None
            made.append(event("START", second, run=ord(job), job=job, job_facets=facets,
                              outputs=[f"{job}_out"]))  # fmt: skip
        else:
            if draw(st.integers(0, 5)) == 0:
                word["job"]["facets"]["headwater_partOf"] = facet(**draw(st.sampled_from(unfit)))
            made.append(word)
    return made


def state(store: Store) -> list[Any]:
    """Every job: whether it is hidden, what it says it is a part of, and what it is shown as."""
    return sorted(
        store.connection.all(
            "SELECT j.name, j.hidden, f.name, w.name FROM job j LEFT JOIN fold f ON f.job = j.id"
            " LEFT JOIN job w ON w.id = f.whole"
        ),
        key=repr,
    )


def edges(store: Store) -> list[Any]:
    """What each job that is shown writes, by name."""
    view = View(store.connection, Bodies(store.packer))
    found = dict(view.all("SELECT id, name FROM job WHERE hidden = 0"))
    written = {(e[0], e[1]) for e in view.graph().of_jobs(found)}
    datasets = view.datasets(number for _, number in written)
    return sorted((found[job], datasets[number].name) for job, number in written)


@examples(60)
@given(st.data(), said())
def test_order_repetition_and_grouping_change_nothing(
    data: st.DataObject, sent: list[dict[str, Any]]
) -> None:
    first, second = in_another_order(data, sent)
    with tempfile.TemporaryDirectory() as folder:
        one, other = (open_store(f"sqlite:///{folder}/{name}.db") for name in "xy")
        for item in sent:
            send(one, item)
        send(other, *first)
        other.forget()
        send(other, *second)
        found, drawn = state(one), edges(one)
        assert (state(other), edges(other)) == (found, drawn)
        ran = {item["job"]["name"] for item in sent if "run" in item}
        assert {name for _, name in drawn} == {f"{job}_out" for job in ran}, "nothing is lost"
        assert any(row[1] == 0 for row in found), "something is always shown"
        rebuild(other)
        assert (state(other), edges(other)) == (found, drawn)
        one.close()
        other.close()


def test_it_survives_rebuild_export_and_import(store: Store, store_url: str) -> None:
    send(store, task(), part_of(WHOLE, 3), connector(), event("COMPLETE", 9, run=11, job=PART))
    before = state(store)
    assert [row[:2] for row in before] == [(WHOLE, 0), (PART, 2)]
    rebuild(store)
    assert state(store) == before
    with tempfile.TemporaryDirectory() as folder:
        copy = open_store(f"sqlite:///{folder}/copy.db")
        copy.append(list(export(store)))
        assert state(copy) == before
        copy.close()


def test_one_server_folds_what_the_other_took_in(
    postgres: Any, launch: Callable[..., Process]
) -> None:
    store = postgres.database()
    one, two = launch(store), launch(store)

    def post(server: Process, sent: dict[str, Any]) -> None:
        response = httpx.post(f"{server.url}/api/v1/lineage", content=json.dumps(sent))
        assert response.status_code == 201, response.text

    def shown(server: Process) -> list[str]:
        found = httpx.get(f"{server.url}/api/v1/jobs").json()["jobs"]
        return sorted(job["name"] for job in found)

    post(one, task(1, 1))
    post(two, part_of(WHOLE, 3))
    post(two, part_of(WHOLE, 3, OTHER))
    assert shown(one) == [PART, OTHER]
    post(one, connector())
    assert shown(two) == shown(one) == [WHOLE]
    post(two, task(2, 2))
    assert shown(two) == shown(one) == [WHOLE]
    deadline = time.monotonic() + 60
    post(one, part_of(None, 30))
    while shown(two) != [WHOLE, PART]:
        assert time.monotonic() < deadline


def test_a_part_that_others_name_as_their_parent_is_shown_as_its_whole(client: Client) -> None:
    named = {"job": {"namespace": "jobs", "name": PART}, "run": {"runId": run_id(11)}}
    facets = {"parent": facet(**named, root=named), "jobDependencies": facet(upstream=[named])}
    child = event("START", 5, run=30, job=f"{WHOLE}.1.child", run_facets=facets)
    client.post(connector(), task(), child)
    url = f"/api/v2/jobs/jobs/{WHOLE}.1.child"
    assert client.get(url)["parent"] == {"namespace": "jobs", "name": PART, "run": run_id(11)}
    client.post(part_of(WHOLE, 6))
    shown = {"namespace": "jobs", "name": WHOLE, "run": run_id(11)}
    assert client.get(url)["parent"] == shown
    for run in (client.get(f"{url}/runs")["runs"][0], client.get(f"/api/v2/runs/{run_id(30)}")):
        assert (run["parent"], run["root"]) == (shown, shown)
        assert run["dependencies"]["upstream"] == [shown]
    (listed,) = client.get(f"/api/v2/jobs/jobs/{WHOLE}")["children"]
    assert listed["name"] == f"{WHOLE}.1.child"
