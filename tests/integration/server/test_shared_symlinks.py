"""Two datasets that declare one symlink are one, or a table that moved; in any order of events."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import rebuild
from tests.properties import orders

from .making import at, dataset, event, facet

if TYPE_CHECKING:
    from pathlib import Path

    from .conftest import Client

HIVE = {"namespace": "hive://meta:9083", "name": "default.orders", "type": "TABLE"}
OLD, NEW = "default.db/orders", "orders"


def linked(name: str, *more: dict[str, str]) -> dict[str, Any]:
    return dataset(name, symlinks=facet(identifiers=[HIVE, *more]))


def sink(second: int, name: str = OLD) -> dict[str, Any]:
    """A connector that writes the table where it is planned to lie."""
    return event("RUNNING", second, run=1, job="sink", inputs=["topic"], outputs=[linked(name)])


def stream(second: int, name: str = NEW) -> dict[str, Any]:
    """A stream that reads the table where it lies."""
    return event("RUNNING", second, run=2, job="stream", inputs=[linked(name)], outputs=["sums"])


def by_name(second: int) -> dict[str, Any]:
    named = dataset(HIVE["name"], HIVE["namespace"])
    return event("RUNNING", second, run=3, job="query", inputs=[named])


def copy(second: int) -> dict[str, Any]:
    return event("RUNNING", second, run=4, job="copy", inputs=[linked(OLD)], outputs=[linked(NEW)])


def page(client: Client, name: str, namespace: str = "s3://lake") -> Any:
    return client.get(f"/api/v2/datasets/{quote(namespace, safe='')}/{quote(name, safe='')}")


def jobs(found: Any) -> tuple[list[str], list[str]]:
    return tuple(sorted(job["name"] for job in found[side]) for side in ("producers", "consumers"))  # type: ignore[return-value]


def test_reported_at_the_same_time_they_are_one(client: Client) -> None:
    client.post(sink(0), stream(10), sink(20), by_name(30))
    for name, space in ((OLD, "s3://lake"), (NEW, "s3://lake"), (HIVE["name"], HIVE["namespace"])):
        found = page(client, name, space)
        assert found["name"] == OLD
        assert jobs(found) == (["sink"], ["query", "stream"])
        assert found["moves"] == []


def test_what_sessions_of_flink_call_a_topic_joins_no_topics(client: Client) -> None:
    """Every job may call its topic `orders`, in a catalog that lives as long as its session."""
    called = {"name": "default_catalog.default_database.orders", "type": "TABLE"}
    space = "kafka://broker:9092"

    def topic(name: str) -> dict[str, Any]:
        return dataset(name, space, symlinks=facet(identifiers=[{"namespace": space, **called}]))

    def job(second: int, run: int, name: str) -> dict[str, Any]:
        return event("RUNNING", second, run=run, job=f"read_{name}", inputs=[topic(name)])

    client.post(job(0, 1, "eu.orders"), job(10, 2, "us.orders"), job(20, 1, "eu.orders"))
    for name in ("eu.orders", "us.orders"):
        found = page(client, name, space)
        assert (found["name"], found["moves"]) == (name, [])
        assert jobs(found) == ([], [f"read_{name}"])


def test_one_after_the_other_it_is_a_move_with_its_time(client: Client) -> None:
    client.post(sink(0), sink(10), stream(20), stream(30), by_name(40))
    old, new = page(client, OLD), page(client, NEW)
    assert (old["name"], new["name"]) == (OLD, NEW)
    assert jobs(old) == (["sink"], [])
    assert jobs(new) == ([], ["query", "stream"])
    moved = {"namespace": "s3://lake", "name": NEW}, {"namespace": "s3://lake", "name": OLD}
    when = at(20).replace("Z", ".000Z")
    (to,), (origin,) = old["moves"], new["moves"]
    assert (to["to"], origin["from"]) == moved
    assert to["at"][:19] == origin["at"][:19] == when[:19]


def test_a_job_that_copies_one_into_the_other_keeps_them_apart(client: Client) -> None:
    client.post(sink(0), stream(10), sink(20))
    assert page(client, NEW)["name"] == OLD
    client.post(copy(30), by_name(40))
    old, new = page(client, OLD), page(client, NEW)
    assert jobs(old) == (["sink"], ["copy"])
    assert jobs(new) == (["copy"], ["query", "stream"])
    assert [list(move) for move in (*old["moves"], *new["moves"])] == [["to", "at"], ["from", "at"]]


@pytest.mark.parametrize(("origin", "target"), [(OLD, NEW), (NEW, OLD)])
def test_what_a_job_writes_from_the_other_is_the_later_one(
    client: Client, origin: str, target: str
) -> None:
    """Both declare the symlink with the same event, as a table that is made anew elsewhere does."""
    ends: dict[str, Any] = {"inputs": [linked(origin)], "outputs": [linked(target)]}
    client.post(event("START", 0, job="anew", **ends), event("COMPLETE", 5, job="anew", **ends))
    assert "from" in page(client, target)["moves"][0]
    assert "to" in page(client, origin)["moves"][0]
    assert page(client, HIVE["name"], HIVE["namespace"])["name"] == target


def test_a_symlink_in_a_namespace_of_its_own_names_the_dataset(client: Client) -> None:
    client.post(sink(0))
    assert page(client, HIVE["name"], HIVE["namespace"])["name"] == OLD
    space, name = quote(HIVE["namespace"], safe=""), HIVE["name"]
    assert client.get(f"/api/v1/namespaces/{space}/datasets/{name}")["name"] == OLD
    assert client.call("GET", f"/api/v1/namespaces/{space}/datasets/none").status_code == 404


STORIES = {
    "one": [sink(0), stream(10), sink(20), by_name(30)],
    "moved": [sink(0), sink(5), stream(10), by_name(30)],
    "copied": [sink(0), stream(10), sink(20), copy(15)],
    "only read": [stream(0, OLD), stream(240, OLD), stream(120), stream(180), by_name(30)],
    "only read within a minute": [stream(0, OLD), stream(50, OLD), stream(30), by_name(55)],
    "three": [sink(0), stream(10), sink(20), sink(12, "third"), by_name(1)],
}


@pytest.mark.parametrize("story", STORIES)
def test_no_order_of_events_changes_it(story: str, tmp_path: Path) -> None:
    def drawn(number: int, events: list[dict[str, Any]], one_by_one: bool) -> Any:
        store = open_store(f"sqlite:///{tmp_path}/{number}.db")
        bodies = [json.dumps(one).encode() for one in events]
        for group in [[body] for body in bodies] if one_by_one else [bodies]:
            assert not [receipt.error for receipt in store.append(group) if receipt.error]
            if one_by_one:
                store.session.forget()
        sql = (
            "SELECT n.name, d.name, r.name FROM dataset d JOIN dataset r ON r.id = d.root"
            " JOIN namespace n ON n.id = d.namespace"
        )
        aliases = (
            "SELECT a.namespace, a.name, r.name FROM alias a JOIN dataset d ON d.id = a.dataset"
            " JOIN dataset r ON r.id = d.root"
        )
        found = sorted(store.connection.all(sql)), sorted(store.connection.all(aliases))
        store.close()
        return found

    events = STORIES[story]
    wanted = drawn(0, events, one_by_one=True)
    for number, shuffled in enumerate(orders(events, 1 if len(events) < 5 else 7), 1):
        assert drawn(number, list(shuffled), one_by_one=bool(number % 2)) == wanted


def test_after_a_rebuild_it_is_the_same(client: Client) -> None:
    client.post(*STORIES["copied"], by_name(40))
    before = [page(client, name) for name in (OLD, NEW)]
    rebuild(client.store)
    assert [page(client, name) for name in (OLD, NEW)] == before
