"""The life of a connector's runs: what to say next, given what was said and what is seen.

Pure: the design's table of the life of a run as one function, `live`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from openlineage.client.uuid import generate_new_uuid

from headwater.connect.state import Condition, Tracked, fingerprint
from headwater.lineage.events import EventType, from_micros

if TYPE_CHECKING:
    from collections.abc import Callable

ENDS = {
    Condition.FAILED: EventType.FAIL,
    Condition.PAUSED: EventType.COMPLETE,
    Condition.DELETED: EventType.COMPLETE,
    Condition.STOPPED: EventType.ABORT,
    Condition.RESTARTING: EventType.ABORT,
    Condition.LOST: EventType.ABORT,
}


class Said(msgspec.Struct, frozen=True):
    """One event to send: its type, and the connector as it is then."""

    type: EventType
    tracked: Tracked
    inferred: bool = False
    part: int = 0
    """The task whose own job is meant, which is a part of the connector's; without a run, that."""


class Step(msgspec.Struct, frozen=True):
    """What becomes of a connector, and the events that say so."""

    tracked: Tracked
    said: tuple[Said, ...] = ()


def new_run(now: int) -> str:
    """A run id, UUIDv7, of this moment."""
    return str(generate_new_uuid(from_micros(now)))


def live(
    tracked: Tracked,
    seen: Condition,
    now: int,
    *,
    beat: bool = False,
    restarted: bool = False,
    make_run: Callable[[int], str] = new_run,
) -> Step:
    """The next step in a connector's life.

    `tracked` holds what is seen now of configuration, tasks and lineage. `beat` says that a
    heartbeat is due, `restarted` that a restart was ordered since the last step.
    """
    if seen is Condition.UNSETTLED or (seen is Condition.LOST and not tracked.open):
        return Step(tracked)
    story = _Story(tracked, now, make_run)
    if seen is Condition.RUNNING:
        if tracked.open and restarted:
            story.say(EventType.ABORT)
        if not story.at.open:
            story.start()
        elif beat or fingerprint(tracked) != tracked.told:
            story.say(EventType.RUNNING)
    elif seen is Condition.FAILED:
        if not tracked.open and (restarted or tracked.condition is not Condition.FAILED):
            story.start()
        if story.at.open:
            story.say(EventType.FAIL)
    elif tracked.open:
        story.say(ENDS[seen], inferred=seen is Condition.LOST)
    after = story.at
    if after.condition is not seen:
        after = msgspec.structs.replace(after, condition=seen)
    return Step(after, tuple(story.said))


def rename(
    before: Tracked,
    after: Tracked,
    seen: Condition,
    now: int,
    *,
    make_run: Callable[[int], str] = new_run,
) -> Step:
    """The step of a connector whose job has another name now: one run ends, another begins."""
    ended = live(before, Condition.DELETED, now)
    fresh = msgspec.structs.replace(
        after,
        run="",
        said=None,
        at=ended.tracked.at,
        theirs=False,
        mute=False,
        ended={},
        parts=0,
        folded="",
        unsure=(),
    )
    begun = live(fresh, seen, now, make_run=make_run)
    return Step(begun.tracked, ended.said + begun.said)


class _Story:
    def __init__(self, tracked: Tracked, now: int, make_run: Callable[[int], str]) -> None:
        self.at = tracked
        self.now = now
        self.make_run = make_run
        self.said: list[Said] = []

    def start(self) -> None:
        self.at = msgspec.structs.replace(
            self.at, run=self.make_run(self.now), said=None, theirs=False
        )
        self.say(EventType.START)

    def say(self, event_type: EventType, *, inferred: bool = False) -> None:
        # Events of one connector never share a moment, so that any reader sorts them as we do.
        moment = max(self.now, self.at.at + 1)
        self.at = msgspec.structs.replace(
            self.at, said=event_type, at=moment, told=fingerprint(self.at)
        )
        self.said.append(Said(event_type, self.at, inferred))
