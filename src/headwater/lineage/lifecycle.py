"""The life of a run: what a producer may emit next, and what a server makes of what it received.

`RunHistory` is a fold over events that gives the same state for any order and any repetition of
one set of them. `Emitted` is the state machine of every producer.
"""

from __future__ import annotations

from enum import Enum

import msgspec

from headwater.lineage.openlineage.events import EventType

__all__ = ["BEATS_KEPT", "TERMINAL", "Emitted", "RunHistory", "State", "TransitionError"]

BEATS_KEPT = 6
BEATS_MISSED = 3
STEADY = 0.25


class State(str, Enum):
    """The state of a run, in the words Marquez clients know."""

    NEW = "NEW"
    RUNNING = "RUNNING"
    COMPLETED = "COMPLETED"
    FAILED = "FAILED"
    ABORTED = "ABORTED"

    __hash__ = str.__hash__  # that of Enum is a function in Python

    @property
    def finished(self) -> bool:
        """Whether the run is over."""
        return self not in (State.NEW, State.RUNNING)


_RANK = {EventType.FAIL: 0, EventType.ABORT: 1, EventType.COMPLETE: 2}
TERMINAL = frozenset(_RANK)
_ENDS = (State.FAILED, State.ABORTED, State.COMPLETED)
# A member is looked up through its class's class, which is slow where every event asks for it.
_NEW, _RUNNING, _ABORTED = State.NEW, State.RUNNING, State.ABORTED
_BEAT, _ALIVE = EventType.RUNNING, (EventType.START, EventType.RUNNING)


class RunHistory(msgspec.Struct, array_like=True, gc=False):
    """Everything a server must remember of a run's events to know its state.

    Times are microseconds since 1970. `observe` may be called in any order, any number of times.
    """

    first: int | None = None
    last: int | None = None
    started: int | None = None
    ended: tuple[int, int] | None = None
    inferred: tuple[int, int] | None = None
    beats: list[int] = msgspec.field(default_factory=list)
    declared: tuple[int, int] | None = None

    def observe(self, event_type: EventType, time: int) -> None:
        """Take in one event of the run's producer."""
        if self.first is None or time < self.first:
            self.first = time
        if self.last is None or time > self.last:
            self.last = time
        rank = _RANK.get(event_type)
        if rank is not None:
            end = (time, rank)
            self.ended = end if self.ended is None else min(self.ended, end)
        elif event_type in _ALIVE:
            self.started = time if self.started is None else min(self.started, time)
            if event_type is _BEAT and time not in self.beats:
                self.beats = sorted([*self.beats, time])[-BEATS_KEPT:]

    def declare(self, interval: int | None, time: int) -> None:
        """Take in a heartbeat interval that the producer promised; the latest promise stands."""
        promise = (time, interval or 0)
        self.declared = promise if self.declared is None else max(self.declared, promise)

    def infer_end(self, time: int, after: int) -> None:
        """Record that no event came after `after`, so the run is taken to have ended at `time`.

        The record holds only as long as no event of the producer is later than `after`.
        """
        guess = (after, time)
        self.inferred = guess if self.inferred is None else max(self.inferred, guess)

    @property
    def state(self) -> State:
        """The state that the events seen so far amount to."""
        if self.ended is not None:
            return _ENDS[self.ended[1]]
        if self.inferred is not None and self.is_inferred:
            return _ABORTED
        return _NEW if self.started is None else _RUNNING

    @property
    def is_inferred(self) -> bool:
        """Whether the run's end is a guess of the server."""
        if self.ended is not None or self.inferred is None:
            return False
        return self.last is None or self.last <= self.inferred[0]

    @property
    def end(self) -> int | None:
        """When the run ended, if it has."""
        if self.ended is not None:
            return self.ended[0]
        return self.inferred[1] if self.inferred is not None and self.is_inferred else None

    @property
    def interval(self) -> int | None:
        """The time between two heartbeats, where the run declared or showed one."""
        if self.declared is not None and self.declared[1]:
            return self.declared[1]
        if len(self.beats) < BEATS_KEPT - 1:
            return None
        gaps = sorted(b - a for a, b in zip(self.beats, self.beats[1:], strict=False))
        middle = gaps[len(gaps) // 2]
        steady = all(abs(gap - middle) <= STEADY * middle for gap in gaps)
        return middle if steady and middle > 0 else None

    @property
    def deadline(self) -> int | None:
        """When a silent run is to be closed, or None if it has promised nothing."""
        interval = self.interval
        if interval is None or self.last is None or self.state is not _RUNNING:
            return None
        return self.last + BEATS_MISSED * interval


class TransitionError(ValueError):
    """A producer tried to emit what cannot follow in its run."""


class Emitted(msgspec.Struct, frozen=True):
    """What a producer has emitted of one run: START once, RUNNING while it lives, one end."""

    last: EventType | None = None
    at: int = 0
    """The time of the last event, in microseconds."""

    @property
    def over(self) -> bool:
        """Whether the terminal event has been decided."""
        return self.last in TERMINAL

    @property
    def open(self) -> bool:
        """Whether the run has started and not ended."""
        return self.last is not None and not self.over

    def allows(self, event_type: EventType) -> bool:
        """Whether this event may come next."""
        if self.last is None:
            return event_type is EventType.START
        if self.over:
            return event_type is EventType.OTHER
        return event_type is not EventType.START

    def emit(self, event_type: EventType, now: int) -> Emitted:
        """The run after one more event; raises TransitionError where that may not come next.

        Its time is later than that of any event before, though clocks may step back.
        """
        if not self.allows(event_type):
            before = self.last.value if self.last else "nothing"
            raise TransitionError(f"{event_type.value} cannot follow {before} in one run")
        last = self.last if event_type is EventType.OTHER else event_type
        return Emitted(last, max(now, self.at + 1))
