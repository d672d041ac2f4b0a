"""Consumer groups that are not reported as readers: those of connectors, skipped ones, and internal topics."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.connect.life.state import TrackedConnector

__all__ = ["SKIPPED", "connector_groups", "is_internal", "is_skipped"]

SKIPPED = (
    "spark-kafka-*",  # Spark's own: the queries behind them report themselves
    "cg-control-*",  # workers of the Iceberg sink, on its control topic
    "*-schemahistory",  # Debezium, on the history of its schemas
    "console-consumer-*",  # somebody at a terminal
    "headwater",  # this product's server, on the topic of events
    "headwater-*",
    "_*",
)
"""Names of groups, as patterns, that are never reported."""


def connector_groups(connectors: Iterable[TrackedConnector]) -> set[str]:
    """The groups by which connectors read; the Iceberg sink has one more, for its coordinator."""
    names = {one.group or f"connect-{one.name}" for one in connectors}
    return names | {f"{name}-coord" for name in names}


def is_skipped(group: str, patterns: Iterable[str]) -> bool:
    """Whether a group's name fits one of these patterns, or one of `SKIPPED`."""
    return any(fnmatchcase(group, pattern) for pattern in (*SKIPPED, *patterns))


def is_internal(topic: str) -> bool:
    """Whether a topic only keeps the books of Kafka or of a service beside it."""
    return topic.startswith("_")
