"""Which consumer groups are those of queries that report themselves.

A Spark query may read in a group that its options name (`kafka.group.id`, `groupIdPrefix`). Brokers do not
show which query a group belongs to: the lineage servers know which groups the queries have named that read a topic.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.groups.excluded import is_named

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headwater.connect.services.consumer_groups import ConsumerGroup
    from headwater.connect.services.lineage_server import NamedGroups

__all__ = ["QueryGroups"]


class QueryGroups:
    """The groups of one Kafka cluster that queries name as theirs, as the servers know them in a round."""

    def __init__(self, named_groups: Callable[[str], NamedGroups]) -> None:
        self._named_groups = named_groups
        self.known = False
        """Whether every server has answered since the start which groups it knows."""
        self._by_topic: dict[str, list[str]] = {}
        self._names: set[str] = set()
        self._before: dict[str, ConsumerGroup] = {}

    def ask(self, namespace: str) -> None:
        """Ask the servers anew."""
        self._by_topic, self.known = self._named_groups(namespace)
        self._names = set().union(*self._by_topic.values())

    def name(self, group: str) -> bool:
        """Whether a query that runs names a group, whatever it reads."""
        return is_named(group, self._names)

    def taken(self, described: Mapping[str, ConsumerGroup]) -> set[str]:
        """Those of these groups of which all that they read now is read by queries that name them."""
        found = {name for name, group in described.items() if self._all_read(name, group)}
        self._before = dict(described)
        return found

    def _all_read(self, name: str, group: ConsumerGroup) -> bool:
        used = group.used(self._before.get(name))
        topics: Iterable[str] = [topic for topic, seen in used.items() if seen] or used
        return bool(used) and all(is_named(name, self._by_topic.get(one, ())) for one in topics)
