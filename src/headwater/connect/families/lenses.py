"""Lenses' stream reactor: every connector reads its datasets from KCQL."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING

from headwater.connect.derive.family import (
    UNKNOWN,
    ColumnProjection,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)
from headwater.connect.families import kcql

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.derive.context import Context
    from headwater.connect.derive.family import Path

FAMILY = "lenses"


def sink(
    context: Context, topic: str, key: str, place: Callable[[Context, str], ExternalDataset | None]
) -> list[ExternalDataset]:
    """The targets of the statements that select from the topic."""
    found = []
    chosen = [s for s in kcql.parse(context.get(key)) if s.source in (topic, "*")]
    for statement in chosen:
        target = topic if statement.target == "*" else statement.target
        if statement.dated:
            context.problem(f"{key}: the time is part of the indexes' names; they are shown as one")
        if dataset := place(context, target):
            found.append(dataset.with_columns(_columns(statement, dataset.columns)))
    if not chosen:
        context.problem(f"{key}: no statement selects from the topic {topic}")
    return found


def source(
    context: Context, key: str, place: Callable[[Context, str], ExternalDataset | None]
) -> SourceLineage:
    """Each statement's dataset to its topic."""
    origins = [
        SourceTopic(statement.target, place(context, statement.source))
        for statement in kcql.parse(context.get(key))
    ]
    return SourceLineage(tuple(origins))


def _columns(statement: kcql.Statement, default: ColumnProjection) -> ColumnProjection:
    if not default.known or not statement.known:
        return UNKNOWN
    if not statement.fields:
        return ColumnProjection(drop=frozenset(statement.ignored))
    fields: list[tuple[str, Path]] = []
    for name, path in statement.fields:
        parts = tuple(path.split("."))
        if parts[0] == "_key":
            fields.append((name, ("key", parts[1:])))
        elif parts[0] == "_value":
            fields.append((name, ("value", parts[1:])))
        elif not parts[0].startswith("_"):
            fields.append((name, ("value", parts)))
    return ColumnProjection(explicit=tuple(fields))


def _s3(context: Context, name: str) -> ExternalDataset | None:
    bucket, _, prefix = name.partition(":")
    return context.place("s3", "FILE", bucket=bucket, key=prefix.strip("/") or "/")


def _gcs(context: Context, name: str) -> ExternalDataset | None:
    bucket, _, prefix = name.partition(":")
    return context.place("gcs", "FILE", bucket=bucket, key=prefix.strip("/") or "/")


def _datalake(context: Context, name: str) -> ExternalDataset | None:
    container, _, prefix = name.partition(":")
    account = context.get("connect.datalake.azure.account.name", "connect.datalake.account.name")
    key = "connect.datalake.azure.connection.string"
    if not account and (found := re.search(r"AccountName=([^;]+)", context.get(key))):
        account = found[1]
    return context.place("abfss", "FILE", account=account, container=container,
                      path=prefix.strip("/") or "/")  # fmt: skip


def _elastic(context: Context, name: str) -> ExternalDataset | None:
    return context.place("elasticsearch", host=context.get("connect.elastic.hosts"),
                      port=context.get("connect.elastic.port"), index=name)  # fmt: skip


def _cassandra(context: Context, name: str) -> ExternalDataset | None:
    keyspace, _, table = name.rpartition(".")
    prefix = "connect.cassandra"
    return context.place("cassandra", host=context.get(f"{prefix}.contact.points"),
                      port=context.get(f"{prefix}.port"),
                      keyspace=keyspace or context.get(f"{prefix}.key.space"), table=table)  # fmt: skip


def _mongodb(context: Context, name: str) -> ExternalDataset | None:
    return context.place("mongodb", host=context.get("connect.mongo.connection"),
                      database=context.get("connect.mongo.db"), collection=name)  # fmt: skip


def _cosmos(context: Context, name: str) -> ExternalDataset | None:
    endpoint = context.get("connect.cosmosdb.endpoint", "connect.documentdb.endpoint")
    database = context.get("connect.cosmosdb.db", "connect.documentdb.db")
    return context.place("cosmos", host=endpoint, database=database, table=name)


def _redis(context: Context, name: str) -> ExternalDataset | None:
    return context.place("redis", "", host=context.get("connect.redis.host"),
                      port=context.get("connect.redis.port"), key=name)  # fmt: skip


def _mqtt(context: Context, name: str) -> ExternalDataset | None:
    place = context.place("mqtt", "STREAM", host=context.get("connect.mqtt.hosts"), topic=name)
    return place.with_columns(UNKNOWN) if place else None


def _pubsub(context: Context, name: str) -> ExternalDataset | None:
    project = context.get("connect.pubsub.gcp.project.id", "connect.pubsub.project.id")
    place = context.place("pubsub_subscription", "STREAM", project=project, subscription=name)
    return place.with_columns(UNKNOWN) if place else None


def _jms(context: Context, name: str) -> ExternalDataset | None:
    kind = _kind(context, "connect.jms.kcql", name)
    if not kind:
        context.problem("connect.jms.kcql: WITHTYPE does not say whether it is a queue or a topic")
        return None
    place = context.place("jms", "STREAM", host=context.get("connect.jms.url"), kind=kind,
                       destination=name)  # fmt: skip
    return place.with_columns(UNKNOWN) if place else None


def _eventhubs(context: Context, name: str) -> ExternalDataset | None:
    servers = context.get("connect.eventhubs.connection.settings.bootstrap.servers")
    return context.place("eventhubs", "TOPIC", host=servers, hub=name)


def _servicebus(context: Context, name: str) -> ExternalDataset | None:
    found = re.search(
        r"Endpoint=(?:sb://)?([^/;]+)", context.get("connect.servicebus.connection.string")
    )
    kind = _kind(context, "connect.servicebus.kcql", name)
    if not found or not kind:
        context.problem(
            "connect.servicebus: neither an endpoint nor the kind of entity may be missing"
        )
        return None
    place = context.place("servicebus", "STREAM", host=found[1], kind=kind, entity=name)
    return place.with_columns(UNKNOWN) if place else None


def _kind(context: Context, key: str, name: str) -> str:
    """Whether a statement's other end is a queue or a topic."""
    statements = kcql.parse(context.get(key))
    return next((s.kind for s in statements if name in (s.source, s.target) and s.kind), "")


def ftp_source(context: Context) -> SourceLineage:
    """Files of a server: `path:topic` pairs, tailed or read again when they change."""
    store = "sftp" if context.get("connect.ftp.protocol").lower() == "sftp" else "ftp"
    pairs = context.names("connect.ftp.monitor.tail") + context.names("connect.ftp.monitor.update")
    return SourceLineage(tuple(
        SourceTopic(topic, context.place(store, "FILE", host=context.get("connect.ftp.address"), path=path.rstrip("/") or "/"))
        for path, mark, topic in (item.partition(":") for item in pairs) if mark and path and topic
    ))  # fmt: skip


_BASE = ("io.lenses.streamreactor.connect.", "com.datamountaineer.streamreactor.connect.")
_TABLE: tuple[
    tuple[str, str, str, str, tuple[str, ...], Callable[[Context, str], ExternalDataset | None]],
    ...,
]
_TABLE = (
    ("s3", "aws.s3.sink.S3SinkConnector aws.s3.sink.S3ConsumerGroupsSinkConnector",
     "aws.s3.source.S3SourceConnector", "connect.s3.kcql", (), _s3),
    ("gcs", "gcp.storage.sink.GCPStorageSinkConnector",
     "gcp.storage.source.GCPStorageSourceConnector", "connect.gcpstorage.kcql", (), _gcs),
    ("datalake", "datalake.sink.DatalakeSinkConnector", "", "connect.datalake.kcql",
     ("connect.datalake.azure.account.name", "connect.datalake.account.name",
      "connect.datalake.azure.connection.string"), _datalake),
    ("elasticsearch", "elastic6.ElasticSinkConnector elastic7.ElasticSinkConnector", "",
     "connect.elastic.kcql", ("connect.elastic.hosts", "connect.elastic.port"), _elastic),
    ("cassandra", "cassandra.CassandraSinkConnector cassandra.sink.CassandraSinkConnector",
     "cassandra.source.CassandraSourceConnector", "connect.cassandra.kcql",
     ("connect.cassandra.contact.points", "connect.cassandra.port",
      "connect.cassandra.key.space"), _cassandra),
    ("mongodb", "mongodb.sink.MongoSinkConnector", "", "connect.mongo.kcql",
     ("connect.mongo.connection", "connect.mongo.db"), _mongodb),
    ("cosmos", "azure.cosmosdb.sink.CosmosDbSinkConnector azure.documentdb.sink.DocumentDbSinkConnector",
     "", "connect.cosmosdb.kcql",
     ("connect.cosmosdb.endpoint", "connect.cosmosdb.db", "connect.documentdb.endpoint",
      "connect.documentdb.db"), _cosmos),
    ("redis", "redis.sink.RedisSinkConnector", "", "connect.redis.kcql",
     ("connect.redis.host", "connect.redis.port"), _redis),
    ("mqtt", "mqtt.sink.MqttSinkConnector", "mqtt.source.MqttSourceConnector",
     "connect.mqtt.kcql", ("connect.mqtt.hosts",), _mqtt),
    ("pubsub", "", "gcp.pubsub.source.GCPPubSubSourceConnector", "connect.pubsub.kcql",
     ("connect.pubsub.gcp.project.id", "connect.pubsub.project.id"), _pubsub),
    ("jms", "jms.sink.JMSSinkConnector", "jms.source.JMSSourceConnector", "connect.jms.kcql",
     ("connect.jms.url",), _jms),
    ("eventhubs", "", "azure.eventhubs.source.AzureEventHubsSourceConnector",
     "connect.eventhubs.kcql",
     ("connect.eventhubs.connection.settings.bootstrap.servers",), _eventhubs),
    ("servicebus", "azure.servicebus.sink.AzureServiceBusSinkConnector",
     "azure.servicebus.source.AzureServiceBusSourceConnector", "connect.servicebus.kcql",
     ("connect.servicebus.connection.string",), _servicebus),
)  # fmt: skip


def _classes(names: str) -> tuple[str, ...]:
    return tuple(f"{base}{name}" for name in names.split() for base in _BASE)


PLUGINS = (
    *(
        Plugin(FAMILY, _classes(sinks), "sink", (key, *keys),
               sink=partial(sink, key=key, place=place), stores=title)
        for title, sinks, _, key, keys, place in _TABLE if sinks
    ),
    *(
        Plugin(FAMILY, _classes(sources), "source", (key, *keys),
               source=partial(source, key=key, place=place), stores=title)
        for title, _, sources, key, keys, place in _TABLE if sources
    ),
    Plugin(FAMILY, _classes("ftp.source.FtpSourceConnector"), "source",
           ("connect.ftp.address", "connect.ftp.protocol", "connect.ftp.monitor.tail",
            "connect.ftp.monitor.update"), source=ftp_source, stores="ftp"),
)  # fmt: skip
