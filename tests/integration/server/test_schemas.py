"""A dataset has one schema and a history of what really changed, whoever reports in what order."""

from __future__ import annotations

import json
import tempfile
import time
from itertools import permutations
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage.schema import read_fields
from headwater.lineage.schema.claims import types
from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import rebuild
from headwater.server.store.keep.retention import retain
from headwater.server.store.read.timeline import members, schemas
from headwater.server.store.view import Bodies, View
from tests.properties import examples, in_another_order, orders

from .conftest import Client, dataset_url
from .making import P, at, dataset, event, facet

if TYPE_CHECKING:
    from headwater.server.store import Store

STREAM = {"jobType": facet(processingType="STREAMING", integration="TEST")}
KAFKA = "kafka://broker:9092"


def fields(text: str) -> dict[str, Any]:
    """`id int, name string` as a schema facet."""
    pairs = [item.split() for item in text.split(", ")]
    return facet(fields=[{"name": name, "type": kind} for name, kind in pairs])


def topic(text: str, name: str = "orders", **facets: Any) -> dict[str, Any]:
    return dataset(name, KAFKA, schema=fields(text), **facets)


def source(subject: str, version: int = 1, **more: Any) -> dict[str, Any]:
    return facet(kind="registry", subject=subject, version=version, **more)


def table(text: str, uuid: str, sequence: int) -> dict[str, Any]:
    """A dataset whose schema a catalog answered."""
    asked = facet(kind="catalog", subject=uuid, version=0, sequence=sequence)
    return dataset("t", schema=fields(text), headwater_schemaSource=asked)


def change(kind: str) -> dict[str, Any]:
    return facet(lifecycleStateChange=kind)


def static(second: int, **parts: Any) -> dict[str, Any]:
    """A dataset event, or a job event."""
    spec = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent"
    return {"eventTime": at(second), "producer": P, "schemaURL": spec, **parts}


def beat(second: int, job: str, run: int, **sides: Any) -> dict[str, Any]:
    return event("RUNNING", second, job=job, run=run, job_facets=STREAM, **sides)


def send(store: Store, *events: dict[str, Any]) -> None:
    for one in store.append([json.dumps(e).encode() for e in events]):
        assert one.error is None


def told(store: Store, name: str, namespace: str = "s3://lake") -> list[tuple[str, str]]:
    """The history of a dataset, the oldest first, and last the schema that its row has now."""
    view = View(store.connection, Bodies(store.packer))
    found = view.dataset(namespace, name)
    if found is None:
        return []
    rows = schemas(view, members(view, found.root), None, 100)[::-1]
    now = found.state.facets.get("schema", [0])[0]
    bodies = view.bodies([*(facet for _, facet in rows), now])
    said = [(stamp(t), shown(bodies[f])) for t, f in rows]
    assert [text for _, text in said[-1:]] == ([shown(bodies[now])] if now else [])
    return said


def stamp(micros: int) -> str:
    return time.strftime("%M:%S", time.gmtime(micros // 1_000_000))


def shown(body: bytes) -> str:
    return ", ".join(f"{n} {t}" for n, t in sorted(types(read_fields(body)).items()))


def test_a_topic_that_three_producers_report_has_one_schema(client: Client) -> None:
    for n in range(0, 60, 15):
        client.post(
            beat(n, "connector", 1, outputs=[topic("id long, price double, key string")]),
            beat(n + 1, "stream", 2, inputs=[topic("id int, price double")]),
            beat(n + 2, "sink", 3, inputs=[topic("id long, price double, key string")]),
        )
    assert told(client.store, "orders", KAFKA) == [("00:00", "id long, key string, price double")]
    assert not [c for c in client.get("/api/v2/overview")["changes"] if c["change"] == "schema"]
    path = "/api/v2/datasets/kafka%3A%2F%2Fbroker%3A9092/orders/history"
    assert len(client.get(path)["versions"]) == 1


def test_every_question_follows_the_schema_of_a_topic_that_three_producers_report(
    client: Client,
) -> None:
    now, page = time.time(), "/api/v2/datasets/kafka%3A%2F%2Fbroker%3A9092/orders"
    text = "id long, price double, key string"
    node = "dataset:kafka://broker:9092:orders"

    def ago(seconds: int) -> str:
        return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(now - seconds))

    def report(seconds: int, whole: str, read: str) -> None:
        sides: list[tuple[str, dict[str, Any]]] = [
            ("connector", {"outputs": [topic(whole)]}),
            ("stream", {"inputs": [topic(read)], "outputs": ["sums"]}),
            ("sink", {"inputs": [topic(whole)], "outputs": ["landing"]}),
        ]
        for number, (job, io) in enumerate(sides):
            client.post({**beat(0, job, number, **io), "eventTime": ago(seconds - number)})

    def differences(**around: str) -> list[tuple[str, list[str]]]:
        found = client.get("/api/v2/graph/diff", **{"from": ago(500)}, **around)
        return [(one["dataset"], one["changes"]) for one in found["schemas"]]

    def impact(schema: str) -> list[str]:
        body = {"node": node, "schema": fields(schema)["fields"], "part": "value"}
        return [one["text"] for one in client.call("POST", "/api/v2/impact", json=body).json()["changes"]]  # fmt: skip

    def why() -> tuple[list[Any], list[str]]:
        found = client.get("/api/v2/datasets/s3%3A%2F%2Flake/sums/why")
        assert found["verdict"] == "live"
        return found["causes"], [one["node"] for one in found["recent"]]

    def written() -> tuple[str, str]:
        found = client.get(f"{page}/freshness")
        return found["verdict"], found["lastWrittenAt"]

    for seconds in (600, 450, 300):
        report(seconds, text, "id int, price double")
    assert why() == ([], [])
    assert differences() == differences(node=node) == []
    assert impact("id long, price double") == []
    assert impact("id int, price double") == ["id becomes int"]
    assert written() == ("live", ago(300))

    report(150, "id long, key string", "id int, price double")
    assert why() == ([], [node])
    gone = [(node, ["price was removed (it was double)"])]
    assert differences() == differences(node=node) == gone
    assert impact("id long") == []
    assert written() == ("live", ago(150))


def test_a_job_that_reports_no_key_says_nothing_of_it(store: Store) -> None:
    """Its newer claim replaces that on the value; what it claimed of the key stays, whatever goes."""
    send(
        store,
        beat(0, "writer", 1, outputs=[topic("key string, id int")]),
        beat(5, "writer", 1, outputs=[topic("id int, a int")]),
        beat(9, "writer", 2, outputs=[topic("id int, b int")]),
    )
    expected = [
        ("00:00", "id int, key string"),
        ("00:05", "a int, id int, key string"),
        ("00:09", "b int, id int, key string"),
    ]
    assert told(store, "orders", KAFKA) == expected
    retain(store, time.time_ns() // 1000)
    rows = store.connection.all("SELECT parts, count(*) FROM claim GROUP BY parts ORDER BY parts")
    assert rows == [(1, 1), (3, 1)], "the latest of each part"
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    send(store, {**beat(0, "writer", 2, outputs=[topic("id int")]), "eventTime": later})
    assert told(store, "orders", KAFKA)[-1][1] == "id int, key string"
    rebuild(store)
    assert told(store, "orders", KAFKA)[-1][1] == "id int, key string"


def test_a_schema_that_is_declared_is_whole(store: Store) -> None:
    """A schema given by hand may leave the key out that it had; a job may still know one."""
    for second, text in ((0, "key string, id int"), (1, "id int")):
        send(store, static(second, dataset=topic(text)))
    assert told(store, "orders", KAFKA)[-1] == ("00:01", "id int")
    send(store, beat(5, "writer", 3, outputs=[topic("key string, other int")]))
    assert told(store, "orders", KAFKA)[-1][1] == "id int, key string"


def test_the_registry_decides_by_version_on_inputs_and_outputs_alike(client: Client) -> None:
    one = topic("id long, key string", headwater_schemaSource=source("orders-value", part="value"))
    two = topic("id long, note string", headwater_schemaSource=source("orders-value", 2))
    client.post(
        beat(0, "stream", 1, inputs=[topic("id int")]),
        beat(5, "connector", 2, outputs=[one]),
        beat(10, "sink", 3, inputs=[two]),
        beat(20, "connector", 2, outputs=[one]),
    )
    assert told(client.store, "orders", KAFKA) == [
        ("00:00", "id long, key string"),
        ("00:10", "id long, key string, note string"),
    ]


def test_several_subjects_are_a_union_and_each_field_is_marked(client: Client) -> None:
    origin = source(
        "Order", fields=["id", "price"], others=[source("Refund", 4, fields=["id", "why"])]
    )
    client.post(
        beat(0, "connector", 1, outputs=[topic("id long, price double, why string, key string", headwater_schemaSource=origin)]),
        beat(5, "sink", 2, inputs=[topic("id long, why string", headwater_schemaSource=source("Refund", 4))]),
    )  # fmt: skip
    page = client.get("/api/v2/datasets/kafka%3A%2F%2Fbroker%3A9092/orders")
    marked = {c["name"]: c.get("subjects") for c in page["columns"]}
    assert marked == {
        "id": ["registry Order", "registry Refund"],
        "price": ["registry Order"],
        "why": ["registry Refund"],
        "key": None,
    }


def test_what_a_catalog_answered_ends_with_the_table(store: Store) -> None:
    def batch(second: int, number: int, **facets: Any) -> None:
        out = dataset("t", **facets)
        for more, state in ((0, "START"), (1, "COMPLETE")):
            sent = event(state, second + more, job=f"job{number}", run=number, outputs=[out])
            send(store, sent)

    send(store, beat(0, "stream", 1, outputs=[table("id int, was int", "11-aa", 5)]))
    send(store, beat(5, "stream", 1, outputs=[table("id int, was int", "11-aa", 5)]))
    batch(7, 2, lifecycleStateChange=change("OVERWRITE"), schema=fields("id int"))
    assert told(store, "t") == [("00:00", "id int, was int")]
    # Made anew, its schemas are counted from the first one on.
    send(store, beat(10, "reader", 3, inputs=[table("id int", "22-bb", 1)]))
    send(store, beat(12, "stream", 1, outputs=[table("id int, was int", "11-aa", 5)]))
    expected = [("00:00", "id int, was int"), ("00:10", "id int")]
    assert told(store, "t") == expected
    batch(20, 4, lifecycleStateChange=change("DROP"))
    batch(30, 5, lifecycleStateChange=change("CREATE"), schema=fields("plain string"))
    assert told(store, "t") == [*expected, ("00:30", "plain string")]
    before = told(store, "t")
    rebuild(store)
    assert told(store, "t") == before


def test_a_table_that_was_dropped_stays_so_after_retention(store: Store) -> None:
    """Also where the table that came after it was altered since."""
    send(store, beat(0, "agent", 1, outputs=[table("a int", "uuid-1", 1)]))
    drop = dataset("t", lifecycleStateChange=change("DROP"))
    send(store, event("COMPLETE", 10, run=2, job="drop", outputs=[drop]))
    send(store, beat(12, "writer", 3, outputs=[dataset("t", schema=fields("x int"))]))
    alter = dataset("t", schema=fields("x int, y int"), lifecycleStateChange=change("ALTER"))
    send(store, event("COMPLETE", 20, run=4, job="alter", outputs=[alter]))
    before = told(store, "t")
    retain(store, time.time_ns() // 1000)
    later = beat(0, "writer", 3, outputs=[dataset("t", schema=fields("x int, y int, z int"))])
    now = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    send(store, {**later, "eventTime": now})
    assert told(store, "t")[:-1] == before
    assert told(store, "t")[-1][1] == "x int, y int, z int"


def test_the_schema_of_now_is_in_the_history_where_its_claims_are_older_than_retention(
    store: Store,
) -> None:
    link = facet(identifiers=[{"namespace": "hive://m", "name": "db.t", "type": "TABLE"}])
    send(store, beat(0, "one", 1, outputs=[dataset("t", schema=fields("a int"))]))
    send(store, beat(5, "two", 2, outputs=[dataset("db.t", "hive://m", schema=fields("b int"))]))
    send(store, beat(9, "one", 1, outputs=[dataset("u", schema=fields("a int"))]))
    kept = int(time.time() * 1_000_000)
    retain(store, kept)
    send(store, beat(7, "late", 3, outputs=[dataset("u", schema=fields("b int"))]))
    send(store, beat(20, "linker", 4, inputs=[dataset("t", symlinks=link)]))
    since = time.strftime("%M:%S", time.gmtime(kept / 1_000_000))
    assert told(store, "u") == [("00:09", "a int"), (since, "a int, b int")]
    assert told(store, "t") == [("00:00", "a int"), ("00:05", "b int"), (since, "a int, b int")]
    assert told(store, "db.t", "hive://m") == told(store, "t")
    rebuild(store)
    assert told(store, "u") == [("00:09", "a int"), (since, "a int, b int")]


def test_a_dataset_that_was_written_after_a_drop_is_there_in_any_order(store: Store) -> None:
    for number, order in enumerate(orders(range(3))):
        name = f"t{number}"
        drop = dataset(name, lifecycleStateChange=change("DROP"))
        events = [
            event("COMPLETE", 5, run=10 * number + 1, job="drop", outputs=[drop]),
            event("COMPLETE", 7, run=10 * number + 2, job="drop", outputs=[drop]),
            event("COMPLETE", 9, run=10 * number + 3, outputs=[name]),
        ]
        for place in order:
            send(store, events[place])
        found = View(store.connection, Bodies(store.packer)).dataset("s3://lake", name)
        assert found is not None
        assert (found.state.lifecycle, found.state.gone) == ("", False)


def test_only_a_new_version_is_news(store: Store) -> None:
    news: list[dict[str, Any]] = []
    store.on_change = lambda _, changes: news.extend(changes)

    def told_of(*events: dict[str, Any]) -> int:
        news.clear()
        send(store, *events)
        return len([one for one in news if one["change"] == "schema"])

    assert told_of(beat(0, "reader", 1, inputs=[topic("id int")])) == 0
    assert told_of(beat(5, "writer", 2, outputs=[topic("id long, key int")])) == 0
    assert told_of(beat(9, "reader", 1, inputs=[topic("id int, x int")])) == 0
    assert told_of(beat(15, "writer", 2, outputs=[topic("id long, more int, key int")])) == 1
    assert told_of(beat(25, "writer", 2, outputs=[topic("id long, more int, key int")])) == 0


def test_a_batch_counts_when_it_completes(store: Store) -> None:
    def run(number: int, end: str, text: str) -> None:
        out = dataset("t", schema=fields(text))
        send(store, event("START", number * 10, run=number, outputs=[out]))
        send(store, event(end, number * 10 + 5, run=number))

    run(1, "COMPLETE", "id int")
    run(2, "FAIL", "id int, broken int")
    assert told(store, "t") == [("00:10", "id int")]
    run(3, "COMPLETE", "id int, more int")
    assert told(store, "t") == [("00:10", "id int"), ("00:35", "id int, more int")]


def test_overwriting_takes_the_place_of_what_another_job_wrote(store: Store) -> None:
    def run(number: int, job: str, text: str, **facets: Any) -> None:
        out = dataset("t", schema=fields(text), **facets)
        for second, state in ((0, "START"), (5, "COMPLETE")):
            send(store, event(state, number * 10 + second, run=number, job=job, outputs=[out]))

    run(1, "first", "a int")
    run(2, "second", "b int")
    run(3, "third", "c int", lifecycleStateChange=change("OVERWRITE"))
    run(4, "first", "a int", lifecycleStateChange=change("OVERWRITE"))
    assert [text for _, text in told(store, "t")] == ["a int", "a int, b int", "c int", "a int"]


def test_jobs_that_each_overwrite_a_partition_add_up(store: Store) -> None:
    def run(number: int, job: str, text: str, **own: Any) -> None:
        out = dataset("t", schema=fields(text), lifecycleStateChange=change("OVERWRITE"))
        if own:
            out["outputFacets"] = {"headwater_overwrite": facet(**own)}
        for second, state in ((0, "START"), (5, "COMPLETE")):
            send(store, event(state, number * 10 + second, run=number, job=job, outputs=[out]))

    for number in range(0, 6, 2):
        run(1 + number, "europe", "a int, eu int", partial=True)
        run(2 + number, "states", "a int, us int", partial=True)
    expected = ["a int, eu int", "a int, eu int, us int"]
    assert [text for _, text in told(store, "t")] == expected
    run(7, "whole", "a int", partial=False)
    run(8, "europe", "a int, eu int", partial=True)
    expected += ["a int", "a int, eu int"]
    assert [text for _, text in told(store, "t")] == expected
    # Other producers do not say how much they replaced: all of it.
    run(9, "other", "b int")
    expected += ["b int"]
    assert [text for _, text in told(store, "t")] == expected
    rebuild(store)
    assert [text for _, text in told(store, "t")] == expected


def test_a_job_event_and_a_dataset_event_have_their_ranks(store: Store) -> None:
    job = {"namespace": "jobs", "name": "load"}
    send(store, static(0, job=job, outputs=[dataset("t", schema=fields("a int"))]))
    send(store, beat(5, "load", 1, outputs=[dataset("t", schema=fields("a int, b int"))]))
    send(store, static(6, job=job, outputs=[dataset("t", schema=fields("z int"))]))
    assert told(store, "t") == [("00:00", "a int, b int")]
    send(store, static(9, dataset=dataset("t", schema=fields("c int"))))
    assert told(store, "t") == [("00:00", "c int")]


def test_what_is_put_outranks_what_a_run_writes_and_not_a_registry(client: Client) -> None:
    path, text = dataset_url("orders", namespace=KAFKA), "id long, note string"
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 5))

    def put(text: str) -> None:
        body = {"type": "STREAM", "sourceName": "kafka", "fields": fields(text)["fields"]}
        answer = client.call("PUT", path, json=body)
        assert answer.status_code == 200, answer.text
        assert ", ".join(f"{f['name']} {f['type']}" for f in answer.json()["fields"]) == text

    client.post(beat(0, "writer", 1, outputs=[topic("id int, old int")]))
    put(text)
    client.post(
        beat(9, "writer", 1, outputs=[topic("id int, late int")]),
        {**beat(0, "writer", 1, outputs=[topic("id int, more int")]), "eventTime": later},
    )
    # What a run had said last before is corrected, not changed.
    history = ["id int, old int", text]
    assert [one for _, one in told(client.store, "orders", KAFKA)] == history
    assert [f["name"] for f in client.get(path)["fields"]] == ["id", "note"]
    # What was put is replaced by what is put next, and by a registry that was asked.
    put("id long")
    history += ["id long"]
    assert [one for _, one in told(client.store, "orders", KAFKA)] == history
    rebuild(client.store)
    assert [one for _, one in told(client.store, "orders", KAFKA)] == history
    asked = topic("id long, price double", headwater_schemaSource=source("orders-value"))
    client.post({**beat(0, "reader", 2, inputs=[asked]), "eventTime": later})
    assert [f["name"] for f in client.get(path)["fields"]] == ["id", "price"]


def test_what_disagrees_is_a_finding_with_both_schemas(client: Client) -> None:
    client.post(
        beat(0, "one", 1, outputs=[topic("id int, a int")]),
        beat(5, "two", 2, outputs=[topic("id long, a int")]),
        beat(6, "two", 2, outputs=[topic("id long, a int")]),
    )
    assert told(client.store, "orders", KAFKA) == [("00:00", "a int, id int")]
    page = client.get("/api/v2/datasets/kafka%3A%2F%2Fbroker%3A9092/orders")
    (found,) = page["findings"]
    assert (found["kind"], found["since"], found["fields"]) == (
        "type",
        "2026-01-01T00:00:05Z",
        ["id"],
    )
    assert [side["job"]["name"] for side in (found["one"], found["other"])] == ["one", "two"]
    assert [side["fields"][0]["type"] for side in (found["one"], found["other"])] == ["int", "long"]


def test_what_a_job_concluded_before_it_could_ask_is_no_disagreement(client: Client) -> None:
    page = "/api/v2/datasets/s3%3A%2F%2Flake/t"
    client.post(
        beat(0, "sink", 1, outputs=[dataset("t", schema=fields("price decimal(10,2)"))]),
        beat(5, "sink", 1, outputs=[table("price decimal(38,2)", "table-1", 1)]),
    )
    assert client.get(page)["findings"] == []
    # Another job that goes on to report something else does disagree, and so does this one if it does again.
    client.post(beat(9, "other", 2, outputs=[dataset("t", schema=fields("price text"))]))
    (found,) = client.get(page)["findings"]
    assert (found["kind"], found["other"]["job"]["name"]) == ("source", "other")
    client.post(beat(12, "sink", 1, outputs=[dataset("t", schema=fields("price long"))]))
    kinds = {(one["kind"], one["other"]["job"]["name"]) for one in client.get(page)["findings"]}
    assert ("source", "sink") in kinds


@pytest.mark.parametrize("streaming", [True, False])
def test_a_job_that_goes_back_to_what_its_catalog_contradicts_disagrees(
    store_url: str, streaming: bool
) -> None:
    client, page = Client(open_store(store_url)), "/api/v2/datasets/s3%3A%2F%2Flake/t"
    guess = dataset("t", schema=fields("price decimal(10,2)"))
    answer = table("price decimal(38,2)", "table-1", 1)

    def found(second: int, output: dict[str, Any]) -> list[tuple[str, str]]:
        made = beat(second, "sink", 1, outputs=[output])
        if not streaming:
            made = event("COMPLETE", second, job="sink", run=second + 1, outputs=[output])
        client.post(made)
        found = client.get(page)["findings"]
        return [(one["kind"], one["other"]["job"]["name"]) for one in found]

    # What is repeated is not written each time: the last of either counts.
    assert [found(second, guess) for second in (0, 2, 4)] == [[], [], []]
    assert [found(second, answer) for second in (5, 7)] == [[], []]
    assert [found(second, guess) for second in (12, 14)] == [[("source", "sink")]] * 2
    assert found(15, answer) == []
    client.close()


def test_an_answer_for_the_key_of_a_topic_takes_nothing_back_of_its_value(client: Client) -> None:
    page = "/api/v2/datasets/kafka%3A%2F%2Fbroker%3A9092/orders"
    asked = source("orders-key", part="key")
    client.post(
        beat(0, "agent", 3, outputs=[topic("id int", headwater_schemaSource=source("orders-value"))]),
        beat(1, "writer", 1, outputs=[topic("id string")]),
        beat(5, "writer", 1, outputs=[topic("key string", headwater_schemaSource=asked)]),
    )  # fmt: skip
    (found,) = client.get(page)["findings"]
    assert (found["kind"], found["other"]["job"]["name"]) == ("source", "writer")
    asked = source("orders-value", part="value")
    client.post(beat(9, "writer", 1, outputs=[topic("id int", headwater_schemaSource=asked)]))
    assert client.get(page)["findings"] == []


def test_a_job_is_live_as_long_as_any_of_its_runs(client: Client) -> None:
    client.post(
        beat(0, "one", 1, outputs=[topic("id int")]),
        event("START", 5, job="one", run=2, job_facets=STREAM, outputs=[topic("id int")]),
        event("COMPLETE", 6, job="one", run=2),
        beat(7, "two", 3, outputs=[topic("id int, a int")]),
    )
    page = "/api/v2/datasets/kafka%3A%2F%2Fbroker%3A9092/orders"
    (found,) = client.get(page)["findings"]
    assert (found["kind"], found["fields"]) == ("writers", ["a"])
    client.post(event("COMPLETE", 8, job="one", run=1))
    assert client.get(page)["findings"] == []


def test_names_that_stand_for_one_dataset_have_one_schema(store: Store) -> None:
    link = facet(identifiers=[{"namespace": "hive://m", "name": "db.t", "type": "TABLE"}])
    send(store, beat(0, "reader", 1, inputs=[dataset("db.t", "hive://m", schema=fields("a int"))]))
    send(
        store, beat(5, "writer", 2, outputs=[dataset("t", schema=fields("a long"), symlinks=link)])
    )
    for name, space in (("t", "s3://lake"), ("db.t", "hive://m")):
        assert told(store, name, space) == [("00:00", "a long")]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0)])
def test_what_a_writer_reports_outranks_what_a_reader_reports(
    client: Client, order: tuple[int, ...]
) -> None:
    def about(text: str) -> dict[str, Any]:
        return {
            "documentation": facet(description=text),
            "datasetType": facet(datasetType=text),
            "dataSource": facet(name=text, uri=f"db://{text}"),
        }

    events = [
        beat(0, "reader", 1, inputs=[dataset("t", **about("VIEW"))]),
        beat(5, "writer", 2, outputs=[dataset("t", **about("TOPIC"))]),
        beat(9, "reader", 1, inputs=[dataset("t", **about("VIEW"))]),
    ]
    for place in order:
        client.post(events[place])
    found = client.get("/api/v1/namespaces/s3%3A%2F%2Flake/datasets/t")
    shown = (found["description"], found["type"], found["sourceName"])
    assert shown == ("TOPIC", "STREAM", "TOPIC")


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_a_type_that_is_declared_counts_in_the_event_that_names_a_dataset_first(
    client: Client, order: tuple[int, ...]
) -> None:
    declared = dataset("t", datasetType=facet(datasetType="TABLE"))
    events = [beat(0, "reader", 1, inputs=["t"]), beat(5, "writer", 2, outputs=[declared])]
    for place in order:
        client.post(events[place])
    assert client.get("/api/v2/datasets/s3%3A%2F%2Flake/t")["type"] == "DB_TABLE"


def test_a_topic_that_column_lineage_alone_names_is_a_stream(client: Client) -> None:
    source = {"namespace": KAFKA, "name": "orders", "field": "a"}
    about = facet(fields={"a": {"inputFields": [source]}})
    client.post(beat(0, "writer", 1, outputs=[dataset("t", columnLineage=about)]))
    client.post(beat(5, "writer", 1, inputs=[dataset("orders", KAFKA)]))
    assert (
        client.get(f"/api/v1/namespaces/{quote(KAFKA, safe='')}/datasets/orders")["type"]
        == "STREAM"
    )


def test_a_time_far_ahead_counts_as_the_arrival(store: Store) -> None:
    ahead = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    wrong = beat(0, "writer", 1, outputs=[dataset("t", schema=fields("a int"))])
    send(store, {**wrong, "eventTime": ahead})
    later = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 2))
    right = beat(0, "writer", 1, outputs=[dataset("t", schema=fields("b int"))])
    send(store, {**right, "eventTime": later})
    assert [text for _, text in told(store, "t")] == ["a int", "b int"]


@pytest.mark.parametrize(("minutes", "kept"), [(4, True), (6, False)])
def test_a_time_is_far_ahead_after_five_minutes(store: Store, minutes: int, kept: bool) -> None:
    now = time.time()
    ahead = time.gmtime(now + minutes * 60)
    out = beat(0, "writer", 1, outputs=[dataset("t", schema=fields("a int"))])
    send(store, {**out, "eventTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", ahead)})
    ((since, _),) = told(store, "t")
    assert (since == time.strftime("%M:%S", ahead)) == kept


def test_a_time_far_ahead_divides_a_period_whatever_the_order(store: Store) -> None:
    """Of the four claims of a stream, one is of a wrong clock: it counts when it is received."""
    now = int(time.time())
    claims = (("a int", -200), ("b int", -100), ("a int", 3600), ("a int", 250))
    for n, order in enumerate(orders(claims), 1):
        name = f"t{n}"
        for text, ahead in order:
            one = beat(0, f"writer{n}", n, outputs=[dataset(name, schema=fields(text))])
            moment = time.gmtime(now + ahead)
            send(store, {**one, "eventTime": time.strftime("%Y-%m-%dT%H:%M:%SZ", moment)})
        view = View(store.connection, Bodies(store.packer))
        found = view.dataset("s3://lake", name)
        assert found is not None
        rows = schemas(view, members(view, found.root), None, 100)[::-1]
        bodies = view.bodies([number for _, number in rows])
        # The arrival is known to less than a minute.
        told_of = [(round((t / 1e6 - now) / 100), shown(bodies[f])) for t, f in rows]
        assert told_of == [(-2, "a int"), (-1, "b int"), (0, "a int")], order


def test_each_writing_run_has_a_version_with_the_schema_then_valid(client: Client) -> None:
    for n, text in enumerate(("a int", "a int", "a int, b int"), 1):
        for second, state in ((0, "START"), (5, "COMPLETE")):
            out = dataset("t", schema=fields(text))
            client.post(event(state, n * 10 + second, run=n, outputs=[out]))
        client.post(event("COMPLETE", n * 10 + 7, run=n + 50, job="look", inputs=[dataset("t", schema=fields("x int"))]))  # fmt: skip
    found = client.get("/api/v1/namespaces/s3%3A%2F%2Flake/datasets/t/versions")
    assert found["totalCount"] == 3
    columns = [[f["name"] for f in v["fields"]] for v in found["versions"]]
    assert columns == [["a", "b"], ["a"], ["a"]]


def mixed() -> list[dict[str, Any]]:
    """Writers, readers and a registry, in the order of their times, with every kind of end."""
    made: list[dict[str, Any]] = []
    for n in range(8):
        text = "id long, b int" if n > 3 else "id long"
        made += [
            beat(n * 30, "writer", 1 + (n > 5), outputs=[topic(f"{text}, key int")]),
            beat(n * 30 + 7, "reader", 5, inputs=[topic("id int")]),
            event("START", n * 30 + 10, run=20 + n, job="batch", outputs=[dataset("t", schema=fields(text))]),
            event("COMPLETE" if n % 3 else "FAIL", n * 30 + 20, run=20 + n, job="batch"),
        ]  # fmt: skip
    asked = source("orders-value", 1, part="value")
    made.append(beat(100, "agent", 6, inputs=[topic("id long", headwater_schemaSource=asked)]))
    gone = dataset("t", schema=fields("n int"), lifecycleStateChange=change("CREATE"))
    made.append(event("COMPLETE", 130, run=40, job="create", outputs=[gone]))
    return made


def state(store: Store) -> list[Any]:
    return [told(store, "orders", KAFKA), told(store, "t")]


def test_a_rebuild_and_a_checkpoint_give_the_same(store: Store) -> None:
    events = mixed()
    send(store, *events[:20])
    send(store, *events[20:])
    before = state(store)
    assert before[0] == [("00:00", "id long, key int")]
    assert [text for _, text in before[1]] == ["id long", "n int", "b int, id long, n int"]
    rebuild(store)
    assert state(store) == before
    retain(store, time.time_ns() // 1000)
    assert state(store) == before
    rebuild(store)
    assert state(store) == before
    send(store, beat(500, "agent", 6, inputs=[topic("id long", headwater_schemaSource=source("orders-value", 1, part="value"))]))  # fmt: skip
    assert state(store) == before


def test_the_reverse_order_gives_the_same(store: Store) -> None:
    send(store, *mixed())
    with tempfile.TemporaryDirectory() as folder:
        other = open_store(f"sqlite:///{folder}/x.db")
        for one in mixed()[::-1]:
            send(other, one)
        assert state(other) == state(store)
        other.close()


def test_a_claim_between_the_first_and_the_latest_counts() -> None:
    def defined(second: int, job: str, text: str) -> dict[str, Any]:
        return static(
            second,
            job={"namespace": "jobs", "name": job},
            inputs=[dataset("t", schema=fields(text))],
        )

    sent = [
        beat(2, "stream", 11, inputs=[dataset("t", schema=fields("a int, b int"))]),
        defined(0, "one", "a int"),
        defined(1, "two", "a int, b int"),
    ]
    told_of = outcome([[e] for e in sent])[1]
    assert told_of == [("00:00", "a int"), ("00:01", "a int, b int")]
    assert outcome([sorted(sent, key=lambda e: e["eventTime"])])[1] == told_of
    # At the moment of a change a better rank makes it a correction, whichever comes first.
    sent[0]["eventTime"] = sent[2]["eventTime"]
    corrected = [("00:00", "a int, b int")]
    assert [outcome([[sent[n]] for n in order])[1] for order in permutations(range(3))] == [
        corrected
    ] * 6


def test_a_table_that_is_reported_late_takes_the_place_of_the_one_before() -> None:
    dropped = dataset("t", lifecycleStateChange=change("DROP"))
    sent = [
        beat(1, "stream", 1, outputs=[table("a int", "11-aa", 1)]),
        beat(20, "stream", 1, outputs=[table("a int", "11-aa", 1)]),
        event("COMPLETE", 10, job="drop", run=2, outputs=[dropped]),
        beat(12, "other", 3, outputs=[dataset("t", schema=fields("c int"))]),
        beat(3, "reader", 4, inputs=[table("a int", "22-bb", 1)]),
    ]
    told_of = outcome([[e] for e in sent])[1]
    assert told_of == [("00:01", "a int"), ("00:12", "c int")]
    assert outcome([sorted(sent, key=lambda e: e["eventTime"])])[1] == told_of


def test_a_claim_that_is_repeated_between_two_ends_counts_when_it_comes_late() -> None:
    altered = dataset("t", lifecycleStateChange=change("ALTER"))
    a, b = (dataset("t", schema=fields(text)) for text in ("a int", "b int"))
    sent = [
        beat(0, "stream", 1, outputs=[a]),
        beat(2, "stream", 1, outputs=[a]),
        event("COMPLETE", 5, job="alter", run=2, outputs=[altered]),
        beat(6, "reader", 3, inputs=[b]),
        event("COMPLETE", 10, job="alter", run=4, outputs=[altered]),
        beat(7, "stream", 1, outputs=[a]),
    ]
    told_of = outcome([[e] for e in sent])[1]
    assert told_of == [("00:00", "a int")]
    assert outcome([sorted(sent, key=lambda e: e["eventTime"])])[1] == told_of


ASKED = (
    *(source("s", version) for version in range(3)),
    *(facet(kind="catalog", subject=uuid, version=0, sequence=sequence)
      for uuid, sequence in (("11-aa", 1), ("11-aa", 3), ("22-bb", 1))),
)  # fmt: skip
TEXTS = ("a int", "a long", "a int, b int", "key int, a int", "c int")
KINDS = ("START", "RUNNING", "COMPLETE", "FAIL")


@st.composite
def some_events(draw: st.DrawFn) -> list[dict[str, Any]]:
    made: list[dict[str, Any]] = []
    for _ in range(draw(st.integers(1, 9))):
        second, number = draw(st.integers(0, 30)), draw(st.integers(1, 3))
        facets: dict[str, Any] = {"schema": fields(draw(st.sampled_from(TEXTS)))}
        kind = draw(st.sampled_from(["", "", "", "CREATE", "OVERWRITE", "DROP"]))
        if kind:
            facets["lifecycleStateChange"] = change(kind)
        if draw(st.integers(0, 3)) == 0:
            facets["headwater_schemaSource"] = draw(st.sampled_from(ASKED))
        name = draw(st.sampled_from([("t", "s3://lake"), ("orders", KAFKA)]))
        side = draw(st.sampled_from(["inputs", "outputs"]))
        how = draw(st.sampled_from(["stream", "batch", "batch", "job", "dataset"]))
        one: dict[str, Any] = {side: [dataset(*name, **facets)]}
        if kind == "OVERWRITE" and side == "outputs" and draw(st.booleans()):
            one[side][0]["outputFacets"] = {"headwater_overwrite": facet(partial=True)}
        if how == "dataset":
            made.append(static(second, dataset=one[side][0]))
        elif how == "job":
            job = {"namespace": "jobs", "name": f"job{number}"}
            made.append(static(second, job=job, **one))
        else:
            stream = how == "stream"
            made.append(
                event(
                    draw(st.sampled_from(KINDS)),
                    second,
                    run=number + 10 * stream + 20 * draw(st.integers(0, 1)),
                    job=f"job{number}{how}",
                    job_facets=STREAM if stream else None,
                    **one,
                )
            )
    return made


def outcome(groups: list[list[dict[str, Any]]]) -> list[Any]:
    with tempfile.TemporaryDirectory() as folder:
        store = open_store(f"sqlite:///{folder}/x.db")
        for group in groups:
            send(store, *group)
        found = state(store)
        rebuild(store)
        assert state(store) == found
        store.close()
        return found


@examples(60)
@given(st.data(), some_events())
def test_order_repetition_and_grouping_change_nothing(
    data: st.DataObject, sent: list[dict[str, Any]]
) -> None:
    assert outcome(in_another_order(data, sent)) == outcome([[e] for e in sent])


def test_a_schema_that_changes_is_an_update_of_a_dataset_that_is_only_read(store: Store) -> None:
    def updated() -> str:
        ((moment,),) = store.connection.all("SELECT updated FROM dataset WHERE name = 't'")
        return time.strftime("%H:%M:%S", time.gmtime(moment // 1_000_000))

    send(store, beat(1, "read", 1, inputs=["t"]))
    send(store, beat(5, "read", 1, inputs=[dataset("t", schema=fields("id int"))]))
    assert updated() == "00:00:05", "its first schema"
    send(store, beat(9, "read", 1, inputs=[dataset("t", schema=fields("id int"))]))
    assert updated() == "00:00:05", "the same again"
    send(store, beat(12, "read", 1, inputs=[dataset("t", schema=fields("id int, name string"))]))
    assert updated() == "00:00:12"
