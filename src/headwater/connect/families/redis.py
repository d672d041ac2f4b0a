"""Redis: its own connectors, and the sink of Jeremy Custenborder."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.context import templated
from headwater.connect.derive.family import (
    UNKNOWN,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_REDIS = ("redis.uri", "redis.host", "redis.port", "redis.hosts", "redis.database")


def redis_place(context: Context, key: str) -> ExternalDataset | None:
    """A keyspace, stream or pattern; a database other than 0 is part of the namespace."""
    uri = context.get("redis.uri", "redis.hosts", "redis.host")
    number = context.get("redis.database")
    if match := re.search(r"^\w+://[^/?]*/(\d+)", uri):
        number = match[1]
    place = context.place("redis", "", host=uri, port=context.get("redis.port"), key=key)
    if place and number.isdigit() and number != "0":
        return place.updated(namespace=f"{place.id.namespace}/{number}")
    return place


def redis_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """Redis' own sink: a keyspace for each topic."""
    place = redis_place(
        context, templated(context.get("redis.keyspace", default="${topic}"), topic)
    )
    return [place] if place else []


def redis_database_sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Keys are the records' own: the database is all that can be named."""
    place = redis_place(context, "*")
    return [place.with_columns(UNKNOWN)] if place else []


def redis_streams(context: Context) -> SourceLineage:
    """A stream to a topic."""
    stream = context.get("redis.stream.name")
    topic = context.get("topic", default="${stream}").replace("${stream}", stream)
    return SourceLineage((SourceTopic(topic, redis_place(context, stream) if stream else None),))


def redis_keys(context: Context) -> SourceLineage:
    """Keys that fit a pattern to a topic."""
    topic = context.get("topic", default="rediskeys")
    return SourceLineage(
        (SourceTopic(topic, redis_place(context, context.get("redis.keys.pattern", default="*"))),)
    )


PLUGINS = (
    Plugin(
        "redis",
        ("com.redis.kafka.connect.RedisSinkConnector", "RedisKafkaSink",
         "io.confluent.connect.rediskafka.RedisKafkaSinkConnector"),
        "sink", (*_REDIS, "redis.keyspace"), sink=redis_sink, stores="Redis",
    ),
    Plugin(
        "redis",
        ("com.redis.kafka.connect.RedisStreamSourceConnector", "RedisKafkaSource",
         "io.confluent.connect.rediskafka.RedisKafkaSourceConnector"),
        "source", (*_REDIS, "redis.stream.name", "topic"), source=redis_streams, stores="Redis",
    ),
    Plugin(
        "redis", ("com.redis.kafka.connect.RedisKeysSourceConnector",), "source",
        (*_REDIS, "redis.keys.pattern", "topic"), source=redis_keys, stores="Redis",
    ),
    Plugin(
        "redis",
        ("com.github.jcustenborder.kafka.connect.redis.RedisSinkConnector", "RedisSink"), "sink",
        _REDIS, sink=redis_database_sink, stores="Redis",
    ),
)  # fmt: skip
