"""A commit that failed costs the events in it, never those after it."""

from __future__ import annotations

import contextlib
import json
import random
import threading
import time
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import psycopg
import pytest

from headwater.lineage.openlineage.events import Limits
from headwater.server.store import StoreUnavailableError, open_store
from tests.integration.server.conftest import Client
from tests.integration.server.making import columns, dataset, event, facet, schema
from tests.security.attacks import first_quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from headwater.server.store import Store

LIMIT = Limits().name
chance = random.Random(9)


def text(size: int) -> str:
    """Letters that no database can pack into less."""
    return "".join(chance.choices("abcdefghijklmnopqrstuvwxyz0123456789", k=size))


def ordinary(number: int) -> dict[str, Any]:
    out = dataset(f"d{number % 7}", schema=schema("id", f"c{number % 3}"),
                  columnLineage=columns(id=(f"d{(number + 1) % 7}", "id")))  # fmt: skip
    made = event("START", number % 50, job=f"j{number % 5}", inputs=["raw"], outputs=[out])
    made["run"]["runId"] = str(uuid4())
    return made


def sent(client: Client, made: dict[str, Any]) -> int:
    return client.call("POST", "/api/v1/lineage", content=json.dumps(made)).status_code


def go_on(client: Client, count: int = 30) -> None:
    """Every later event is taken in, long enough for each statement to be prepared."""
    assert [sent(client, ordinary(i)) for i in range(count)] == [201] * count


def eventually(condition: Callable[[], bool], seconds: float = 15) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@pytest.fixture
def roomy(postgres: Any) -> Iterator[Client]:
    """A server on PostgreSQL that lets names through which no index can hold."""
    found = Client(open_store(postgres.database(), limits=Limits(name=100_000)))
    yield found
    found.close()


COMMITS = first_quick([4, 0, 3, 30])
"""How many commits came before: psycopg prepares a statement when it is used for the sixth time."""


@pytest.mark.parametrize("before", COMMITS)
def test_names_no_index_can_hold_break_nothing_else(roomy: Client, before: int) -> None:
    go_on(roomy, before)
    for number in range(3):
        made = ordinary(number)
        made["job"]["namespace"] = text(2_800)
        answer = roomy.call("POST", "/api/v1/lineage", content=json.dumps(made))
        assert answer.status_code == 422, answer.text
        assert "PostgreSQL cannot store this" in answer.json()["message"]
    go_on(roomy)
    assert roomy.get("/api/v2/health")["status"] == "ok"


def test_one_unstorable_event_of_a_batch_costs_only_itself(roomy: Client) -> None:
    events = [ordinary(number) for number in range(40)]
    events[17]["job"]["namespace"] = text(2_800)
    lines = "\n".join(map(json.dumps, events))
    answer = roomy.call("POST", "/api/v2/events", content=lines)
    assert answer.status_code == 207
    codes = [result["status"] for result in answer.json()["results"]]
    assert codes == [201] * 17 + [422] + [201] * 22
    go_on(roomy)


@contextlib.contextmanager
def trap(
    url: str, body: str, *, deferred: bool, event: str = "INSERT ON log"
) -> Iterator[psycopg.Connection[Any]]:
    """Have PostgreSQL carry something out with each record of the log, or with another event."""
    with contextlib.closing(psycopg.connect(url, autocommit=True)) as admin:
        admin.execute(
            "CREATE FUNCTION trap() RETURNS trigger LANGUAGE plpgsql AS $$"
            f" BEGIN {body}; RETURN NULL; END $$"
        )
        kind = f"CONSTRAINT TRIGGER trap AFTER {event} DEFERRABLE INITIALLY DEFERRED"
        if not deferred:
            kind = f"TRIGGER trap AFTER {event}"
        admin.execute(f"CREATE {kind} FOR EACH ROW EXECUTE FUNCTION trap()")
        yield admin
        # Committing waits for a writer that is in the middle of its own.
        admin.execute("DROP FUNCTION trap CASCADE")


EVERY_WRITE = "UPDATE ON head"
"""What the server tries by itself after a failure, to see whether it can write again, fires it too."""
FULL = "RAISE EXCEPTION 'no space left on device' USING ERRCODE = '53100'"


@pytest.mark.parametrize("deferred", [False, True], ids=["statement", "commit"])
@pytest.mark.parametrize("before", COMMITS)
def test_a_full_disk_of_postgresql_passes(postgres: Any, deferred: bool, before: int) -> None:
    url = postgres.database()
    client = Client(open_store(url))
    try:
        go_on(client, before)
        with trap(url, FULL, deferred=deferred, event=EVERY_WRITE):
            assert [sent(client, ordinary(i)) for i in range(3)] == [503] * 3
            health = client.call("GET", "/api/v2/health")
            assert health.status_code == 503
            assert health.json()["status"] == "failing"
            assert "no space left" in health.json()["problems"][0]
        go_on(client)
        assert client.get("/api/v2/health")["status"] == "ok"
    finally:
        client.close()


def test_health_recovers_by_itself_once_the_store_can_be_written(postgres: Any) -> None:
    url = postgres.database()
    client = Client(open_store(url))
    try:
        with trap(url, FULL, deferred=True):
            assert sent(client, ordinary(0)) == 503
        eventually(lambda: client.call("GET", "/api/v2/health").status_code == 200)
    finally:
        client.close()


@pytest.mark.parametrize("end", ["pg_cancel_backend", "pg_terminate_backend"])
def test_a_cancelled_writer_goes_on(postgres: Any, end: str) -> None:
    url = postgres.database()
    client = Client(open_store(url))
    sql = (
        f"SELECT {end}(pid) FROM pg_stat_activity WHERE datname = current_database()"
        " AND wait_event = 'PgSleep'"
    )
    answers: list[int] = []
    try:
        go_on(client, 4)
        for number in range(3):
            with trap(url, "PERFORM pg_sleep(20)", deferred=False) as admin:
                made = ordinary(number)
                waiting = threading.Thread(target=lambda m=made: answers.append(sent(client, m)))
                waiting.start()
                eventually(lambda a=admin: bool(a.execute(sql).fetchall()))  # type: ignore[misc]
                waiting.join()
            go_on(client, 10)
        assert answers == [503] * 3
        assert client.get("/api/v2/health")["status"] == "ok"
    finally:
        client.close()


def test_a_failed_change_by_hand_breaks_no_later_one(roomy: Client) -> None:
    go_on(roomy)
    for _ in range(3):
        assert roomy.call("PUT", f"/api/v1/tags/{text(2_900)}", json={}).status_code == 422
        assert roomy.call("PUT", f"/api/v1/namespaces/{text(2_900)}", json={}).status_code == 422
        assert roomy.call("DELETE", "/api/v1/namespaces/x/jobs/nobody").status_code == 404
    assert roomy.call("PUT", "/api/v1/tags/fine", json={}).status_code == 200
    go_on(roomy)


def test_readers_go_on_after_a_query_that_was_cancelled(postgres: Any) -> None:
    store = open_store(postgres.database())

    def cancelled() -> None:
        with store.database.reading() as connection:
            connection.run("SET LOCAL statement_timeout = 20")
            connection.all("SELECT pg_sleep(?)", (5,))

    try:
        for _ in range(10):
            with pytest.raises(StoreUnavailableError, match="canceling"):
                cancelled()
            with store.database.reading() as connection:
                assert connection.all("SELECT count(*) FROM job WHERE id > ?", (0,)) == [(0,)]
    finally:
        store.close()


def named(place: str, size: int) -> tuple[dict[str, Any], str]:
    """An event with a name of so many bytes in one place, and how that place is called."""
    name, made = text(size), ordinary(0)
    made["run"]["runId"] = str(uuid4())
    out = made["outputs"][0]
    if place in ("job.name", "job.namespace"):
        made["job"][place.split(".")[1]] = name
    elif place.startswith("outputs[0].n"):
        out[place.split(".")[1]] = name
    elif place == "outputs[0].facets.symlinks.identifiers[0].name":
        both = {"namespace": text(size), "name": name, "type": "TABLE"}
        if size > LIMIT:
            both["namespace"] = "hive://metastore"
        out["facets"]["symlinks"] = facet(identifiers=[both])
    elif place == "outputs[0].facets.columnLineage.fields.id.inputFields[0].name":
        out["facets"]["columnLineage"] = columns(id=(name, "id"))
    elif place == "outputs[0].facets.lifecycleStateChange.previousIdentifier.name":
        before = {"namespace": "s3://lake", "name": name}
        out["facets"]["lifecycleStateChange"] = facet(
            lifecycleStateChange="RENAME", previousIdentifier=before
        )
    elif place == "outputs[0].facets.dataSource.name":
        out["facets"]["dataSource"] = facet(name=name, uri="postgres://db:5432")
    elif place == "outputs[0].facets.headwater_cluster.clusterId":
        out["facets"]["headwater_cluster"] = facet(clusterId=name)
    elif place == "outputs[0].facets.lineage.inputs[0].name":
        out["facets"]["lineage"] = facet(
            inputs=[{"namespace": "s3://lake", "name": name, "type": "DATASET"}]
        )
    else:
        assert place == "job.facets"
        made["job"]["facets"][name] = facet(x=1)
    return made, place


PLACES = (
    "job.name", "job.namespace", "outputs[0].name", "outputs[0].namespace",
    "outputs[0].facets.symlinks.identifiers[0].name",
    "outputs[0].facets.columnLineage.fields.id.inputFields[0].name",
    "outputs[0].facets.lifecycleStateChange.previousIdentifier.name",
    "outputs[0].facets.dataSource.name",
    "outputs[0].facets.headwater_cluster.clusterId",
    "outputs[0].facets.lineage.inputs[0].name",
    "job.facets",
)  # fmt: skip


def test_every_name_has_one_limit_on_both_stores(client: Client) -> None:
    for place in PLACES:
        made, field = named(place, LIMIT + 1)
        for body in (json.dumps(made, separators=(",", ":")), json.dumps(made)):
            answer = client.call("POST", "/api/v1/lineage", content=body)
            assert answer.status_code == 422, (place, answer.text)
            assert answer.json()["problems"][0]["field"] == field
    assert client.get("/api/v2/health")["events"] == 0
    for place in PLACES:
        made, _ = named(place, LIMIT)
        answer = client.call("POST", "/api/v1/lineage", content=json.dumps(made))
        assert answer.status_code == 201, (place, answer.text)


def test_a_name_is_measured_in_bytes(client: Client) -> None:
    for name, code in (("é" * (LIMIT // 2), 201), ("é" * (LIMIT // 2 + 1), 422)):
        made = event("START", 0, job=name)
        body = json.dumps(made, ensure_ascii=False, separators=(",", ":")).encode()
        assert client.call("POST", "/api/v1/lineage", content=body).status_code == code


def test_names_given_by_hand_have_the_same_limit(client: Client) -> None:
    client.post(event("START", 0, outputs=["d"]))
    for size, codes in ((LIMIT, {200, 201}), (LIMIT + 1, {422})):
        job, tag = text(size), text(size)
        calls: list[tuple[str, str, Any]] = [
            ("PUT", f"/api/v1/namespaces/{text(size)}", {}),
            ("PUT", f"/api/v1/sources/{text(size)}", {"type": "x", "connectionUrl": "y"}),
            ("PUT", f"/api/v1/tags/{tag}", {}),
            ("PUT", f"/api/v1/namespaces/x/jobs/{job}", {"type": "BATCH"}),
            ("PUT", f"/api/v1/namespaces/x/datasets/{job}", {"fields": []}),
            ("POST", f"/api/v1/namespaces/jobs/jobs/load/tags/{text(size)}", None),
            ("POST", f"/api/v1/namespaces/s3%3A%2F%2Flake/datasets/d/fields/{text(size)}/tags/{tag}",
             None),
            ("POST", "/api/v2/aliases",
             {"alias": {"namespace": text(size), "name": text(size)},
              "dataset": {"namespace": "s3://lake", "name": "d"}}),
        ]  # fmt: skip
        for method, path, body in calls:
            answer = client.call(method, path, json=body)
            allowed = codes | {404} if "/fields/" in path else codes  # no dataset has such a field
            assert answer.status_code in allowed, (method, path[:60], answer.text)


def test_samples_that_cannot_be_kept_are_refused_one_by_one(client: Client) -> None:
    client.post(event("START", 0))
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())
    sample = {"run": str(uuid4()), "time": now, "direction": "output", "recordsPerSecond": 1.0}
    fine = {**sample, "dataset": {"namespace": text(LIMIT), "name": text(LIMIT)}}
    bad = [
        {**sample, "dataset": {"namespace": "x", "name": text(LIMIT + 1)}},
        {**sample, "dataset": {"namespace": "x", "name": "y"}, "lag": 10**30},
        {**sample, "dataset": {"namespace": "x", "name": "y"}, "time": "9000-01-01T00:00:00Z"},
    ]
    answer = client.call("POST", "/api/v2/flow", json=[*bad, fine])
    assert answer.status_code == 202
    assert [problem["sample"] for problem in answer.json()["refused"]] == [0, 1, 2]
    eventually(lambda: len(client.get("/api/v2/flow", run=sample["run"])["flow"]) == 1)


def test_a_rebuild_keeps_names_from_before_the_limit(store: Store) -> None:
    from headwater.server.store.keep.rebuild import rebuild

    older = open_store(store.database.url, limits=Limits(name=4_096))
    made = event("START", 0, job="x" * 2_000, outputs=["d"])
    (receipt,) = older.append([json.dumps(made).encode()])
    assert receipt.seq == 1
    older.close()
    assert rebuild(store) == 1
    assert store.connection.all("SELECT name FROM job") == [("x" * 2_000,)]
    (receipt,) = store.append([json.dumps({**made, "eventTime": "2026-01-02T00:00:00Z"}).encode()])
    assert receipt.error is not None
