from __future__ import annotations

import json
import re
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from headwater.cli.server.serve import _with_preview
from headwater.server.store.keep.rebuild import rebuild

from .making import at, dataset, event, facet, run_id, schema

if TYPE_CHECKING:
    import httpx

    from .conftest import Client

DEMO = Path(__file__).parents[2] / "fixtures" / "page" / "demo.ndjson"
RECORDED = datetime(2026, 1, 8, 12, tzinfo=timezone.utc)
LAKE = "dataset:s3://warehouse:lake/supplier_stats"


def recorded() -> bytes:
    """The demo's events, moved so that they end now."""
    shift = datetime.now(timezone.utc) - RECORDED - timedelta(seconds=1)

    def moved(found: re.Match[str]) -> str:
        time = datetime.fromisoformat(found[0].replace("Z", "+00:00")) + shift
        return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")

    return re.sub(r"20\d\d-\d\d-\d\dT[\d:.]+Z", moved, DEMO.read_text()).encode()


@pytest.fixture
def demo(client: Client) -> Client:
    answer = client.call("POST", "/api/v2/events", content=recorded())
    assert answer.status_code == 201, answer.text
    return client


def test_facets_that_events_of_one_batch_share_are_kept(demo: Client) -> None:
    found = demo.get("/api/v1/namespaces/shop/jobs/stats-sink")
    assert {"jobType", "documentation", "ownership"} <= set(found["facets"])


def test_overview_puts_what_fails_first_with_what_it_reaches(demo: Client) -> None:
    found = demo.get("/api/v2/overview")
    assert found["jobs"]["total"] == 9
    assert (found["jobs"]["FAILED"], found["jobs"]["ABORTED"]) == (1, 1)
    first, second = found["troubles"]["jobs"]
    assert (first["name"], first["state"]) == ("stats-sink", "FAILED")
    assert "permission denied" in first["error"]
    assert first["affected"] == {"jobs": 0, "datasets": 1, "more": False}
    assert second["name"] == "nightly_export"
    stats, export = found["halted"]
    assert stats == {"namespace": "postgres://analytics:5432", "name": "bi.public.supplier_stats"}
    assert export["name"].startswith("nightly/")
    assert sum(minute["events"] for minute in found["perMinute"]) == found["records"]
    kinds = {change["change"] for change in found["changes"]}
    assert kinds == {"edges", "schema"}


def test_a_table_that_gets_its_location_is_no_change(client: Client) -> None:
    """A sink knows its table by the catalog's name until its first record has made it."""
    named = {"namespace": "http://catalog", "name": "default.bids"}
    placed = dataset(
        "default/bids", "s3://wh", symlinks=facet(identifiers=[{**named, "type": "TABLE"}])
    )
    client.post(
        event("START", 0, job="sink", inputs=["bids"], outputs=[dataset("default.bids", "http://catalog")]),
        event("RUNNING", 90, job="sink", inputs=["bids"], outputs=[placed]),
    )  # fmt: skip
    (first,) = client.get("/api/v2/overview")["changes"]
    assert [(end["namespace"], end["name"]) for end in first["added"]] == [
        ("s3://lake", "bids"),
        ("s3://wh", "default/bids"),
    ]
    client.post(event("RUNNING", 100, job="sink", inputs=["bids", "orders"], outputs=[placed]))
    newest = client.get("/api/v2/overview")["changes"][0]
    assert ([end["name"] for end in newest["added"]], newest["removed"]) == (["orders"], [])
    sizes = facet(rowCount=3)
    client.post(
        event(
            "FAIL",
            110,
            job="sink",
            outputs=[{**placed, "outputFacets": {"outputStatistics": sizes}}],
        )
    )
    for route in ("/api/v1/jobs/runs", "/api/v2/runs"):
        ran = client.get(f"{route}/{run_id(1)}")
        (written,) = ran["outputDatasetVersions"]
        assert written["datasetVersionId"]["name"] == "default/bids"
        assert written["facets"]["outputStatistics"]["rowCount"] == 3
        assert len(ran["inputDatasetVersions"]) == 2
    assert (ran["written"]["datasets"], ran["written"]["rows"]) == (1, 3)
    of_table = f"/api/v2/datasets/{quote('s3://wh', safe='')}/{quote('default/bids', safe='')}"
    assert client.get(f"{of_table}/runs")["runs"][0]["directions"] == ["output"]
    (cause,) = client.get(f"{of_table}/why")["causes"]
    told = [(change["time"], change["text"]) for change in cause["changes"]]
    assert told == [(at(100), "began to read orders")]


def test_overview_names_a_job_that_is_late_by_its_own_habit(client: Client) -> None:
    now = datetime.now(timezone.utc)
    for n in range(6):
        start = now - timedelta(hours=5, minutes=10 * n)
        for state, time in (("START", start), ("COMPLETE", start + timedelta(minutes=1))):
            made = event(state, 0, run=n, job="every-ten-minutes", outputs=["out"])
            client.post({**made, "eventTime": time.isoformat()})
    (late,) = client.get("/api/v2/overview")["stale"]
    assert (late["name"], late["usualSeconds"]) == ("every-ten-minutes", 600)
    assert late["affected"] == {"jobs": 0, "datasets": 1, "more": False}
    assert client.get("/api/v2/overview")["halted"] == [{"namespace": "s3://lake", "name": "out"}]
    # Silent since it last wrote, which is when its newest run ended.
    assert 5 * 3600 - 60 <= late["silentSeconds"] < 5 * 3600


def test_map_shows_a_small_estate_whole(demo: Client) -> None:
    found = demo.get("/api/v2/map")
    nodes = {node["id"]: node for node in found["nodes"]}
    assert len(nodes) == 22
    assert not found["truncated"]
    assert nodes["job:shop:orders-source"]["integration"] == "kafka_connect"
    assert nodes["job:shop:orders-source"]["type"] == "source"
    assert nodes[LAKE]["store"] == "iceberg"
    ends = {(edge["origin"], edge["destination"]) for edge in found["edges"]}
    assert ("job:shop:orders-source", "dataset:kafka://broker:9092:shop.orders") in ends


def test_a_table_format_that_only_its_producer_knows_is_the_kind_of_store(client: Client) -> None:
    layers = {
        "ledger": ("ledger", "json"),
        "files": ("parquet", "parquet"),
        "bare": ("delta", None),
    }
    outputs = []
    for name, (layer, files) in layers.items():
        storage = facet(storageLayer=layer, **({"fileFormat": files} if files else {}))
        outputs.append({"namespace": "s3://lake", "name": name, "facets": {"storage": storage}})
    client.post(event("COMPLETE", 1, outputs=outputs))
    found = {node["name"]: node.get("store") for node in client.get("/api/v2/map")["nodes"]}
    assert (found["ledger"], found["files"], found["bare"]) == ("ledger", "s3", "delta")


def test_map_around_a_node_counts_what_it_leaves_out(demo: Client) -> None:
    node = "dataset:kafka://broker:9092:orders-enriched"
    found = demo.get("/api/v2/map", node=node, depth=0)
    nodes = {one["id"]: one for one in found["nodes"]}
    assert nodes[node]["more"] == {"upstream": 0, "downstream": 0}
    topic = nodes["dataset:kafka://broker:9092:shop.orders"]
    assert topic["more"] == {"upstream": 1, "downstream": 1}


def test_map_of_columns_carries_how_and_why(demo: Client) -> None:
    found = demo.get("/api/v2/map", node=LAKE, depth=1, columns="true")
    fields = {node["id"]: node.get("fields") for node in found["nodes"]}
    assert [f["name"] for f in fields[LAKE]][:2] == ["supplier_id", "supplier"]
    edges = {(e["source"]["field"], e["target"]["field"]): e for e in found["columns"]["edges"]}
    revenue = edges["amount", "revenue"]
    assert revenue["how"][0]["subtype"] == "AGGREGATION"
    assert revenue["jobs"] == ["job:shop:supplier_stats.by_day"]
    assert revenue["evidence"][0]["source"] == "plan node"
    topic = "datasetField:kafka://broker:9092:shop.orders:customer_email"
    path = demo.get("/api/v2/columns", node=topic)["edges"]
    (first,) = [e for e in path if e["source"]["name"] == "shop.public.orders"]
    reason = {"source": "config key", "detail": "topic.prefix", "observed": False}
    assert reason in first["evidence"]


def test_map_shows_a_past_moment_and_the_difference_between_two(client: Client) -> None:
    client.post(
        event("START", 0, inputs=["a"], outputs=["b"]),
        event("COMPLETE", 10, inputs=["a"], outputs=["b"]),
        event("START", 20, run=2, inputs=["a"], outputs=["c"]),
        event("FAIL", 30, run=2, inputs=["a"], outputs=["c"]),
    )
    then = client.get("/api/v2/map", at=at(5))
    assert {n["name"] for n in then["nodes"] if n["kind"] == "dataset"} >= {"a", "b"}
    (job,) = [n for n in then["nodes"] if n["kind"] == "job"]
    assert job["state"] == "RUNNING"
    found = client.get("/api/v2/map", **{"from": at(5), "to": at(40)})
    changes = {(e["origin"], e["destination"]): e["change"] for e in found["edges"]}
    assert changes["job:jobs:load", "dataset:s3://lake:b"] == "removed"
    assert changes["job:jobs:load", "dataset:s3://lake:c"] == "added"
    assert changes["dataset:s3://lake:a", "job:jobs:load"] == ""


def test_map_of_a_large_estate_is_its_namespaces(client: Client) -> None:
    events = []
    for n in range(310):
        made = event("START", n, run=n, job=f"j{n}", outputs=[dataset("t", f"kafka://k{n % 3}:1")])
        made["job"]["namespace"] = f"team{n % 4}"
        events.append(json.dumps(made))
    client.call("POST", "/api/v2/events", content="\n".join(events))
    found = client.get("/api/v2/map")
    assert found["nodes"] == []
    assert found["total"] == {"jobs": 310, "datasets": 3}
    assert {g["namespace"] for g in found["groups"]} == {
        *(f"team{n}" for n in range(4)),
        *(f"kafka://k{n}:1" for n in range(3)),
    }
    assert sum(e["count"] for e in found["edges"]) == 310
    inside = client.get("/api/v2/map", namespace="team1")
    assert 0 < len(inside["nodes"]) <= 300
    tight = client.get("/api/v2/map", namespace="team1", limit=20)
    assert len(tight["nodes"]) == 20
    assert tight["truncated"]


def test_column_path_goes_both_ways_across_jobs(demo: Client) -> None:
    node = "datasetField:kafka://broker:9092:orders-enriched:amount"
    found = demo.get("/api/v2/columns", node=node)
    fields = {(c["dataset"].rpartition(":")[2], c["field"]) for c in found["columns"]}
    assert ("shop.public.order_items", "price") in fields
    assert ("bi.public.supplier_stats", "revenue") in fields
    assert ("nightly/supplier_stats.parquet", "revenue") in fields


def test_columns_not_known_yet_and_no_such_dataset_are_two_answers(client: Client) -> None:
    client.post(event("RUNNING", 1, outputs=[dataset("seen", schema=schema("id")), "new"]))

    def ask(name: str) -> Any:
        node = f"datasetField:s3://lake:{name}"
        answer = client.call("GET", "/api/v2/columns", params={"node": node})
        return answer.status_code, answer.json()

    status, found = ask("seen:id")
    assert (status, found["columnsKnown"]) == (200, True)
    assert [column["field"] for column in found["columns"]] == ["id"]
    unknown = {"columnsKnown": False, "columns": [], "edges": [], "truncated": False}
    assert ask("new:id") == (200, unknown)
    assert ask("none:id") == (
        404,
        {"code": 404, "message": "Dataset of the column 's3://lake:none:id' not found."},
    )
    assert ask("seen:price")[1]["message"] == "Dataset 'seen' has no column 'price'."


def test_dataset_page_has_history_aliases_statistics_and_freshness(demo: Client) -> None:
    def ask(name: str) -> Any:
        return demo.get(
            f"/api/v2/datasets/{quote('s3://warehouse', safe='')}/{quote(name, safe='')}"
        )

    orders = ask("lake/orders")
    newest, oldest = orders["history"]
    assert {f["name"] for f in newest["fields"]} - {f["name"] for f in oldest["fields"]} == {
        "customer"
    }
    assert orders["aliases"] == [{"namespace": "iceberg://catalog:8181", "name": "lake.orders"}]
    assert orders["freshness"]["verdict"] == "live"
    stats = ask("lake/supplier_stats")
    assert stats["freshness"]["verdict"] == "fresh"
    assert stats["writes"][0]["rows"] > 2_000
    assert stats["writes"][0]["quality"]["dataQualityAssertions"]["assertions"]
    assert [job["name"] for job in stats["producers"]] == ["supplier_stats.by_day"]
    assert [job["name"] for job in stats["consumers"]] == ["nightly_export"]


def test_job_page_knows_its_family_and_reach(demo: Client) -> None:
    child = demo.get("/api/v2/jobs/shop/supplier_stats.by_day")
    assert child["parent"]["name"] == "supplier_stats"
    assert child["affected"] == {"jobs": 1, "datasets": 2, "more": False}
    parent = demo.get("/api/v2/jobs/shop/supplier_stats")
    assert [job["name"] for job in parent["children"]] == ["supplier_stats.by_day"]


def test_connectors_come_with_tasks_and_trouble_first(demo: Client) -> None:
    found = demo.get("/api/v2/connectors")["connectors"]
    assert [one["name"] for one in found] == ["stats-sink", "orders-source", "audit-sink"]
    assert [task["state"] for task in found[0]["report"]["tasks"]] == ["RUNNING", "FAILED"]
    assert "PSQLException" in found[0]["failure"]["stackTrace"]
    assert [d["name"] for d in found[0]["outputs"]] == ["bi.public.supplier_stats"]


@pytest.fixture
def ended(client: Client) -> Client:
    """A connector that was paused, an application with its stream that were stopped, a killed batch."""
    stream = {"jobType": facet(processingType="STREAMING", integration="SPARK")}
    source = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}
    inside = {"parent": facet(run={"runId": run_id(2)}, job={"namespace": "jobs", "name": "app"})}
    stop = {"headwater_end": facet(reason="signal SIGTERM")}

    def connector(kind: str, second: int, run: int, state: str) -> dict[str, Any]:
        own = {"headwater_connect": facet(state=state, tasks=[])}
        return event(
            kind, second, run=run, job="source", outputs=["a"], job_facets=source, run_facets=own
        )

    client.post(
        connector("START", 1, 1, "RUNNING"),
        connector("ABORT", 2, 1, "STOPPED"),
        connector("START", 3, 5, "RUNNING"),
        connector("COMPLETE", 60, 5, "PAUSED"),
        event("START", 1, run=2, job="app"),
        event("START", 2, run=3, job="app.query", inputs=["a"], outputs=["b"], job_facets=stream,
              run_facets=inside),
        event("ABORT", 60, run=3, job="app.query", job_facets=stream, run_facets={**inside, **stop}),
        event("ABORT", 61, run=2, job="app", run_facets=stop),
        event("START", 1, run=4, job="batch", inputs=["b"], outputs=["c"]),
        event("ABORT", 61, run=4, job="batch", run_facets=stop),
    )  # fmt: skip
    return client


def test_what_somebody_paused_or_stopped_is_shown_as_that(ended: Client) -> None:
    """A batch that somebody ended has not done its work: it stays aborted."""
    shown = {"source": "paused", "app": "stopped", "app.query": "stopped", "batch": None}
    for name, planned in shown.items():
        assert ended.get(f"/api/v2/jobs/jobs/{name}")["planned"] == planned, name
    ends = ended.get("/api/v2/jobs/jobs/source")["plannedEnds"]
    assert ends == {run_id(1): "stopped", run_id(5): "paused"}
    drawn = ended.get("/api/v2/map")
    assert {n["name"]: n["planned"] for n in drawn["nodes"] if n["kind"] == "job"} == shown
    before = ended.get("/api/v2/map", at=at(30))
    assert {(n["state"], n["planned"]) for n in before["nodes"] if n["kind"] == "job"} == {
        ("RUNNING", None)
    }
    overview = ended.get("/api/v2/overview")
    assert overview["jobs"] == {
        "total": 4, "NEW": 0, "RUNNING": 0, "COMPLETED": 0, "FAILED": 0, "ABORTED": 1,
        "PAUSED": 1, "STOPPED": 2,
    }  # fmt: skip
    assert [one["name"] for one in overview["troubles"]["jobs"]] == ["batch"]
    (group,) = [
        one for one in ended.get("/api/v2/map", limit=1)["groups"] if one["namespace"] == "jobs"
    ]
    assert {k: v for k, v in group["states"].items() if v} == {
        "ABORTED": 1, "PAUSED": 1, "STOPPED": 2,
    }  # fmt: skip


def test_the_overview_is_calm_after_a_clean_end(ended: Client) -> None:
    """Connectors that were stopped, streams that got a SIGTERM, a batch that was complete before."""
    source = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}
    own = {"headwater_connect": facet(state="STOPPED", tasks=[])}
    ended.post(
        event("START", 62, run=6, job="batch", inputs=["b"], outputs=["c"]),
        event("COMPLETE", 63, run=6, job="batch"),
        event("START", 62, run=7, job="sink", inputs=["c"], job_facets=source),
        event("ABORT", 64, run=7, job="sink", job_facets=source, run_facets=own),
    )
    found = ended.get("/api/v2/overview")
    assert (found["troubles"]["jobs"], found["stale"], found["halted"]) == ([], [], [])
    assert (found["jobs"]["STOPPED"], found["jobs"]["PAUSED"], found["jobs"]["ABORTED"]) == (
        3,
        1,
        0,
    )


def test_a_connector_that_somebody_stopped_is_not_listed_as_trouble(demo: Client) -> None:
    source = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}
    own = {"headwater_connect": facet(state="STOPPED", tasks=[])}
    demo.post(event("ABORT", 1, run=8, job="a-stopped", job_facets=source, run_facets=own))
    found = demo.get("/api/v2/connectors")["connectors"]
    assert [one["name"] for one in found] == [
        "stats-sink", "orders-source", "a-stopped", "audit-sink",
    ]  # fmt: skip


def test_a_connector_is_previewed_before_it_is_deployed(demo: Client) -> None:
    config = {
        "connector.class": "io.debezium.connector.jdbc.JdbcSinkConnector",
        "topics": "supplier-stats",
        "connection.url": "jdbc:postgresql://reports:5432/bi?user=ann&password=hunter2",
        "connection.password": "hunter2",
        "collection.name.format": "stats",
    }
    body = {
        "config": json.dumps({"name": "stats-copy", "config": config}),
        "bootstrap": "broker:9092",
    }

    def ask(**more: Any) -> httpx.Response:
        return demo.call("POST", "/api/v2/connectors/preview", json={**body, **more})

    assert ask().status_code == 404
    _with_preview(demo.app)
    found = ask().json()
    assert (found["name"], found["family"], found["type"]) == ("stats-copy", "jdbc", "sink")
    assert found["inputs"] == [{"namespace": "kafka://broker:9092", "name": "supplier-stats"}]
    assert found["outputs"] == [{"namespace": "postgres://reports:5432", "name": "bi.public.stats"}]
    (edge,) = found["edges"]
    assert ["revenue", "revenue"] in edge["columns"]
    assert "config key: topics" in edge["evidence"]
    assert "hunter2" not in json.dumps(found)
    assert "stats-copy" not in json.dumps(demo.get("/api/v2/connectors"))
    lines = "\n".join(f"{key}={value}" for key, value in config.items())
    assert ask(config=f"name=stats-copy\n{lines}").json() == found
    assert ask(bootstrap="elsewhere:9092").json()["edges"][0]["columns"] is None
    for wrong in ("{", "[1]", "", 7, '{"name": "x"}', "x" * 300_000, "[" * 100_000):
        refused = ask(config=wrong)
        assert refused.status_code == 422, wrong
        assert refused.json()["message"]
    assert ask(bootstrap=["broker:9092"]).status_code == 422


def test_search_finds_names_columns_and_tags_by_letters_in_order(demo: Client) -> None:
    def found(text: str, **query: str) -> list[dict[str, Any]]:
        results: list[dict[str, Any]] = demo.get("/api/v2/search", q=text, **query)["results"]
        return results

    assert found("supplier_stats_stream")[0]["name"] == "supplier_stats_stream"
    assert "iceberg_ingestion" in {one["name"] for one in found("icebing")}
    assert found("customer_email", kind="column")[0]["field"] == "customer_email"
    assert found("pii")[0] | {"namespace": ""} == {
        "kind": "tag", "namespace": "", "name": "shop.orders", "tag": "pii",
        "node": "dataset:kafka://broker:9092:shop.orders", "field": "customer_email",
    }  # fmt: skip
    assert found("zzzz-nothing") == []
    assert demo.call("GET", "/api/v2/search").status_code == 400


def test_search_shows_a_dataset_once_and_finds_it_by_any_name(
    client: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr("headwater.server.api.v2.page.search.EVERY", 0.0)
    link = facet(identifiers=[{"namespace": "hive://h:9083", "name": "db.linked", "type": "TABLE"}])
    table = dataset("wh/users", symlinks=link, schema=schema("email"))
    other = dataset("wh/users", "s3a://lake", schema=schema("email"))
    client.post(event("START", 1, job="a", outputs=[other]))
    client.post(event("START", 2, run=2, job="b", inputs=[table]))
    names = [{"namespace": space, "name": "wh/users"} for space in ("s3://lake", "s3a://lake")]
    client.call("POST", "/api/v2/aliases", json={"dataset": names[0], "alias": names[1]})
    own = client.get("/api/v2/datasets/s3%3A%2F%2Flake/wh%2Fusers")
    node = f"dataset:{own['namespace']}:{own['name']}"
    for text in ("users", "db.linked", "email"):
        found = client.get("/api/v2/search", q=text)
        assert [one["node"] for one in found["results"]] == [node], text
        assert not found["truncated"]


def test_search_follows_what_is_added_and_what_is_hidden(client: Client, monkeypatch: Any) -> None:
    monkeypatch.setattr("headwater.server.api.v2.page.search.EVERY", 0.0)
    client.post(event("START", 1, job="first", outputs=[dataset("t", schema=schema("amount"))]))
    assert client.get("/api/v2/search", q="first")["results"]
    client.post(event("START", 2, run=2, job="second"))
    assert client.get("/api/v2/search", q="second")["results"]
    client.call("DELETE", "/api/v1/namespaces/jobs/jobs/first")
    assert not client.get("/api/v2/search", q="first")["results"]
    client.call("POST", "/api/v1/namespaces/jobs/jobs/second/tags/nightly")
    (tag,) = client.get("/api/v2/search", q="nightly", kind="tag")["results"]
    assert (tag["kind"], tag["node"]) == ("tag", "job:jobs:second")


def test_search_finds_the_columns_that_the_page_of_a_dataset_shows(
    client: Client, monkeypatch: Any
) -> None:
    """Also of one that is only read, and while the run that changed them goes on."""
    monkeypatch.setattr("headwater.server.api.v2.page.search.EVERY", 0.0)

    def found(column: str) -> set[str]:
        results = client.get("/api/v2/search", q=column, kind="column")["results"]
        return {one["name"] for one in results if one["field"] == column}

    read = [dataset("source", schema=schema("amount"))]
    client.post(event("START", 1, inputs=read, outputs=[dataset("t", schema=schema("amount"))]))
    assert found("amount") == {"source", "t"}
    grown = [dataset("t", schema=schema("amount", "coupon"))]
    client.post(event("RUNNING", 2, inputs=read, outputs=grown))
    for name in ("source", "t"):
        page = client.get(f"/api/v2/datasets/{quote(read[0]['namespace'], safe='')}/{name}")
        for column in (one["name"] for one in page["columns"]):
            assert name in found(column), (name, column)
    assert found("coupon") == {"t"}
    other = [dataset("t", schema=schema("total"))]
    client.post(event("COMPLETE", 3, inputs=read, outputs=other))
    assert (found("coupon"), found("total")) == (set(), {"t"})


def test_a_moment_in_the_future_is_refused(client: Client) -> None:
    client.post(event("START", 1, outputs=["t"]))
    later = datetime.now(timezone.utc) + timedelta(minutes=10)
    for path in ("trace?node=dataset:s3://lake:t&", "map?", "columns?node=dataset:s3://lake:t&"):
        for when in ("2099-01-01", later.isoformat().replace("+00:00", "Z")):
            refused = client.call("GET", f"/api/v2/{path}at={when}")
            assert (refused.status_code, refused.json()["message"]) == (
                400,
                "at: lies in the future",
            ), path
        soon = datetime.now(timezone.utc) + timedelta(minutes=1)  # the clock of who asks is ahead
        moment = soon.isoformat().replace("+00:00", "Z")
        assert client.call("GET", f"/api/v2/{path}at={moment}").status_code == 200


def test_an_application_reads_and_writes_what_its_actions_do(client: Client) -> None:
    def kind(name: str) -> dict[str, Any]:
        return {"jobType": facet(processingType="BATCH", integration="SPARK", jobType=name)}

    def action(number: int, name: str, **sides: Any) -> None:
        parent = facet(run={"runId": run_id(1)}, job={"namespace": "jobs", "name": "stats"})
        for state in ("START", "COMPLETE"):
            client.post(
                event(state, number, run=number, job=f"stats.{name}", run_facets={"parent": parent},
                      job_facets=kind("SQL_JOB"), **sides)
            )  # fmt: skip

    client.post(event("START", 1, job="stats", job_facets=kind("APPLICATION")))
    page = client.get("/api/v2/jobs/jobs/stats")
    assert (page["inputs"], page["outputs"], page["actions"]) == ([], [], None)
    target = dataset("stats")
    target["outputFacets"] = {"outputStatistics": facet(rowCount=7)}
    source = dataset("orders")
    source["inputFacets"] = {"inputStatistics": facet(rowCount=9)}
    action(2, "append.stats", inputs=[source], outputs=[target])
    action(3, "create_table.other", outputs=["other"])
    action(4, "head.looked", inputs=["looked"])
    client.post(event("COMPLETE", 5, job="stats", job_facets=kind("APPLICATION")))
    client.post(event("START", 6, run=6, job="sink", inputs=["stats"], outputs=["end"]))
    page = client.get("/api/v2/jobs/jobs/stats")
    assert [one["name"] for one in page["inputs"]] == ["orders"]
    assert [one["name"] for one in page["outputs"]] == ["stats"]
    assert page["affected"] == {"jobs": 1, "datasets": 2, "more": False}
    assert page["actions"] == {"jobs": 1, "rows": {run_id(1): {"read": 9, "written": 7}}}
    assert len(page["children"]) == 3
    own = client.get("/api/v2/jobs/jobs/sink")
    assert own["actions"] is None
    assert own["affected"] == {"jobs": 0, "datasets": 1, "more": False}


def test_a_job_has_each_dataset_once_by_the_name_that_the_graph_has(client: Client) -> None:
    def kind(integration: str, name: str) -> dict[str, Any]:
        return {"jobType": facet(processingType="BATCH", integration=integration, jobType=name)}

    alias, named = ({"namespace": space, "name": "x"} for space in ("hdfs://old", "s3://lake"))
    parent = facet(run={"runId": run_id(2)}, job={"namespace": "jobs", "name": "app"})
    old = dataset("x", "hdfs://old")
    client.post(
        event("COMPLETE", 0, run=1, job="make", outputs=["x"]),
        event("START", 1, run=2, job="app", inputs=[old], job_facets=kind("SPARK", "APPLICATION")),
        event("COMPLETE", 2, run=3, job="app.write", inputs=[old, "x"], outputs=["y"],
              run_facets={"parent": parent}, job_facets=kind("SPARK", "SQL_JOB")),
        event("COMPLETE", 3, run=2, job="app", inputs=[old], job_facets=kind("SPARK", "APPLICATION")),
        event("START", 4, run=4, job="sink", inputs=[old], outputs=["end"],
              job_facets=kind("KAFKA_CONNECT", "SINK"), run_facets={"headwater_connect": facet()}),
    )  # fmt: skip
    assert client.get("/api/v2/jobs/jobs/sink")["inputs"] == [alias]
    client.call("POST", "/api/v2/aliases", json={"alias": alias, "dataset": named})
    for job in ("app", "app.write", "sink"):
        assert client.get(f"/api/v2/jobs/jobs/{job}")["inputs"] == [named], job
    (sink,) = client.get("/api/v2/connectors")["connectors"]
    assert (sink["inputs"], sink["outputs"]) == ([named], [{**named, "name": "end"}])
    readers = client.get("/api/v2/datasets/hdfs%3A%2F%2Fold/x")["consumers"]
    assert sorted(one["name"] for one in readers) == ["app", "app.write", "sink"]


def test_search_finds_columns_beside_a_dataset_whose_schema_changes_all_day(
    client: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr("headwater.server.api.v2.page.search.EVERY", 0.0)
    monkeypatch.setattr("headwater.server.api.v2.page.search.MOST", 6)
    stream = {"jobType": facet(processingType="STREAMING", integration="SPARK", jobType="JOB")}
    client.post(event("START", 1, outputs=[dataset("calm", schema=schema("calm_column"))]))
    client.post(event("COMPLETE", 2, outputs=[dataset("calm", schema=schema("calm_column"))]))
    for second in range(10, 30):
        changed = dataset("busy", schema=schema(f"busy_column_{second % 2}"))
        client.post(
            event("RUNNING", second, run=2, job="flips", outputs=[changed], job_facets=stream)
        )
    for text, name, field in (
        ("calm_column", "calm", "calm_column"),
        ("busy_column", "busy", "busy_column_1"),
    ):
        results = client.get("/api/v2/search", q=text, kind="column")["results"]
        assert [(one["name"], one["field"]) for one in results] == [(name, field)]


def test_search_finds_what_datasets_have_now_whenever_it_was_reported(
    client: Client, monkeypatch: Any
) -> None:
    monkeypatch.setattr("headwater.server.api.v2.page.search.EVERY", 0.0)

    def found(text: str) -> list[tuple[str, str]]:
        results = client.get("/api/v2/search", q=text)["results"]
        return [(one["name"], one.get("field", "")) for one in results]

    stream = {"jobType": facet(processingType="STREAMING", integration="SPARK", jobType="JOB")}

    def report(second: int, *, inputs: Any, outputs: Any, state: str = "RUNNING") -> None:
        client.post(event(state, second, inputs=inputs, outputs=outputs, job_facets=stream))

    report(1, inputs=["in"], outputs=["out"], state="START")
    assert found("late_column") == []
    tagged = facet(tags=[{"key": "secretive", "field": "late_column_in"}])
    report(
        2,
        inputs=[dataset("in", schema=schema("late_column_in"), tags=tagged)],
        outputs=[dataset("out", schema=schema("late_column_out"))],
    )
    late = [("in", "late_column_in"), ("out", "late_column_out")]
    assert found("late_column") == late
    assert found("secretive") == [("in", "late_column_in")]
    # What a reader says of a dataset does not take the place of what its writer says.
    reader = dataset("out", schema=schema("reader_column"))
    client.post(event("START", 3, run=2, job="reader", inputs=[reader], job_facets=stream))
    assert (found("late_column"), found("reader_column")) == (late, [])
    # Another schema and other tags: what was is not found, before or after a rebuild.
    other = facet(tags=[{"key": "public", "field": "next_column_in"}])
    report(
        4,
        inputs=[dataset("in", schema=schema("next_column_in"), tags=other)],
        outputs=[dataset("out", schema=schema("next_column_out"))],
    )
    link = facet(identifiers=[{"namespace": "hive://h:9083", "name": "db.link", "type": "TABLE"}])
    report(5, inputs=["in"], outputs=[dataset("out", symlinks=link)])
    for _ in range(2):
        assert found("next_column") == [("in", "next_column_in"), ("out", "next_column_out")]
        assert (found("late_column"), found("secretive")) == ([], [])
        assert found("public") == [("in", "next_column_in")]
        assert found("db.link") == [("out", "")]
        rebuild(client.store)


@pytest.mark.parametrize("odd", [[1, 2], {"evidence": "no"}, {"edges": [1, {"input": 3}]}])
def test_facets_of_any_shape_do_no_harm(client: Client, odd: Any) -> None:
    strange = facet(**odd) if isinstance(odd, dict) else facet(tags=odd, evidence=odd)
    facets: dict[str, Any] = dict.fromkeys(
        ("headwater_evidence", "tags", "catalog", "storage", "ownership", "jobType", "sql"), strange
    )
    made = event(
        "FAIL",
        1,
        inputs=[dataset("a", **facets)],
        outputs=[dataset("b", **facets)],
        job_facets=facets,
        run_facets={"errorMessage": strange, "parent": strange, "headwater_connect": strange},
    )
    client.post(made)
    for number, end in ((2, "ABORT"), (3, "COMPLETE")):
        odd_end = {"headwater_end": facet(reason=odd), "headwater_connect": facet(state=odd)}
        stream = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}
        client.post(event(end, 1, run=number, job=end, job_facets=stream, run_facets=odd_end))
    for path in ("overview", "map?columns=true", "connectors", "search?q=a", "jobs/jobs/load",
                 "datasets/s3%3A%2F%2Flake/b", "columns?node=dataset:s3://lake:b"):  # fmt: skip
        assert client.call("GET", f"/api/v2/{path}").status_code == 200, path


def test_map_names_the_application_of_each_action(client: Client) -> None:
    inside = {"parent": facet(run={"runId": run_id(7)}, job={"namespace": "jobs", "name": "stats"})}
    action: dict[str, Any] = {
        "job": "stats.write.totals",
        "inputs": ["orders"],
        "outputs": ["totals"],
    }
    query: dict[str, Any] = {"job": "windows", "inputs": ["orders"], "outputs": ["topic"]}
    client.post(
        event("START", 0, run=7, job="stats"),
        event("START", 1, run=8, run_facets=inside, **action),
        event("START", 2, run=9, run_facets=inside, **query),
        event("START", 3, run=10, job="other", inputs=["totals"]),
    )
    orders = next(n["id"] for n in client.get("/api/v2/map")["nodes"] if n["name"] == "orders")
    found = client.get("/api/v2/map", node=orders, depth=0)
    parents = {node["name"]: node["parent"] for node in found["nodes"] if node["kind"] == "job"}
    assert parents == {"stats.write.totals": "job:jobs:stats", "windows": "job:jobs:stats"}
    assert [(one["id"], one["state"]) for one in found["parents"]] == [
        ("job:jobs:stats", "RUNNING")
    ]
    assert client.get("/api/v2/map")["parents"] == [], "it is among the nodes"

    centred = client.get("/api/v2/map", node="job:jobs:stats", depth=0)
    names = {node["name"] for node in centred["nodes"]}
    assert names == {"stats", "stats.write.totals", "windows", "orders", "totals", "topic"}
    page = client.get("/api/v2/jobs/jobs/stats")
    assert [one["name"] for one in page["children"]] == ["stats.write.totals", "windows"]

    client.call("DELETE", "/api/v1/namespaces/jobs/jobs/stats")
    found = client.get("/api/v2/map", node=orders, depth=0)
    assert found["parents"] == [], "what was deleted is not drawn"
    assert {node.get("parent") for node in found["nodes"]} == {None}
