"""MongoDB: its own source and sink, and Atlas in Confluent Cloud."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from .base import Origin, Place, Plugin, Reading, Shape

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
)  # fmt: skip
