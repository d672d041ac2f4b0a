"""MongoDB: its own source and sink, and Atlas in Confluent Cloud."""

from __future__ import annotations

import json
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from headwater.connect.derive.family import (
    UNKNOWN,
    ColumnProjection,
    ExternalDataset,
    Plugin,
    Shape,
    SourceLineage,
    SourceTopic,
)

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context


def collection(context: Context, database: str, name: str) -> ExternalDataset | None:
    """A collection of MongoDB."""
    uri = context.get("connection.uri", "connection.host")
    return context.place("mongodb", host=uri, database=database, collection=name)


def mongodb_source(context: Context) -> SourceLineage:
    """Collections to topics: the prefix, then the map or database and collection, the suffix."""
    mark = context.get("topic.separator", default=".")
    prefix, suffix = context.get("topic.prefix"), context.get("topic.suffix")
    database, name = context.get("database"), context.get("collection")
    mapped = _namespaces(context)
    shape: Shape | None = "row" if context.flag("publish.full.document.only") else None
    mapper = context.get("topic.mapper").rpartition(".")[2]
    if mapper not in ("", "DefaultTopicMapper"):
        context.problem("topic.mapper: a class of the worker names the topics")
        return SourceLineage(
            place=collection(context, database, name) if database and name else None
        )

    def topic(db: str, coll: str) -> str:
        middle = mapped.get(f"{db}.{coll}")
        if not middle and mapped.get(db):
            middle = f"{mapped[db]}{mark}{coll}"
        middle = middle or _by_expression(context, mapped, db, coll, mark) or mapped.get("*")
        return mark.join(part for part in (prefix, middle or f"{db}{mark}{coll}", suffix) if part)

    if database and name:
        return SourceLineage(
            (SourceTopic(topic(database, name), collection(context, database, name), shape),)
        )

    def reverse(seen: str) -> ExternalDataset | None:
        head, tail = (f"{prefix}{mark}" if prefix else ""), (f"{mark}{suffix}" if suffix else "")
        if not (seen.startswith(head) and seen.endswith(tail)):
            return None
        middle = seen[len(head) : len(seen) - len(tail)]
        db, cut, coll = middle.partition(mark)
        # A mapped database stands in the topic under its other name.
        if (found := mapped.get(database)) and middle.startswith(f"{found}{mark}"):
            db, cut, coll = database, mark, middle[len(found) + len(mark) :]
        if not cut or not coll or (database and db != database) or topic(db, coll) != seen:
            return None
        return collection(context, db, coll)

    return SourceLineage(reverse=reverse, shape=shape)


def _namespaces(context: Context) -> dict[str, str]:
    text = context.get("topic.namespace.map")
    if not text:
        return {}
    try:
        data = json.loads(text)
    except ValueError:
        context.problem("topic.namespace.map is not JSON")
        return {}
    return {str(k): str(v) for k, v in data.items()} if isinstance(data, dict) else {}


def _by_expression(context: Context, mapped: dict[str, str], db: str, coll: str, mark: str) -> str:
    """The template of the first `/expression` that the namespace fits, filled in."""
    fill = {"db": db, "sep": mark, "coll": coll, "sep_coll": mark + coll, "coll_sep": coll + mark,
            "sep_coll_sep": mark + coll + mark}  # fmt: skip
    for key, template in mapped.items():
        found = context.expression("topic.namespace.map", key[1:]) if key.startswith("/") else None
        if template and found and found.matches(f"{db}.{coll}"):
            return re.sub(r"\{(\w+)\}", lambda m: fill.get(m[1], m[0]), template)
    return ""


def mongodb_sink(context: Context, topic: str) -> list[ExternalDataset]:
    """The collection configured for the topic or for all; else one named like the topic."""
    own = f"topic.override.{topic}."
    mapper = context.get(f"{own}namespace.mapper", "namespace.mapper").rpartition(".")[2]
    if mapper and not mapper.startswith("Default"):
        context.problem("namespace.mapper: the rows name the collections they go to")
        return []
    database = context.get(f"{own}database", "database")
    name = context.get(f"{own}collection", "collection", default=topic)
    place = collection(context, database, name)
    return [place.with_columns(_fields(context, own))] if place else []


def _fields(context: Context, own: str) -> ColumnProjection:
    """Which fields of a record a document gets, after what the connector itself makes of them."""
    key = "change.data.capture.handler"
    handler = context.get(f"{own}{key}", key).rpartition(".")[2]
    if handler:
        return ColumnProjection(unwrap=True) if handler in _RELATIONAL else UNKNOWN
    listed = context.names(f"{own}value.projection.list", "value.projection.list")
    steps = context.names(f"{own}post.processor.chain", "post.processor.chain")
    found = ColumnProjection()
    for step in (item.rpartition(".")[2] for item in steps):
        if step in ("AllowListValueProjector", "WhitelistValueProjector"):
            found = replace(found, only=frozenset((*listed, "_id")))
        elif step in ("BlockListValueProjector", "BlacklistValueProjector"):
            found = replace(found, drop=frozenset(listed))
        elif step not in _HARMLESS:
            return UNKNOWN
    if (found.only or found.drop) and any("*" in item or "." in item for item in listed):
        return UNKNOWN
    return found


_RELATIONAL = ("RdbmsHandler", "MysqlHandler", "PostgresHandler")
_HARMLESS = ("DocumentIdAdder", "KafkaMetaAdder", "NullFieldValueRemover",
             "AllowListKeyProjector", "BlockListKeyProjector")  # fmt: skip
PLUGINS = (
    Plugin(
        "mongodb", ("com.mongodb.kafka.connect.MongoSourceConnector", "MongoDbAtlasSource"),
        "source",
        ("connection.uri", "connection.host", "database", "collection", "topic.prefix",
         "topic.suffix", "topic.separator", "topic.namespace.map", "topic.mapper",
         "publish.full.document.only"),
        source=mongodb_source, stores="MongoDB",
    ),
    Plugin(
        "mongodb", ("com.mongodb.kafka.connect.MongoSinkConnector", "MongoDbAtlasSink"), "sink",
        ("connection.uri", "connection.host", "database", "collection", "topic.override.*",
         "namespace.mapper", "change.data.capture.handler", "post.processor.chain",
         "value.projection.list"),
        sink=mongodb_sink, stores="MongoDB",
    ),
)  # fmt: skip
