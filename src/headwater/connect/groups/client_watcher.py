"""What the watchers of consumer groups and of transactional producers share.

Beside the polls of Connect, in a thread of its own: a broker that is slow or away costs no poll.
Nothing is emitted while the brokers do not answer; runs that stay silent are then closed by
the server, as any that miss their heartbeats.
"""

from __future__ import annotations

import logging
import time
from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Generic

from headwater.connect.groups.event import ClusterTopics, client_event
from headwater.connect.groups.excluded import is_internal
from headwater.connect.groups.generated import together
from headwater.connect.groups.life import (
    C,
    ClientTimes,
    TrackedClient,
    WatchedClient,
    decode_client,
    encode_client,
    key_of,
)
from headwater.connect.life.intervals import micros
from headwater.emit import OutboxChange
from headwater.lineage.naming import kafka_namespace

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headwater.connect.config import ClusterConfig
    from headwater.connect.groups.life import ClientEmission, ClientKind
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.services.kafka import KafkaAdmin
    from headwater.emit import Outbox
    from headwater.emit.flow import FlowSample

log = logging.getLogger(__name__)

POLLS_PER_ROUND = 6
MAX_WATCHED = 200
"""How many clients of a kind are watched: those that are reported already, then others at work."""


class ClientWatcher(ABC, Generic[C]):
    """The clients of one kind of one Kafka cluster that no connector accounts for."""

    kind: ClientKind

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
        self._times = ClientTimes(heartbeat, config.times.grace)
        self._watched: dict[str, WatchedClient[C]] = {}
        for key, value in outbox.state(key_of(self.kind.name, config.name)).items():
            tracked = decode_client(value)
            if tracked is None:
                log.warning("%s: ignoring its state, which another version wrote", key)
            else:
                self._watched[tracked.name] = WatchedClient(self.kind, tracked)
        self._prepare()

    @abstractmethod
    def _prepare(self) -> None:
        """Set up what only this kind needs."""

    @abstractmethod
    def round(self) -> list[FlowSample]:
        """Ask once, emit what changed, and return how fast the clients are."""

    @abstractmethod
    def common_name(self, name: str) -> str:
        """The name that a client is reported by, which others may share."""

    @abstractmethod
    def _facets(self, watched: WatchedClient[C]) -> dict[str, dict[str, Any]]:
        """The facets of a client's run."""

    def _now(self) -> int:
        return micros(self._clock())

    def _taken_over(self, names: Iterable[str], accounted: Callable[[str], bool]) -> set[str]:
        """The watched clients that are not reported any more, or by another name."""
        others = together((name for name in names if accounted(name)), self.common_name)
        return {
            name
            for name in self._watched
            if accounted(name) or name in others or self.common_name(name) != name
        }

    def _at_most(self, names: Iterable[str], idle: Callable[[str], bool]) -> tuple[list[str], str]:
        """As many clients as are watched, and the problem that there are more."""
        running = {name for name, watched in self._watched.items() if watched.tracked.open}
        order = sorted(names, key=lambda name: (name not in running, idle(name)))
        problem = (
            f"Kafka {self._kafka.bootstrap} has {len(order)} {self.kind.title}s that no connector "
            f"accounts for: {MAX_WATCHED} of them are watched; leave some out by "
            f"skip_{self.kind.name.rpartition('-')[2]}s"
            if len(order) > MAX_WATCHED
            else ""
        )
        return order[:MAX_WATCHED], problem

    def _step(
        self, found: Mapping[str, C | None], gone: set[str], now: int, *, complete: bool = True
    ) -> list[tuple[WatchedClient[C], ClientEmission]]:
        """What to emit after a round that found these clients; None is one that is not known now.

        Without `complete`, nothing is concluded from the absence of a client.
        """
        cluster = self._kafka.cluster
        topics = cluster.topics if cluster else frozenset()
        known = frozenset(topic for topic in topics if not is_internal(topic))
        steps = [(self._watched[name], self._watched[name].take_back(now)) for name in gone]
        for name in [*found, *(self._watched.keys() - found.keys() - gone)]:
            one = found.get(name)
            if one is None and (name in found or not complete):
                continue
            tracked = TrackedClient(kind=self.kind.name, cluster=self._config.name, name=name)
            watched = self._watched.setdefault(name, WatchedClient(self.kind, tracked))
            steps.append((watched, watched.step(one, known, now, self._times)))
        return [(watched, emission) for watched, emission in steps if emission is not None]

    def _forget(self, found: Mapping[str, C | None], gone: set[str]) -> None:
        """Keep the clients that there is something to remember of."""
        self._watched = {
            name: watched
            for name, watched in self._watched.items()
            if name not in gone and (name in found or not watched.idle)
        }

    def _topics(self) -> ClusterTopics:
        cluster = self._kafka.cluster
        return ClusterTopics(
            kafka_namespace(self._kafka.bootstrap),
            cluster.id if cluster else "",
            self._kafka.bootstraps,
        )

    def _commit(self, emissions: list[tuple[WatchedClient[C], ClientEmission]]) -> None:
        """Write the events and the state after them; nothing is remembered before it is on disk."""
        topics, changes = self._topics(), []
        for watched, emission in emissions:
            after = emission.tracked
            body = client_event(
                self.kind,
                emission,
                topics,
                self._facets(watched),
                namespace=self._config.namespace,
                heartbeat=self._times.heartbeat,
            )
            state = encode_client(after) if after.open else None
            changes.append(OutboxChange(after.key, state, [(after.run, body)]))
        if changes:
            self._outbox.commit(changes)
        for watched, emission in emissions:
            watched.tracked = emission.tracked
            log.info(
                "%s: %s %s: %s of run %s",
                self._config.name, self.kind.title, emission.tracked.name, emission.type.value,
                emission.tracked.run,
                extra={"run": emission.tracked.run},
            )  # fmt: skip
