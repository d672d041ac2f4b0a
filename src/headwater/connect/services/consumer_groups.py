"""The consumer groups of a Kafka cluster, as its brokers show them."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.connect.services.http_client import has_control, one_line
from headwater.connect.services.kafka import SECONDS, KafkaError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.connect.services.kafka import KafkaAdmin

log = logging.getLogger(__name__)

# Kafka takes longer ones, which nobody types; a job's name has this one in it.
MAX_NAME = 500
MAX_CLIENTS = 10
# States without members, or (before Kafka 2.6) not in the answer of the list. A client that is older than the
# group's protocol (KIP-848) describes no members, so the state is all there is.
WITHOUT_MEMBERS = ("EMPTY", "DEAD", "UNKNOWN")


class ConsumerGroup(msgspec.Struct, frozen=True):
    """One group: its members, the topics these are assigned, and the offsets it committed."""

    name: str
    state: str = ""
    members: int = 0
    live: bool = False
    """Whether it has members, though not all of them may be described."""
    clients: tuple[str, ...] = ()
    assigned: frozenset[str] = frozenset()
    committed: dict[tuple[str, int], int] = {}
    groups: int = 1
    """How many groups of generated names it stands for."""

    def used(self, before: ConsumerGroup | None) -> dict[str, bool]:
        """The topics that it reads, and whether it was seen to since the round before."""
        read = dict.fromkeys((topic for topic, _ in self.committed), False)
        for (topic, part), offset in self.committed.items():
            if before is not None and before.committed.get((topic, part)) != offset:
                read[topic] = True
        return read | dict.fromkeys(self.assigned, True)


class GroupListing(NamedTuple):
    """The state of each group by name; without `complete`, a broker that keeps some did not answer."""

    states: dict[str, str]
    complete: bool


def list_groups(kafka: KafkaAdmin) -> GroupListing:
    """The consumer groups of a cluster; raises KafkaError when no broker lists them."""
    try:
        kafka.admin.poll(0)
        found = kafka.admin.list_consumer_groups(request_timeout=SECONDS).result(2 * SECONDS)
    except Exception as error:  # noqa: BLE001
        raise KafkaError(_not_listed(kafka, error)) from None
    if found.errors and not found.valid:
        raise KafkaError(_not_listed(kafka, found.errors[0]))
    states = {
        one.group_id: one.state.name
        for one in found.valid
        if 0 < len(one.group_id) <= MAX_NAME and not has_control(one.group_id)
    }
    return GroupListing(states, not found.errors)


def describe_groups(kafka: KafkaAdmin, listed: Mapping[str, str]) -> dict[str, ConsumerGroup]:
    """These groups, given with their states, by name; one that cannot be described is left out."""
    if not listed:
        return {}
    asked = kafka.admin.describe_consumer_groups(sorted(listed), request_timeout=SECONDS)
    described: dict[str, Any] = {}
    for name, future in asked.items():
        try:
            described[name] = future.result(2 * SECONDS)
        except Exception as error:  # noqa: BLE001
            log.debug("consumer group %s was not described: %s", name, error)
    committed = kafka.committed(described)
    return {
        name: ConsumerGroup(
            name,
            listed[name],
            len(found.members),
            bool(found.members) or listed[name] not in WITHOUT_MEMBERS,
            _clients(found),
            frozenset(
                part.topic
                for member in found.members
                for part in (member.assignment.topic_partitions if member.assignment else ())
            ),
            committed[name],
        )
        for name, found in described.items()
        if name in committed
    }


def _clients(found: Any) -> tuple[str, ...]:
    names = {one_line(member.client_id or "") for member in found.members}
    return tuple(sorted(names - {""}))[:MAX_CLIENTS]


def _not_listed(kafka: KafkaAdmin, error: Any) -> str:
    return f"Kafka {kafka.bootstrap} did not list consumer groups: {redact(str(error))}"
