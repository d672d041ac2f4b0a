"""Doctor on a server: pairs, apply and undo, what else it finds, by route and by command."""

from __future__ import annotations

import itertools
import json
import random
from datetime import datetime, timedelta, timezone
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.errors import HeadwaterError
from headwater.insight import DEFAULT_SCORE
from headwater.server.app import ServerSettings
from headwater.server.http.auth import create_token
from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import rebuild

from ...unit.insight.estates import planted_estate
from .conftest import Client
from .making import dataset, event, facet, run_id, schema
from .test_answers import Command

if TYPE_CHECKING:
    from pathlib import Path

    import httpx

KAFKA, LOCAL = "kafka://broker.corp.example:9092", "kafka://localhost:9092"
HIVE, LAKE = "hive://meta.elsewhere:9083", "s3://lake"
COLUMNS = ("id", "price", "supplier")


def estate() -> list[dict[str, Any]]:
    """A table that is written by its name in a catalog and read by its path; a topic by two addresses."""
    written = dataset("default.orders", HIVE, schema=schema(*COLUMNS))
    read = dataset("default/orders", LAKE, schema=schema(*COLUMNS))
    sent = dataset("clicks", LOCAL, schema=schema("at", "page"))
    taken = dataset("clicks", KAFKA, schema=schema("at", "page"))
    return [
        event("COMPLETE", 0, run=1, job="ingest", inputs=["raw"], outputs=[written]),
        event("COMPLETE", 10, run=2, job="stats", inputs=[read], outputs=["sums"]),
        event("COMPLETE", 20, run=3, job="site", inputs=["visits"], outputs=[sent]),
        event("COMPLETE", 30, run=4, job="count", inputs=[taken], outputs=["counts"]),
    ]


def named(pair: dict[str, Any]) -> tuple[str, ...]:
    return tuple(pair[side][key] for side in ("alias", "dataset") for key in ("namespace", "name"))


PAIRS = {
    (HIVE, "default.orders", LAKE, "default/orders"),
    (LOCAL, "clicks", KAFKA, "clicks"),
}


def post(client: Client, **body: Any) -> Any:
    answer = client.call("POST", "/api/v2/doctor", json=body)
    assert answer.status_code == 200, answer.text
    return answer.json()


def answers(client: Client) -> list[Any]:
    """Everything the graph says, without the moments at which it was changed."""
    found: list[Any] = []
    names = client.get("/api/v1/namespaces")["namespaces"]
    for space in (one["name"] for one in names):
        listed = client.get(f"/api/v1/namespaces/{quote(space, safe='')}/datasets", limit=1000)
        for one in listed["datasets"]:
            path = f"{quote(one['namespace'], safe='')}/{quote(one['name'], safe='')}"
            node = f"dataset:{one['namespace']}:{one['name']}"
            page = client.get(f"/api/v2/datasets/{path}")
            found.append((node, page["aliases"], page["columns"], page["history"], page["moves"]))
            found += [
                sorted(job["name"] for job in page[side]) for side in ("producers", "consumers")
            ]
            for way in ("up", "down"):
                traced = client.get("/api/v2/trace", node=node, direction=way)
                found.append((traced["rows"], sorted(map(str, traced["edges"]))))
    return found


def test_pairs_are_found_joined_and_taken_apart(client: Client) -> None:
    client.post(*estate())
    before = answers(client)
    found = client.get("/api/v2/doctor")
    assert {named(pair) for pair in found["pairs"]} == PAIRS
    assert all(pair["score"] >= found["defaultScore"] for pair in found["pairs"])
    table = next(pair for pair in found["pairs"] if pair["rule"] == "catalog")
    assert [one["kind"] for one in table["evidence"]] == ["rule", "name", "schema", "flow"]
    node = f"dataset:{LAKE}:sums"
    assert "job:jobs:ingest" not in str(client.get("/api/v2/trace", node=node))

    assert {named(one) for one in post(client, action="apply")["aliases"]} == PAIRS
    assert "job:jobs:ingest" in str(client.get("/api/v2/trace", node=node))
    after = client.get("/api/v2/doctor")
    assert after["pairs"] == []
    assert {named(one) for one in after["recorded"]} == PAIRS
    assert post(client, action="apply")["aliases"] == []

    assert {named(one) for one in post(client, action="undo")["aliases"]} == PAIRS
    assert answers(client) == before
    assert client.get("/api/v2/doctor")["recorded"] == []
    assert client.get("/api/v2/aliases")["aliases"] == []
    assert post(client, action="undo")["aliases"] == []


def test_files_behind_tables_of_dbt(client: Client) -> None:
    """Its SQL says which file a source is; of an external model nothing does, and of two no one knows."""
    duckdb = "duckdb:///data/shop.duckdb"
    external = facet(config={"materialized": "external"})

    def model(number: int, query: str, reads: list[str], writes: Any) -> dict[str, Any]:
        return event(
            "COMPLETE", number, run=number, job=f"model{number}",
            inputs=[dataset(name, duckdb) for name in reads], outputs=[writes],
            job_facets={"sql": facet(query=query, dialect="duckdb")},
        )  # fmt: skip

    files = [dataset(f"raw/{name}", LAKE) for name in ("bids.csv", "a/1.csv", "b/2.csv", "orders")]
    client.post(
        event("COMPLETE", 0, run=90, job="lands", inputs=["raw"], outputs=files),
        model(1, "select * from 's3://lake/raw/bids.csv'", ["shop.raw.bids"],
              dataset("shop.main.totals", duckdb, dbt_model=external)),
        model(2, """select * from read_parquet(['s3://lake/raw/orders/*.parquet'])
              join "shop"."main"."plain" using (id)""", ["shop.raw.sold", "shop.main.plain"],
              dataset("shop.main.sums", duckdb)),
        model(3, "select * from 's3://lake/raw/a/1.csv' join 's3://lake/raw/b/2.csv' using (id)",
              ["shop.raw.one", "shop.raw.two"], dataset("shop.main.both", duckdb)),
    )  # fmt: skip
    found = client.get("/api/v2/doctor")
    sure = {(duckdb, "shop.raw.bids", LAKE, "raw/bids.csv")}
    likely = {(duckdb, "shop.raw.sold", LAKE, "raw/orders")}
    assert {named(one) for one in found["pairs"] if one["score"] >= DEFAULT_SCORE} == sure
    assert {named(one) for one in found["pairs"] if one["score"] < DEFAULT_SCORE} == likely
    assert {pair["rule"] for pair in found["pairs"]} == {"file"}

    def unknown(answer: Any) -> dict[str, str]:
        kinds = [one for one in answer["findings"] if one["kind"] == "external file"]
        return {one["named"]["name"]: one["text"] for one in kinds}

    assert set(unknown(found)) == {"shop.main.totals", "model3"}
    assert "s3://lake raw/a/1.csv, s3://lake raw/b/2.csv" in unknown(found)["model3"]
    assert {named(one) for one in post(client, action="apply")["aliases"]} == sure
    joined = {"alias": {"namespace": duckdb, "name": "shop.main.totals"},
              "dataset": {"namespace": LAKE, "name": "out/totals.parquet"}}  # fmt: skip
    client.post(event("COMPLETE", 30, run=91, job="reads",
                      inputs=[dataset("out/totals.parquet", LAKE)], outputs=["report"]))  # fmt: skip
    answer = client.call("POST", "/api/v2/aliases", json=joined)
    assert answer.status_code in (200, 201), answer.text
    after = client.get("/api/v2/doctor")
    assert {named(pair) for pair in after["pairs"]} == likely
    assert set(unknown(after)) == {"model3"}


BIDS = "select * from 's3://lake/raw/bids.csv'"


@pytest.mark.parametrize(
    ("query", "table", "written", "score"),
    [
        (BIDS, "shop.raw.bids", False, 0.9),
        (BIDS, "shop.raw.sold", False, 0.5),
        # Somebody writes it: it is a table.
        (BIDS, "shop.raw.bids", True, None),
        (BIDS, "shop.raw.sold", True, None),
        # The statement names it, in whatever quoting and case.
        (f"{BIDS} join shop.raw.sold using (id)", "shop.raw.sold", False, None),
        (f'{BIDS} join "shop"."raw"."sold" using (id)', "shop.raw.sold", False, None),
        (f"{BIDS} join SHOP . Raw.SOLD s using (id)", "shop.raw.sold", False, None),
        (f"{BIDS} join raw.bids using (id)", "shop.raw.bids", False, None),
        (f"{BIDS}, bids", "shop.raw.bids", False, None),
        # It names another, or only what it calls so itself, says so in a comment or in a text.
        (f"{BIDS} join other.sold using (id)", "shop.raw.sold", False, 0.5),
        (f"with bids as ({BIDS}) select * from bids", "shop.raw.bids", False, 0.9),
        (f"{BIDS} AS bids where bids.id > 1", "shop.raw.bids", False, 0.9),
        (f"{BIDS} bids", "shop.raw.bids", False, 0.9),
        (f"{BIDS} -- raw.bids isn't\n /* raw.bids */ where x = 'raw.bids'", "shop.raw.bids", False, 0.9),
    ],
)  # fmt: skip
def test_a_table_is_a_file_only_where_it_can_be_no_table(
    client: Client, query: str, table: str, written: bool, score: float | None
) -> None:
    duckdb = "duckdb:///data/shop.duckdb"
    source = dataset(table, duckdb)
    client.post(
        event("COMPLETE", 0, run=8, job="reads file", inputs=[dataset("raw/bids.csv", LAKE)]),
        event("COMPLETE", 1, run=9, job="fills", outputs=[source] if written else ["other"]),
        event(
            "COMPLETE", 2, inputs=[source], outputs=[dataset("shop.main.sums", duckdb)],
            job_facets={"sql": facet(query=query, dialect="duckdb")},
        ),
    )  # fmt: skip
    found = {named(pair): pair["score"] for pair in client.get("/api/v2/doctor")["pairs"]}
    pair = (duckdb, table, LAKE, "raw/bids.csv")
    assert found == ({} if score is None else {pair: score})


def test_no_two_tables_are_the_file_of_one_name(client: Client) -> None:
    duckdb = "duckdb:///data/shop.duckdb"
    client.post(
        event("COMPLETE", 0, run=8, job="lands", outputs=[dataset("raw/bids.csv", LAKE)]),
        event(
            "COMPLETE", 2, outputs=[dataset("shop.main.sums", duckdb)],
            inputs=[dataset(f"shop.{schema}.bids", duckdb) for schema in ("raw", "old")],
            job_facets={"sql": facet(query=BIDS, dialect="duckdb")},
        ),
    )  # fmt: skip
    assert client.get("/api/v2/doctor")["pairs"] == []


def test_calls_at_once_each_say_what_they_did(client: Client) -> None:
    client.post(*estate())
    for action in ("apply", "undo"):
        body = json.dumps({"action": action}).encode()
        headers = {"content-type": "application/json"}
        together = client.call_together([("POST", "/api/v2/doctor", body, headers)] * 4)
        assert [one.status_code for one in together] == [200] * 4
        changed = [named(pair) for one in together for pair in one.json()["aliases"]]
        assert sorted(changed) == sorted(PAIRS)
    # Of those that were asked for by name, too.
    pairs = client.get("/api/v2/doctor")["pairs"]
    assert len(post(client, action="apply", pairs=pairs)["aliases"]) == len(PAIRS)
    assert post(client, action="apply", pairs=pairs)["aliases"] == []


def test_what_stood_for_a_name_goes_with_it(client: Client) -> None:
    """A spelling, a symlink and a table declared by hand follow the name that is taken apart."""
    link = facet(identifiers=[{"namespace": "trino://t:8080", "name": "x.y", "type": "TABLE"}])
    client.post(
        *estate(),
        event("COMPLETE", 40, run=5, job="more", inputs=[dataset("clicks", "kafka://LOCALHOST")]),
        event(
            "COMPLETE", 50, run=6, job="linked", inputs=[dataset("clicks", LOCAL, symlinks=link)]
        ),
    )
    declared = {
        "alias": {"namespace": "kafka://elsewhere:9092", "name": "clicks"},
        "dataset": {"namespace": LOCAL, "name": "clicks"},
    }
    assert client.call("POST", "/api/v2/aliases", json=declared).status_code == 201
    client.post(
        event("COMPLETE", 60, run=7, job="by", inputs=[dataset("clicks", "kafka://elsewhere:9092")])
    )
    post(client, action="apply")
    # What comes while they are one belongs to the name that it is told of.
    client.post(
        event("COMPLETE", 70, run=8, job="query", inputs=[dataset("x.y", "trino://t:8080")])
    )
    post(client, action="undo")
    local = quote(LOCAL, safe="")
    page = client.get(f"/api/v2/datasets/{local}/clicks")
    assert {job["name"] for job in page["consumers"]} == {"more", "linked", "by", "query"}
    assert {job["name"] for job in page["producers"]} == {"site"}
    other = client.get(f"/api/v2/datasets/{quote(KAFKA, safe='')}/clicks")
    assert {job["name"] for job in other["consumers"]} == {"count"}
    # What a person declares, doctor does not take back.
    post(client, action="apply")
    theirs = {
        "alias": {"namespace": LOCAL, "name": "clicks"},
        "dataset": {"namespace": KAFKA, "name": "clicks"},
    }
    assert client.call("POST", "/api/v2/aliases", json=theirs).status_code == 201
    assert LOCAL not in str(post(client, action="undo"))


def test_a_rebuild_from_the_log_gives_the_same(client: Client) -> None:
    client.post(*estate())
    post(client, action="apply")
    post(client, action="undo")
    post(client, action="apply", pairs=[client.get("/api/v2/doctor")["pairs"][0]])
    before = answers(client)
    recorded = client.get("/api/v2/doctor")["recorded"]
    assert len(recorded) == 1

    assert rebuild(client.store) == 9
    assert answers(client) == before
    assert client.get("/api/v2/doctor")["recorded"] == recorded


def test_one_run_that_reads_and_writes_both_keeps_them_apart(client: Client) -> None:
    client.post(*estate())
    copied = [dataset("clicks", LOCAL)], [dataset("clicks", KAFKA)]
    client.post(event("COMPLETE", 40, run=9, job="mirror", inputs=copied[0], outputs=copied[1]))
    assert {pair["rule"] for pair in client.get("/api/v2/doctor", minScore="0")["pairs"]} == {
        "catalog"
    }
    pair = {"alias": {"namespace": LOCAL, "name": "clicks"}}
    pair["dataset"] = {"namespace": KAFKA, "name": "clicks"}
    refused = client.call("POST", "/api/v2/doctor", json={"action": "apply", "pairs": [pair]})
    assert refused.status_code == 422
    assert "does not propose" in refused.text


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"action": "heal"},
        {"action": "apply", "minScore": 2},
        {"action": "apply", "minScore": True},
        {"action": "apply", "pairs": 1},
        {"action": "apply", "pairs": [{"alias": 1}]},
        {"action": "apply", "rules": []},
        {"action": "apply", "rules": {"read": [{"name": "(a+)+", "toName": "b"}]}},
    ],
)
def test_a_wrong_request_changes_nothing(client: Client, body: dict[str, Any]) -> None:
    client.post(*estate())
    assert client.call("POST", "/api/v2/doctor", json=body).status_code == 422
    assert client.get("/api/v2/aliases")["aliases"] == []


def test_what_else_is_doubtful(client: Client) -> None:
    now = datetime.now(timezone.utc)

    def told(state: str, ago: timedelta, **more: Any) -> dict[str, Any]:
        return {**event(state, 0, **more), "eventTime": (now - ago).isoformat()}

    client.post(
        told("START", timedelta(hours=5), run=1, job="quiet", inputs=["a"], outputs=["b"]),
        told("COMPLETE", timedelta(0), run=2, job="reader", inputs=["a"]),
        told("COMPLETE", timedelta(minutes=-9), run=3, job="early", inputs=["a"], outputs=["c"]),
    )
    for number in range(5):
        client.post(
            told("COMPLETE", timedelta(hours=1), run=10 + number, job="slow", outputs=["d"])
        )
    for number in range(4):
        ago = timedelta(hours=4 - number + 20)
        client.post(told("COMPLETE", ago, run=20 + number, job="hourly", outputs=["e"]))
        ago = timedelta(hours=20, seconds=-number)
        client.post(told("COMPLETE", ago, run=30 + number, job="by hand", outputs=["f"]))
    alone = {k: v for k, v in event("COMPLETE", 0).items() if k not in ("run", "job", "eventType")}
    client.post({**alone, "dataset": dataset("alone", schema=schema("x")), "schemaURL":
                 "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent"})  # fmt: skip
    refused = client.call("POST", "/api/v1/lineage", json={"eventTime": "never"})
    assert refused.status_code == 422
    found = client.get("/api/v2/doctor")
    seen = {(one["kind"], (one["named"] or {}).get("name")) for one in found["findings"]}
    assert seen >= {
        ("silent", "quiet"),
        ("silent", "hourly"),
        ("no outputs", "reader"),
        ("clock", "early"),
        ("clock", "slow"),
        ("orphan", "alone"),
        ("refused", None),
    }
    assert ("silent", "by hand") not in seen
    assert ("clock", "quiet") not in seen
    assert ("orphan", "a") not in seen
    assert found["counts"]["orphan"] == 1
    clocks = {
        one["named"]["name"]: one["text"] for one in found["findings"] if one["kind"] == "clock"
    }
    assert "ahead" in clocks["early"]
    assert "behind" in clocks["slow"]
    limited = client.get("/api/v2/doctor", limit=1)
    assert limited["counts"] == found["counts"]
    assert limited["truncated"]


def test_a_stream_that_two_agents_report(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each reports a run of its own; doctor names both until one is ended."""
    stream = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}

    def told(state: str, second: int, run: int, **more: Any) -> dict[str, Any]:
        uses = {"inputs": ["orders"], "outputs": ["lake"], "job_facets": stream, **more}
        return event(state, second, run=run, job="sink", **uses)

    def twice() -> list[dict[str, Any]]:
        found = client.get("/api/v2/doctor")
        some = [one for one in found["findings"] if one["kind"] == "reported twice"]
        assert found["counts"]["reported twice"] == len(some)
        return some

    client.post(told("START", 0, 1), told("START", 60, 2))
    assert twice() == []  # the first may have been killed
    client.post(told("RUNNING", 90, 1))
    (one,) = twice()
    assert one["node"] == "job:jobs:sink"
    assert one["since"] == "2026-01-01T00:01:00Z"
    assert run_id(1) in one["text"]
    assert run_id(2) in one["text"]
    Command(client, monkeypatch)
    shown = CliRunner().invoke(app, ["doctor"])
    assert shown.exit_code == 6
    assert "streams that are reported twice (1)" in shown.stdout
    assert client.call("POST", f"/api/v1/jobs/runs/{run_id(2)}/abort").is_success
    assert twice() == []
    batch = {"jobType": facet(processingType="BATCH")}
    for second, run in ((200, 11), (210, 12), (220, 11)):
        client.post(event("RUNNING", second, run=run, job="batch", inputs=["orders"],
                          outputs=["x"], job_facets=batch))  # fmt: skip
    assert twice() == []


def test_who_may_ask_and_who_may_apply(store_url: str) -> None:
    store = open_store(store_url)
    key = "an-admin-key"
    limited = create_token(store, "part", "read", ["jobs", LAKE, KAFKA])
    client = Client(store, ServerSettings(tokens=[key]))

    def ask(token: str, method: str = "GET", path: str = "", **more: Any) -> httpx.Response:
        headers = {"authorization": f"Bearer {token}", **more.pop("headers", {})}
        return client.call(method, f"/api/v2/doctor{path}", headers=headers, **more)

    try:
        for one in estate():
            sent = {"authorization": f"Bearer {key}"}
            assert client.call("POST", "/api/v1/lineage", json=one, headers=sent).is_success
        assert len(ask(key).json()["pairs"]) == 2
        seen = ask(limited)
        assert seen.json()["pairs"] == []
        assert not any(part in seen.text for part in (HIVE, LOCAL))
        assert "datasets=2" in seen.headers["x-headwater-hidden"]
        assert ask(limited, "POST", "/findings", json={}).json()["pairs"] == []
        action = {"action": "apply"}
        assert ask(limited, "POST", json=action).status_code == 403
        foreign = {"sec-fetch-site": "cross-site"}
        assert ask(key, "POST", json=action, headers=foreign).status_code == 403
        assert ask(key).json()["recorded"] == []
        assert len(ask(key, "POST", json=action).json()["aliases"]) == 2
        assert ask(limited).json()["recorded"] == []
    finally:
        client.close()


def test_a_job_that_has_just_begun_may_report_its_outputs_yet(client: Client) -> None:
    def findings() -> list[str]:
        found = client.get("/api/v2/doctor")["findings"]
        return [one["named"]["name"] for one in found if one["kind"] == "no outputs"]

    now = {"eventTime": datetime.now(timezone.utc).isoformat()}
    start = {**event("START", 0, run=1, job="app"), **now}
    client.post(start, {**event("START", 0, run=2, job="query", inputs=["a"]), **now})
    client.post(event("START", 0, run=3, job="old"))
    assert findings() == ["old"]
    client.post({**start, "eventType": "COMPLETE"})
    assert findings() == ["app", "old"]


def test_a_job_that_others_are_part_of_needs_no_outputs(client: Client) -> None:
    parent = facet(run={"runId": run_id(1)}, job={"namespace": "jobs", "name": "app"})
    client.post(
        event("START", 0, run=1, job="app"),
        event("COMPLETE", 1, run=2, job="app.part", outputs=["a"], run_facets={"parent": parent}),
        event("COMPLETE", 2, run=3, job="nothing"),
    )

    def findings() -> list[str]:
        found = client.get("/api/v2/doctor")["findings"]
        return [one["named"]["name"] for one in found if one["kind"] == "no outputs"]

    assert findings() == ["nothing"]
    kinds = [("SPARK", "SQL_JOB"), ("SPARK", "COMMAND"), ("SPARK", "APPLICATION"), ("AIRFLOW", "TASK"),
             ("DBT", "TEST")]  # fmt: skip
    for number, (integration, kind) in enumerate(kinds):
        about = facet(processingType="BATCH", integration=integration, jobType=kind)
        for name, facets in (("in", {"parent": parent}), ("alone", {})):
            client.post(
                event("COMPLETE", 3, run=10 * number + 10 + len(name), job=f"{kind} {name}",
                      inputs=["a"], job_facets={"jobType": about}, run_facets=facets)
            )  # fmt: skip
    reported = ["SQL_JOB alone", "COMMAND alone", "APPLICATION in", "APPLICATION alone", "TASK in",
                "TASK alone", "TEST alone"]  # fmt: skip
    assert findings() == ["nothing", *reported]
    # A plan that writes writes something, though its producer does not see what.
    about = facet(processingType="BATCH", integration="SPARK", jobType="SQL_JOB")
    for number, name in enumerate(("append_data.lake_orders", "create_table_as_select.t", "count")):
        client.post(
            event("COMPLETE", 4, run=90 + number, job=f"app.{name}", inputs=["a"],
                  job_facets={"jobType": about}, run_facets={"parent": parent})
        )  # fmt: skip
    written = ["app.append_data.lake_orders", "app.create_table_as_select.t"]
    assert findings() == ["nothing", *reported, *written]


def test_producers_that_disagree_and_ends_that_were_inferred(client: Client) -> None:
    typed = [facet(fields=[{"name": "x", "type": kind}]) for kind in ("int", "string")]
    for number, claimed in enumerate(typed):
        out = dataset("both", schema=claimed)
        client.post(event("RUNNING", number, run=number + 1, job=f"w{number}", outputs=[out]))
    client.post(event("START", 0, run=5, job="lost", outputs=["z"]))
    client.store.perform({"command": "run", "run": run_id(5), "inferred": True, "time": 10**15})
    found = {one["kind"]: one for one in client.get("/api/v2/doctor")["findings"]}
    assert found["schema"]["named"]["name"] == "both"
    assert "disagree about x" in found["schema"]["text"]
    assert found["inferred"]["named"]["name"] == "lost"


def test_a_planted_estate_on_a_server(client: Client) -> None:
    """What the server does not join by itself, doctor finds; nothing else."""
    made, truth = planted_estate(1_000, 50, seed=7)
    events = []
    for number, (job, uses) in enumerate(
        itertools.groupby(sorted(made.uses(), key=str), key=lambda use: use.job)
    ):
        sides: dict[bool, list[Any]] = {True: [], False: []}
        for use in uses:
            key: Any = use.dataset
            held = schema(*sorted(made.columns_of[key]))
            sides[use.writes].append(dataset(key[1], key[0], schema=held))
        events.append(
            event("COMPLETE", number % 3600, run=number + 1, job=str(job),
                  inputs=sides[False], outputs=sides[True])
        )  # fmt: skip
    random.Random(3).shuffle(events)
    body = "\n".join(json.dumps(one) for one in events)
    assert client.call("POST", "/api/v2/events", content=body).status_code == 201
    pairs = client.get("/api/v2/doctor", limit=1000, minScore="0.8")["pairs"]
    found = {frozenset((named(pair)[:2], named(pair)[2:])) for pair in pairs}
    assert found - truth == set()
    roots = {}
    for one in itertools.chain.from_iterable(truth):
        page = client.get(f"/api/v2/datasets/{quote(one[0], safe='')}/{quote(one[1], safe='')}")
        roots[one] = (page["namespace"], page["name"])
    already = {pair for pair in truth if len({roots[one] for one in pair}) == 1}
    assert len(already | found) >= 48, truth - already - found
    assert len(found) > 20


class TestCommand:
    @pytest.fixture
    def command(self, client: Client, monkeypatch: pytest.MonkeyPatch) -> Command:
        return Command(client, monkeypatch)

    def run(self, *words: str) -> tuple[int, str]:
        result = CliRunner().invoke(app, ["doctor", *words])
        if isinstance(result.exception, HeadwaterError):
            return result.exception.exit_code, result.exception.message
        return result.exit_code, result.output

    def test_it_finds_applies_and_undoes(self, client: Client, command: Command) -> None:
        assert self.run() == (0, "nothing found\n")
        client.post(*estate())
        code, text = self.run()
        assert code == 6
        assert f"{HIVE}:default.orders" in text
        assert "one is only written, the other only read" in text
        code, text = self.run("--json")
        assert code == 6
        assert {named(pair) for pair in json.loads(text)["pairs"]} == PAIRS
        text = command("doctor", "--apply")
        assert "2 aliases recorded" in text
        assert "2 aliases removed" in command("doctor", "--undo")
        assert self.run("--apply", "--undo")[0] == 2
        assert json.loads(command("doctor", "--apply", "--min-score", "0.99", "--json")) == {
            "action": "apply",
            "aliases": [],
        }

    def test_pairs_that_are_not_listed_are_counted(self, client: Client, command: Command) -> None:
        topics = [f"topic{number}" for number in range(103)]
        held = schema(*COLUMNS)
        client.post(
            event("COMPLETE", 0, job="site", outputs=[dataset(one, LOCAL, schema=held) for one in topics]),
            event("COMPLETE", 10, run=2, job="count", inputs=[dataset(one, KAFKA, schema=held) for one in topics]),
        )  # fmt: skip
        _, text = self.run()
        assert text.count(f"=  {KAFKA}:topic") == 100
        assert "and 3 more, none of them surer" in text
        assert "103 of 0.8 and more" in text
        assert "more, none" not in self.run("--min-score", "1")[1]

    def test_rules_of_ones_own(self, client: Client, command: Command, tmp_path: Path) -> None:
        client.post(*estate())
        file = tmp_path / "rules.json"
        rules: dict[str, Any] = {
            "read": [{"namespace": LAKE, "name": "visit(s)", "toName": r"sum\1"}],
            "never": [{"one": "hive:.*", "other": "s3:.*"}],
        }
        file.write_text(json.dumps(rules))
        code, text = self.run("--rules", str(file), "--json")
        assert code == 6
        found = {named(pair): pair for pair in json.loads(text)["pairs"]}
        assert (HIVE, "default.orders", LAKE, "default/orders") not in found
        own = [pair for pair in found.values() if pair["rule"] == "rule"]
        assert {own[0]["alias"]["name"], own[0]["dataset"]["name"]} == {"sums", "visits"}
        file.write_text("{")
        assert self.run("--rules", str(file))[0] == 2
        assert self.run("--rules", str(tmp_path / "none.toml"))[0] == 2
        file.write_text('{"read": 1}')
        code, text = self.run("--rules", str(file))
        assert code == 2
        assert "read must be a list" in text
