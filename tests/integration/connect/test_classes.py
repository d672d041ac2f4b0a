"""Every connector class that docs/connect.md calls `run`, on a real worker and as the agent reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from confluent_kafka import Consumer, TopicPartition
from psycopg.conninfo import conninfo_to_dict

from headwater.lab.clients import unique
from headwater.lab.waiting import wait_until

from .shop import BYTES, STRINGS
from .watching import names

if TYPE_CHECKING:
    from collections.abc import Callable

    from .shop import Shop
    from .watching import ClusterAgent, Event

Sides = tuple[set[str], set[str]]
Started = tuple[str, Sides]
"""A connector's name, and what it must be reported to read and write."""


def kafka(shop: Shop, *topics: str) -> set[str]:
    return {f"kafka://{shop.kafka.bootstrap} {topic}" for topic in topics}


def tables(url: str, *tables: str) -> set[str]:
    at = conninfo_to_dict(url)
    return {f"postgres://{at['host']}:{at['port']} {at['dbname']}.public.{t}" for t in tables}


def started(shop: Shop, config: dict[str, Any], reads: set[str], writes: set[str]) -> Started:
    return shop.connect.create(config, "class"), (reads, writes)


def debezium(shop: Shop) -> Started:
    topics = kafka(shop, shop.orders, shop.customers)
    return shop.source, (tables(shop.url, "orders", "customers"), topics)


def iceberg(shop: Shop) -> Started:
    located = (
        shop.catalog.client.load_table(f"{shop.namespace}.{table}").location()
        for table in ("orders", "customers")
    )
    written = {"s3://warehouse " + place.removeprefix("s3://warehouse/") for place in located}
    return shop.iceberg, (kafka(shop, shop.orders, shop.customers), written)


def jdbc(shop: Shop) -> Started:
    return shop.jdbc, (kafka(shop, shop.orders), tables(shop.copy_url, "orders_copy"))


def camel_sink(shop: Shop) -> Started:
    return shop.camel, (kafka(shop, shop.raw), {f"s3://{shop.bucket} archive"})


def camel_source(shop: Shop) -> Started:
    topic, bucket = shop.kafka.topic("dropped"), shop.s3.bucket("drop")
    secret, key = shop.connect.secret("s3.secret.key"), shop.connect.secret("s3.access.key")
    config = {
        "connector.class": "org.apache.camel.kafkaconnector.CamelSourceConnector",
        "topics": topic,
        "camel.source.url": f"aws2-s3://{bucket}?accessKey=RAW({key})&secretKey=RAW({secret})"
        f"&region=us-east-1&overrideEndpoint=true&uriEndpointOverride={shop.s3.url}&prefix=in/",
        "key.converter": STRINGS,
        "value.converter": STRINGS,
    }
    return started(shop, config, {f"s3://{bucket} in"}, kafka(shop, topic))


def mirror(shop: Shop) -> Started:
    return shop.mirror, (kafka(shop, shop.mirrored), kafka(shop, f"east.{shop.mirrored}"))


def bookkeeping(shop: Shop, connector_class: str, more: dict[str, Any]) -> Started:
    """One of MirrorMaker's own connectors, whose topics are no data."""
    config = {
        "connector.class": connector_class,
        "source.cluster.alias": unique("north"),
        "target.cluster.alias": "south",
        "source.cluster.bootstrap.servers": shop.kafka.bootstrap,
        "target.cluster.bootstrap.servers": shop.kafka.bootstrap,
        "key.converter": BYTES,
        "value.converter": BYTES,
    }
    return started(shop, config | more, set(), set())


def checkpoint(shop: Shop) -> Started:
    group, topic = unique("group"), shop.kafka.topic("read")
    reader = Consumer({"bootstrap.servers": shop.kafka.bootstrap, "group.id": group})
    reader.commit(offsets=[TopicPartition(topic, 0, 0)], asynchronous=False)
    reader.close()  # without a group that has read something there is no task
    more = {"groups": group, "checkpoints.topic.replication.factor": 1}
    return bookkeeping(shop, "org.apache.kafka.connect.mirror.MirrorCheckpointConnector", more)


def heartbeat(shop: Shop) -> Started:
    more = {"heartbeats.topic.replication.factor": 1}
    return bookkeeping(shop, "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector", more)


def file_source(shop: Shop) -> Started:
    topic = shop.kafka.topic("lines")
    config = shop.file_source(topic)
    return started(shop, config, {f"file {config['file']}"}, kafka(shop, topic))


def file_sink(shop: Shop) -> Started:
    topic = shop.kafka.topic("lines")
    config = shop.json_sink(topic)
    return started(shop, config, kafka(shop, topic), {f"file {config['file']}"})


# `make docs` takes from here which classes the table of docs/connect.md calls `run`.
RUN: dict[str, Callable[[Shop], Started]] = {
    "io.debezium.connector.postgresql.PostgresConnector": debezium,
    "io.debezium.connector.jdbc.JdbcSinkConnector": jdbc,
    "org.apache.iceberg.connect.IcebergSinkConnector": iceberg,
    "org.apache.camel.kafkaconnector.CamelSinkConnector": camel_sink,
    "org.apache.camel.kafkaconnector.CamelSourceConnector": camel_source,
    "org.apache.kafka.connect.mirror.MirrorSourceConnector": mirror,
    "org.apache.kafka.connect.mirror.MirrorCheckpointConnector": checkpoint,
    "org.apache.kafka.connect.mirror.MirrorHeartbeatConnector": heartbeat,
    "org.apache.kafka.connect.file.FileStreamSourceConnector": file_source,
    "org.apache.kafka.connect.file.FileStreamSinkConnector": file_sink,
}


QUICK = (debezium, jdbc, iceberg, camel_sink, mirror, file_sink)
"""Those that the other tests start too, and one more; the others follow in the full tests."""


@pytest.mark.parametrize(
    "connector_class",
    [
        pytest.param(name, marks=() if start in QUICK else pytest.mark.full)
        for name, start in RUN.items()
    ],
)
def test_a_class_that_docs_call_run_runs_and_is_reported(
    agent: ClusterAgent, shop: Shop, connector_class: str
) -> None:
    name, (reads, writes) = RUN[connector_class](shop)
    config = shop.connect.http.get(f"/connectors/{name}").json()["config"]
    assert config["connector.class"] == connector_class
    shop.connect.wait_running(name)

    def reported() -> bool:
        events = agent.events(name)
        return bool(events) and sides(events[-1]) == (reads, writes)

    wait_until(
        reported,
        seconds=120,
        what=f"{reads} -> {writes} of {name}, there is {[sides(e) for e in agent.events(name)]}",
        interval=0.3,
    )
    if not (reads or writes):
        shop.connect.delete(name)  # it would go on for as long as the lab is there


def sides(event: Event) -> Sides:
    return set(names(event, "inputs")), set(names(event, "outputs"))
