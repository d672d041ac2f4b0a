"""Neo4j: a graph is one dataset."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from .base import UNKNOWN, Origin, Place, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_NEO4J = ("neo4j.uri", "neo4j.server.uri", "neo4j.database")


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
