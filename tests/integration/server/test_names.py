"""What a person types is found, or the nearest names are offered; the API and the command agree."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.cli.server.client import ServerClient
from headwater.errors import HeadwaterError, NotFoundError, UsageError

from .making import dataset, event, facet, run_id, schema

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Client, Process

LAKE = "s3://lake"


def fill(client: Any) -> None:
    tables = [
        dataset("shop.public.orders", "postgres://db:5432", schema=schema("id", "price")),
        dataset("orders", "kafka://k:9092", schema=schema("id", "price")),
        dataset("db/orders", schema=schema("id", "total")),
        dataset("db/best_suppliers", schema=schema("name", "turnover")),
        dataset("a.b", schema=schema("c")),
    ]
    client.post(event("COMPLETE", 1, outputs=tables))


def found(client: Client, typed: str) -> list[str]:
    return [one["node"] for one in client.get("/api/v2/names", q=typed)["matches"]]


def test_what_is_typed_is_found(client: Client) -> None:
    fill(client)
    orders = "dataset:kafka://k:9092:orders"
    suppliers = f"dataset:{LAKE}:db/best_suppliers"
    assert found(client, "kafka://k:9092:orders") == [orders]
    assert found(client, orders) == [orders]
    assert found(client, "orders") == [orders]  # the full name goes before the end of one
    assert found(client, "public.orders") == ["dataset:postgres://db:5432:shop.public.orders"]
    assert found(client, "best_suppliers") == [suppliers]
    turnover = f"datasetField:{LAKE}:db/best_suppliers:turnover"
    for typed in ("best_suppliers.turnover", f"{LAKE}:db/best_suppliers.turnover", turnover):
        assert found(client, typed) == [turnover]
    assert found(client, "a.b.c") == [f"datasetField:{LAKE}:a.b:c"]
    client.post(event("COMPLETE", 2, outputs=[dataset("orders", "kafka://other:9092")]))
    assert found(client, "orders") == [orders, "dataset:kafka://other:9092:orders"]
    assert found(client, "orders.price") == ["datasetField:kafka://k:9092:orders:price"]


def test_a_name_that_can_be_cut_in_several_ways_means_all_of_them(client: Client) -> None:
    fill(client)
    client.post(event("COMPLETE", 2, outputs=[dataset("a", schema=schema("b.c", "b.d"))]))
    both = [f"datasetField:{LAKE}:a.b:c", f"datasetField:{LAKE}:a:b.c"]
    for typed in ("a.b.c", f"{LAKE}:a.b.c"):
        assert found(client, typed) == both
    for node in both:
        assert found(client, node) == [node]
    assert found(client, "a.b.d") == [f"datasetField:{LAKE}:a:b.d"]
    # What has the name as its full name goes before what ends in it, however it is cut.
    client.post(event("COMPLETE", 3, outputs=[dataset("x.a.b", schema=schema("d"))]))
    assert found(client, "a.b.d") == [f"datasetField:{LAKE}:a:b.d"]
    (other,) = client.get("/api/v2/names", q="a.b.d")["others"]
    assert other["node"] == f"datasetField:{LAKE}:x.a.b:d"
    client.post(event("COMPLETE", 4, outputs=[dataset("a.b.c")]))
    assert found(client, "a.b.c") == [f"dataset:{LAKE}:a.b.c"]


def test_a_table_is_found_by_its_name_in_a_catalog_where_nothing_is_called_so(
    client: Client,
) -> None:
    fill(client)
    identifier = {"namespace": "hive://hms:9083", "name": "default.orders", "type": "TABLE"}
    link = facet(identifiers=[identifier])
    table = dataset("db/orders", schema=schema("id", "total"), symlinks=link)
    client.post(event("COMPLETE", 2, outputs=[table]))
    assert found(client, "default.orders") == [f"dataset:{LAKE}:db/orders"]
    assert found(client, "default.orders.total") == [f"datasetField:{LAKE}:db/orders:total"]
    refused = client.call("GET", "/api/v2/names", params={"q": "default.orders.price"})
    assert refused.status_code == 404
    assert "'db/orders' has no column 'price'" in refused.json()["message"]
    # A dataset that is called so goes before it, also one that only ends in it.
    client.post(event("COMPLETE", 3, outputs=[dataset("prod.default.orders")]))
    assert found(client, "default.orders") == [f"dataset:{LAKE}:prod.default.orders"]


def test_a_dataset_is_found_by_its_address(client: Client) -> None:
    orders = {"namespace": "s3://exports", "name": "daily/orders.csv", "facets": {}}
    client.post(event("COMPLETE", 2, outputs=[orders | {"facets": {"schema": schema("id")}}]))
    for address in ("s3://exports/daily/orders.csv", "s3a://exports/daily/orders.csv"):
        assert found(client, address) == ["dataset:s3://exports:daily/orders.csv"]
        assert found(client, f"{address}.id") == ["datasetField:s3://exports:daily/orders.csv:id"]
    for nowhere in ("s3://exports/daily", "s3://", "no such://place"):
        assert client.call("GET", "/api/v2/names", params={"q": nowhere}).status_code == 404


def test_what_else_may_have_been_meant_is_told(client: Client) -> None:
    fill(client)

    def others(typed: str) -> list[str]:
        return [one["node"] for one in client.get("/api/v2/names", q=typed)["others"]]

    shop = "postgres://db:5432:shop.public.orders"
    assert others("orders") == [f"dataset:{LAKE}:db/orders", f"dataset:{shop}"]
    assert others("orders.price") == [f"datasetField:{shop}:price"]
    for typed in ("kafka://k:9092:orders", "public.orders", "best_suppliers"):
        assert others(typed) == []
    (match,) = client.get("/api/v2/names", q="orders")["matches"]
    assert match["store"] == "kafka"


@pytest.mark.parametrize(
    ("path", "nearest"),
    [
        ("/api/v2/names?q=ordrs", "orders"),
        ("/api/v2/names?q=best_supliers", "db/best_suppliers"),
        ("/api/v2/datasets/s3%3A%2F%2Flake/best_suppliers/freshness", "db/best_suppliers"),
        ("/api/v2/datasets/nowhere/orders/freshness", "orders"),
        ("/api/v2/map?node=dataset:nowhere:ordesr", "orders"),
        ("/api/v2/jobs/jobs/lod", "load"),
    ],
)
def test_what_is_not_there_is_404_with_the_nearest_names(
    client: Client, path: str, nearest: str
) -> None:
    fill(client)
    refused = client.call("GET", path)
    assert refused.status_code == 404
    assert refused.json()["nearest"][0]["name"] == nearest
    refused = client.call("GET", "/api/v2/names", params={"q": "zzz"})
    assert refused.json()["nearest"] == []
    refused = client.call("GET", "/api/v2/names", params={"q": "best_suppliers.turnver"})
    assert [one["field"] for one in refused.json()["nearest"]] == ["turnover"]
    refused = client.call("GET", "/api/v1/namespaces/jobs/jobs/lod")
    assert refused.json() == {"code": 404, "message": "Job 'lod' not found."}


def test_the_command_finds_its_server_and_says_what_is_wrong(
    launch: Callable[..., Process], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "tokens").write_text("# the only one\nsecret-token\n")
    server = launch(None, "--no-page", "--token-file", str(tmp_path / "tokens"))
    monkeypatch.delenv("HEADWATER_TOKEN", raising=False)
    asked = ServerClient(server.url, "secret-token")
    asked.post("/api/v2/events", event("START", 1, outputs=[dataset("orders"), dataset("t", "x")]))
    asked.post("/api/v2/events", event("START", 1, outputs=[dataset("t", "y")]))

    def run(*words: str) -> Any:
        return CliRunner().invoke(app, list(words))

    abort = ["runs", "abort", run_id(1), "--json"]
    monkeypatch.setenv("OPENLINEAGE_URL", "http://user:password@127.0.0.1:9")
    nobody = run(*abort).exception
    assert "http://127.0.0.1:9 does not answer" in str(nobody)
    assert "password" not in str(nobody)
    monkeypatch.setenv("OPENLINEAGE_URL", server.url)
    refused = run(*abort).exception
    assert isinstance(refused, HeadwaterError)
    assert "--token-file" in str(refused.hint)
    done = run(*abort, "--token-file", str(tmp_path / "tokens"))
    assert json.loads(done.stdout) == {"run": run_id(1), "state": "ABORTED"}

    monkeypatch.setenv("HEADWATER_TOKEN", "secret-token")
    missing = run("freshness", "s3://lake", "odrers").exception
    assert isinstance(missing, NotFoundError)
    assert (missing.exit_code, missing.hint) == (4, "near it: s3://lake:orders")
    assert asked.find("orders").node == "dataset:s3://lake:orders"
    with pytest.raises(UsageError, match="any of 2") as several:
        asked.find("t")
    assert several.value.hint == "say which: x:t, y:t"
    with pytest.raises(HeadwaterError, match="older than this command"):
        asked.get("/api/v2/a-question-of-tomorrow")

    for name in (".", "..", "..;", "a/../b"):
        asked.post("/api/v2/events", event("START", 2, outputs=[dataset(name, "odd")]))
        for words in (["why"], ["audit"], ["tags"], ["freshness"]):
            found = run(*words, f"odd:{name}", "--json")
            assert found.exit_code == 0, (words, name, found.exception)
    missing = run("freshness", "odd-too", "..").exception
    assert isinstance(missing, NotFoundError)


def test_a_short_name_is_found_among_many_that_hold_it(client: Client) -> None:
    fill(client)
    client.post(event("COMPLETE", 2, outputs=[dataset(f"s_{n:03d}") for n in range(510)]))
    client.post(event("COMPLETE", 3, outputs=[dataset("long.path.to.s")]))
    assert found(client, "s") == [f"dataset:{LAKE}:long.path.to.s"]


def test_a_job_and_columns_that_nobody_reported_are_told_apart_from_what_is_not_there(
    client: Client,
) -> None:
    client.post(event("COMPLETE", 1, job="nightly", outputs=["bare"]))

    def message(typed: str) -> str:
        refused = client.call("GET", "/api/v2/names", params={"q": typed})
        assert refused.status_code == 404
        return str(refused.json()["message"])

    assert message("nightly") == "no dataset is called 'nightly', only a job"
    assert message("job:jobs:nightly") == "no dataset is called 'job:jobs:nightly', only a job"
    assert message("nightl") == "no dataset is called 'nightl'"
    assert message("bare.id") == (
        "The columns of dataset 'bare' are not known yet: no producer has reported them."
    )
