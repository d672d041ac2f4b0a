"""The route that says who is hit by a change, over events of every kind that decides about it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from scripts.record_pipeline import recorded

from headwater.lab.demo import verdict
from headwater.lineage.secrets import clean_value

from .making import columns, dataset, event, facet, schema

if TYPE_CHECKING:
    from .conftest import Client

PIPELINE = Path(__file__).parents[2] / "fixtures" / "server" / "orders-pipeline.ndjson"
CONNECT = facet(processingType="STREAMING", integration="KAFKA_CONNECT", jobType="SINK")
DB = "dataset:s3://lake:db"


def ask(client: Client, node: str = DB, **body: Any) -> Any:
    answer = client.call("POST", "/api/v2/impact", json={"node": node, **body})
    assert answer.status_code == 200, answer.text
    return answer.json()


def drop(client: Client, column: str, node: str = DB) -> Any:
    return ask(client, node, changes=[{"kind": "drop", "column": column}])


def effects(answer: Any) -> dict[str, str]:
    found = {job["name"]: job["effect"] for job in answer["jobs"]}
    return found | {job.rpartition(":")[2]: "unaffected" for job in answer["unaffected"]}


def hit(answer: Any) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for one in answer["columns"]:
        name = one["dataset"].rpartition(":")[2] + (f".{one['column']}" if one["column"] else "")
        found.setdefault(one["effect"], set()).add(name)
    return found


def evidence(origin: str, target: str, **more: Any) -> dict[str, Any]:
    ends = [{"namespace": "s3://lake", "name": name} for name in (origin, target)]
    known = [{"source": "config key", "detail": "topics", "observed": False}]
    edge = {"input": ends[0], "output": ends[1], "columns": True, "evidence": known, **more}
    return facet(edges=[edge], datasets=[])


def test_each_kind_of_reader_is_judged_by_what_its_events_say(client: Client) -> None:
    source = dataset("db", schema=schema("id", "price"))
    copy = dataset(
        "copy",
        schema=schema("id", "price"),
        columnLineage=columns(id=("db", "id"), price=("db", "price")),
    )
    names = {"jobType": CONNECT, "headwater_evidence": evidence("db", "copy", named=["id"])}
    total = dataset("totals", columnLineage=columns(total=("copy", "price")))
    filtered = facet(
        fields={"id": {"inputFields": [{"namespace": "s3://lake", "name": "copy", "field": "id"}]}},
        dataset=[{"namespace": "s3://lake", "name": "copy", "field": "price",
                  "transformations": [{"type": "INDIRECT", "subtype": "FILTER"}]}],
    )  # fmt: skip
    owned = {"ownership": facet(owners=[{"name": "team-a", "type": "team"}])}
    client.post(
        event("START", 0, job="sink", run=1, inputs=[source], outputs=[copy], job_facets=names),
        event("START", 1, job="sum", run=2, inputs=["copy"], outputs=[total], job_facets=owned),
        event("START", 2, job="cheap", run=3, inputs=["copy"],
              outputs=[dataset("cheap", columnLineage=filtered)]),
        event("START", 3, job="blind", run=4, inputs=["copy"], outputs=["dark"]),
        event("START", 4, job="behind", run=5, inputs=["dark"],
              outputs=[dataset("out", columnLineage=columns(x=("dark", "x")))]),
        event("START", 5, job="reader", run=6, inputs=["copy"]),
        event("START", 6, job="ids", run=7, inputs=["copy"],
              outputs=[dataset("ids", columnLineage=columns(id=("copy", "id")))]),
        event("START", 7, job="trimmed", run=8, inputs=["copy"],
              outputs=[dataset("half", columnLineage=columns(id=("copy", "id")))],
              run_facets={"headwater_trimmed": facet(parts=["stack traces", "indirect columns"])}),
        event("START", 8, job="udf", run=9, inputs=["copy"],
              outputs=[dataset("made", columnLineage=columns(id=("copy", "id")),
                               headwater_columns=facet(unknown=["score"]))]),
        event("START", 9, job="cheap_copy", run=10, inputs=["cheap"],
              outputs=[dataset("cheap2", columnLineage=columns(id=("cheap", "id")))]),
    )  # fmt: skip
    found = drop(client, "price")
    assert effects(found) == {
        "sink": "carries", "sum": "breaks", "cheap": "breaks", "blind": "unknown",
        "behind": "unknown", "reader": "unknown", "ids": "unaffected", "trimmed": "unknown",
        "udf": "unknown", "cheap_copy": "rows",
    }  # fmt: skip
    assert hit(found) == {
        "carries": {"copy.price"},
        "changes": {"totals.total"},
        "rows": {"cheap", "cheap2"},
        "unknown": {"dark", "out", "half", "made.score"},
    }
    assert found["verdict"] == "breaks"
    assert found["counts"] == {
        "breaks": 2, "changes": 0, "rows": 1, "unknown": 5, "carries": 1, "unaffected": 1,
    }  # fmt: skip
    blind = [f"job:jobs:{name}" for name in ("blind", "reader", "trimmed")]
    assert found["coverage"] == {
        "jobs": 10, "columnsKnown": 7, "columnsUnknown": blind, "complete": True, "hidden": 0,
    }  # fmt: skip
    total_job = next(job for job in found["jobs"] if job["name"] == "sum")
    assert total_job["owners"] == [{"name": "team-a", "type": "team"}]
    assert total_job["stops"] == ["dataset:s3://lake:totals"]
    assert [(step["dataset"], step["column"], step["job"]) for step in total_job["path"]] == [
        (DB, "price", "job:jobs:sink"),
        ("dataset:s3://lake:copy", "price", "job:jobs:sum"),
    ]
    assert total_job["path"][0]["evidence"][0]["source"] == "config key"
    assert effects(drop(client, "id"))["sink"] == "breaks"


def test_a_grouping_does_not_hide_a_job_without_column_lineage(client: Client) -> None:
    for run, steps in enumerate((["IDENTITY"], ["IDENTITY", "GROUP_BY"]), 1):
        name = f"a{run}"
        known = [
            {"type": "INDIRECT" if step == "GROUP_BY" else "DIRECT", "subtype": step}
            for step in steps
        ]
        used = {"namespace": "s3://lake", "name": name, "field": "k", "transformations": known}
        made = dataset(
            f"b{run}",
            schema=facet(fields=[{"name": "g", "type": "bigint"}]),
            columnLineage=facet(fields={"g": {"inputFields": [used]}}),
        )
        client.post(
            event("COMPLETE", run, job="agg", run=run, inputs=[dataset(name, schema=schema("k"))],
                  outputs=[made]),
            event("COMPLETE", run + 10, job="blind", run=run + 10, inputs=[f"b{run}"],
                  outputs=[f"c{run}"]),
        )  # fmt: skip
        change = {"kind": "type", "column": "k", "to": "bigint"}
        found = ask(client, f"dataset:s3://lake:{name}", changes=[change])
        assert effects(found) == {"agg": "changes", "blind": "unknown"}, steps
        assert (found["verdict"], found["counts"]["unknown"]) == ("unknown", 1)


def test_a_new_schema_is_compared_with_the_one_that_is_known(client: Client) -> None:
    source = dataset("db", schema=schema("id", "price", "note"))
    made = dataset("out", schema=schema("id", "price"),
                   columnLineage=columns(id=("db", "id"), price=("db", "price")))  # fmt: skip
    client.post(event("START", 0, inputs=[source], outputs=[made]))
    kept = [{"name": "id", "type": "int"}, {"name": "price", "type": "int"}]
    found = ask(client, schema=[*kept, {"name": "new", "type": "string"}])
    assert [(one["text"], one["judged"]) for one in found["changes"]] == [
        ("note is dropped", True),
        ("new was added (string)", False),
    ]
    assert (found["verdict"], found["unaffected"]) == ("unaffected", ["job:jobs:load"])
    renamed = [
        kept[0],
        {"name": "cost", "type": "int", "aliases": ["price"]},
        {"name": "note", "type": "int"},
    ]
    assert effects(ask(client, schema=renamed)) == {"load": "breaks"}
    retyped = [kept[0], {"name": "price", "type": "string"}, {"name": "note", "type": "int"}]
    assert ask(client, schema=retyped)["jobs"][0]["why"] == (
        "it uses price as int, which string does not fit"
    )
    before = [{"name": "other", "type": "int"}]
    assert ask(client, schema=[], before=before)["changes"][0]["text"] == "other is dropped"


def test_the_key_of_a_topic_is_no_part_of_its_values_schema(client: Client) -> None:
    topic = dataset("orders", "kafka://broker", schema=facet(fields=[
        {"name": "price", "type": "int"},
        {"name": "key", "type": "struct", "fields": [{"name": "id", "type": "int"}]},
    ]))  # fmt: skip
    client.post(event("START", 0, inputs=[topic], outputs=["out"]))
    node = "dataset:kafka://broker:orders"
    same = ask(client, node, schema=[{"name": "price", "type": "int"}])
    assert same["changes"] == []
    key = ask(client, node, schema=[{"name": "no", "type": "int"}], part="key")
    assert [one["text"] for one in key["changes"]] == [
        "key.id is dropped",
        "key.no was added (int)",
    ]


def test_what_cannot_be_judged_is_refused_with_the_reason(client: Client) -> None:
    client.post(event("START", 0, inputs=[dataset("db", schema=schema("id", "price"))], outputs=["out"]))  # fmt: skip

    def refused(**body: Any) -> tuple[int, str]:
        answer = client.call("POST", "/api/v2/impact", json=body)
        return answer.status_code, answer.json()["message"]

    gone = [{"kind": "drop", "column": "gone"}]
    assert refused(node=DB, changes=gone) == (404, "Dataset 'db' has no column 'gone'.")
    assert refused(node="dataset:s3://lake:nope", changes=gone)[0] == 404
    assert refused(node=DB, changes=[{"kind": "rename", "column": "id", "to": "price"}]) == (
        422, "changes would rename id to price, which is there already",
    )  # fmt: skip
    for body in (
        {}, {"node": 1}, {"node": "job:jobs:load", "changes": gone}, {"node": DB},
        {"node": DB, "changes": []}, {"node": DB, "changes": ["drop"]},
        {"node": DB, "changes": [{"kind": "type", "column": "id"}]},
        {"node": DB, "changes": [{"kind": "drop", "column": 1}]},
        {"node": DB, "changes": [{"kind": ["drop"], "column": "id"}]},
        {"node": DB, "changes": gone * 501}, {"node": DB, "schema": [1]},
        {"node": "dataset:s3://lake:out", "schema": []},
    ):  # fmt: skip
        assert refused(**body)[0] == 422, body


@pytest.mark.parametrize(
    ("change", "more"),
    [
        ({"kind": "delete", "column": "id"}, "delete have no column"),
        ({"kind": "delete", "column": 5, "to": 7}, "delete have no column and no to"),
        ({"kind": "drop", "column": "id", "to": "x"}, "drop have no to"),
        ({"kind": "drop", "column": "id", "to": None}, "drop have no to"),
        ({"kind": "type", "column": "id", "to": "long", "part": "key"}, "type have no part"),
    ],
)
def test_a_change_has_no_members_of_another_kind(
    client: Client, change: dict[str, Any], more: str
) -> None:
    client.post(event("COMPLETE", 0, outputs=[dataset("db", schema=schema("id"))]))
    answer = client.call("POST", "/api/v2/impact", json={"node": DB, "changes": [change]})
    assert (answer.status_code, answer.json()["message"]) == (422, f"changes of the kind {more}")
    # The page sends what its form has no field for as it is: empty.
    page = {"column": "id", "to": ""} if change["kind"] == "drop" else {"column": "", "to": ""}
    if change["kind"] != "type":
        ask(client, changes=[{"kind": change["kind"], **page}])


def test_a_column_in_one_that_goes_cannot_change_too(client: Client) -> None:
    inner = [{"name": "zip", "type": "string"}, {"name": "town", "type": "string"}]
    record = {"name": "addr", "type": "struct", "fields": inner}
    db = dataset("db", schema=facet(fields=[record, {"name": "address", "type": "string"}]))
    client.post(event("COMPLETE", 0, outputs=[db]))

    def asked(*changes: dict[str, str]) -> tuple[int, str]:
        answer = client.call("POST", "/api/v2/impact", json={"node": DB, "changes": changes})
        return answer.status_code, answer.json().get("message", "")

    def change(kind: str, column: str, to: str = "") -> dict[str, str]:
        return {"kind": kind, "column": column, **({"to": to} if to else {})}

    goes, text = change("drop", "addr"), change("type", "addr", "string")
    renamed, retyped = change("rename", "addr.zip", "addr.z"), change("type", "addr.zip", "int")
    for outer in (goes, text):
        for one in (renamed, retyped):
            for both in ((outer, one), (one, outer)):
                code, said = asked(*both)
                assert (code, "contradict each other" in said) == (422, True), both
    gone = change("drop", "addr.zip")
    moved = change("rename", "addr", "home")
    beside = change("rename", "address", "street")
    for fine in ((goes, gone), (text, gone), (moved, gone), (moved, retyped), (goes, beside)):
        assert asked(*fine)[0] == 200, fine


def test_changes_that_cannot_all_be_made_are_refused_and_a_repeated_one_is_one(
    client: Client,
) -> None:
    used = columns(x=("db", "id"), y=("db", "price"))
    out = dataset("out", schema=schema("x", "y"), columnLineage=used)
    client.post(event("START", 0, inputs=[dataset("db", schema=schema("id", "price"))], outputs=[out]))  # fmt: skip
    fields = [{"name": "id", "type": "int"}]

    def change(kind: str, column: str = "price", to: str | None = None) -> dict[str, str]:
        return {"kind": kind, "column": column} | ({"to": to} if to else {})

    def refused(*changes: dict[str, str], **more: Any) -> tuple[str, str]:
        body = {"node": DB, **({"changes": changes} if changes else {}), **more}
        answer = client.call("POST", "/api/v2/impact", json=body)
        assert answer.status_code == 422, answer.text
        return answer.json()["problems"][0]["field"], answer.json()["message"]

    gone, renamed, long = change("drop"), change("rename", to="x"), change("type", to="long")
    twice = "changes contradict each other: "
    for some, problem in (
        ((gone, renamed), "price is dropped, and price is renamed to x"),
        ((renamed, gone), "price is renamed to x, and price is dropped"),
        ((gone, long), "price is dropped, and price becomes long"),
        ((renamed, change("rename", to="y")), "price is renamed to x, and price is renamed to y"),
        ((long, change("type", to="string")), "price becomes long, and price becomes string"),
        ((renamed, change("rename", "id", "x")), "price is renamed to x, and id is renamed to x"),
    ):
        assert refused(*some) == ("changes", twice + problem)
    for some in ((gone, {"kind": "delete"}), ({"kind": "delete"}, gone)):
        assert "beside delete" in refused(*some)[1], some
    for schema_given in (fields, []):
        assert refused(gone, schema=schema_given)[0] == "schema"
    assert refused(changes=[], schema=fields)[0] == "schema"
    assert refused(gone, before=fields)[0] == "before"
    assert refused(gone, part="key")[0] == "part"
    assert refused(schema=fields, part="half")[0] == "part"
    for changes, text in (
        ([gone, gone], "price is dropped"),
        ([long, change("type", to="BIGINT")], "price becomes long"),
        ([{"kind": "delete"}, {"kind": "delete"}], "the dataset is deleted"),
    ):
        assert [one["text"] for one in ask(client, changes=changes)["changes"]] == [text]
    assert effects(ask(client, changes=[renamed, long])) == {"load": "breaks"}


def test_a_column_that_keeps_its_type_or_its_name_hits_nobody(client: Client) -> None:
    used = columns(x=("db", "id"))
    db = dataset("db", schema=facet(fields=[{"name": "id", "type": "bigint"}]))
    client.post(event("START", 0, inputs=[db], outputs=[dataset("out", columnLineage=used)]))
    for change, text in (
        ({"kind": "type", "column": "id", "to": "LONG"}, "id is of type LONG already"),
        ({"kind": "rename", "column": "id", "to": "id"}, "id is called id already"),
    ):
        found = ask(client, changes=[change])
        assert [(one["text"], one["judged"]) for one in found["changes"]] == [(text, False)]
        assert (found["verdict"], set(found["counts"].values())) == ("unaffected", {0})
        same = ask(client, schema=[{"name": "id", "type": "bigint"}])
        assert {**found, "changes": []} == same
    found = ask(client, changes=[{"kind": "type", "column": "id", "to": "int"}])
    assert effects(found) == {"load": "changes"}


def test_dropping_a_price_in_postgres_names_all_of_the_pipeline_behind_it(client: Client) -> None:
    """The events are those of the demo, the last of each job; the answer was written down by hand."""
    sent = client.call("POST", "/api/v2/events", content=PIPELINE.read_bytes())
    assert sent.status_code == 201, sent.text
    found = drop(client, "price", "dataset:postgres://shop-db:5432:shop.public.orders")
    batch = "supplier_stats.overwrite_by_expression.default_supplier_stats"
    assert effects(found) == {
        "orders-source": "carries",
        "orders-s3-sink": "carries",
        "orders-iceberg-sink": "carries",
        "supplier-stats": "breaks",
        "iceberg-ingestion": "breaks",
        "supplier-stats-jdbc-sink": "changes",
        batch: "changes",
        # Its look at the newest day writes nothing, so no event says which columns it reads.
        "supplier_stats.head.default_orders": "unknown",
        "supplier-stats-export": "changes",
    }
    assert hit(found) == {
        "carries": {
            "orders.price",
            "topics/orders.price",
            "default/orders_landing.price",
        },
        "changes": {
            "supplier-stats.total_price",
            "shop.public.supplier_stats.total_price",
            "default/orders.price",
            "orders-dead-letter.key.reason",
            "default/supplier_stats.total_price",
            "supplier_stats.total_price",
        },
        # The streams look at the price to tell good orders from bad ones.
        "rows": {
            "supplier-stats",
            "shop.public.supplier_stats",
            "default/orders",
            "orders-dead-letter",
            "default/supplier_stats",
            "supplier_stats",
        },
    }
    assert found["coverage"] == {
        "jobs": 9,
        "columnsKnown": 8,
        "columnsUnknown": ["job:shop:supplier_stats.head.default_orders"],
        "complete": True,
        "hidden": 0,
    }
    stops = {job["name"]: job["stops"] for job in found["jobs"] if job["effect"] == "breaks"}
    assert stops == {
        "supplier-stats": ["dataset:kafka://broker:9092:supplier-stats"],
        "iceberg-ingestion": [
            "dataset:kafka://broker:9092:orders-dead-letter",
            "dataset:s3://warehouse:default/orders",
        ],
    }
    paths = {
        job["name"]: [(step["dataset"].rpartition(":")[2], step["column"]) for step in job["path"]]
        for job in found["jobs"]
    }
    assert paths["supplier-stats-export"] == [
        ("shop.public.orders", "price"),
        ("orders", "price"),
        ("default/orders", "price"),
        ("default/supplier_stats", "total_price"),
    ]
    assert paths["supplier-stats-jdbc-sink"] == [
        ("shop.public.orders", "price"),
        ("orders", "price"),
        ("supplier-stats", "total_price"),
    ]


def test_the_recorded_pipeline_is_the_one_that_the_demo_has(client: Client) -> None:
    """The demo judges itself by what is compared here; if it differs, record it anew."""
    stores = {
        "kafka": "kafka://broker:9092",
        "postgres": "postgres://shop-db:5432",
        **{store: f"s3://{store}" for store in ("raw", "warehouse", "exports")},
    }

    def named(dataset: str) -> tuple[str, str]:
        store, name = dataset.split(" ")
        return stores[store], name

    def names(job: str, side: str) -> list[tuple[str, str]]:
        found = client.get(f"/api/v2/jobs/shop/{job}")[side]
        return sorted((one["namespace"], one["name"]) for one in found)

    client.call("POST", "/api/v2/events", content=PIPELINE.read_bytes())
    jobs = {json.loads(line)["job"]["name"] for line in PIPELINE.read_text().splitlines()}
    assert jobs >= verdict.JOBS.keys() == {job for job, _, _ in verdict.EDGES}
    for job, inputs, outputs in verdict.EDGES:
        # A stream also reads the table that it merges into, and writes dead letters.
        assert {*map(named, inputs)} <= {*names(job, "inputs")}
        assert {*map(named, outputs)} <= {*names(job, "outputs")}
    dataset, column = verdict.DROPPED
    found = drop(client, column, f"dataset:{':'.join(named(dataset))}")
    assert {job["name"]: job["effect"] for job in found["jobs"]} == verdict.HIT_JOBS
    expected = {**verdict.HIT_COLUMNS, **verdict.HIT_LATER}
    assert {(one["dataset"], one["column"] or ""): one["effect"] for one in found["columns"]} == {
        (f"dataset:{':'.join(named(one))}", field): effect
        for (one, field), effect in expected.items()
    }


def test_the_recording_names_no_machine() -> None:
    text = PIPELINE.read_text()
    local = text.replace("broker:9092", "127.0.0.1:21092").replace("shop-db:5432", "127.0.0.1:1")
    events = [
        json.loads(line)
        for line in local.replace("catalog:8181", "127.0.0.1:2")
        .replace("connect:8083", "127.0.0.1:4")
        .splitlines()
    ]
    for one in events:
        one["run"]["facets"] |= {"headwater_spark": {"ui": "http://127.0.0.1:3"}}
        one["run"]["facets"].get("headwater_end", {})["by"] = "somebody"
        one["job"]["facets"]["sourceCodeLocation"] = {"url": "/home/somebody"}
    assert recorded(json.dumps(one).encode() for one in events) == text
    assert clean_value(events) == events, "a secret"


def test_a_job_that_only_its_column_lineage_calls_a_reader_is_hit_all_the_same(
    client: Client,
) -> None:
    out = dataset("out", schema=schema("x"), columnLineage=columns(x=("db", "price")))
    then = dataset("out", schema=schema("x"), columnLineage=columns(x=("other", "price")))
    client.post(
        event("COMPLETE", 0, job="owner", run=1, outputs=[dataset("db", schema=schema("id", "price"))]),
        event("COMPLETE", 1, job="load", run=2, inputs=["other"], outputs=[out]),
        event("COMPLETE", 2, job="behind", run=3, inputs=["out"],
              outputs=[dataset("end", columnLineage=columns(y=("out", "x")))]),
    )  # fmt: skip
    assert effects(drop(client, "price")) == {"load": "breaks", "behind": "changes"}
    assert effects(drop(client, "id")) == {"load": "unaffected"}
    assert effects(ask(client, changes=[{"kind": "delete"}])) == {
        "load": "breaks",
        "behind": "changes",
    }
    client.post(event("COMPLETE", 3, job="load", run=4, inputs=["other"], outputs=[then]))
    assert effects(drop(client, "price")) == {}


def test_a_job_that_was_deleted_by_hand_is_hit_by_nothing(client: Client) -> None:
    out = dataset("out", schema=schema("x"), columnLineage=columns(x=("db", "price")))
    client.post(
        event("COMPLETE", 0, job="owner", run=1, outputs=[dataset("db", schema=schema("price"))]),
        event("COMPLETE", 1, job="load", run=2, inputs=["db"], outputs=[out]),
    )
    assert effects(drop(client, "price")) == {"load": "breaks"}
    assert client.call("DELETE", "/api/v1/namespaces/jobs/jobs/load").status_code == 200
    assert effects(drop(client, "price")) == {}
    assert effects(ask(client, changes=[{"kind": "delete"}])) == {}


def test_changes_that_were_not_judged_leave_nobody_unaffected(client: Client) -> None:
    names = [f"c{n:03d}" for n in range(600)]
    out = dataset("out", columnLineage=columns(x=("db", names[-1])))
    db = dataset("db", schema=schema(*names))
    client.post(event("COMPLETE", 0, job="load", inputs=[db], outputs=[out]))
    found = ask(client, schema=[{"name": "other", "type": "int"}])
    assert effects(found) == {"load": "unknown"}
    assert (found["truncated"], found["coverage"]["complete"]) == (True, False)


def test_a_name_that_another_column_gives_up_can_be_taken(client: Client) -> None:
    out = dataset("out", columnLineage=columns(x=("db", "id")))
    db = dataset("db", schema=schema("id", "price"))
    client.post(event("COMPLETE", 0, job="load", inputs=[db], outputs=[out]))
    swapped = [
        {"kind": "rename", "column": "id", "to": "price"},
        {"kind": "rename", "column": "price", "to": "id"},
    ]
    assert effects(ask(client, changes=swapped)) == {"load": "breaks"}
    taken = [{"kind": "drop", "column": "price"}, swapped[0]]
    assert effects(ask(client, changes=taken)) == {"load": "breaks"}
