"""Every question about the demo's graph, with answers that were written down by hand.

`impact` is in test_impact.py; what the pipeline does is in pipelines/ and its connectors.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from .test_answers import Command
from .test_impact import PIPELINE

if TYPE_CHECKING:
    from .conftest import Client

STATS = "s3://warehouse:default/supplier_stats"
BATCH = "supplier_stats.overwrite_by_expression.default_supplier_stats"
SHOP, KAFKA, LAKE = "postgres://shop-db:5432", "kafka://broker:9092", "s3://warehouse"


@pytest.fixture
def ask(client: Client, monkeypatch: pytest.MonkeyPatch) -> Command:
    sent = client.call("POST", "/api/v2/events", content=PIPELINE.read_bytes())
    assert sent.status_code == 201, sent.text
    return Command(client, monkeypatch)


def opened(tree: str) -> list[tuple[int, str]]:
    """How deep each line of a tree stands, and the name that it begins with."""
    lines = [line for line in tree.splitlines() if not line.startswith("also")]
    bare = [line.lstrip("│├└─ ") for line in lines]
    return [
        ((len(line) - len(one)) // 4, one.split()[0]) for line, one in zip(lines, bare, strict=True)
    ]


def test_trace(ask: Command) -> None:
    assert opened(ask("trace", "s3://exports:supplier_stats.total_price")) == [
        (0, "supplier_stats.total_price"),
        (1, "default/supplier_stats.total_price"),
        (2, "default/orders.price"),
        (3, "orders.price"),
        (4, "shop.public.orders.price"),
    ]
    down = opened(ask("trace", f"{SHOP}:shop.public.orders.price", "--down"))
    assert sorted(down) == [
        (0, "shop.public.orders.price"),
        (1, "orders.price"),
        (2, "default/orders.price"),
        (2, "default/orders_landing.price"),
        (2, "supplier-stats.total_price"),
        (2, "topics/orders.price"),
        (3, "default/supplier_stats.total_price"),
        (3, "shop.public.supplier_stats.total_price"),
        (4, "supplier_stats.total_price"),
    ]


def test_why(ask: Command) -> None:
    """The demo ended by itself: streams and connectors were stopped, and nothing else is wrong."""
    said = ask("why", STATS)
    causes = [line.strip() for line in said.splitlines() if line.startswith("  because")]
    assert [cause.partition(" since")[0] for cause in causes] == [
        "because iceberg-ingestion was stopped (planned)",
        "because orders-source was stopped (planned)",
    ]
    assert "aborted" not in said


def test_diff(ask: Command) -> None:
    """While the batch job ran, its table came; of its three actions each is a job of its own."""
    said = ask("diff", "--from", "2026-11-19T17:40:00Z", "--to", "2026-11-19T17:41:40Z")
    jobs = ("create_table.default_supplier_stats", "head.default_orders",
            "overwrite_by_expression.default_supplier_stats")  # fmt: skip
    create, look, write = (f"shop:supplier_stats.{name}" for name in jobs)
    orders = f"{LAKE}:default/orders"
    assert sorted(said.splitlines()) == sorted(
        [
            f"+ dataset {STATS}",
            *(f"+ job {job}" for job in (create, look, write)),
            f"+ edge {create} → {STATS}",
            f"+ edge {orders} → {look}",
            f"+ edge {orders} → {write}",
            f"+ edge {write} → {STATS}",
            f"+ column {orders}.bid_time → {STATS}.hour",
            f"+ column {orders}.price → {STATS}.total_price",
            f"+ column {orders}.supplier → {STATS}.supplier",
        ]
    )


def test_audit(client: Client, ask: Command) -> None:
    found = client.get(
        f"/api/v2/datasets/{LAKE.replace('/', '%2F')}/default%2Fsupplier_stats/audit"
    )

    def jobs(side: str) -> set[str]:
        return {job["name"] for job in found[side]}

    assert found["sources"] == [f"dataset:{SHOP}:shop.public.orders"]
    assert jobs("writers") == {
        "orders-source", "iceberg-ingestion", BATCH,
        "iceberg_ingestion_stream.create_table.default_orders",
        "supplier_stats.create_table.default_supplier_stats",
    }  # fmt: skip
    assert jobs("readers") == {"supplier-stats-export"}


def test_tags(client: Client, ask: Command) -> None:
    """The supplier is personal: it is in every table and file, and in what a topic of bad records holds."""
    space = SHOP.replace("/", "%2F")
    place = f"/api/v1/namespaces/{space}/datasets/shop.public.orders/fields/supplier/tags/pii"
    assert client.call("POST", place).status_code in (200, 201)
    reached = {
        (one["namespace"], one["name"], one["field"])
        for one in client.get("/api/v2/tags/pii")["columns"]
    }
    assert reached == {
        (SHOP, "shop.public.orders", "supplier"), (KAFKA, "orders", "supplier"),
        ("s3://raw", "topics/orders", "supplier"), (LAKE, "default/orders_landing", "supplier"),
        (LAKE, "default/orders", "supplier"), (LAKE, "default/supplier_stats", "supplier"),
        ("s3://exports", "supplier_stats", "supplier"), (KAFKA, "supplier-stats", "supplier"),
        (KAFKA, "supplier-stats", "key.supplier"), (SHOP, "shop.public.supplier_stats", "supplier"),
        (KAFKA, "orders-dead-letter", "value"),
    }  # fmt: skip


def test_doctor(ask: Command) -> None:
    """One name for each dataset: nothing is to be joined, nobody disagrees."""
    assert ask("doctor").strip() == "nothing found"
