"""Redis: its own connectors, and the sink of Jeremy Custenborder."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.connect.plan import templated

from .base import UNKNOWN, Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_REDIS = ("redis.uri", "redis.host", "redis.port", "redis.hosts", "redis.database")


def redis_place(plan: Plan, key: str) -> Place | None:
    """A keyspace, stream or pattern; a database other than 0 is part of the namespace."""
    uri = plan.get("redis.uri", "redis.hosts", "redis.host")
    number = plan.get("redis.database")
    if match := re.search(r"^\w+://[^/?]*/(\d+)", uri):
        number = match[1]
    place = plan.place("redis", host=uri, port=plan.get("redis.port"), key=key, kind="")
    if place and number.isdigit() and number != "0":
        return replace(place, id=place.id._replace(namespace=f"{place.id.namespace}/{number}"))
    return place


def redis_sink(plan: Plan, topic: str) -> list[Place]:
    """Redis' own sink: a keyspace for each topic."""
    place = redis_place(plan, templated(plan.get("redis.keyspace", default="${topic}"), topic))
    return [place] if place else []


def redis_database_sink(plan: Plan, _topic: str) -> list[Place]:
    """Keys are the records' own: the database is all that can be named."""
    place = redis_place(plan, "*")
    return [place.with_columns(UNKNOWN)] if place else []


def redis_streams(plan: Plan) -> Reading:
    """A stream to a topic."""
    stream = plan.get("redis.stream.name")
    topic = plan.get("topic", default="${stream}").replace("${stream}", stream)
    return Reading((Origin(topic, redis_place(plan, stream) if stream else None),))


def redis_keys(plan: Plan) -> Reading:
    """Keys that fit a pattern to a topic."""
    topic = plan.get("topic", default="rediskeys")
    return Reading((Origin(topic, redis_place(plan, plan.get("redis.keys.pattern", default="*"))),))


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
