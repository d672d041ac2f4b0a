"""One run for a connector that reports itself: the one it has under way is the one we speak of.

Such a connector (Debezium) begins a run with each start of its task and ends it with the task. It
says nothing of a pause, calls a failure complete and a dead worker's run nothing at all. So the
server is asked which run it has under way, and the agent tells that run's life like any other's. A
run of our own begins only where the other has none: after a pause that its task slept through, for
a failure before its first word, or when it never reports at all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.choice import (
    GRAVE,
    PATIENCE,
    SETTLES,
    Look,
    choose,
    ending,
    guess,
    remember,
)
from headwater.connect.life import Step, live, rename
from headwater.connect.pace import SECOND, Times
from headwater.connect.parts import doubt, fold
from headwater.connect.state import Condition

if TYPE_CHECKING:
    from headwater.connect.reader import Watched
    from headwater.connect.runs import Asked
    from headwater.connect.state import Tracked

# So many are asked for in one poll; the others have their turn in the next ones.
MOST = 150


class Joiner:
    """Tells the life of a connector that another producer reports too."""

    def __init__(self, asked: Asked, times: Times | None = None) -> None:
        self._asked = asked
        self._times = times or Times()
        self._polled = 0
        self._room = MOST

    def step(
        self, watched: Watched, tracked: Tracked, seen: Condition, now: int,
        beat: bool = False, restarted: bool = False,
    ) -> Step:  # fmt: skip
        """The next step in a connector's life, in the run that it has under way itself."""
        derived = tracked.derived
        apart = derived is None or not derived.joined
        if watched.tracked.job not in (None, tracked.job):
            watched.wait(None if apart else Condition.UNSETTLED, now)
            return rename(watched.tracked, tracked, seen if apart else Condition.UNSETTLED, now)
        if seen is Condition.RESTARTING and not apart and (tracked.theirs or not tracked.open):
            seen = Condition.UNSETTLED  # Connect's word is late: it may have begun anew already
        if apart or seen in (Condition.UNSETTLED, Condition.RESTARTING):
            watched.wait(None, now)
            return live(tracked, seen, now, beat=beat, restarted=restarted)
        urgent = bool(beat or watched.waiting or seen is not tracked.condition)
        if not self._has_room(now, urgent):
            if urgent:
                watched.waiting = watched.waiting or (Condition.UNSETTLED, now)
            return Step(tracked)
        tracked, folded = fold(tracked, now, self._asked)
        again = beat or (watched.late(now) and seen is not Condition.RUNNING)
        step = self._joined(watched, tracked, seen, now, beat, restarted)
        after = doubt(watched.tracked, remember(step.tracked, step.said), now, again)
        turned = after.condition is not watched.tracked.condition
        if after.unsure and (turned or not watched.tracked.unsure):
            watched.parts = now + int(SETTLES * SECOND)
        return Step(after, folded + step.said)

    def _has_room(self, now: int, urgent: bool) -> bool:
        """Whether it may be asked for now; half of the room is for news."""
        if now != self._polled:
            self._polled, self._room = now, MOST
        if self._room <= (0 if urgent else MOST // 2):
            return False
        self._room -= 1
        return True

    def _joined(
        self, watched: Watched, tracked: Tracked, seen: Condition, now: int, beat: bool,
        restarted: bool,
    ) -> Step:  # fmt: skip
        derived = tracked.derived
        assert derived is not None
        runs = self._asked.of(derived.namespace, derived.job_name)
        if not (watched.waiting and watched.waiting[0] is seen):
            # The first task ran on while another failed, and need not begin anew.
            watched.ran_on = tracked.condition is Condition.FAILED and not ending(watched.tracked)
        look = Look(
            seen, now, watched.waited(seen, now), watched.birth, self._asked.hope,
            self._times.grace, SETTLES if watched.ran_on else PATIENCE,
        )  # fmt: skip
        found = guess(tracked, look) if runs is None else choose(tracked, look, runs)
        watched.wait(seen if found.seen is not seen else None, now)
        watched.look_later(now, seen, self._times)
        if found.over:
            return Step(found.tracked, found.said)
        moment = look.since if found.seen in GRAVE else now
        ours = restarted and not found.tracked.theirs
        step = live(found.tracked, found.seen, moment, beat=beat, restarted=ours)
        return Step(step.tracked, found.said + step.said) if found.said else step
