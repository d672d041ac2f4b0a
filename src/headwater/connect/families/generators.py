"""Sources that make their data up: topics, and nothing outside Kafka."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.derive.family import Plugin, SourceLineage, SourceTopic

if TYPE_CHECKING:
    from headwater.connect.derive.context import Context

_GENERATORS = ("genk", "genkp", "genv", "genvp")


def datagen_source(context: Context) -> SourceLineage:
    """One topic; nothing is read."""
    return SourceLineage(tuple(SourceTopic(topic) for topic in context.names("kafka.topic")))


def msk_source(context: Context) -> SourceLineage:
    """The topics that stand in the names of the generators."""
    topics: dict[str, None] = {}
    for key in context.config:
        kind, *parts = key.split(".")
        if kind not in _GENERATORS or len(parts) < 2:
            continue
        context.used(key)
        topics[_topic(context, parts)] = None
    return SourceLineage(tuple(SourceTopic(topic) for topic in topics))


def _topic(context: Context, parts: list[str]) -> str:
    """A topic may hold dots, which only the topics that Connect reports resolve."""
    whole = ".".join(parts)
    for seen in context.connector.active_topics:
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
