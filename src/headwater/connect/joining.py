"""One run for a connector that reports itself: the one it has under way is the one we speak of.

Such a connector (Debezium) begins a run with each start of its task and ends it with the task. It
says nothing of a pause, calls a failure complete and a dead worker's run nothing at all. So the
server is asked which run it has under way, and the agent tells that run's life like any other's. A
run of our own begins only where the other has none: after a pause that its task slept through, for
a failure it took for an end, or when it never reports at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from headwater.connect.life import Said, Step, live, rename
from headwater.connect.pace import SECOND
from headwater.connect.state import Condition
from headwater.lineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.reader import Watched
    from headwater.connect.state import Tracked

    Ask = Callable[[str, str], list[str] | None]

# A task that was just begun reports itself within moments, or never.
PATIENCE = 15.0


class Joined(NamedTuple):
    """A connector with the run to speak of, how it is taken to be, and what to say first."""

    tracked: Tracked
    seen: Condition
    said: tuple[Said, ...] = ()


class Joiner:
    """Finds the run of a connector that another producer reports too."""

    def __init__(self, ask: Ask) -> None:
        self._ask = ask

    def step(
        self, watched: Watched, tracked: Tracked, seen: Condition, now: int,
        beat: bool = False, restarted: bool = False,
    ) -> Step:  # fmt: skip
        """The next step in a connector's life, in the run that it has under way itself."""
        derived = tracked.derived
        apart = derived is None or not derived.joined
        if watched.tracked.open and tracked.job != watched.tracked.job:
            watched.waiting = None if apart else now
            return rename(watched.tracked, tracked, seen if apart else Condition.UNSETTLED, now)
        if seen is Condition.RESTARTING and not apart and (tracked.theirs or not tracked.open):
            seen = Condition.UNSETTLED  # Connect's word is late: it may have begun anew already
        if apart or seen in (Condition.UNSETTLED, Condition.RESTARTING):
            watched.waiting = None
            return live(tracked, seen, now, beat=beat, restarted=restarted)
        joined = self._join(watched, tracked, seen, now)
        ours = restarted and not joined.tracked.theirs
        step = live(joined.tracked, joined.seen, now, beat=beat, restarted=ours)
        return Step(step.tracked, joined.said + step.said) if joined.said else step

    def _join(self, watched: Watched, tracked: Tracked, seen: Condition, now: int) -> Joined:
        derived = tracked.derived
        assert derived is not None
        since = watched.waiting or now
        found = join(
            tracked,
            seen,
            self._ask(derived.namespace, derived.job_name),
            now,
            patient=now - since < PATIENCE * SECOND,
        )
        watched.waiting = since if found.seen is not seen else None
        return found


def join(
    tracked: Tracked, seen: Condition, runs: list[str] | None, now: int, *, patient: bool
) -> Joined:
    """Choose the run to speak of among those under way, the newest first; None: nobody knows."""
    if runs is None and seen is Condition.RUNNING:
        # Its runs cannot be known: lineage goes to the job alone, until they can be.
        return Joined(replace(tracked, mute=tracked.mute or not tracked.open), seen)
    if tracked.mute and (runs is not None or seen is Condition.FAILED):
        tracked = replace(tracked, mute=False, said=None)
    if runs is None:
        return Joined(tracked, seen)
    # What was ended here may be under way still where the word of it has not come.
    runs = [run for run in runs if run != tracked.left]
    if not runs:
        if tracked.open and tracked.theirs:  # over, by the word of who began it
            tracked = replace(tracked, said=EventType.COMPLETE, theirs=False)
        slept = tracked.condition is Condition.PAUSED
        if seen is Condition.RUNNING and not tracked.open and patient and not slept:
            return Joined(tracked, Condition.UNSETTLED)
        return Joined(tracked, seen)
    newest = runs[0]
    if newest == tracked.run:
        return Joined(tracked, seen)
    said: tuple[Said, ...] = ()
    at = tracked.at
    if tracked.open and tracked.run in runs:  # its producer died, or began anew beside ours
        at = max(now, at + 1)
        ended = replace(tracked, said=EventType.ABORT, at=at)
        said = (Said(EventType.ABORT, ended, inferred=True),)
    adopted = replace(tracked, run=newest, said=EventType.RUNNING, at=at, told="", theirs=True)
    return Joined(adopted, seen, said)
