"""Analytical and wide-column databases: ClickHouse, Doris, StarRocks, QuestDB, Cassandra, Scylla."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from headwater.connect.plan import templated
from headwater.connect.values import pairs, split

from .base import Path, Place, Plugin, Projection

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_MAPPED = re.compile(r'^("?)(.+?)\1\s*=\s*(key|value|header)((?:\.|\b).*)?$')
_CONF = re.compile(r"(?:^|::|;)\s*addr=([^;]+)")


def clickhouse_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped table, or the topic itself, which may name its database first."""
    database = plan.get("database", "clickhouse.server.database", default="default")
    table = pairs(plan.get("topic2TableMap"), "=").get(topic, topic)
    mark = plan.get("dbTopicSplitChar")
    if plan.flag("enableDbTopicSplit") and mark and mark in topic:
        database, _, table = topic.partition(mark)
    port = plan.get("port", default="8443" if plan.flag("ssl") else "8123")
    host = plan.get("hostname", "clickhouse.server.url")
    place = plan.place("clickhouse", host=host, port=port, database=database, table=table)
    return [place] if place else []


def mapped_sink(plan: Plan, topic: str, store: str) -> list[Place]:
    """Doris and StarRocks: one database, tables mapped from topics or named like them."""
    if plan.get("record.tablename.field"):
        plan.problem("record.tablename.field: the rows name the tables they go to")
        return []
    table = pairs(plan.get(f"{store}.topic2table.map"), ":").get(topic, topic)
    host = plan.get("doris.urls", "starrocks.http.url")
    port = plan.get("doris.query.port", default="9030")
    first = re.sub(r"^\w+://", "", host.split(",")[0]).rpartition(":")
    place = plan.place(
        store, host=first[0] or first[2], port=port,
        database=plan.get("doris.database", "starrocks.database.name"), table=table,
    )  # fmt: skip
    return [place] if place else []


def questdb_sink(plan: Plan, topic: str) -> list[Place]:
    """One database a server."""
    host = plan.get("host")
    if not host and (found := _CONF.search(plan.get("client.conf.string"))):
        host = found[1]
    if not host:
        plan.problem("neither host nor client.conf.string names a server")
        return []
    table = templated(plan.get("table", default="${topic}"), topic)
    place = plan.place("questdb", host=host, table=table)
    return [place] if place else []


def cassandra_sink(plan: Plan, topic: str) -> list[Place]:
    """DataStax's sink: a mapping for each topic, keyspace and table, column by column."""
    host, port = plan.get("contactPoints"), plan.get("port", default="9042")
    prefix = f"topic.{topic}."
    found = []
    for key in sorted(plan.config):
        if not key.startswith(prefix) or not key.endswith(".mapping"):
            continue
        keyspace, _, table = key[len(prefix) : -len(".mapping")].rpartition(".")
        if not keyspace or "." in keyspace:
            continue
        columns = mapping(plan.get(key))
        place = plan.place("cassandra", host=host, port=port, keyspace=keyspace, table=table)
        if place:
            found.append(place.with_columns(Projection(explicit=columns)))
    if not found:
        plan.problem(f"no topic.{topic}.<keyspace>.<table>.mapping names a table")
    return found


def mapping(text: str) -> tuple[tuple[str, Path], ...]:
    """`col=value.field, other=key.id` as columns and the fields they are made of."""
    found: list[tuple[str, Path]] = []
    for item in split(text):
        match = _MAPPED.match(item)
        if match and match[3] != "header":
            path = tuple(part for part in (match[4] or "").split(".") if part)
            found.append((match[2], ("key" if match[3] == "key" else "value", path)))
    return tuple(found)


def keyspace_sink(plan: Plan, topic: str, prefix: str) -> list[Place]:
    """Confluent's and Scylla's sinks: a table named like the topic in one keyspace."""
    host, port = plan.get(f"{prefix}.contact.points"), plan.get(f"{prefix}.port", default="9042")
    keyspace = plan.get(f"{prefix}.keyspace")
    start = f"topic.{topic}."
    for key in sorted(plan.config):
        if key.startswith(start) and key.endswith(".mapping"):
            keyspace, _, table = key[len(start) : -len(".mapping")].rpartition(".")
            columns = Projection(explicit=mapping(plan.get(key)))
            place = plan.place("cassandra", host=host, port=port, keyspace=keyspace, table=table)
            return [place.with_columns(columns)] if place else []
    table = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    place = plan.place("cassandra", host=host, port=port, keyspace=keyspace, table=table)
    return [place] if place else []


PLUGINS = (
    Plugin(
        "clickhouse",
        ("com.clickhouse.kafka.connect.ClickHouseSinkConnector", "ClickHouseSink"), "sink",
        ("hostname", "port", "ssl", "database", "topic2TableMap", "enableDbTopicSplit",
         "dbTopicSplitChar", "clickhouse.server.url", "clickhouse.server.database"),
        sink=clickhouse_sink, stores="ClickHouse",
    ),
    Plugin(
        "doris", ("org.apache.doris.kafka.connector.DorisSinkConnector",), "sink",
        ("doris.urls", "doris.query.port", "doris.database", "doris.topic2table.map",
         "record.tablename.field"),
        sink=partial(mapped_sink, store="doris"), stores="Doris",
    ),
    Plugin(
        "starrocks", ("com.starrocks.connector.kafka.StarRocksSinkConnector",), "sink",
        ("starrocks.http.url", "starrocks.database.name", "starrocks.topic2table.map"),
        sink=partial(mapped_sink, store="starrocks"), stores="StarRocks",
    ),
    Plugin(
        "questdb", ("io.questdb.kafka.QuestDBSinkConnector",), "sink",
        ("host", "client.conf.string", "table"), sink=questdb_sink, stores="QuestDB",
    ),
    Plugin(
        "cassandra",
        ("com.datastax.oss.kafka.sink.CassandraSinkConnector",
         "com.datastax.kafkaconnector.DseSinkConnector"), "sink",
        ("contactPoints", "port", "topic.*.mapping"), sink=cassandra_sink, stores="Cassandra",
    ),
    Plugin(
        "cassandra", ("io.confluent.connect.cassandra.CassandraSinkConnector",), "sink",
        ("cassandra.contact.points", "cassandra.port", "cassandra.keyspace", "topic.*.mapping"),
        sink=partial(keyspace_sink, prefix="cassandra"), stores="Cassandra",
    ),
    Plugin(
        "scylla", ("io.connect.scylladb.ScyllaDbSinkConnector",), "sink",
        ("scylladb.contact.points", "scylladb.port", "scylladb.keyspace", "topic.*.mapping"),
        sink=partial(keyspace_sink, prefix="scylladb"), stores="ScyllaDB",
    ),
)  # fmt: skip
