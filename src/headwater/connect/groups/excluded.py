"""Clients that are not reported: those of connectors, skipped ones, and internal topics."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from headwater.connect.groups.generated import UUID

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headwater.connect.life.state import TrackedConnector

__all__ = [
    "SKIPPED_GROUPS", "SKIPPED_PRODUCERS", "connector_groups", "is_connector_producer", "is_internal",
    "is_named", "is_skipped",
]  # fmt: skip

SKIPPED_GROUPS = (
    "spark-kafka-*",  # Spark's own: the queries behind them report themselves
    "cg-control-*",  # workers of the Iceberg sink, on its control topic
    "*-schemahistory",  # Debezium, on the history of its schemas
    "console-consumer-*",  # somebody at a terminal
    "headwater",  # this product's server, on the topic of events
    "headwater-*",
    "_*",
)
"""Names of groups, as patterns, that are never reported."""

_UUID = re.compile(rf"(?<=-){UUID}(?![0-9A-Za-z])", re.IGNORECASE)

SKIPPED_PRODUCERS = (
    "connect-cluster-*",  # the leader of a Connect cluster, on the topic of configurations
    "*worker-txn-*",  # the Iceberg sink, on its control topic
    "*coordinator-txn-*",
    "headwater",
    "headwater-*",
    "_*",
)
"""Transactional ids, as patterns, that are never reported."""


def connector_groups(connectors: Iterable[TrackedConnector]) -> set[str]:
    """The groups by which connectors read; the Iceberg sink has one more, for its coordinator."""
    names = {one.group or f"connect-{one.name}" for one in connectors}
    return names | {f"{name}-coord" for name in names}


def is_connector_producer(transactional_id: str, connectors: Collection[str]) -> bool:
    """Whether an id is that of a task of one of these source connectors: `<cluster>-<name>-<task>`."""
    stem, _, task = transactional_id.rpartition("-")
    parts = stem.split("-") if task.isdecimal() else []
    return any("-".join(parts[at:]) in connectors for at in range(1, len(parts)))


def is_named(group: str, names: Collection[str]) -> bool:
    """Whether a group is one of these: each a name, or `<prefix>-*`, of which Spark makes new names.

    Such a name is `<prefix>-<UUID>` or longer; a group that only begins alike is somebody else's.
    """
    return group in names or any(
        f"{group[: uuid.start()]}*" in names for uuid in _UUID.finditer(group)
    )


def is_skipped(name: str, patterns: Iterable[str]) -> bool:
    """Whether the name of a client fits one of these patterns."""
    return any(fnmatchcase(name, pattern) for pattern in patterns)


def is_internal(topic: str) -> bool:
    """Whether a topic only keeps the books of Kafka or of a service beside it."""
    return topic.startswith("_")
