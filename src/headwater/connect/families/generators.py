"""Sources that make their data up: topics, and nothing outside Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base import Origin, Plugin, Reading

if TYPE_CHECKING:
    from headwater.connect.plan import Plan

_GENERATORS = ("genk", "genkp", "genv", "genvp")


def datagen_source(plan: Plan) -> Reading:
    """One topic; nothing is read."""
    return Reading(tuple(Origin(topic) for topic in plan.names("kafka.topic")))


def msk_source(plan: Plan) -> Reading:
    """The topics that stand in the names of the generators."""
    topics: dict[str, None] = {}
    for key in plan.config:
        kind, *parts = key.split(".")
        if kind not in _GENERATORS or len(parts) < 2:
            continue
        plan.used(key)
        topics[_topic(plan, parts)] = None
    return Reading(tuple(Origin(topic) for topic in topics))


def _topic(plan: Plan, parts: list[str]) -> str:
    """A topic may hold dots, which only what was seen can tell."""
    whole = ".".join(parts)
    for seen in plan.connector.active_topics:
        if whole.startswith(f"{seen}."):
            return seen
    return parts[0]


PLUGINS = (
    Plugin(
        "datagen", ("io.confluent.kafka.connect.datagen.DatagenConnector", "DatagenSource"),
        "source", ("kafka.topic",), source=datagen_source, stores="none: the data is made up",
    ),
    Plugin(
        "datagen", ("com.amazonaws.mskdatagen.GeneratorSourceConnector",), "source",
        tuple(f"{name}.*" for name in _GENERATORS), source=msk_source,
        stores="none: the data is made up",
    ),
)  # fmt: skip
