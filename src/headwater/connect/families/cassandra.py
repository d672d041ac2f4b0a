"""Cassandra and ScyllaDB: mappings column by column, or a table named like the topic."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from headwater.connect.derive.config_values import split
from headwater.connect.derive.family import ColumnProjection, ExternalDataset, Path, Plugin

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_MAPPED = re.compile(r'^("?)(.+?)\1\s*=\s*(key|value|header)((?:\.|\b).*)?$')


def cassandra_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """DataStax's sink: a mapping for each topic, keyspace and table, column by column."""
    host, port = context.get("contactPoints"), context.get("port", default="9042")
    prefix = f"topic.{topic}."
    found = []
    for key in sorted(context.config):
        if not key.startswith(prefix) or not key.endswith(".mapping"):
            continue
        keyspace, _, table = key[len(prefix) : -len(".mapping")].rpartition(".")
        if not keyspace or "." in keyspace:
            continue
        columns = mapping(context.get(key))
        place = context.place("cassandra", host=host, port=port, keyspace=keyspace, table=table)
        if place:
            found.append(place.with_columns(ColumnProjection(explicit=columns)))
    if not found:
        context.problem(f"no topic.{topic}.<keyspace>.<table>.mapping names a table")
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


def keyspace_sink(context: Context, topic: str, prefix: str) -> list[ExternalDataset]:
    """Confluent's and Scylla's sinks: a table named like the topic in one keyspace."""
    host, port = (
        context.get(f"{prefix}.contact.points"),
        context.get(f"{prefix}.port", default="9042"),
    )
    keyspace = context.get(f"{prefix}.keyspace")
    start = f"topic.{topic}."
    for key in sorted(context.config):
        if key.startswith(start) and key.endswith(".mapping"):
            keyspace, _, table = key[len(start) : -len(".mapping")].rpartition(".")
            columns = ColumnProjection(explicit=mapping(context.get(key)))
            place = context.place("cassandra", host=host, port=port, keyspace=keyspace, table=table)
            return [place.with_columns(columns)] if place else []
    table = re.sub(r"[^A-Za-z0-9_]", "_", topic)
    place = context.place("cassandra", host=host, port=port, keyspace=keyspace, table=table)
    return [place] if place else []


PLUGINS = (
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
