"""The life cycle of a consumer group's run: computed from two polls of the group, without I/O.

A group is active while it has members, or while its offsets move. It is
reported once it is active in two rounds: a connector that was just made is known by then, and
a console consumer that somebody ran for a moment is gone. A group that is not active for the grace time
has an inferred end, because it is unknown whether its reader was stopped or died.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec
from msgspec.structs import replace

from headwater.emit.run_emitter import new_run_id
from headwater.lineage.lifecycle import Emitted
from headwater.lineage.model import End
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventType, from_micros

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.services.consumer_groups import ConsumerGroup

__all__ = [
    "EMPTY",
    "REPORTED",
    "GroupEmission",
    "GroupTimes",
    "TrackedGroup",
    "WatchedGroup",
    "decode_group",
    "encode_group",
]

ROUNDS = 2
"""In how many rounds a group is active before it is reported."""
EMPTY = End("no members", inferred=True)
REPORTED = End("reported by another job")


class TrackedGroup(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A group with the run it is in, as it is stored. Times are microseconds."""

    cluster: str
    name: str
    run: str = ""
    last_event: EventType | None = None
    emitted_at: int = 0
    topics: dict[str, bool] = {}
    """What the run reads, and whether it was seen to: assigned, or offsets that moved."""

    @property
    def open(self) -> bool:
        """Whether its run is under way."""
        return Emitted(self.last_event, self.emitted_at).open

    @property
    def key(self) -> str:
        """The key it is stored under."""
        return key_of(self.cluster, self.name)


def key_of(cluster: str, name: str = "") -> str:
    """The key of a group in the store, or the prefix of a cluster's."""
    return f"consumer-group/{cluster}/{name}"


class GroupTimes(NamedTuple):
    """How often a run has a heartbeat, and how long it may be inactive; in seconds."""

    heartbeat: float
    grace: float


class GroupEmission(msgspec.Struct, frozen=True):
    """One event to emit of a group, and the group as it is then."""

    type: EventType
    tracked: TrackedGroup
    end: End | None = None


class WatchedGroup:
    """One group between rounds: its stored state, and what the last rounds showed."""

    def __init__(self, tracked: TrackedGroup, make_run: Callable[[int], str] | None = None) -> None:
        self.tracked = tracked
        self.shown: ConsumerGroup | None = None
        """The group as the last round that had it showed it."""
        self.active_at = 0
        """When it was last active, in microseconds."""
        self._make_run = make_run or (lambda now: new_run_id(from_micros(now)))
        self._rounds = 0
        self._inactive_since: int | None = None

    def step(
        self, found: ConsumerGroup | None, topics: frozenset[str], now: int, times: GroupTimes
    ) -> GroupEmission | None:
        """What to emit after a round that showed the group, or did not list it.

        `topics` are those that may be reported.
        """
        before = self.tracked
        read = _topics(self.shown, found, topics) if found else {}
        active = bool(found and found.live) or any(read.values())
        self._note(found, active, now)
        if before.open:
            since = self._inactive_since
            if since is not None and now - since >= times.grace * SECOND:
                return self._emit(EventType.ABORT, before, now, EMPTY)
            merged = {**before.topics, **{t: read[t] or before.topics.get(t, False) for t in read}}
            due = now - before.emitted_at >= times.heartbeat * SECOND
            if due or merged != before.topics:
                return self._emit(EventType.RUNNING, replace(before, topics=merged), now)
        elif active and read and self._rounds >= ROUNDS:
            run = self._make_run(now)
            started = replace(before, run=run, last_event=None, topics=read)
            return self._emit(EventType.START, started, now)
        return None

    def take_back(self, now: int) -> GroupEmission | None:
        """The end of its run because another job reports this reader."""
        if not self.tracked.open:
            return None
        return self._emit(EventType.COMPLETE, self.tracked, now, REPORTED)

    @property
    def idle(self) -> bool:
        """Whether there is nothing to remember of it."""
        return not self.tracked.open and not self._rounds

    def _note(self, found: ConsumerGroup | None, active: bool, now: int) -> None:
        self.shown = found or self.shown
        if active:
            self._rounds, self.active_at, self._inactive_since = self._rounds + 1, now, None
        else:
            self._rounds = 0
            self._inactive_since = self._inactive_since or now

    @staticmethod
    def _emit(
        kind: EventType, tracked: TrackedGroup, now: int, end: End | None = None
    ) -> GroupEmission:
        after = Emitted(tracked.last_event, tracked.emitted_at).emit(kind, now)
        return GroupEmission(
            kind, replace(tracked, last_event=after.last, emitted_at=after.at), end
        )


def _topics(
    before: ConsumerGroup | None, found: ConsumerGroup, known: frozenset[str]
) -> dict[str, bool]:
    """The topics that a group reads, and whether it was seen to since the round before."""
    read = dict.fromkeys((topic for topic, _ in found.committed), False)
    for (topic, part), offset in found.committed.items():
        if before is not None and before.committed.get((topic, part)) != offset:
            read[topic] = True
    read |= dict.fromkeys(found.assigned, True)
    return {topic: seen for topic, seen in sorted(read.items()) if topic in known}


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(TrackedGroup)


def encode_group(tracked: TrackedGroup) -> bytes:
    """A group as it is stored."""
    return _encoder.encode(tracked)


def decode_group(value: bytes) -> TrackedGroup | None:
    """A group as it was stored; None when another version of the program wrote it."""
    try:
        return _decoder.decode(value)
    except msgspec.DecodeError:
        return None
