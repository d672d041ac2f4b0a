"""The parts of a job that another producer reports: it has a job of its own for each task.

The first task's job is the whole, the connector's; every further one is said to be a part of it, so
that a server shows one. A part's runs are the other producer's, until it leaves one under way.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headwater.connect.choice import remember
from headwater.connect.life import ENDS, Said, Step
from headwater.connect.pace import SECOND
from headwater.connect.reported import part
from headwater.connect.state import Condition
from headwater.lineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.connect.reader import Watched
    from headwater.connect.runs import Asked, Run
    from headwater.connect.state import Tracked

# So many are asked for in one poll, so that a thousand connectors stay cheap.
MOST = 50
# What nobody could say for so long is not waited for any more.
LONGEST = 24 * 3600 * SECOND


def fold(tracked: Tracked, now: int, asked: Asked) -> tuple[Tracked, tuple[Said, ...]]:
    """Say of every further task's job that it is a part, once and when the configuration changes."""
    parts = max([tracked.parts, *(task.id for task in tracked.status.tasks)])
    if not parts and not tracked.status.tasks and not tracked.folded:
        known = _before(tracked, asked)
        if known is None:  # nobody answers now
            return tracked, ()
        parts = known
    mark = f"{tracked.config}/{parts}"
    if mark == tracked.folded:
        return tracked, ()
    after = replace(tracked, parts=parts, folded=mark)
    told = replace(after, run="", at=now)
    said = (Said(EventType.OTHER, told, part=number) for number in range(1, parts + 1))
    return after, tuple(said)


def _before(tracked: Tracked, asked: Asked) -> int | None:
    """How many parts one had that has no tasks now and was never seen with any."""
    whole, count = tracked.derived, 0
    while whole and count < MOST:
        runs = asked.of(whole.namespace, part(whole.job_name, count + 1))
        if not runs:
            return None if runs is None else count
        count += 1
    return count


def doubt(before: Tracked, after: Tracked, now: int, again: bool) -> Tracked:
    """A connector whose parts are to be looked at, where one may have left a run under way."""
    turned = after.condition is not before.condition or after.run != before.run
    moved = after.status.workers != before.status.workers or after.parts != before.parts
    if not (turned or moved or again):
        return after
    if after.condition is Condition.DELETED:  # looked at once more itself, then forgotten
        after = replace(after, at=max(after.at, now))
        return replace(after, unsure=tuple(range(after.parts + 1)))
    return replace(after, unsure=tuple(range(1, after.parts + 1)))


class Closer:
    """Ends runs that were left under way in the parts of a job."""

    def __init__(self, asked: Asked) -> None:
        self._asked = asked

    def steps(self, connectors: Iterable[Watched], now: int) -> list[Step]:
        """Look at some of the parts that are to be looked at."""
        room, steps = MOST, []
        due = [w for w in connectors if w.tracked.unsure and now >= w.parts and not _turning(w)]
        for watched in sorted(due, key=lambda w: w.parts):  # who waits longest comes first
            some = watched.tracked.unsure[:room]
            step = self._close(watched.tracked, some, now)
            if step is None:  # nobody answers now
                break
            steps.append(step)
            room -= len(some)
            if room <= 0:
                break
        return steps

    def _close(self, tracked: Tracked, some: tuple[int, ...], now: int) -> Step | None:
        derived = tracked.derived
        said: list[Said] = []
        for number in some:
            job = part(derived.job_name, number) if derived and derived.joined else ""
            runs = self._asked.of(derived.namespace, job) if derived and job else []
            if runs is None:
                if self._asked.hope and now - tracked.at < LONGEST:
                    return None
                return Step(replace(tracked, unsure=()))
            said += ends(tracked, number, runs, now)
        after = remember(replace(tracked, unsure=tracked.unsure[len(some) :]), tuple(said))
        return Step(after, tuple(said))


def _turning(watched: Watched) -> bool:
    """Whether it is about to be something else, so that its parts are better left alone."""
    gone = watched.tracked.condition in (Condition.DELETED, Condition.LOST)
    return watched.pending and not gone


def ends(tracked: Tracked, number: int, runs: list[Run], now: int) -> list[Said]:
    """The ends of those runs of a part that nobody else will end; the newest are first."""
    alive = [run.id for run in runs if run.live and run.id not in tracked.ended]
    kind, inferred = ENDS.get(tracked.condition, EventType.ABORT), False
    if tracked.condition is Condition.LOST:
        inferred = True
    elif tracked.condition not in ENDS or tracked.condition is Condition.RESTARTING:
        there = any(task.id == number for task in tracked.status.tasks)
        # The newest is the task's; what is older was left by a worker that died.
        alive, inferred = alive[1:] if there else alive, there
        kind = EventType.ABORT if there else EventType.COMPLETE
    return [
        Said(kind, replace(tracked, run=run, said=kind, at=now, mute=False), inferred, number)
        for run in alive
    ]
