"""Lineage questions on the demo's graph, told by hand: trace, why and diff, by route and by command."""

from __future__ import annotations

import itertools
import json
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from typer.testing import CliRunner

import headwater.cli.server.client
from headwater.cli.main import app
from headwater.cli.mcp.tools import TOOLS
from headwater.cli.server.client import ServerClient
from headwater.errors import HeadwaterError, NotFoundError, UsageError
from headwater.server.app import ServerSettings
from headwater.server.store import open_store
from headwater.server.store.keep.rebuild import rebuild

from .conftest import Client
from .making import at, columns, dataset, event, facet, run_id, schema

if TYPE_CHECKING:
    from collections.abc import Iterator

DEMO = Path(__file__).parents[2] / "fixtures" / "page" / "demo.ndjson"
KAFKA, SHOP, LAKE = "kafka://broker:9092", "postgres://shop-db:5432", "s3://warehouse"


@pytest.fixture
def demo(store_url: str) -> Iterator[Client]:
    """The demo as it was recorded: its streams, silent since, are not closed."""
    client = Client(open_store(store_url), ServerSettings(stale_every=3_600))
    sent = client.call("POST", "/api/v2/events", content=DEMO.read_bytes())
    assert sent.status_code == 201, sent.text
    yield client
    client.close()


class Command:
    """A command whose server is the app of this test."""

    def __init__(self, client: Client, patch: pytest.MonkeyPatch) -> None:
        def request(method: str, url: str, **more: Any) -> Any:
            more.pop("timeout")
            return client.call(method, url, **more)

        patch.setattr("httpx.request", request)
        patch.setattr(headwater.cli.server.client, "SERVER", "http://server")
        patch.delenv("OPENLINEAGE_URL", raising=False)

    def __call__(self, *words: str) -> str:
        result = CliRunner().invoke(app, list(words))
        assert result.exit_code == 0, (result.output, result.exception)
        return result.stdout


@pytest.fixture
def command(demo: Client, monkeypatch: pytest.MonkeyPatch) -> Command:
    return Command(demo, monkeypatch)


def indented(found: dict[str, Any]) -> list[str]:
    names = {
        one["id"]: f"{one['name']}.{one['field']}" if "field" in one else one["name"]
        for one in found["nodes"]
    }
    return ["  " * row["level"] + names[row["node"]] for row in found["rows"]]


def test_a_table_is_traced_to_the_database(demo: Client, command: Command) -> None:
    node = "dataset:postgres://analytics:5432:bi.public.supplier_stats"
    found = demo.get("/api/v2/trace", node=node)
    assert indented(found) == [
        "bi.public.supplier_stats",
        "  stats-sink",
        "    supplier-stats",
        "      supplier_stats_stream",
        "        orders-enriched",
        "          enrich_orders",
        "            shop.orders",
        "              orders-source",
        "                shop.public.orders",
        "            shop.order_items",
        "              orders-source",
        "                shop.public.order_items",
    ]
    sink = next(one for one in found["nodes"] if one["name"] == "stats-sink")
    assert (sink["state"], sink["integration"]) == ("FAILED", "kafka_connect")
    proof = [one["evidence"] for one in found["edges"] if one["origin"] == sink["id"]]
    assert proof[0][0] == {"source": "config key", "detail": "table.name.format", "observed": False}
    assert json.loads(command("trace", "bi.public.supplier_stats", "--json")) == found
    drawn = command("trace", "bi.public.supplier_stats")
    assert "└── stats-sink FAILED since 2026-01-08T11:26:00Z" in drawn
    assert "permission denied" in drawn
    assert demo.get("/api/v2/trace", node=node, depth=51) == {**found, "depth": 50}
    assert indented(demo.get("/api/v2/trace", node=node, depth=1))[1:] == [
        "  stats-sink",
        "    supplier-stats",
    ]


def test_a_tree_of_a_moment_before_the_first_record_is_not_there(
    demo: Client, command: Command
) -> None:
    table = "postgres://analytics:5432:bi.public.supplier_stats"
    first = "2026-01-07T17:00:00Z"
    nodes = {"dataset": f"dataset:{table}", "job": "job:shop:stats-sink"}
    for kind, node in nodes.items():
        early = demo.call("GET", "/api/v2/trace", params={"node": node, "at": "1900-01-01"})
        problem = f"Nothing was known of this {kind} at 1900-01-01T00:00:00Z: its first record is of {first}."
        assert (early.status_code, early.json()["message"]) == (404, problem)
        assert indented(demo.get("/api/v2/trace", node=node, at=first))
    for name in ("bi.public.supplier_stats", "bi.public.supplier_stats.revenue"):
        failed = CliRunner().invoke(app, ["trace", name, "--at", "2026-01-07T16:30:00Z"]).exception
        assert isinstance(failed, NotFoundError)
        assert failed.message.startswith(
            "Nothing was known of this dataset at 2026-01-07T16:30:00Z"
        )


def test_a_name_or_a_node_that_is_none_says_what_one_looks_like(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    Command(client, monkeypatch)
    for words in (["why", ""], ["trace", " "], ["diff", "--from", "2026-01-01", "--around", ""]):
        failed = CliRunner().invoke(app, words).exception
        assert isinstance(failed, UsageError), words
        assert (failed.message, failed.exit_code) == ("the name of the dataset is empty", 2)
    answer = client.call("GET", "/api/v2/trace", params={"node": "x"})
    assert (answer.status_code, "dataset:NAMESPACE:NAME" in answer.json()["message"]) == (404, True)


def test_a_column_is_traced_through_what_becomes_of_it(demo: Client, command: Command) -> None:
    node = f"datasetField:{LAKE}:lake/supplier_stats:revenue"
    found = demo.get("/api/v2/trace", node=node)
    assert indented(found) == [
        "lake/supplier_stats.revenue",
        "  lake/orders.amount",
        "    orders-enriched.amount",
        "      shop.order_items.quantity",
        "        shop.public.order_items.quantity",
        "      shop.order_items.price",
        "        shop.public.order_items.price",
    ]
    assert {one["name"] for one in found["nodes"] if one["kind"] == "job"} == {
        "supplier_stats.by_day",
        "iceberg_ingestion",
        "enrich_orders",
        "orders-source",
    }
    how = {one["target"]["name"]: [h["subtype"] for h in one["how"]] for one in found["edges"]}
    assert how["lake/supplier_stats"] == ["AGGREGATION"]
    order = f"datasetField:{KAFKA}:orders-enriched:order_id"
    values = indented(demo.get("/api/v2/trace", node=order))
    rows = indented(demo.get("/api/v2/trace", node=order, indirect="true"))
    assert {line.strip() for line in rows} - {line.strip() for line in values} == {
        "shop.order_items.order_id",
        "shop.public.order_items.order_id",
    }
    down = demo.get(
        "/api/v2/trace", node=f"datasetField:{SHOP}:shop.public.order_items:price", direction="down"
    )
    assert "lake/supplier_stats.revenue" in {line.strip() for line in indented(down)}
    assert "aggregation by supplier_stats.by_day" in command("trace", "lake/supplier_stats.revenue")
    chart = command("trace", "lake/supplier_stats.revenue", "--mermaid").splitlines()
    assert chart[0] == "flowchart LR"
    assert sum("-->" in line for line in chart) == 6
    drawn = command("trace", "orders-enriched", "--depth", "1", "--dot")
    assert drawn.startswith("digraph lineage {\n")
    assert drawn.count("->") == 3


def made_of(source: str, field: str, *masking: bool) -> dict[str, Any]:
    """Where a column comes from, in the clear or masked."""
    steps = [{"type": "DIRECT", "subtype": "IDENTITY", "masking": one} for one in masking]
    taken = {"namespace": "s3://lake", "name": source, "field": field, "transformations": steps}
    return {"inputFields": [taken]}


def written(job: str, run: int, source: str, target: str, **made: Any) -> dict[str, Any]:
    lineage = dataset(target, schema=schema(*made), columnLineage=facet(fields=made))
    return event("START", run, run=run, job=job, inputs=[source], outputs=[lineage])


def test_a_column_is_masked_only_if_every_job_masks_it(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pii = facet(tags=[{"key": "pii", "value": "true", "source": "x", "field": "e"}])
    source = dataset("src", schema=schema("e"), tags=pii)
    client.post(
        event("START", 1, run=1, job="masks", inputs=[source]),
        written("masks", 2, "src", "two", x=made_of("src", "e", True)),
        written("clear", 3, "src", "two", x=made_of("src", "e", False)),
        written("masks", 4, "src", "one", x=made_of("src", "e", True)),
        written("mixed", 5, "src", "both", x=made_of("src", "e", True, False)),
    )
    command = Command(client, monkeypatch)
    two = command("trace", "two.x")
    assert "identity by clear (RUNNING" in two
    assert "masked" not in two
    assert ", which masks it" in two.partition(" masks (")[2]
    assert ", which masks it" not in two.partition(" clear (")[2].partition(" masks (")[0]
    assert "identity, masked by masks" in command("trace", "one.x")
    assert "identity by mixed" in command("trace", "both.x")
    assert "src.e → clear → two.x" in command("tags", "two.x")
    assert "masked by masks" in command("tags", "one.x")


def test_a_tag_goes_along_with_what_holds_its_column(client: Client) -> None:
    """A record that is handed on as a whole, or a struct, hands on each column that is in it."""

    def job(name: str, source: Any, target: Any, **outputs: tuple[str, str]) -> None:
        origin = {"namespace": source["namespace"], "name": source["name"]}
        made = {
            output: {"inputFields": [{**origin, "field": field, "transformations": [
                {"type": "DIRECT", "subtype": how.strip("!"), "masking": "!" in how}]}]}
            for output, (field, how) in outputs.items()
        }  # fmt: skip
        target["facets"]["columnLineage"] = facet(fields=made)
        client.post(event("COMPLETE", 1, run=jobs.index(name), job=name, inputs=[source], outputs=[target]))  # fmt: skip

    jobs = ["raw", "keys", "mirror", "parse", "hash", "copy", "cities", "json"]
    pii = facet(tags=[{"key": "pii", "value": "true", "source": "x", "field": "email"}])
    home = facet(tags=[{"key": "home", "value": "true", "source": "x", "field": "address.city"}])
    fields = [{"name": name, "type": "string"} for name in ("city", "zip")]
    struct = facet(fields=[{"name": "address", "type": "struct", "fields": fields}])
    topic = dataset("in", KAFKA, schema=schema("email", "id"), tags=pii)
    mirrored = dataset("copy", KAFKA)
    people = dataset("people", schema=struct, tags=home)
    copied = dataset("people_copy", schema=struct)
    job("raw", topic, dataset("raw", schema=schema("body")), body=("value", "IDENTITY"))
    job("keys", topic, dataset("keys", schema=schema("k")), k=("key", "IDENTITY"))
    job("mirror", topic, mirrored, value=("value", "IDENTITY"))
    job(
        "parse", mirrored, dataset("mails"), mail=("email", "TRANSFORMATION"), id=("id", "IDENTITY")
    )
    job("hash", topic, dataset("hashed"), h=("value", "TRANSFORMATION!"))
    job("copy", people, copied, address=("address", "IDENTITY"))
    job(
        "cities",
        copied,
        dataset("cities"),
        c=("address.city", "IDENTITY"),
        z=("address.zip", "IDENTITY"),
    )
    job("json", copied, dataset("texts", schema=schema("t")), t=("address", "TRANSFORMATION"))

    def reached(tag: str) -> dict[str, str]:
        found = client.get(f"/api/v2/tags/{tag}")
        assert [one["destination"] for one in found["stopped"]] == (
            ["datasetField:s3://lake:hashed:h"] if tag == "pii" else []
        )
        return {
            f"{one['name']}.{one['field']}": " ".join(
                job.rpartition(":")[2] for step in one["path"] for job in step["jobs"]
            )
            for one in found["columns"]
        }

    assert reached("pii") == {
        "in.email": "", "raw.body": "raw", "copy.email": "mirror", "mails.mail": "mirror parse",
    }  # fmt: skip
    assert reached("home") == {
        "people.address.city": "", "people_copy.address.city": "copy", "cities.c": "copy cities",
        "texts.t": "copy json",
    }  # fmt: skip

    def tags_of(name: str, space: str = "s3://lake") -> set[tuple[str, str]]:
        path = f"/api/v2/datasets/{quote(space, safe='')}/{name}/tags"
        return {(one["tag"], one["field"]) for one in client.get(path)["columns"]}

    assert tags_of("in", KAFKA) == {("pii", "email")}
    assert tags_of("raw") == {("pii", "body")}
    assert tags_of("mails") == {("pii", "mail")}
    assert tags_of("keys") == tags_of("hashed") == set()
    assert tags_of("people") == {("home", "address.city")}
    assert tags_of("cities") == {("home", "c")}
    assert tags_of("texts") == {("home", "t")}


def test_in_a_cycle_of_columns_each_way_has_its_own_job(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(
        written("there", 1, "b", "cy", k=made_of("b", "c", False)),
        written("back", 2, "cy", "b", c=made_of("cy", "k", False)),
    )
    command = Command(client, monkeypatch)
    for words, job in (((), "there"), (("--down",), "back")):
        line = command("trace", "cy.k", *words).splitlines()[1]
        assert "b.c" in line
        assert f"identity by {job} (" in line


def test_freshness_takes_names_as_other_commands_do_and_tells_what_is_planned(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    planned = {"headwater_connect": facet(state="PAUSED", tasks=[])}
    stream = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}
    client.post(
        event("START", 0, job="sink", outputs=["orders"], job_facets=stream),
        event("COMPLETE", 9, job="sink", run_facets=planned, job_facets=stream),
    )
    command = Command(client, monkeypatch)
    old = command("freshness", "s3://lake", "orders")
    assert "because jobs sink: paused (planned) since" in old
    assert command("freshness", "s3://lake:orders") == command("freshness", "orders") == old
    assert f"sink PAUSED since {at(9)}" in command("trace", "orders")
    assert "<br>PAUSED" in command("trace", "orders", "--mermaid")


def test_a_name_on_a_path_keeps_its_colons(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    for state, second in (("START", 1), ("FAIL", 2)):
        target = dataset("col:victim:t", "odd://ns:1")
        client.post(
            event(state, second, job="etl:daily:load", inputs=["a:b"], outputs=[target]),
        )
    command = Command(client, monkeypatch)
    assert "      etl:daily:load → col:victim:t\n" in command("why", "odd://ns:1:col:victim:t")
    assert "came from a:b\n" in command("audit", "odd://ns:1:col:victim:t")


def test_what_filters_a_whole_dataset_is_indirect_for_each_of_its_columns(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    step = {"type": "INDIRECT", "subtype": "FILTER", "masking": False}
    taken = {"namespace": "s3://lake", "name": "src", "field": "e", "transformations": [step]}
    lineage = facet(fields={"z": made_of("src", "g", False)}, dataset=[taken])
    target = dataset("ind", schema=schema("z", "constant"), columnLineage=lineage)
    source = dataset("src", schema=schema("e", "g"))
    client.post(event("START", 1, job="filters", inputs=[source], outputs=[target]))
    command = Command(client, monkeypatch)
    found = command("trace", "ind.z", "--indirect")
    assert "src.e s3://lake s3  filter by filters (" in found
    assert "src.g s3://lake s3  identity by filters (" in found
    assert "src.e" in command("trace", "ind.constant", "--indirect")
    assert "src.e" not in command("trace", "ind.z")
    assert "ind.z s3://lake s3  filter by filters (" in command(
        "trace", "src.e", "--down", "--indirect"
    )
    assert "ind.z" not in command("trace", "src.e", "--down")
    assert "src.e" in command("trace", "ind.z", "--at", "2026-01-01T00:00:01Z", "--indirect")


def told(found: dict[str, Any]) -> list[tuple[str, str, bool]]:
    return [(one["named"]["name"], one["kind"], one["root"]) for one in found["causes"]]


def why_of(client: Client, namespace: str, name: str, **query: str) -> dict[str, Any]:
    found: dict[str, Any] = client.get(
        f"/api/v2/datasets/{quote(namespace, safe='')}/{quote(name, safe='')}/why", **query
    )
    return found


def test_why_names_the_nearest_causes_with_their_way(demo: Client, command: Command) -> None:
    found = why_of(demo, "postgres://analytics:5432", "bi.public.supplier_stats")
    assert found["verdict"] == "stale"
    assert told(found) == [("stats-sink", "failed", True)]
    (sink,) = found["causes"]
    assert (sink["since"], sink["distance"]) == ("2026-01-08T11:26:00Z", 1)
    assert "permission denied" in sink["detail"]
    assert [node.rpartition(":")[2] for node in sink["path"]] == [
        "stats-sink",
        "bi.public.supplier_stats",
    ]
    fresh = demo.get(
        "/api/v2/datasets/postgres%3A%2F%2Fanalytics%3A5432/bi.public.supplier_stats/freshness"
    )
    assert {name: fresh[name] for name in ("verdict", "since", "dueAt")} == {
        name: found[name] for name in ("verdict", "since", "dueAt")
    }
    assert json.loads(command("why", "bi.public.supplier_stats", "--json")) == found
    said = command("why", "bi.public.supplier_stats")
    assert (
        "bi.public.supplier_stats (postgres://analytics:5432, postgres) is stale since 2026-01-08T11:26:00Z"
        in said
    )
    assert "because stats-sink failed since 2026-01-08T11:26:00Z" in said
    assert "permission denied" in said
    assert "nothing is wrong upstream" in command("why", "shop.public.orders")


def test_why_of_a_column_names_the_input_that_changed_last(demo: Client) -> None:
    name = "lake/supplier_stats"
    found = why_of(demo, LAKE, name, column="revenue")["inputs"]
    assert {f"{one['name']}.{one['field']}" for one in found} == {
        "lake/orders.amount",
        "orders-enriched.amount",
        "shop.order_items.quantity",
        "shop.order_items.price",
        "shop.public.order_items.quantity",
        "shop.public.order_items.price",
    }
    moments = [one["changedAt"] or "" for one in found]
    assert moments == sorted(moments, reverse=True)


def test_why_of_a_column_lists_what_trace_of_it_lists(client: Client) -> None:
    def taken(name: str, field: str, subtype: str) -> dict[str, Any]:
        kind = "DIRECT" if subtype == "IDENTITY" else "INDIRECT"
        step = {"type": kind, "subtype": subtype}
        return {"namespace": "s3://lake", "name": name, "field": field, "transformations": [step]}

    named = {"inputFields": [taken("people", "name", "IDENTITY"), taken("orders", "id", "JOIN")]}
    made = facet(fields={"name": named}, dataset=[taken("orders", "note", "FILTER")])
    client.post(
        written("people", 1, "raw", "people", name=made_of("raw", "name", False)),
        written("orders", 2, "sent", "orders", id=made_of("sent", "id", False)),
        event("START", 3, run=3, job="join", inputs=["people", "orders"],
              outputs=[dataset("named", schema=schema("name"), columnLineage=made)]),
    )  # fmt: skip
    node = "datasetField:s3://lake:named:name"
    traced = indented(client.get("/api/v2/trace", node=node))
    assert traced == ["named.name", "  people.name", "    raw.name"]
    assert len(client.get("/api/v2/trace", node=node, indirect="true")["rows"]) == 6
    found = why_of(client, "s3://lake", "named", column="name")["inputs"]
    listed = sorted(f"{one['name']}.{one['field']}" for one in found)
    assert listed == sorted(line.strip() for line in traced[1:])


def test_why_and_freshness_look_as_many_jobs_far_as_they_are_asked(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, command = datetime.now(timezone.utc), Command(client, monkeypatch)
    sent = [
        event("FAIL" if n == 1 else "RUNNING", 0, run=n, job=f"j{n}", inputs=[f"d{n - 1}"], outputs=[f"d{n}"])
        for n in range(1, 13)
    ]  # fmt: skip
    client.post(*({**one, "eventTime": now.isoformat()} for one in sent))
    path = "/api/v2/datasets/s3%3A%2F%2Flake/d12/freshness"
    found, fresh = why_of(client, "s3://lake", "d12"), client.get(path)
    assert (found["verdict"], told(found)) == ("stale", [("j1", "failed", True)])
    assert (found["causes"][0]["distance"], len(found["causes"][0]["path"])) == (12, 24)
    assert [one["job"]["name"] for one in fresh["causes"]] == ["j1"]
    assert (found["truncated"], fresh["truncated"]) == (False, False)
    assert told(why_of(client, "s3://lake", "d12", depth="12")) == told(found)
    near, fresh = why_of(client, "s3://lake", "d12", depth="11"), client.get(path, depth="11")
    assert (near["verdict"], near["causes"], near["truncated"]) == ("live", [], True)
    assert (fresh["verdict"], fresh["causes"], fresh["truncated"]) == ("live", [], True)
    assert "more than was looked at" not in command("freshness", "d12")
    further = [
        event("RUNNING", 0, run=n, job=f"j{n}", inputs=[f"d{n - 1}"], outputs=[f"d{n}"])
        for n in range(13, 23)
    ]
    client.post(*({**one, "eventTime": now.isoformat()} for one in further))
    for question in ("freshness", "why"):
        assert "there is more than was looked at" in command(question, "d22"), question
    assert "nothing is wrong upstream, as far as was looked" in command("why", "d22")


def test_why_of_a_column_says_when_it_has_more_inputs(client: Client) -> None:
    def summed(count: int) -> None:
        parts = [f"c{n}" for n in range(count)]
        made = columns(total=("parts", "c0"))
        made["fields"]["total"]["inputFields"] = [
            {"namespace": "s3://lake", "name": "parts", "field": part} for part in parts
        ]
        inputs, outputs = [dataset("parts", schema=schema(*parts))], [dataset("sums", columnLineage=made)]  # fmt: skip
        client.post(event("COMPLETE", count, run=count, inputs=inputs, outputs=outputs))

    summed(150)
    found = why_of(client, "s3://lake", "sums", column="total")
    assert (len(found["inputs"]), found["truncated"]) == (150, False)
    summed(250)
    found = why_of(client, "s3://lake", "sums", column="total")
    assert (len(found["inputs"]), found["truncated"]) == (199, True)


@pytest.mark.parametrize("member", ["outputFacets", "facets"])
def test_paused_is_planned_and_a_failed_check_is_a_cause(client: Client, member: str) -> None:
    stream = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}

    def connector(kind: str, second: int, state: str) -> dict[str, Any]:
        own = {"headwater_connect": facet(state=state, tasks=[])}
        return event(
            kind, second, run=1, job="source", outputs=["orders"], job_facets=stream, run_facets=own
        )

    client.post(connector("START", 1, "RUNNING"), connector("COMPLETE", 60, "PAUSED"))
    checked = dataset("sums")
    checked[member] = {
        "dataQualityAssertions": facet(
            assertions=[
                {"assertion": "not_null", "success": False, "column": "total"},
                {"assertion": "unique", "success": True, "column": "id"},
            ]
        )
    }
    client.post(
        event("START", 70, run=2, job="sum", inputs=["orders"]),
        event("COMPLETE", 80, run=2, job="sum", inputs=["orders"], outputs=[checked]),
    )
    found = why_of(client, "s3://lake", "sums")
    assert told(found) == [("sums", "quality", True), ("source", "paused", True)]
    assert found["causes"][0]["detail"] == "not_null total"
    assert [one["planned"] for one in found["causes"]] == [False, True]
    client.post(connector("START", 90, "RUNNING") | {"run": {"runId": run_id(3), "facets": {}}})
    stopped = connector("ABORT", 99, "STOPPED")
    stopped["run"]["runId"] = run_id(3)
    client.post(stopped)
    assert told(why_of(client, "s3://lake", "orders")) == [("source", "stopped", True)]
    assert client.get("/api/v2/overview")["troubles"]["jobs"] == []


def check(second: int, run: int, job: str, name: str, held: bool, **more: str) -> dict[str, Any]:
    """A run of a job that checks one thing of a dataset, as a test of dbt is one."""
    made = dataset("sums")
    asserted = {"assertion": name, "success": held, "column": "total", **more}
    made["inputFacets"] = {"dataQualityAssertions": facet(assertions=[asserted])}
    return event("COMPLETE", second, run=run, job=job, inputs=[made])


def test_a_check_that_failed_stays_a_cause_until_the_job_that_made_it_finds_it_good(
    client: Client,
) -> None:
    def causes() -> list[tuple[str, str]]:
        found = why_of(client, "s3://lake", "sums")["causes"]
        return [(one["detail"], one["since"]) for one in found]

    client.post(
        check(10, 1, "filled", "not_null", held=False),
        check(20, 2, "single", "unique", held=True),
    )
    assert causes() == [("not_null total", at(10))]
    client.post(check(30, 3, "single", "unique", held=False))
    assert causes() == [("not_null total, unique total", at(10))]
    client.post(check(40, 4, "filled", "not_null", held=True))
    assert causes() == [("unique total", at(30))]
    client.post(check(50, 5, "single", "unique", held=True))
    assert causes() == []


@pytest.mark.parametrize(("severity", "count"), [("warn", 0), ("WARN", 0), ("error", 1)])
def test_a_check_that_only_warns_is_no_cause(client: Client, severity: str, count: int) -> None:
    client.post(check(10, 1, "filled", "not_null", held=False, severity=severity))
    assert len(why_of(client, "s3://lake", "sums")["causes"]) == count


@pytest.mark.parametrize(
    ("by", "shown"),
    [("ops [x]", " by ops [x]"), ("", ""), (None, ""), (5, ""), ("a" * 300, f" by {'a' * 256}")],
)
def test_why_names_whoever_stopped_a_stream(
    client: Client, monkeypatch: pytest.MonkeyPatch, by: Any, shown: str
) -> None:
    stream = {"jobType": facet(processingType="STREAMING", integration="SPARK")}
    end = {"headwater_end": facet(reason="signal SIGTERM", inferred=False, by=by)}
    client.post(
        event("START", 0, job="copy", outputs=["orders"], job_facets=stream),
        event("ABORT", 9, job="copy", outputs=["orders"], job_facets=stream, run_facets=end),
    )
    said = Command(client, monkeypatch)("why", "orders")
    assert f"because copy was stopped (planned){shown} since {at(9)}" in said


@pytest.mark.parametrize(
    ("kind", "status", "reason", "shown"),
    [
        ("COMPLETE", "PAUSED", "paused", "was paused (planned)"),
        ("ABORT", "STOPPED", "stopped", "was stopped (planned)"),
        ("ABORT", "RESTARTING", "restarted", "aborted"),
    ],
)
def test_why_names_whoever_paused_stopped_or_restarted_a_connector(
    client: Client, monkeypatch: pytest.MonkeyPatch, kind: str, status: str, reason: str, shown: str
) -> None:
    stream = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT")}
    connector = {"headwater_connect": facet(state=status, tasks=[])}
    end = {"headwater_end": facet(reason=reason, inferred=False, by="ann")}
    client.post(
        event("START", 0, job="sink", outputs=["orders"], job_facets=stream),
        event(
            kind, 9, job="sink", outputs=["orders"], job_facets=stream, run_facets=connector | end
        ),
    )
    said = Command(client, monkeypatch)("why", "orders")
    assert f"because sink {shown} by ann since {at(9)}" in said


def test_a_stream_that_cannot_keep_up_is_a_cause_and_so_is_a_broken_schema(client: Client) -> None:
    now = datetime.now(timezone.utc)

    def running(second: int, *fields: str) -> dict[str, Any]:
        moment = (now - timedelta(seconds=second)).isoformat()
        made = event(
            "RUNNING",
            0,
            job="stream",
            inputs=[dataset("orders", schema=schema(*fields))],
            outputs=["sums"],
        )
        return {**made, "eventTime": moment}

    client.post(running(600, "id", "price"), running(300, "id"))
    healthy = why_of(client, "s3://lake", "sums")
    assert (healthy["verdict"], healthy["causes"]) == ("live", [])
    assert [one["node"] for one in healthy["recent"]] == ["dataset:s3://lake:orders"]
    sample = {
        "run": run_id(1),
        "time": now.isoformat(),
        "direction": "input",
        "dataset": {"namespace": "s3://lake", "name": "orders"},
        "recordsPerSecond": 10,
        "lag": 601,
    }
    sent = client.call("POST", "/api/v2/flow", json={"samples": [sample]})
    assert sent.status_code == 202, sent.text
    client.app.flow.flush(client.store, now.timestamp())
    found = why_of(client, "s3://lake", "sums")
    assert found["verdict"] == "live"
    assert told(found) == [("stream", "lagging", True), ("orders", "schema", True)]
    assert found["causes"][0]["detail"] == "601 records behind, reading 10 a second"
    assert "price was removed" in found["causes"][1]["detail"]
    assert found["recent"] == []


def test_last_written_is_the_last_record_and_no_heartbeat(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    now, command = datetime.now(timezone.utc), Command(client, monkeypatch)

    def ago(seconds: int) -> str:
        return (now - timedelta(seconds=seconds)).isoformat().replace("+00:00", "Z")

    kind = {"jobType": facet(processingType="STREAMING", integration="X")}
    made = event("RUNNING", 0, job="sink", inputs=["topic"], outputs=["table"], job_facets=kind)
    client.post(*({**made, "eventTime": ago(seconds)} for seconds in (600, 300, 5)))

    def last() -> list[tuple[str | None, str | None]]:
        path = f"/api/v2/datasets/{quote('s3://lake', safe='')}/table"
        answers = [client.get(f"{path}/freshness"), why_of(client, "s3://lake", "table")]
        answers.append(client.get(path)["freshness"])
        return [(one["lastWrittenAt"], one["lastWrittenFrom"]) for one in answers]

    def flows(seconds: int, rate: float, direction: str = "output", **more: str) -> None:
        name = "table" if direction == "output" else "topic"
        sample = {
            "run": run_id(1),
            "time": ago(seconds),
            "direction": direction,
            "dataset": {"namespace": "s3://lake", "name": name},
            "recordsPerSecond": rate,
            **more,
        }
        sent = client.call("POST", "/api/v2/flow", json={"samples": [sample]})
        assert sent.status_code == 202, sent.text
        client.app.flow.flush(client.store, now.timestamp())

    flows(10, 7.0, "input")  # what it reads is not what it writes
    assert last() == [(ago(5), "heartbeat")] * 3
    assert f"is live, last reported {ago(5)}\n" in command("why", "table")
    flows(10, 0.0)
    assert last() == [(None, None)] * 3
    flows(200, 3.5)
    for seconds in (190, 100, 20):
        flows(seconds, 0.0)
    assert last() == [(ago(200), "flow")] * 3
    assert f"is live, last written {ago(200)}\n" in command("why", "table")
    assert command("freshness", "table") == f"live, last written {ago(200)}\n"
    client.app.flow.forget()  # as after a restart of the server
    flows(15, 0.0, lastRecordAt=ago(150))
    assert last() == [(ago(150), "flow")] * 3
    flows(12, 0.0, lastRecordAt=ago(-60))
    assert last() == [(ago(12), "flow")] * 3


def test_what_a_job_first_reports_is_no_change_nor_is_another_pair(client: Client) -> None:
    now = datetime.now(timezone.utc)

    def sent(minutes: float, state: str, code: str, *pairs: str) -> dict[str, Any]:
        lineage = facet(
            entries=[
                {
                    "namespace": "s3://lake", "name": f"topics/{name}", "type": "DATASET",
                    "inputs": [{"namespace": "s3://lake", "name": name, "type": "DATASET"}],
                }
                for name in pairs
            ]
        )  # fmt: skip
        facets = {"sourceCodeLocation": facet(type="git", url=code), "lineage": lineage}
        if not code:
            del facets["sourceCodeLocation"]
        outputs = [f"topics/{name}" for name in pairs]
        one = event(state, 0, job="sink", inputs=[*pairs], outputs=outputs, job_facets=facets)
        return {**one, "eventTime": (now - timedelta(minutes=minutes)).isoformat()}

    def told(name: str) -> list[str]:
        (cause,) = why_of(client, "s3://lake", f"topics/{name}")["causes"]
        return [change["text"] for change in cause["changes"]]

    client.post(
        sent(30, "START", ""),
        sent(29.5, "RUNNING", "", "orders"),
        sent(20, "RUNNING", "https://git/a", "orders"),
        sent(1, "FAIL", "", "orders"),
    )
    assert told("orders") == []
    client.post(
        sent(19, "RUNNING", "https://git/b", "orders", "bids"),
        sent(1, "FAIL", "", "orders", "bids"),
    )
    assert told("orders") == ["sourceCodeLocation changed"]
    assert told("bids") == [
        "began to read bids", "began to write topics/bids", "sourceCodeLocation changed"
    ]  # fmt: skip


def test_the_commands_say_which_dataset_was_meant(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    command = Command(client, monkeypatch)
    table, copy = dataset("stats", schema=schema("id")), dataset("default/stats", "s3://wh")
    topic = dataset("raw", "kafka://k:9092", schema=schema("id"))
    client.post(
        event("ABORT", 1, job="stats", inputs=[topic], outputs=[table]),
        event("COMPLETE", 2, run=2, job="copy", inputs=[table], outputs=[copy]),
    )
    said = command("why", "stats").splitlines()
    assert said[:4] == [
        f"stats (s3://lake, s3) is stale since {at(1)}",
        "also: s3://wh:default/stats",
        f"  because job stats aborted since {at(1)}",
        "      job stats → dataset stats",
    ]
    said = command("why", "default/stats").splitlines()
    assert said[0].startswith("default/stats (s3://wh, s3) is stale")
    assert not said[1].startswith("also")
    assert "      job stats → dataset stats → copy → default/stats" in said
    assert command("impact", "stats", "--drop", "id").splitlines()[:2] == [
        "stats (s3://lake, s3): id is dropped",
        "also: s3://wh:default/stats",
    ]
    assert "also: s3://wh:default/stats" in command("trace", "stats").splitlines()


def test_the_overview_names_a_reader_whose_lag_grows(client: Client) -> None:
    now = datetime.now(timezone.utc)
    made = event("RUNNING", 0, job="group", inputs=["orders", "items"])
    client.post({**made, "eventTime": now.isoformat()})

    def report(**lags: list[int]) -> list[tuple[str, str, int, int]]:
        samples = [
            {
                "run": run_id(1),
                "time": (now - timedelta(minutes=len(some) - 1 - minute)).isoformat(),
                "direction": "input",
                "dataset": {"namespace": "s3://lake", "name": name},
                "lag": lag,
            }
            for name, some in lags.items()
            for minute, lag in enumerate(some)
        ]
        assert client.call("POST", "/api/v2/flow", json={"samples": samples}).status_code == 202
        client.app.flow.flush(client.store, now.timestamp())
        client.app.flow.forget()
        found = client.get("/api/v2/overview")["lagging"]
        return [
            (one["name"], one["dataset"]["name"], one["lagBefore"], one["lag"]) for one in found
        ]

    assert report(orders=[90, 90, 90, 90, 90, 90], items=[0, 80, 0, 80, 0, 80]) == []
    assert report(orders=[10, 20, 30, 40, 50, 60]) == [("group", "orders", 10, 60)]
    assert report(items=[20, 30, 50, 60, 70, 99]) == [("group", "items", 20, 99)]
    client.post({**made, "eventType": "COMPLETE", "eventTime": now.isoformat()})
    assert report() == []


def test_each_topic_in_which_a_sink_is_behind_is_told(client: Client) -> None:
    now = datetime.now(timezone.utc)
    topics = {"items": (1_200, 10), "orders": (601, 10), "users": (5, 100)}
    made = event("RUNNING", 0, job="sink", inputs=list(topics), outputs=["table"])
    client.post({**made, "eventTime": now.isoformat()})

    def behind() -> str:
        samples = [
            {
                "run": run_id(1),
                "time": now.isoformat(),
                "direction": "input",
                "dataset": {"namespace": "s3://lake", "name": name},
                "recordsPerSecond": rate,
                "lag": lag,
            }
            for name, (lag, rate) in topics.items()
        ]
        assert client.call("POST", "/api/v2/flow", json={"samples": samples}).status_code == 202
        client.app.flow.flush(client.store, now.timestamp())
        (cause,) = why_of(client, "s3://lake", "table")["causes"]
        return str(cause["detail"])

    assert behind() == (
        "1,801 records behind: items 1,200, reading 10 a second; orders 601, reading 10 a second"
    )
    topics["items"] = (0, 10)
    assert behind() == "601 records behind: orders 601, reading 10 a second"


def test_what_changed_on_the_seventh_day(demo: Client, command: Command) -> None:
    span = {"from": "2026-01-07T09:30:00Z", "to": "2026-01-07T16:30:00Z"}
    found = demo.get("/api/v2/graph/diff", **span)
    assert found["appeared"] == [
        f"dataset:{KAFKA}:supplier-stats",
        "job:shop:enrich_orders",
        "job:shop:supplier_stats_stream",
    ]
    assert found["vanished"] == []
    assert {(one["origin"], one["destination"]) for one in found["added"]} == {
        (f"dataset:{KAFKA}:shop.orders", "job:shop:enrich_orders"),
        (f"dataset:{KAFKA}:shop.order_items", "job:shop:enrich_orders"),
        ("job:shop:enrich_orders", f"dataset:{KAFKA}:orders-enriched"),
        (f"dataset:{KAFKA}:orders-enriched", "job:shop:supplier_stats_stream"),
        ("job:shop:supplier_stats_stream", f"dataset:{KAFKA}:supplier-stats"),
    }
    assert (
        json.loads(command("diff", "--from", span["from"], "--to", span["to"], "--json")) == found
    )
    said = command("diff", "--from", span["from"], "--to", span["to"])
    assert "+ job shop:enrich_orders" in said
    near = command(
        "diff",
        "--from",
        span["from"],
        "--to",
        span["to"],
        "--around",
        "supplier-stats",
        "--depth",
        "0",
    )
    assert "supplier_stats_stream" in near
    assert "+ job shop:enrich_orders" not in near


def test_states_schemas_and_columns_that_changed_are_told(demo: Client, command: Command) -> None:
    span = {"from": "2026-01-08T11:00:00Z", "to": "2026-01-08T11:30:00Z"}
    found = demo.get("/api/v2/graph/diff", **span)
    states = [(one["job"], one["before"], one["after"]) for one in found["states"]]
    assert ("job:shop:stats-sink", "RUNNING", "FAILED") in states
    assert "state shop:stats-sink: RUNNING → FAILED" in command(
        "diff", "--from", span["from"], "--to", span["to"]
    )
    whole = demo.get("/api/v2/graph/diff", **{"from": "2026-01-01T12:30:00Z"})
    assert whole["columnsAdded"]
    assert not whole["columnsRemoved"] or whole["schemas"]
    # Each list has the members that the description of the API gives it.
    described = demo.get("/api/v2/openapi.json")["components"]["schemas"]
    members = {
        name: described[kind["items"]["$ref"].rpartition("/")[2]]["properties"].keys()
        for name, kind in described["GraphDifference"]["properties"].items()
        if "$ref" in kind.get("items", {})
    }
    assert members.keys() >= {"added", "schemas", "columnsAdded", "states"}
    for name, known in members.items():
        assert all(one.keys() == known for one in whole[name]), name


def test_now_and_how_long_ago_are_times_of_every_question(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    ago = (datetime.now(timezone.utc) - timedelta(minutes=90)).isoformat()
    client.post({**event("START", 0, inputs=["a"], outputs=["b"]), "eventTime": ago})
    command = Command(client, monkeypatch)
    for words in (
        ["--from", "2h"],
        ["--from", "2h", "--to", "now"],
        ["--from", "2h", "--to", "1h"],
    ):
        assert "+ job jobs:load" in command("diff", *words), words
    for words in (
        ["--from", "1h", "--to", "now"],
        ["--from", "now"],
        ["--from", "now", "--to", "now"],
    ):
        assert command("diff", *words).strip() == "nothing changed", words
    now = command("trace", "b")
    assert "load" in now
    assert command("trace", "b", "--at", "now") == command("trace", "b", "--at", "1h") == now
    for words in (["--to", "now"], ["--from", "2h", "--to", "now"], ["--from", "2h", "--to", "1h"]):
        assert json.loads(command("audit", "b", *words, "--json"))["writers"], words


@pytest.mark.parametrize(
    ("start", "end", "problem"),
    [
        ("2026-01-08", "2026-01-07", "from: is later than to"),
        ("9998-01-01", None, "from: lies in the future"),
        ("9998-01-01", "9999-01-01", "from: lies in the future"),
        ("2026-01-08", "9999-01-01", "to: lies in the future"),
    ],
)
def test_a_period_in_which_nothing_can_have_changed_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch, start: str, end: str | None, problem: str
) -> None:
    client.post(event("START", 0, outputs=["a"]))
    Command(client, monkeypatch)
    words = ["diff", "--from", start, *(["--to", end] if end else [])]
    failed = CliRunner().invoke(app, words).exception
    assert isinstance(failed, UsageError)
    assert (failed.exit_code, failed.message) == (2, problem)
    period = {"from": start} | ({"to": end} if end else {})
    dataset = "datasets/s3%3A%2F%2Flake/a"
    paths = ["graph/diff", "map", f"{dataset}/schema/diff"]
    paths += [f"{dataset}/audit", f"{dataset}/audit/report"]
    for path in paths:
        answer = client.call("GET", f"/api/v2/{path}", params=period)
        assert (answer.status_code, answer.json()["message"]) == (400, problem), path
        assert answer.json()["problems"][0]["field"] == problem.partition(":")[0]
    span = {"since": "2026-01-08", "until": "2026-01-07"}
    answer = client.call("GET", "/api/v2/events", params=span)
    assert (answer.status_code, answer.json()["message"]) == (400, "since: is later than until")


def test_a_period_may_end_as_far_ahead_as_clocks_may_be(client: Client) -> None:
    client.post(event("START", 0, outputs=["a"]))
    now = datetime.now(timezone.utc)
    for ahead, code in ((timedelta(minutes=4), 200), (timedelta(minutes=6), 400)):
        period = {"from": at(0), "to": (now + ahead).isoformat()}
        assert client.call("GET", "/api/v2/graph/diff", params=period).status_code == code


def test_the_estate_of_one_moment_does_not_differ(demo: Client) -> None:
    days = [f"2026-01-0{day}T{hour:02d}:00:00Z" for day in range(1, 9) for hour in (0, 12, 18)]
    for day in days:
        found = demo.get("/api/v2/graph/diff", **{"from": day, "to": day})
        assert not any(value for name, value in found.items() if name not in ("from", "to")), day


def test_the_estate_and_all_that_lies_around_a_node_differ_alike(demo: Client) -> None:
    """The whole is found by what changed, a part by comparing two graphs: one answer."""
    names = ("appeared", "vanished", "added", "removed", "schemas", "columnsAdded", "states")
    moments = ["2026-01-01T13:00:00Z", "2026-01-05T13:00:00Z", "2026-01-08T11:30:00Z"]
    for start, end in itertools.combinations(moments, 2):
        span = {"from": start, "to": end, "limit": 5_000}
        whole = demo.get("/api/v2/graph/diff", **span)
        part = demo.get("/api/v2/graph/diff", node="job:shop:orders-source", depth=50, **span)
        for name in names:
            few = {json.dumps(one) for one in part[name]}
            assert few <= {json.dumps(one) for one in whole[name]}, (name, start, end)


def test_what_was_deleted_again_is_not_told_as_added(client: Client) -> None:
    orders = dataset("orders", schema=schema("id"))
    before = event("COMPLETE", 0, job="load", inputs=["raw"], outputs=[orders])
    written = [dataset("orders", columnLineage=columns(id=("raw", "id"))), "lost"]
    client.post(before)
    client.post(event("COMPLETE", 60, run=2, job="gone", inputs=["raw"], outputs=written))
    client.post(
        event("COMPLETE", 62, run=4, job="stays", inputs=[orders], outputs=["kept", "dropped"])
    )
    span = {"from": at(30), "to": at(90)}
    found = client.get("/api/v2/graph/diff", **span)
    assert "job:jobs:gone" in found["appeared"]
    assert found["columnsAdded"]
    for path in ("jobs/jobs/gone", f"{quote('s3://lake', safe='')}/datasets/dropped"):
        deleted = client.call("DELETE", f"/api/v1/namespaces/{path}")
        assert deleted.status_code == 200, deleted.text
    for around in ({}, {"node": "dataset:s3://lake:orders"}):
        found = client.get("/api/v2/graph/diff", **span, **around)
        assert found["appeared"] == ["dataset:s3://lake:kept", "job:jobs:stays"]
        assert [(one["origin"], one["destination"]) for one in found["added"]] == [
            ("dataset:s3://lake:orders", "job:jobs:stays"),
            ("job:jobs:stays", "dataset:s3://lake:kept"),
        ]
        assert found["columnsAdded"] == []
    node = "datasetField:s3://lake:orders:id"
    assert client.get("/api/v2/columns", node=node, depth=1)["edges"] == []


def test_what_was_deleted_in_between_went_and_comes_back_with_its_next_event(
    client: Client,
) -> None:
    client.post(
        event("COMPLETE", 0, job="load", inputs=["raw"], outputs=["orders"]),
        event("COMPLETE", 10, run=2, job="sum", inputs=["orders"], outputs=["sums"]),
    )

    def difference(**span: str) -> tuple[list[str], list[str], int, int]:
        found = client.get("/api/v2/graph/diff", **span)
        around = client.get("/api/v2/graph/diff", node="dataset:s3://lake:orders", **span)
        told = [(one["appeared"], one["vanished"], len(one["added"]), len(one["removed"]))
                for one in (found, around)]  # fmt: skip
        assert told[0] == told[1]
        return told[0]

    went = ["dataset:s3://lake:sums", "job:jobs:sum"]
    before = at(60)
    nothing: tuple[list[str], list[str], int, int] = ([], [], 0, 0)
    assert difference(**{"from": before}) == nothing
    deleted = client.call("DELETE", "/api/v1/namespaces/jobs/jobs/sum")
    assert deleted.status_code == 200, deleted.text
    moment = datetime.now(timezone.utc).isoformat()
    for _ in range(2):
        assert difference(**{"from": before}) == ([], went, 0, 2)
        assert difference(**{"from": before, "to": at(90)}) == nothing
        assert difference(**{"from": moment}) == nothing
        rebuild(client.store)
    again = event("START", 0, run=3, job="sum", inputs=["orders"], outputs=["sums"])
    client.post({**again, "eventTime": datetime.now(timezone.utc).isoformat()})
    for _ in range(2):
        assert difference(**{"from": before, "to": moment}) == ([], went, 0, 2)
        assert difference(**{"from": moment}) == (went, [], 2, 0)
        rebuild(client.store)
    orders = f"/api/v1/namespaces/{quote('s3://lake', safe='')}"
    for path in (f"{orders}/datasets/orders", orders):  # one dataset, and then all of them
        assert client.call("DELETE", path).status_code == 200
        found = client.get("/api/v2/graph/diff", **{"from": before})
        assert "dataset:s3://lake:orders" in found["vanished"]
    assert {"dataset:s3://lake:raw", "job:jobs:load"} <= set(found["vanished"])


def test_the_columns_of_what_was_deleted_go_with_it(client: Client) -> None:
    def gone(**more: Any) -> list[str]:
        found = client.get("/api/v2/graph/diff", **{"from": at(100)}, **more)
        assert found["columnsAdded"] == []
        return [f"{one['originName']} {one['destinationName']}" for one in found["columnsRemoved"]]

    def sums(second: int, run: int) -> None:
        made = dataset("b", columnLineage=columns(y=("a", "x")))
        end = dataset("c", columnLineage=columns(z=("b", "y")))
        client.post(event("COMPLETE", second, run=run, job="sum", inputs=["a"], outputs=[made]))
        client.post(event("COMPLETE", second, run=run + 1, job="end", inputs=["b"], outputs=[end]))

    near = "dataset:s3://lake:b"
    sums(10, 1)
    assert gone() == gone(node=near) == []
    assert client.call("DELETE", "/api/v1/namespaces/jobs/jobs/sum").status_code == 200
    assert gone() == gone(node=near) == ["s3://lake:a.x s3://lake:b.y"]
    sums(20, 3)
    assert gone() == gone(node=near) == []
    path = f"/api/v1/namespaces/{quote('s3://lake', safe='')}/datasets/b"
    assert client.call("DELETE", path).status_code == 200
    both = ["s3://lake:a.x s3://lake:b.y", "s3://lake:b.y s3://lake:c.z"]
    assert gone() == gone(node="dataset:s3://lake:a") == both


def test_a_column_of_the_past_is_asked_about_at_a_moment_when_it_was_there(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The schema was another one then, and so were the columns that can be asked about."""
    for second, name in ((100, "old"), (200, "new")):
        made = dataset("b", schema=schema(name), columnLineage=columns(**{name: ("a", "x")}))
        client.post(event("COMPLETE", second, run=second, inputs=["a"], outputs=[made]))
    command = Command(client, monkeypatch)
    assert "a.x" in command("trace", "b.old", "--at", at(150))
    assert "a.x" in command("trace", "b.new", "--at", at(250))
    assert "came from a" in command("audit", "b.old", "--from", at(110), "--to", at(150))
    assert "came from a" in command("audit", "b.old")
    for words, near in (
        (("trace", "b.old", "--at", at(250)), "b.new"),
        (("trace", "b.new", "--at", at(150)), "b.old"),
        (("trace", "b.old"), "b.new"),
        (("why", "b.old"), "b.new"),
        (("audit", "b.old", "--from", at(220)), "b.new"),
    ):
        result = CliRunner().invoke(app, list(words))
        assert isinstance(result.exception, NotFoundError), words
        assert list(result.exception.names) == [f"s3://lake:{near}"], words
    server = ServerClient("http://server")
    old = TOOLS["trace"].ask(server, {"dataset": "b.old", "at": at(150)})
    assert [row["name"] for row in old["rows"]] == ["s3://lake:b.old", "s3://lake:a.x"]
    assert TOOLS["audit"].ask(server, {"dataset": "b.old"})["sources"] == ["s3://lake:a"]
    with pytest.raises(NotFoundError):
        TOOLS["trace"].ask(server, {"dataset": "b.old"})


def test_two_jobs_of_one_name_are_told_apart(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    shop = dataset("sales", "shop")
    for number, team in enumerate(("red", "blue")):
        made = event("FAIL", number, run=number + 1, inputs=["raw"], outputs=[shop])
        client.post({**made, "job": {**made["job"], "namespace": team, "name": "etl"}})
    command = Command(client, monkeypatch)
    tree = command("trace", "sales").splitlines()
    assert tree[0] == "sales shop"  # the namespace is all that is known of the store
    assert [line[4:].partition(" ")[0] for line in tree if "FAILED" in line] == [
        "red:etl",
        "blue:etl",
    ]
    drawn = command("trace", "sales", "--mermaid")
    assert '("red:etl<br>FAILED")' in drawn
    assert '("blue:etl<br>FAILED")' in drawn
    said = command("why", "sales").splitlines()
    assert said[0] == f"sales (shop) is stale since {at(0)}"
    assert f"  because red:etl failed since {at(0)}" in said
    assert "      blue:etl → sales" in said
    hit = command("impact", "raw", "--drop", "id")
    assert "  red:etl: it has no column lineage\n    raw.id → red:etl\n" in hit
    assert "not those of blue:etl, red:etl" in hit
    assert "| `blue:etl` |" in command("impact", "raw", "--drop", "id", "--markdown")
    report = [line.partition(" ")[0] for line in command("audit", "sales").splitlines()]
    assert {"red:etl", "blue:etl"} <= set(report)


def test_what_was_not_written_did_not_come_from_itself(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(event("COMPLETE", 1, inputs=["raw"], outputs=["made"]))
    said = Command(client, monkeypatch)("audit", "raw").splitlines()
    assert said[1] == "came from no source that is known"
    report = client.call("GET", "/api/v2/datasets/s3%3A%2F%2Flake/raw/audit/report")
    assert "<p>No source is known.</p>" in report.text


def test_a_job_without_datasets_is_no_part_of_the_graph_that_is_compared(client: Client) -> None:
    client.post(
        event("COMPLETE", 10, run=1, job="bare"),
        event("COMPLETE", 11, run=2, job="load", inputs=["a"], outputs=["b"]),
        event("FAIL", 30, run=3, job="bare"),
    )
    found = client.get("/api/v2/graph/diff", **{"from": at(5), "to": at(40)})
    assert found["appeared"] == ["dataset:s3://lake:a", "dataset:s3://lake:b", "job:jobs:load"]
    found = client.get("/api/v2/graph/diff", **{"from": at(20), "to": at(40)})
    assert [one["job"] for one in found["states"]] == ["job:jobs:bare"]


def test_a_difference_of_many_columns_says_that_it_is_cut(client: Client) -> None:
    for second, names in ((1, ["id"]), (9, ["id", *(f"c{n}" for n in range(60))])):
        made = dataset("wide", schema=schema(*names))
        client.post(event("COMPLETE", second, run=second, outputs=[made]))
    found = client.get("/api/v2/graph/diff", **{"from": at(2), "to": at(10)})
    assert (len(found["schemas"][0]["changes"]), found["truncated"]) == (50, True)


@pytest.mark.parametrize(
    "words",
    [
        ["tags", ""],
        ["tags", "--tag", ""],
        ["tags", "--tag", " "],
        ["why", "orders", "--url", ""],
        ["impact", "", "--delete"],
        ["impact", "orders", "--drop", ""],
        ["impact", "orders", "--rename", " =b"],
        ["impact", "--delete", "--subject", "", "--registry", ""],
        ["freshness", "s3://lake", ""],
        ["freshness", "", "orders"],
        ["alerts", "test", ""],
    ],
)
def test_an_empty_text_is_never_one_that_was_left_out(
    client: Client, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    client.post(event("COMPLETE", 1, outputs=[dataset("orders", schema=schema("id"))]))
    Command(client, monkeypatch)
    failed = CliRunner().invoke(app, words).exception
    assert isinstance(failed, UsageError), failed
    assert failed.exit_code == 2
    assert "is empty" in failed.message or "--rename ' =b': say COLUMN=NEW" in failed.message
    if words[:2] == ["impact", ""]:
        assert failed.message == "the name of the dataset is empty"
    if "--drop" in words:
        assert failed.message == "the column of --drop is empty"


@pytest.mark.parametrize(
    "words",
    [
        ["diff", "--from", "1d", "--around", "orders.id"],
        ["impact", "orders.id", "--delete"],
        ["freshness", "orders.id"],
        ["diff", "--from", "1d", "--depth", "2"],
        ["impact", "orders", "--delete", "--json", "--markdown"],
        ["doctor", "--undo", "--min-score", "0.9"],
    ],
)
def test_what_a_question_would_pass_over_is_refused(
    client: Client, monkeypatch: pytest.MonkeyPatch, words: list[str]
) -> None:
    client.post(event("COMPLETE", 1, outputs=[dataset("orders", schema=schema("id"))]))
    Command(client, monkeypatch)
    failed = CliRunner().invoke(app, words).exception
    assert isinstance(failed, UsageError), failed
    if "orders.id" in words:
        assert (failed.exit_code, failed.message) == (2, "orders.id is a column")


def test_two_datasets_of_one_name_are_told_apart(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    pii = facet(tags=[{"key": "pii", "value": "true", "source": "x", "field": "total"}])
    first = dataset("summary", "s3://a", schema=schema("total"), tags=pii)
    second = dataset("summary", "s3://b", schema=schema("total"))
    both = [
        {"namespace": space, "name": "summary", "field": "total"} for space in ("s3://a", "s3://b")
    ]
    made = facet(fields={"diff": {"inputFields": both}})
    last = dataset("compared", schema=schema("diff"), columnLineage=made)
    client.post(
        event("COMPLETE", 1, run=1, job="copy", inputs=[first], outputs=[second]),
        event("COMPLETE", 2, run=2, job="compare", inputs=[first, second], outputs=[last]),
    )
    command = Command(client, monkeypatch)
    tagged = command("tags", "--tag", "pii")
    assert "unknown s3://a:summary → s3://b:summary copy reports no columns" in tagged
    assert "    s3://a:summary.total → compare → compared.diff" in tagged
    why = command("why", "compared.diff")
    assert "  s3://a:summary.total  no change" in why
    assert "  s3://b:summary.total  no change" in why
    rows = [line.partition(" ")[0] for line in command("audit", "compared").splitlines()]
    assert {"s3://a:summary", "s3://b:summary", "compared"} <= set(rows)
    assert "summary" not in rows
    # One dataset is called the same in the whole answer.
    assert command("audit", "s3://b:summary").startswith("s3://b:summary from")


def test_columns_of_a_difference_are_printed_as_they_can_be_typed(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lineage(name: str, column: str, namespace: str) -> Any:
        made = {"namespace": namespace, "name": name, "field": column}
        return facet(fields={column: {"inputFields": [made]}})

    for number, (name, column) in enumerate((("orders", "id"), ("col:victim", "a:b"))):
        source = dataset(name, "kafka://k:9092", schema=schema(column))
        made = lineage(name, column, "kafka://k:9092")
        target = dataset(name, schema=schema(column), columnLineage=made)
        started = event("COMPLETE", 60, run=number, job=f"j{number}", inputs=[source])
        client.post({**started, "outputs": [target]})
    command = Command(client, monkeypatch)
    for words in ((), ("--around", "s3://lake:col:victim"), ("--around", "s3://lake:orders")):
        said = command("diff", "--from", at(1), "--to", at(90), *words)
        columns_ = [line[9:] for line in said.splitlines() if line.startswith("+ column ")]
        assert columns_, words
        for typed in (end for line in columns_ for end in line.split(" → ")):
            (match,) = client.get("/api/v2/names", q=typed)["matches"]
            assert match["field"] in ("id", "a:b"), typed
        # The page shows these members, so it says what the command says.
        answer = json.loads(command("diff", "--from", at(1), "--to", at(90), *words, "--json"))
        shown = [
            f"{one['originName']} → {one['destinationName']}" for one in answer["columnsAdded"]
        ]
        assert shown == columns_
    assert "+ column kafka://k:9092:orders.id → s3://lake:orders.id" in said


def test_which_columns_one_comes_from_is_not_known_where_a_writer_reports_none(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post(
        event("COMPLETE", 1, run=1, job="blind", inputs=["src"], outputs=[dataset("two", schema=schema("x", "y"))]),
        event("COMPLETE", 1, run=2, job="makes", outputs=[dataset("src", schema=schema("e"))]),
    )  # fmt: skip
    command = Command(client, monkeypatch)
    unknown = "it is not known which columns x comes from: blind reports no columns"
    assert command("why", "two.x").splitlines()[-1] == unknown
    assert "comes from 0" not in command("why", "two.x")
    result = CliRunner().invoke(app, ["trace", "two.x"])
    assert unknown in result.output.splitlines()
    silent = [
        {
            "job": "job:jobs:blind",
            "origin": "dataset:s3://lake:src",
            "destination": "dataset:s3://lake:two",
        }
    ]
    assert json.loads(command("why", "two.x", "--json"))["unknown"] == silent
    assert json.loads(command("trace", "two.x", "--json"))["unknown"] == silent
    assert (
        json.loads(command("trace", "two.x", "--json", "--at", "2026-01-01T00:00:02Z"))["unknown"]
        is None
    )
    assert json.loads(command("why", "two", "--json"))["unknown"] is None
    assert json.loads(command("trace", "src.e", "--down", "--json"))["unknown"] == silent
    assert json.loads(command("trace", "two.x", "--down", "--json"))["unknown"] == []
    result = CliRunner().invoke(app, ["trace", "src.e", "--down"])
    assert (
        result.output.splitlines()[-1] == "it is not known where e goes: blind reports no columns"
    )
    assert command("why", "src.e").splitlines()[-1] == "e comes from no column that is known"
    client.post(written("sees", 3, "src", "two", x=made_of("src", "e", False)))
    said = command("why", "two.x").splitlines()
    assert said[-3:-1] == ["x comes from 1 column:", "  src.e  no change is known"]
    assert said[-1] == "it is not known which more columns x comes from: blind reports no columns"


def test_a_column_that_is_not_known_yet_is_told_apart_from_one_that_is_not_there(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = dataset("later", columnLineage=columns(id=("src", "id")))
    client.post(
        event("RUNNING", 1, outputs=["later", "never", dataset("seen", schema=schema("id"))]),
        event("RUNNING", 9, inputs=["src"], outputs=[made]),
    )
    command = Command(client, monkeypatch)

    def refused(*words: str) -> HeadwaterError:
        failed = CliRunner().invoke(app, ["trace", *words])
        assert isinstance(failed.exception, HeadwaterError)
        assert failed.stdout == ""
        return failed.exception

    yet = "The columns of dataset 'never' are not known yet: no producer has reported them."
    for name in ("never.id", "s3://lake:never.id", "datasetField:s3://lake:never:id"):
        assert refused(name).message == yet
    assert refused("seen.price").message == "Dataset 'seen' has no column 'price'."
    assert refused("none.id").message == "no dataset is called 'none.id'"

    assert "later.id" in command("trace", "later.id")
    then = ("later.id", "--at", at(5))
    early = refused(*then)
    assert early.message == "the columns of s3://lake later are not known yet"
    assert str(early.hint).startswith("a connector's are reported by the poll after its schema")
    assert json.loads(command("trace", *then, "--json"))["columnsKnown"] is False


def test_a_dataset_of_unknown_freshness_is_not_said_to_have_no_writer_where_it_has(
    client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    declared = event("START", 1, job="load", inputs=["raw"], outputs=["new"])
    client.post({k: v for k, v in declared.items() if k not in ("eventType", "run")})
    command = Command(client, monkeypatch)
    assert "of unknown freshness (no job that writes it is known)" in command("why", "raw")
    assert "of unknown freshness (no write of it is known yet)" in command("why", "new")
