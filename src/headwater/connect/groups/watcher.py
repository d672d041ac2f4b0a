"""Polls a Kafka cluster for its consumer groups, and reports those that no other producer reports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.agent.flow import FlowMeter
from headwater.connect.groups import generated
from headwater.connect.groups.client_watcher import ClientWatcher
from headwater.connect.groups.excluded import (
    SKIPPED_GROUPS,
    connector_groups,
    is_skipped,
)
from headwater.connect.groups.life import GROUP
from headwater.connect.groups.queries import QueryGroups
from headwater.connect.services.consumer_groups import (
    WITHOUT_MEMBERS,
    ConsumerGroup,
    describe_groups,
    list_groups,
)
from headwater.connect.services.kafka import KafkaError
from headwater.lineage.moments import SECOND, iso

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.groups.life import WatchedClient
    from headwater.connect.services.lineage_server import NamedGroups
    from headwater.emit.flow import FlowSample

MAX_ALIKE = 10
"""How many groups of one reader with generated names are asked about: those with members first."""


class GroupWatcher(ClientWatcher[ConsumerGroup]):
    """The consumer groups of one Kafka cluster that no connector accounts for."""

    kind = GROUP

    def __init__(
        self, *given: Any, named_groups: Callable[[str], NamedGroups], **more: Any
    ) -> None:
        """`named_groups` asks the servers for the groups that queries have named as theirs."""
        self._queries = QueryGroups(named_groups)
        super().__init__(*given, **more)

    def _prepare(self) -> None:
        self._flow = FlowMeter(self._kafka)
        self._samples: dict[str, tuple[FlowSample, ...]] = {}
        self._wait_until = self._now() + self._times.grace * SECOND

    def common_name(self, name: str) -> str:
        """The name of the reader that a group is."""
        return generated.common_name(name)

    def round(self) -> list[FlowSample]:
        """Ask once, emit what changed, and return how fast the groups read."""
        if self._kafka.cluster is None or self._kafka.problem:
            return []  # the cluster's problems name the reason
        try:
            states, complete = list_groups(self._kafka)
        except KafkaError as error:
            self._kafka.groups_problem = error.message
            return []
        now = self._now()
        groups = connector_groups(self._connectors())
        patterns = (*SKIPPED_GROUPS, *self._config.skip_groups)

        def accounted(name: str) -> bool:
            return name in groups or is_skipped(name, patterns)

        free = self._unaccounted(states, accounted)
        gone = self._taken_over(states, accounted) - free.keys()
        left, described = self._without_queries(free, states)
        found = {
            name: generated.merged(name, alike, described) for name, alike in left.items() if alike
        }
        gone |= self._watched.keys() & (left.keys() - found.keys())
        if not self._queries.known and now < self._wait_until:
            # A query that nobody could ask about may name the others: they begin once that is known.
            found = {name: one for name, one in found.items() if name in self._watched}
        # One that is None has a coordinator that did not answer.
        emissions = self._step(found, gone, now, complete=complete)
        samples = self._measure(now)
        self._commit(emissions)
        self._forget(found, gone)
        return samples

    def _without_queries(
        self, free: dict[str, list[str]], states: dict[str, str]
    ) -> tuple[dict[str, list[str]], dict[str, ConsumerGroup]]:
        """The groups of each reader that are not those of queries, and all that were described.

        Each is judged by its own name: those that are alike become one reader after that.
        """
        if free:
            self._queries.ask(self._topics().namespace)
        named = {one for alike in free.values() for one in alike if self._queries.name(one)}
        asked = {
            one
            for alike in free.values()
            for some in (named.intersection(alike), set(alike) - named)
            for one in [one for one in alike if one in some][:MAX_ALIKE]
        }
        described = describe_groups(self._kafka, {group: states[group] for group in asked})
        taken = (named - asked) | self._queries.taken(
            {one: described[one] for one in named if one in described}
        )
        left = {name: [one for one in alike if one not in taken] for name, alike in free.items()}
        return left, described

    def _unaccounted(
        self, states: dict[str, str], accounted: Callable[[str], bool]
    ) -> dict[str, list[str]]:
        """The readers to ask about and the groups of each, as many as one round may ask for."""
        free = [name for name in states if not accounted(name)]
        free.sort(key=lambda name: (states[name] in WITHOUT_MEMBERS, name))
        alike = generated.together(free)
        order, self._kafka.groups_problem = self._at_most(
            alike, lambda name: states[alike[name][0]] in WITHOUT_MEMBERS
        )
        return {name: alike[name] for name in order}

    def _measure(self, now: int) -> list[FlowSample]:
        """How far the groups have come whose runs are under way."""
        namespace = self._topics().namespace
        running = [one for one in self._watched.values() if one.tracked.open and one.shown]
        try:
            ends = self._kafka.ends({topic for one in running for topic in one.tracked.topics})
        except KafkaError:
            return []  # the cluster's problems name the reason
        self._samples = {
            one.tracked.name: tuple(
                self._flow.sample(
                    one.tracked.run, namespace, topic, "input", ends[topic],
                    one.shown.committed if one.shown else None, now / 1e6,
                )
                for topic in one.tracked.topics
                if topic in ends
            )
            for one in running
        }  # fmt: skip
        self._flow.forget_others({one.tracked.run for one in running})
        return [sample for samples in self._samples.values() for sample in samples]

    def _facets(self, watched: WatchedClient[ConsumerGroup]) -> dict[str, dict[str, Any]]:
        shown, name = watched.shown, watched.tracked.name
        samples = self._samples.get(name, ())
        lags = [one.lag for one in samples if one.lag is not None]
        facets: dict[str, dict[str, Any]] = {
            "headwater_consumerGroup": {
                "group": name,
                "groups": shown.groups if shown and shown.groups > 1 else None,
                "state": shown.state if shown else None,
                "members": shown.members if shown else None,
                "clients": list(shown.clients) if shown else [],
                "lag": sum(lags) if lags else None,
                "lastActiveAt": iso(watched.active_at) if watched.active_at else None,
            }
        }
        if samples:
            facets["headwater_flow"] = {"topics": [_measured(sample) for sample in samples]}
        return facets


def _measured(sample: FlowSample) -> dict[str, Any]:
    found: dict[str, Any] = msgspec.to_builtins(sample)
    del found["run"]
    return found
