"""Reads a Kafka cluster's transactions, and reports the producers that no connector accounts for.

Brokers do not show whether a producer is there, only its transactions: one counts as at work until it
has had none for the grace time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.connect.groups import generated
from headwater.connect.groups.client_watcher import ClientWatcher
from headwater.connect.groups.event import MAX_TOPICS
from headwater.connect.groups.excluded import (
    SKIPPED_PRODUCERS,
    is_connector_producer,
    is_skipped,
)
from headwater.connect.groups.life import PRODUCER
from headwater.connect.services.kafka import KafkaError
from headwater.connect.services.transactions import TOPIC, TransactionLog
from headwater.lineage.moments import SECOND, iso

if TYPE_CHECKING:
    from headwater.connect.groups.life import WatchedClient
    from headwater.connect.services.transactions import Transaction
    from headwater.emit.flow import FlowSample

__all__ = ["ProducerWatcher", "TransactionalProducer"]

MAX_IDS = 10_000
"""How many transactional ids are remembered, those of the latest transactions."""


class TransactionalProducer(msgspec.Struct, frozen=True):
    """A producer: when its last transaction was, in microseconds, and the topics it wrote to."""

    at: int
    topics: frozenset[str] = frozenset()
    ids: int = 1
    """How many transactional ids it stands for."""
    live: bool = True

    def used(self, _: TransactionalProducer | None) -> dict[str, bool]:
        """The topics that it writes, each seen."""
        return dict.fromkeys(self.topics, True)

    def joined(self, other: TransactionalProducer) -> TransactionalProducer:
        """Both as one writer."""
        topics = frozenset(sorted(self.topics | other.topics)[:MAX_TOPICS])
        return TransactionalProducer(max(self.at, other.at), topics, self.ids + other.ids)


class ProducerWatcher(ClientWatcher[TransactionalProducer]):
    """The transactional producers of one Kafka cluster that no connector accounts for."""

    kind = PRODUCER

    def _prepare(self) -> None:
        # The grace time is in what counts as live.
        self._grace = self._times.grace * SECOND
        self._times = self._times._replace(grace=0)
        self._log = TransactionLog(self._kafka)
        self._ids: dict[str, TransactionalProducer] = {}

    def common_name(self, name: str) -> str:
        """The name of the application that has a transactional id."""
        return generated.producer_name(name)

    def round(self) -> list[FlowSample]:
        """Read what is new and emit what changed; how fast producers write is not known."""
        if self._kafka.cluster is None or self._kafka.problem:
            return []  # the cluster's problems name the reason
        try:
            steps = self._log.read()
        except KafkaError as error:
            self._kafka.producers_problem = error.message
            return []
        now = self._now()
        # What is new since the last round is of now, whatever the brokers' clocks show.
        self._note(steps, now, new=self._log.new)
        sources = {one.name for one in self._connectors() if one.type == "source"}
        patterns = (*SKIPPED_PRODUCERS, *self._config.skip_producers)

        def accounted(name: str) -> bool:
            return is_skipped(name, patterns) or is_connector_producer(name, sources)

        alike = generated.together(
            sorted(name for name in self._ids if not accounted(name)), self.common_name
        )
        order, problem = self._at_most(alike, lambda _: False)
        if not problem and self._log.unanswered:
            problem = (
                f"Kafka {self._kafka.bootstrap} did not return all of {TOPIC} in time: "
                "producers may be missing"
            )
        if not problem and self._log.behind:
            problem = (
                f"Kafka {self._kafka.bootstrap} has more transactions than are read: "
                "producers with few of them may be missing"
            )
        self._kafka.producers_problem = problem
        found = {name: self._joined(alike[name]) for name in order}
        gone = self._taken_over(self._ids, accounted) - found.keys()
        # Whose partition did not answer is not silent.
        self._commit(self._step(found, gone, now, complete=not self._log.unanswered))
        self._forget(found, gone)
        return []

    def _note(self, steps: list[Transaction], now: int, *, new: bool) -> None:
        """Keep who has had a transaction within the grace time."""
        for step in steps:
            if step.at:
                one = TransactionalProducer(now if new else min(step.at, now), step.topics, 0)
                before = self._ids.get(step.id, TransactionalProducer(0))
                self._ids[step.id] = before.joined(one)
        latest = sorted(self._ids.items(), key=lambda item: -item[1].at)[:MAX_IDS]
        self._ids = {name: one for name, one in latest if now - one.at < self._grace}

    def _joined(self, ids: list[str]) -> TransactionalProducer:
        first, *others = (self._ids[name] for name in ids)
        for other in others:
            first = first.joined(other)
        return first

    def _facets(self, watched: WatchedClient[TransactionalProducer]) -> dict[str, dict[str, Any]]:
        shown = watched.shown
        return {
            "headwater_transactionalProducer": {
                "transactionalId": watched.tracked.name,
                "ids": shown.ids if shown and shown.ids > 1 else None,
                "lastActiveAt": iso(shown.at) if shown else None,
            }
        }
