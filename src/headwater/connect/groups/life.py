"""The life cycle of the run of a client of Kafka's: computed from two polls of it, without I/O.

A client is a consumer group or a transactional producer. A group is active while it has members, or while
its offsets move; a producer while its last transaction is not long ago. A client is
reported once it is active in two rounds: a connector that was just made is known by then, and
a console consumer that somebody ran for a moment is gone. A client that is not active for the grace time
has an inferred end, because it is unknown whether it was stopped or died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeVar

import msgspec
from msgspec.structs import replace

from headwater.emit.run_emitter import new_run_id
from headwater.lineage.lifecycle import Emitted
from headwater.lineage.model import End
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventType, from_micros

if TYPE_CHECKING:
    from collections.abc import Callable

__all__ = [
    "GROUP",
    "PRODUCER",
    "REPORTED",
    "C",
    "Client",
    "ClientEmission",
    "ClientKind",
    "ClientTimes",
    "TrackedClient",
    "WatchedClient",
    "decode_client",
    "encode_client",
]

ROUNDS = 2
"""In how many rounds a client is active before it is reported."""
REPORTED = End("reported by another job")


class Client(Protocol):
    """What the brokers show of a client in one round."""

    @property
    def live(self) -> bool:
        """Whether it is at work, whatever it was seen to use."""
        ...

    def used(self, before: Any) -> dict[str, bool]:
        """Its topics, and whether it was seen to use each since the round before."""
        ...


C = TypeVar("C", bound=Client)


class ClientKind(NamedTuple):
    """A kind of clients: what its jobs are called, and how a run of one that went silent ends."""

    name: str
    """What stands before the name of the client in those of its job and its state."""
    title: str
    processing: str
    job_type: str
    last_event: EventType
    silent: End


GROUP = ClientKind(
    "consumer-group", "consumer group", "STREAMING", "CONSUMER_GROUP",
    EventType.ABORT, End("no members", inferred=True),
)  # fmt: skip
# Brokers do not tell a producer without transactions from one that is gone: neither is trouble.
PRODUCER = ClientKind(
    "producer", "transactional producer", "SERVICE", "TRANSACTIONAL_PRODUCER",
    EventType.COMPLETE, End("no transactions", inferred=True),
)  # fmt: skip


class TrackedClient(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A client with the run it is in, as it is stored. Times are microseconds."""

    kind: str = GROUP.name
    cluster: str
    name: str
    run: str = ""
    last_event: EventType | None = None
    emitted_at: int = 0
    topics: dict[str, bool] = {}
    """What the run uses, and whether it was seen to: assigned, offsets that moved, or written."""

    @property
    def open(self) -> bool:
        """Whether its run is under way."""
        return Emitted(self.last_event, self.emitted_at).open

    @property
    def key(self) -> str:
        """The key it is stored under."""
        return key_of(self.kind, self.cluster, self.name)


def key_of(kind: str, cluster: str, name: str = "") -> str:
    """The key of a client in the store, or the prefix of a cluster's."""
    return f"{kind}/{cluster}/{name}"


class ClientTimes(NamedTuple):
    """How often a run has a heartbeat, and how long it may be inactive; in seconds."""

    heartbeat: float
    grace: float


class ClientEmission(msgspec.Struct, frozen=True):
    """One event to emit of a client, and the client as it is then."""

    type: EventType
    tracked: TrackedClient
    end: End | None = None


class WatchedClient(Generic[C]):
    """One client between rounds: its stored state, and what the last rounds showed."""

    def __init__(
        self,
        kind: ClientKind,
        tracked: TrackedClient,
        make_run: Callable[[int], str] | None = None,
    ) -> None:
        self.tracked = tracked
        self.shown: C | None = None
        """The client as the last round that had it showed it."""
        self.active_at = 0
        """When it was last active, in microseconds."""
        self._kind = kind
        self._make_run = make_run or (lambda now: new_run_id(from_micros(now)))
        self._rounds = 0
        self._inactive_since: int | None = None

    def step(
        self, found: C | None, topics: frozenset[str], now: int, times: ClientTimes
    ) -> ClientEmission | None:
        """What to emit after a round that showed the client, or did not list it.

        `topics` are those that may be reported.
        """
        before = self.tracked
        used = sorted(found.used(self.shown).items()) if found else []
        used_now = {topic: seen for topic, seen in used if topic in topics}
        active = bool(found and found.live) or any(used_now.values())
        self._note(found, active, now)
        if before.open:
            since = self._inactive_since
            if since is not None and now - since >= times.grace * SECOND:
                return self._emit(self._kind.last_event, before, now, self._kind.silent)
            merged = before.topics | {
                topic: seen or before.topics.get(topic, False) for topic, seen in used_now.items()
            }
            due = now - before.emitted_at >= times.heartbeat * SECOND
            if due or merged != before.topics:
                return self._emit(EventType.RUNNING, replace(before, topics=merged), now)
        elif active and used_now and self._rounds >= ROUNDS:
            run = self._make_run(now)
            started = replace(before, run=run, last_event=None, topics=used_now)
            return self._emit(EventType.START, started, now)
        return None

    def take_back(self, now: int) -> ClientEmission | None:
        """The end of its run because another job reports what this client does."""
        if not self.tracked.open:
            return None
        return self._emit(EventType.COMPLETE, self.tracked, now, REPORTED)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember of it."""
        return not self.tracked.open and not self._rounds

    def _note(self, found: C | None, active: bool, now: int) -> None:
        self.shown = found or self.shown
        if active:
            self._rounds, self.active_at, self._inactive_since = self._rounds + 1, now, None
        else:
            self._rounds = 0
            self._inactive_since = self._inactive_since or now

    @staticmethod
    def _emit(
        kind: EventType, tracked: TrackedClient, now: int, end: End | None = None
    ) -> ClientEmission:
        after = Emitted(tracked.last_event, tracked.emitted_at).emit(kind, now)
        return ClientEmission(
            kind, replace(tracked, last_event=after.last, emitted_at=after.at), end
        )


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TrackedClient)


def encode_client(tracked: TrackedClient) -> bytes:
    """A client as it is stored."""
    return _encoder.encode(tracked)


def decode_client(value: bytes) -> TrackedClient | None:
    """A client as it was stored; None when another version of the program wrote it."""
    try:
        return _decoder.decode(value)
    except msgspec.DecodeError:
        return None
