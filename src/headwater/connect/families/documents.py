"""Document, key-value and graph stores: MongoDB, Redis, Couchbase, Neo4j, Cosmos, DynamoDB."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from headwater.connect.plan import templated
from headwater.connect.values import pairs, split

from .base import UNKNOWN, Origin, Place, Plugin, Reading, Shape

if TYPE_CHECKING:
    from headwater.connect.plan import Plan


def collection(plan: Plan, database: str, name: str) -> Place | None:
    """A collection of MongoDB."""
    uri = plan.get("connection.uri", "connection.host")
    return plan.place("mongodb", host=uri, database=database, collection=name)


def mongodb_source(plan: Plan) -> Reading:
    """Collections to topics: the prefix, then the map or database and collection, the suffix."""
    mark = plan.get("topic.separator", default=".")
    prefix, suffix = plan.get("topic.prefix"), plan.get("topic.suffix")
    database, name = plan.get("database"), plan.get("collection")
    mapped = _namespaces(plan)
    shape: Shape | None = "row" if plan.flag("publish.full.document.only") else None

    def topic(db: str, coll: str) -> str:
        middle = mapped.get(f"{db}{mark}{coll}") or mapped.get(f"{db}.{coll}")
        if middle is None and db in mapped:
            middle = f"{mapped[db]}{mark}{coll}"
        middle = middle or mapped.get("*") or f"{db}{mark}{coll}"
        return mark.join(part for part in (prefix, middle, suffix) if part)

    if database and name:
        return Reading((Origin(topic(database, name), collection(plan, database, name), shape),))

    def reverse(seen: str) -> Place | None:
        head, tail = (f"{prefix}{mark}" if prefix else ""), (f"{mark}{suffix}" if suffix else "")
        if not (seen.startswith(head) and seen.endswith(tail)) or mapped:
            return None
        db, cut, coll = seen[len(head) : len(seen) - len(tail)].partition(mark)
        if not cut or (database and db != database):
            return None
        return collection(plan, db, coll)

    return Reading(reverse=reverse, shape=shape)


def _namespaces(plan: Plan) -> dict[str, str]:
    text = plan.get("topic.namespace.map")
    if not text:
        return {}
    try:
        data = json.loads(text)
    except ValueError:
        plan.problem("topic.namespace.map is not JSON")
        return {}
    found = {str(k): str(v) for k, v in data.items()} if isinstance(data, dict) else {}
    if any(key.startswith("/") for key in found):
        plan.problem("topic.namespace.map: its expressions are not followed")
    return found


def mongodb_sink(plan: Plan, topic: str) -> list[Place]:
    """The collection configured for the topic or for all; else one named like the topic."""
    own = f"topic.override.{topic}."
    mapper = plan.get(f"{own}namespace.mapper", "namespace.mapper").rpartition(".")[2]
    if mapper and not mapper.startswith("Default"):
        plan.problem("namespace.mapper: the rows name the collections they go to")
        return []
    database = plan.get(f"{own}database", "database")
    name = plan.get(f"{own}collection", "collection", default=topic)
    place = collection(plan, database, name)
    return [place] if place else []


def redis_place(plan: Plan, key: str) -> Place | None:
    """A keyspace, stream or pattern; a database other than 0 is part of the namespace."""
    uri = plan.get("redis.uri", "redis.hosts", "redis.host")
    number = plan.get("redis.database")
    if match := re.search(r"^\w+://[^/?]*/(\d+)", uri):
        number = match[1]
    place = plan.place("redis", host=uri, port=plan.get("redis.port"), key=key, kind="")
    if place and number.isdigit() and number != "0":
        from dataclasses import replace

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


def couchbase_place(plan: Plan, name: str) -> Place | None:
    """A collection, written `scope.collection`."""
    scope, _, last = name.partition(".")
    if not last:
        scope, last = plan.get("couchbase.scope", default="_default"), name or "_default"
    host = plan.get("couchbase.seed.nodes")
    return plan.place("couchbase", host=host, bucket=plan.get("couchbase.bucket"), scope=scope,
                      collection=last)  # fmt: skip


def couchbase_sink(plan: Plan, topic: str) -> list[Place]:
    """The mapped collection, or the default one."""
    mapped = pairs(plan.get("couchbase.topic.to.collection"), "=:")
    name = mapped.get(topic) or plan.get("couchbase.default.collection")
    place = couchbase_place(plan, name.removeprefix(f"{plan.get('couchbase.bucket')}."))
    return [place] if place else []


def couchbase_source(plan: Plan) -> Reading:
    """Collections, or the whole bucket, to a topic that may be named after them."""
    names = plan.names("couchbase.collections") or [plan.get("couchbase.scope")]
    shape = plan.get("couchbase.topic", default="${bucket}.${scope}.${collection}")
    origins = []
    for name in names:
        place = couchbase_place(plan, name)
        scope, _, last = name.partition(".")
        topic = shape.replace("${bucket}", plan.get("couchbase.bucket"))
        topic = topic.replace("${scope}", scope or "_default")
        topic = topic.replace("${collection}", last or "_default")
        origins.append(Origin(topic, place))
    return Reading(tuple(origins))


def neo4j_place(plan: Plan) -> Place | None:
    """A graph has no tables: the database is the dataset."""
    uri = plan.get("neo4j.uri", "neo4j.server.uri")
    place = plan.place("neo4j", host=uri, database=plan.get("neo4j.database"), kind="")
    return place.with_columns(UNKNOWN) if place else None


def neo4j_sink(plan: Plan, _topic: str) -> list[Place]:
    """Every topic to the one graph."""
    place = neo4j_place(plan)
    return [place] if place else []


def neo4j_source(plan: Plan) -> Reading:
    """A query to its topic, or changes to the topics that have patterns."""
    found = re.compile(r"^neo4j\.cdc\.topic\.(.+?)\.(?:patterns|key|value|metadata).*$")
    topics = plan.names("neo4j.query.topic", "topic")
    for key in plan.config:
        if match := found.match(key):
            plan.used(key)
            topics.append(match[1])
    place = neo4j_place(plan)
    return Reading(tuple(Origin(topic, place) for topic in dict.fromkeys(topics)), place=place)


def _containers(plan: Plan) -> dict[str, str]:
    """`topic#container` pairs by topic."""
    text = plan.get("connect.cosmos.containers.topicmap", "azure.cosmos.sink.containers.topicMap",
                    "azure.cosmos.source.containers.topicMap")  # fmt: skip
    return dict(item.split("#", 1) for item in split(text) if "#" in item)


def cosmos_place(plan: Plan, container: str) -> Place | None:
    """A container of a database."""
    host = plan.get("connect.cosmos.connection.endpoint", "azure.cosmos.account.endpoint")
    database = plan.get("connect.cosmos.databasename", "azure.cosmos.sink.database.name",
                        "azure.cosmos.source.database.name")  # fmt: skip
    return plan.place("cosmos", host=host, database=database, table=container)


def cosmos_sink(plan: Plan, topic: str) -> list[Place]:
    """The container that the map gives the topic."""
    container = _containers(plan).get(topic)
    if not container:
        plan.problem(f"no container is mapped to the topic {topic}")
        return []
    place = cosmos_place(plan, container)
    return [place] if place else []


def cosmos_source(plan: Plan) -> Reading:
    """Containers to the topics that the map gives them."""
    return Reading(
        tuple(Origin(topic, cosmos_place(plan, name)) for topic, name in _containers(plan).items())
    )


_COSMOS = (
    "connect.cosmos.connection.endpoint", "connect.cosmos.databasename",
    "connect.cosmos.containers.topicmap",
)  # fmt: skip
_AZURE = "azure.cosmos.account.endpoint"
_COUCHBASE = ("couchbase.seed.nodes", "couchbase.bucket", "couchbase.scope")
_REDIS = ("redis.uri", "redis.host", "redis.port", "redis.hosts", "redis.database")
_NEO4J = ("neo4j.uri", "neo4j.server.uri", "neo4j.database")

PLUGINS = (
    Plugin(
        "mongodb", ("com.mongodb.kafka.connect.MongoSourceConnector", "MongoDbAtlasSource"),
        "source",
        ("connection.uri", "connection.host", "database", "collection", "topic.prefix",
         "topic.suffix", "topic.separator", "topic.namespace.map", "publish.full.document.only"),
        source=mongodb_source, stores="MongoDB",
    ),
    Plugin(
        "mongodb", ("com.mongodb.kafka.connect.MongoSinkConnector", "MongoDbAtlasSink"), "sink",
        ("connection.uri", "connection.host", "database", "collection", "topic.override.*",
         "namespace.mapper"),
        sink=mongodb_sink, stores="MongoDB",
    ),
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
    Plugin(
        "couchbase", ("com.couchbase.connect.kafka.CouchbaseSinkConnector", "CouchbaseSink"),
        "sink",
        (*_COUCHBASE, "couchbase.topic.to.collection", "couchbase.default.collection"),
        sink=couchbase_sink, stores="Couchbase",
    ),
    Plugin(
        "couchbase", ("com.couchbase.connect.kafka.CouchbaseSourceConnector", "CouchbaseSource"),
        "source", (*_COUCHBASE, "couchbase.collections", "couchbase.topic"),
        source=couchbase_source, stores="Couchbase",
    ),
    Plugin(
        "neo4j",
        ("org.neo4j.connectors.kafka.sink.Neo4jConnector", "streams.kafka.connect.sink.Neo4jSinkConnector",
         "Neo4jSink"),
        "sink", _NEO4J, sink=neo4j_sink, stores="Neo4j",
    ),
    Plugin(
        "neo4j",
        ("org.neo4j.connectors.kafka.source.Neo4jConnector",
         "streams.kafka.connect.source.Neo4jSourceConnector", "Neo4jSource"),
        "source", (*_NEO4J, "neo4j.query.topic", "topic", "neo4j.cdc.topic.*.patterns"),
        source=neo4j_source, stores="Neo4j",
    ),
    Plugin(
        "cosmos",
        ("com.azure.cosmos.kafka.connect.sink.CosmosDBSinkConnector",
         "com.azure.cosmos.kafka.connect.CosmosSinkConnector", "CosmosDbSink", "CosmosDbSinkV2"),
        "sink",
        (*_COSMOS, _AZURE, "azure.cosmos.sink.database.name",
         "azure.cosmos.sink.containers.topicMap"),
        sink=cosmos_sink, stores="Azure Cosmos DB",
    ),
    Plugin(
        "cosmos",
        ("com.azure.cosmos.kafka.connect.source.CosmosDBSourceConnector",
         "com.azure.cosmos.kafka.connect.CosmosSourceConnector", "CosmosDbSource",
         "CosmosDbSourceV2"),
        "source",
        (*_COSMOS, _AZURE, "azure.cosmos.source.database.name",
         "azure.cosmos.source.containers.topicMap"),
        source=cosmos_source, stores="Azure Cosmos DB",
    ),
)  # fmt: skip
