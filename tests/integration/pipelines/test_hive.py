"""The same programs with a Hive metastore instead of a REST catalog."""

from __future__ import annotations

from decimal import Decimal
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lab.clients import unique
from tests.integration.pipelines import jobs, wire
from tests.integration.pipelines.wire import order

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.clients import HiveClient, KafkaClient, RegistryClient
    from headwater.lab.lab import Lab


def rows(warehouse: Path, table: str) -> list[dict[str, Any]]:
    """An Iceberg table read from its newest metadata, without asking Hive."""
    from pyiceberg.table import StaticTable

    database, name = table.split(".")
    found = (warehouse / f"{database}.db" / name / "metadata").glob("*.metadata.json")
    newest = max(found, key=lambda path: path.name)
    read: list[dict[str, Any]] = (
        StaticTable.from_metadata(str(newest)).scan().to_arrow().to_pylist()
    )
    return read


@pytest.mark.full
@pytest.mark.timeout(600)
def test_orders_land_in_hive_and_are_summed_up(
    lab: Lab, kafka: KafkaClient, registry: RegistryClient, hive: HiveClient, tmp_path: Path
) -> None:
    topic, shop = kafka.topic("orders"), unique("shop")
    schema = wire.schema()
    number = wire.register(registry.url, topic, schema)
    given = [
        order("a", "1.10", "12:00:01"),
        order("b", "2.20", "12:59:59"),
        order("c", "4.00", "13:00:00"),
        order("d", "8.00", "13:00:00", "globex"),
    ]
    kafka.produce(topic, [wire.encode(schema, number, one) for one in given])
    warehouse = tmp_path / "warehouse"
    env = {
        "HMS_ENDPOINT": hive.url,
        "ICEBERG_CATALOG_URI": None,
        "ICEBERG_WAREHOUSE": warehouse.as_uri(),
        "S3_ENDPOINT": None,
    }
    # The lab's metastore has no transactions to lock with.
    conf = {"spark.hadoop.iceberg.engine.hive.lock-enabled": "false"}
    table, summary = f"{shop}.orders", f"{shop}.supplier_stats"
    checkpoint = (tmp_path / "checkpoint").as_uri()
    arguments = ["--input-topic", topic, "--table", table, "--checkpoint", checkpoint]
    folder = tmp_path / "ingestion"
    jobs.start(lab, "iceberg_ingestion.py", *arguments, folder=folder, env=env, conf=conf).end()
    assert {row["order_id"] for row in rows(warehouse, table)} == {"a", "b", "c", "d"}

    arguments = ["--table", table, "--output-table", summary]
    env["OPENLINEAGE_DATASET_NAME"] = "elsewhere"
    folder = tmp_path / "summary"
    jobs.start(lab, "supplier_stats.py", *arguments, folder=folder, env=env, conf=conf).end()
    found = {(r["hour"].hour, r["supplier"]): (r["total_price"], r["count"])
             for r in rows(warehouse, summary)}  # fmt: skip
    assert found == {
        (12, "acme"): (Decimal("3.30"), 2),
        (13, "acme"): (Decimal("4.00"), 1),
        (13, "globex"): (Decimal("8.00"), 1),
    }

    (told,) = [
        event
        for event in jobs.events(folder)
        if event["eventType"] == "COMPLETE" and "overwrite" in event["job"]["name"]
    ]
    (read,), (written,) = told["inputs"], told["outputs"]
    links = read["facets"]["symlinks"]["identifiers"]
    assert [(link["namespace"], link["name"]) for link in links] == [
        (hive.url.replace("thrift://", "hive://"), table)
    ]
    assert (written["namespace"], written["name"]) == (read["namespace"], "elsewhere")
    assert "symlinks" not in written["facets"]
