"""Neo4j: a graph is one dataset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.connect.derive.family import (
    UNKNOWN,
    ExternalDataset,
    Plugin,
    SourceLineage,
    SourceTopic,
)

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_NEO4J = ("neo4j.uri", "neo4j.server.uri", "neo4j.database")


def neo4j_place(context: Context) -> ExternalDataset | None:
    """A graph has no tables: the database is the dataset."""
    uri = context.get("neo4j.uri", "neo4j.server.uri")
    place = context.place("neo4j", "", host=uri, database=context.get("neo4j.database"))
    return place.with_columns(UNKNOWN) if place else None


def neo4j_sink(context: Context, _topic: str) -> list[ExternalDataset]:
    """Every topic to the one graph."""
    place = neo4j_place(context)
    return [place] if place else []


def neo4j_source(context: Context) -> SourceLineage:
    """A query to its topic, or changes to the topics that have patterns."""
    found = re.compile(r"^neo4j\.cdc\.topic\.(.+?)\.(?:patterns|key|value|metadata).*$")
    topics = context.names("neo4j.query.topic", "topic")
    for key in context.config:
        if match := found.match(key):
            context.used(key)
            topics.append(match[1])
    place = neo4j_place(context)
    return SourceLineage(
        tuple(SourceTopic(topic, place) for topic in dict.fromkeys(topics)), place=place
    )


PLUGINS = (
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
)  # fmt: skip
