"""Polls a Kafka cluster for its consumer groups, and reports those that no other producer reports.

Beside the polls of Connect, in a thread of its own: a broker that is slow or away costs no poll.
Nothing is emitted while the brokers do not list groups; runs that stay silent are then closed by
the server, as any that miss their heartbeats.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from headwater.connect.agent.flow import FlowMeter
from headwater.connect.groups.event import GroupTopics, group_event
from headwater.connect.groups.excluded import connector_groups, is_internal, is_skipped
from headwater.connect.groups.generated import common_name, merged, together
from headwater.connect.groups.life import (
    GroupTimes,
    TrackedGroup,
    WatchedGroup,
    decode_group,
    encode_group,
    key_of,
)
from headwater.connect.life.intervals import micros
from headwater.connect.services.consumer_groups import WITHOUT_MEMBERS, describe_groups, list_groups
from headwater.connect.services.kafka import KafkaError
from headwater.emit import OutboxChange
from headwater.lineage.naming import kafka_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.connect.config import ClusterConfig
    from headwater.connect.groups.life import GroupEmission
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.services.kafka import KafkaAdmin
    from headwater.emit import Outbox
    from headwater.emit.flow import FlowSample

log = logging.getLogger(__name__)

POLLS_PER_ROUND = 6
MAX_GROUPS = 200
"""How many groups are asked about in one round: those that are reported already, then others with members."""
MAX_ALIKE = 10
"""How many groups of one reader with generated names are asked about: those with members first."""


class GroupWatcher:
    """The consumer groups of one Kafka cluster that no connector accounts for."""

    def __init__(
        self,
        config: ClusterConfig,
        kafka: KafkaAdmin,
        outbox: Outbox,
        connectors: Callable[[], Iterable[TrackedConnector]],
        clock: Callable[[], float] = time.time,
    ) -> None:
        self.interval = config.times.poll * POLLS_PER_ROUND
        self._config, self._kafka, self._outbox = config, kafka, outbox
        self._connectors, self._clock = connectors, clock
        # A heartbeat is emitted by a round, so none can be promised more often.
        heartbeat = max(config.times.heartbeat, self.interval)
        self._times = GroupTimes(heartbeat, config.times.grace)
        self._flow = FlowMeter(kafka)
        self._samples: dict[str, tuple[FlowSample, ...]] = {}
        self._watched: dict[str, WatchedGroup] = {}
        for key, value in outbox.state(key_of(config.name)).items():
            tracked = decode_group(value)
            if tracked is None:
                log.warning("%s: ignoring its state, which another version wrote", key)
            else:
                self._watched[tracked.name] = WatchedGroup(tracked)

    def round(self) -> list[FlowSample]:
        """Ask once, emit what changed, and return how fast the groups read."""
        cluster = self._kafka.cluster
        if cluster is None or self._kafka.problem:
            return []  # the cluster's problems name the reason
        try:
            states, complete = list_groups(self._kafka)
        except KafkaError as error:
            self._kafka.groups_problem = error.message
            return []
        now = micros(self._clock())
        groups = connector_groups(self._connectors())
        free = self._unaccounted(states, groups)
        gone = self._taken_over(states, groups) - free.keys()
        ends = [(self._watched[name], self._watched[name].take_back(now)) for name in gone]
        emissions = [(watched, end) for watched, end in ends if end is not None]
        asked = [group for alike in free.values() for group in alike[:MAX_ALIKE]]
        described = describe_groups(self._kafka, {group: states[group] for group in asked})
        known = frozenset(topic for topic in cluster.topics if not is_internal(topic))
        for name in [*free, *(self._watched.keys() - free.keys() - gone)]:
            found = merged(name, free.get(name, []), described)
            if found is None and (name in free or not complete):
                continue  # its coordinator did not answer
            watched = self._watched.setdefault(
                name, WatchedGroup(TrackedGroup(cluster=self._config.name, name=name))
            )
            emission = watched.step(found, known, now, self._times)
            if emission is not None:
                emissions.append((watched, emission))
        samples = self._measure(now)
        self._commit(emissions)
        self._watched = {
            name: watched
            for name, watched in self._watched.items()
            if name not in gone and (name in free or not watched.idle)
        }
        return samples

    def _accounted(self, name: str, groups: set[str]) -> bool:
        return name in groups or is_skipped(name, self._config.skip_groups)

    def _taken_over(self, states: dict[str, str], groups: set[str]) -> set[str]:
        """The watched readers that are not reported any more, or by another name."""
        others = together(name for name in states if self._accounted(name, groups))
        return {
            name
            for name in self._watched
            if self._accounted(name, groups) or name in others or common_name(name) != name
        }

    def _unaccounted(self, states: dict[str, str], groups: set[str]) -> dict[str, list[str]]:
        """The readers to ask about and the groups of each, as many as one round may ask for."""
        free = [name for name in states if not self._accounted(name, groups)]
        free.sort(key=lambda name: (states[name] in WITHOUT_MEMBERS, name))
        alike = together(free)
        running = {name for name, watched in self._watched.items() if watched.tracked.open}
        order = sorted(
            alike, key=lambda name: (name not in running, states[alike[name][0]] in WITHOUT_MEMBERS)
        )
        self._kafka.groups_problem = (
            f"Kafka {self._kafka.bootstrap} has {len(order)} consumer groups that no connector "
            f"accounts for: {MAX_GROUPS} of them are watched; leave some out by skip_groups"
            if len(order) > MAX_GROUPS
            else ""
        )
        return {name: alike[name] for name in order[:MAX_GROUPS]}

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

    def _topics(self) -> GroupTopics:
        cluster = self._kafka.cluster
        return GroupTopics(
            kafka_namespace(self._kafka.bootstrap),
            cluster.id if cluster else "",
            self._kafka.bootstraps,
        )

    def _commit(self, emissions: list[tuple[WatchedGroup, GroupEmission]]) -> None:
        """Write the events and the state after them; nothing is remembered before it is on disk."""
        topics, changes = self._topics(), []
        for watched, emission in emissions:
            after = emission.tracked
            body = group_event(
                emission,
                watched,
                topics,
                self._samples.get(after.name, ()),
                namespace=self._config.namespace,
                heartbeat=self._times.heartbeat,
            )
            state = encode_group(after) if after.open else None
            changes.append(OutboxChange(after.key, state, [(after.run, body)]))
        if changes:
            self._outbox.commit(changes)
        for watched, emission in emissions:
            watched.tracked = emission.tracked
            log.info(
                "%s: consumer group %s: %s of run %s",
                self._config.name, emission.tracked.name, emission.type.value, emission.tracked.run,
                extra={"run": emission.tracked.run},
            )  # fmt: skip
