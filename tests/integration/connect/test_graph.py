"""Orders from PostgreSQL through Kafka to Iceberg, JDBC, S3 and another topic, in one graph."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from psycopg.conninfo import conninfo_to_dict

from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until
from tests.strict_events import check

from .watching import ClusterAgent, columns, names

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.clients import KafkaClient

    from .shop import Shop

ORDER = ["order_id", "item", "price", "supplier"]


def dataset(agent: ClusterAgent, job: str, side: str, name: str) -> dict[str, Any]:
    """A dataset as the newest event of a job has it.

    It may not be there yet: until the catalog answers, a table goes by its name in the catalog.
    """
    last = agent.events(job)[-1]
    return next((d for d in last[side] if d["name"] == name), {"facets": {}})


def connect_facet(event: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = event["run"]["facets"]["headwater_connect"]
    return found


def wait_for_columns(
    agent: ClusterAgent, job: str, side: str, name: str, wanted: list[str]
) -> None:
    wait_until(
        lambda: columns(dataset(agent, job, side, name))[: len(wanted)] == wanted,
        seconds=120,
        what=f"columns of {name}",
        interval=0.3,
    )


def with_both(agent: ClusterAgent, shop: Shop) -> dict[str, Any]:
    """The Iceberg sink's newest event once both topics and both tables are seen in use."""
    agent.wait_for(shop.iceberg, "START")

    def complete() -> dict[str, Any] | None:
        event = agent.events(shop.iceberg)[-1]
        placed = [d for d in event["outputs"] if d["namespace"].startswith("s3://")]
        return event if len(event["inputs"]) == len(placed) == 2 else None

    return wait_until(
        complete, seconds=120, what="both topics in use, both tables located", interval=0.3
    )


def test_every_connector_is_in_the_graph(
    agent: ClusterAgent, shop: Shop, kafka: KafkaClient
) -> None:
    here = f"kafka://{kafka.bootstrap}"
    at = conninfo_to_dict(shop.url)
    database = f"postgres://{at['host']}:{at['port']}"
    source = agent.wait_for(shop.source, "START")
    assert set(names(source, "inputs")) == {
        f"{database} {at['dbname']}.public.{table}" for table in ("orders", "customers")
    }
    assert set(names(source, "outputs")) == {f"{here} {shop.orders}", f"{here} {shop.customers}"}
    iceberg = with_both(agent, shop)
    assert set(names(iceberg, "inputs")) == {f"{here} {shop.orders}", f"{here} {shop.customers}"}
    for table in ("orders", "customers"):
        location = shop.catalog.client.load_table(f"{shop.namespace}.{table}").location()
        path = location.removeprefix("s3://warehouse/")
        assert f"s3://warehouse {path}" in names(iceberg, "outputs")
    copy = conninfo_to_dict(shop.copy_url)
    assert names(agent.wait_for(shop.jdbc, "START"), "outputs") == [
        f"{database} {copy['dbname']}.public.orders_copy"
    ]
    camel = agent.wait_for(shop.camel, "START")
    assert names(camel, "inputs") == [f"{here} {shop.raw}"]
    assert camel["outputs"][0]["namespace"] == f"s3://{shop.bucket}"
    mirror = agent.wait_for(shop.mirror, "START")
    assert names(mirror, "inputs") == [f"{here} {shop.mirrored}"]
    assert names(mirror, "outputs") == [f"{here} east.{shop.mirrored}"]


def test_three_tasks_and_no_cartesian_product(agent: ClusterAgent, shop: Shop) -> None:
    event = with_both(agent, shop)
    wait_until(
        lambda: len(connect_facet(agent.events(shop.iceberg)[-1])["tasks"]) == 3,
        seconds=120,
        what="an event with every task: the first has those that Connect had started",
        interval=0.3,
    )
    entries = event["job"]["facets"]["lineage"]["entries"]
    pairs = {(i["name"], e["name"].rsplit("/", 1)[-1]) for e in entries for i in e["inputs"]}
    found = {(topic.rsplit(".", 1)[-1], table.split("-")[0]) for topic, table in pairs}
    assert found == {("orders", "orders"), ("customers", "customers")}


def test_columns_from_the_table_through_kafka_to_iceberg(agent: ClusterAgent, shop: Shop) -> None:
    agent.wait_for(shop.source, "START")
    agent.wait_for(shop.iceberg, "START")
    wait_for_columns(agent, shop.source, "outputs", shop.orders, ORDER)
    wait_for_columns(agent, shop.iceberg, "inputs", shop.orders, ORDER)
    topic = dataset(agent, shop.source, "outputs", shop.orders)
    origin = topic["facets"]["columnLineage"]["fields"]["price"]["inputFields"]
    assert [(i["name"].rsplit(".", 1)[-1], i["field"]) for i in origin] == [("orders", "price")]
    assert topic["facets"]["headwater_cluster"]["clusterId"]
    event = with_both(agent, shop)
    table = next(d for d in event["outputs"] if "orders" in d["name"].rsplit("/", 1)[-1])
    assert columns(table) == ORDER
    origin = table["facets"]["columnLineage"]["fields"]["price"]["inputFields"]
    assert [(i["name"], i["field"]) for i in origin] == [(shop.orders, "price")]
    assert table["facets"]["symlinks"]["identifiers"][0]["name"] == f"{shop.namespace}.orders"


@pytest.fixture
def landing(agent: ClusterAgent, shop: Shop) -> Iterator[Landing]:
    """A sink into a table that exists already."""
    made = Landing(agent, shop)
    yield made
    shop.connect.delete(made.sink)


class Landing:
    """Orders on their way into a table with fewer columns and one of its own."""

    def __init__(self, agent: ClusterAgent, shop: Shop) -> None:
        from pyiceberg.schema import Schema
        from pyiceberg.types import NestedField, StringType, TimestamptzType

        self.agent = agent
        name = f"{shop.namespace}.{unique('landing')}"
        fields = [
            NestedField(1, "order_id", StringType()),
            NestedField(2, "supplier", StringType()),
            NestedField(3, "loaded_at", TimestamptzType()),
        ]
        self.table = shop.catalog.client.create_table(name, Schema(*fields))
        config = {
            key: value
            for key, value in shop.iceberg_sink().items()
            if "route-" not in key and not key.startswith("transforms")
        }
        config |= {"topics": shop.orders, "iceberg.tables": name, "tasks.max": 1}
        self.sink = shop.connect.create(config, "landing")
        agent.wait_for(self.sink, "START")

    def wait_for(self, have: list[str], written: list[str]) -> None:
        """Wait until the table has these columns, of which those are known to be written."""
        name = self.table.location().removeprefix("s3://warehouse/")

        def landed() -> bool:
            found = dataset(self.agent, self.sink, "outputs", name)
            origins = found["facets"].get("columnLineage", {}).get("fields", {})
            return columns(found) == have and sorted(origins) == sorted(written)

        wait_until(landed, seconds=120, what=f"{have} in {name}", interval=0.3)


def test_a_table_gets_only_the_columns_that_it_has(
    agent: ClusterAgent, shop: Shop, landing: Landing
) -> None:
    landing.wait_for(["order_id", "supplier", "loaded_at"], ["order_id", "supplier"])
    evidence = agent.events(landing.sink)[-1]["job"]["facets"]["headwater_evidence"]
    for part in (evidence["edges"][0], evidence["datasets"][-1]):
        said = [e for e in part["evidence"] if "columns" in e["detail"]]
        assert [(e["source"], e["observed"]) for e in said] == [("catalog", True)]
    wait_for_columns(agent, shop.jdbc, "inputs", shop.orders, ORDER)
    derived = agent.events(shop.jdbc)[-1]["job"]["facets"]["headwater_evidence"]["edges"][0]
    said = [e for e in derived["evidence"] if "columns" in e["detail"]]
    assert [(e["source"], e["observed"]) for e in said] == [("rule", False)]


@pytest.mark.full
def test_a_column_added_to_the_table_is_seen_within_a_minute(landing: Landing) -> None:
    from pyiceberg.types import StringType

    have = ["order_id", "supplier", "loaded_at"]
    landing.wait_for(have, ["order_id", "supplier"])
    with landing.table.update_schema() as update:
        update.add_column("price", StringType())
    landing.wait_for([*have, "price"], ["order_id", "price", "supplier"])


def test_a_new_column_is_downstream_within_a_minute(agent: ClusterAgent, shop: Shop) -> None:
    agent.wait_for(shop.iceberg, "START")
    shop.sql(
        "alter table orders add column discount int",
        "insert into orders values ('o-9', 'vase', 5.00, 'acme', 3)",
    )
    wait_for_columns(agent, shop.iceberg, "inputs", shop.orders, [*ORDER, "discount"])
    newest = agent.events(shop.iceberg)[-1]
    assert newest["eventType"] == "RUNNING"
    versions = {
        d["facets"]["version"]["datasetVersion"]
        for e in agent.events(shop.iceberg)
        for d in e["inputs"]
        if d["name"] == shop.orders and "version" in d["facets"]
    }
    assert len(versions) >= 2


def test_no_secret_is_in_events_logs_or_state(agent: ClusterAgent, shop: Shop) -> None:
    agent.wait_for(shop.camel, "START")
    for file in agent.folder.iterdir():
        content = file.read_bytes()
        for secret in shop.secrets:
            assert secret.encode() not in content, file
        assert b"${file:" not in content, file


def test_every_event_is_valid(agent: ClusterAgent, shop: Shop) -> None:
    agent.wait_for(shop.mirror, "START")
    from headwater.lineage.openlineage.events import read

    told = agent.file.read_bytes().splitlines()
    for line in told:
        read(line)
    check(map(json.loads, told))


def test_one_graph_in_the_server(
    shop: Shop, kafka: KafkaClient, server: str, tmp_path: Path
) -> None:
    import httpx

    agent = ClusterAgent(
        tmp_path, shop.connect.url, "--kafka-bootstrap", kafka.bootstrap,
        "--registry-url", shop.registry.url, "--poll", "0.5",
        env={"OPENLINEAGE_URL": server, "OPENLINEAGE_NAMESPACE": "lab"},
    ).start()  # fmt: skip
    try:
        at = conninfo_to_dict(shop.url)
        node = f"dataset:postgres://{at['host']}:{at['port']}:{at['dbname']}.public.orders"

        def downstream() -> set[str]:
            try:
                answer = httpx.get(
                    f"{server}/api/v1/lineage",
                    params={"nodeId": node, "depth": 20},
                    trust_env=False,
                )
            except httpx.HTTPError:
                return set()
            if answer.status_code != 200:
                return set()
            return {n["id"].split(":")[-1] for n in answer.json()["graph"] if n["type"] == "JOB"}

        wanted = {shop.source, shop.iceberg, shop.jdbc}
        wait_until(
            lambda: wanted <= downstream(),
            seconds=120,
            what=f"the graph in the server:\n{agent.log[-2000:]}",
            interval=0.5,
        )

        def flowing() -> bool:
            answer = httpx.get(f"{server}/api/v2/flow", trust_env=False)
            return shop.orders in answer.text

        wait_until(flowing, seconds=120, what="flow in the server", interval=0.5)
    finally:
        agent.kill()
    assert "events go to http" in agent.log
