"""The children of a job are found by the name that they give it, also in a store of an earlier release."""

from __future__ import annotations

import time
from contextlib import closing
from typing import TYPE_CHECKING, Any

from headwater.server.store import open_store
from headwater.server.store.database.schema import UNNAMED_PARENTS
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild
from headwater.server.store.keep.retention import retain

from .making import event, facet, run_id

if TYPE_CHECKING:
    from .conftest import Client


def child(
    second: int, run: int, job: str, parent: str = "app", *, namespace: str = "jobs", of: int = 1
) -> Any:
    named = facet(run={"runId": run_id(of)}, job={"namespace": "jobs", "name": parent})
    made = event("START", second, run=run, job=job, outputs=[job], run_facets={"parent": named})
    made["job"]["namespace"] = namespace
    return made


def children(client: Client) -> list[str]:
    return [one["name"] for one in client.get("/api/v2/jobs/jobs/app")["children"]]


def rows(client: Client) -> list[Any]:
    sql = (
        "SELECT p.namespace, p.name, j.name FROM named_parent p JOIN job j ON j.id = p.job"
        " ORDER BY p.name, j.name"
    )
    return client.store.connection.all(sql)


def test_children_have_any_name_and_namespace(client: Client) -> None:
    far = child(0, 3, "far", namespace="other")
    client.post(child(0, 2, "query"), far, child(0, 4, "moved"))
    client.post(event("START", 5, job="app"), event("START", 6, run=5, job="stranger"))
    # A job whose newest run names another parent is no child any more.
    client.post(child(7, 6, "moved", parent="else", of=7))
    assert children(client) == ["far", "query"]
    assert rows(client) == [
        ("jobs", "app", "far"), ("jobs", "app", "moved"), ("jobs", "app", "query"),
        ("jobs", "else", "moved"),
    ]  # fmt: skip
    before = rows(client)
    rebuild(client.store)
    assert (rows(client), children(client)) == (before, ["far", "query"])


def test_a_name_that_no_job_can_have_is_not_stored(client: Client) -> None:
    client.post(child(0, 2, "query", parent="x" * 100_000), child(1, 3, "other", parent=""))
    assert rows(client) == []


def test_parents_that_an_earlier_release_stored_are_filled_in_once(client: Client) -> None:
    client.post(event("START", 0, job="app"), child(1, 2, "query"), child(1, 3, "action"))
    before, connection = rows(client), client.store.connection

    def as_before() -> None:
        connection.begin()
        connection.run("DELETE FROM named_parent")
        sql = "INSERT INTO setting (name, value) VALUES (?, '1')"
        connection.run(sql, (UNNAMED_PARENTS,))
        connection.commit()

    as_before()
    assert children(client) == []
    with closing(open_store(client.store.database.url)):
        assert rows(client) == before
    assert children(client) == ["action", "query"]
    sql = "SELECT name FROM setting WHERE name = ?"
    assert connection.all(sql, (UNNAMED_PARENTS,)) == []


def test_a_checkpoint_of_an_earlier_release_is_filled_in(client: Client) -> None:
    client.post(event("START", 0, job="app"), child(1, 2, "query"))
    retain(client.store, time.time_ns() // 1000, forwarded=2)
    before, connection = rows(client), client.store.connection
    connection.begin()
    connection.run("DELETE FROM checkpoint_part WHERE name = 'named_parent'")
    connection.commit()
    rebuild(client.store)
    assert rows(client) == before == [("jobs", "app", "query")]


def test_a_purge_takes_the_names_along(client: Client) -> None:
    client.post(event("START", 0, job="app"), child(1, 2, "query"), child(1, 3, "other", "else"))
    purge(client.store, PurgeTarget("job", "jobs", "app"))
    assert rows(client) == [("jobs", "else", "other")]
    purge(client.store, PurgeTarget("job", "jobs", "other"))
    assert client.store.connection.all("SELECT * FROM named_parent") == []
