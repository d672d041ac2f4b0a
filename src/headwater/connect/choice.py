"""Which run to speak of, among those that a server shows of a job that another reports too.

Pure. What the other called complete and was a failure or a stop is told as that at the moment of
its own word: of two ends at one moment the graver stands, and none that comes late is earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from headwater.connect.life import ENDS, Said
from headwater.connect.pace import SECOND
from headwater.connect.state import TERMINAL, Condition, Ended, fingerprint
from headwater.lineage.events import EventType

if TYPE_CHECKING:
    from headwater.connect.runs import Run
    from headwater.connect.state import Tracked

# A task that was just begun reports itself within moments, or never.
PATIENCE = 15.0
# The word of an end may be on its way when Connect shows it already.
SETTLES = 5.0
# Ends that the other takes for complete.
GRAVE = (Condition.FAILED, Condition.STOPPED)
COMPLETED = "COMPLETED"
# So many ends are remembered beside those of the parts.
KEPT = 20
# After these the last run is over for good, however the next begins.
_OVER = (Condition.PAUSED, Condition.STOPPED, Condition.DELETED, Condition.LOST)


class Look(NamedTuple):
    """What is known when a connector is looked at; times are microseconds."""

    seen: Condition
    now: int
    since: int
    """When it was first seen so and waited for; now, when it was not."""
    birth: int = 0
    """Since when it can be there; 0 when it may be older than what is remembered."""
    hope: bool = False
    """Whether those who cannot say now which runs there are may say later."""
    grace: float = 0.0
    patience: float = PATIENCE
    """How long its word of a run that it begins is waited for."""

    def within(self, seconds: float) -> bool:
        """Whether it was first seen so less than that ago."""
        return self.now - self.since < seconds * SECOND


class Choice(NamedTuple):
    """A connector with the run to speak of, how it is taken to be, and what to say first."""

    tracked: Tracked
    seen: Condition
    said: tuple[Said, ...] = ()
    over: bool = False
    """Whether that is all there is to say."""


def guess(tracked: Tracked, look: Look) -> Choice:
    """What to speak of while nobody knows which runs there are."""
    if look.seen is Condition.RUNNING:
        # Lineage goes to the job alone, until they can be known.
        return Choice(replace(tracked, mute=tracked.mute or not tracked.open), look.seen)
    if look.seen is not Condition.FAILED:
        return Choice(tracked, look.seen)
    if tracked.open and not tracked.mute:
        waits = look.within(SETTLES)
    else:  # one of its own may be there to speak of, once somebody answers
        news = tracked.condition is not Condition.FAILED
        waits = news and look.hope and look.within(look.grace)
    if waits:
        return Choice(tracked, Condition.UNSETTLED)
    return Choice(_loud(tracked) if tracked.mute else tracked, look.seen)


def choose(tracked: Tracked, look: Look, runs: list[Run]) -> Choice:
    """Choose among the runs that a server shows, the newest first."""
    if tracked.mute:
        tracked = _loud(tracked)
    said = _corrected(tracked, runs)
    # What was ended here may be under way still where the word of it has not come.
    known = [run for run in runs if run.id not in tracked.ended]
    alive = [run for run in known if run.live]
    fresh = _fresh(tracked, look, runs) if look.seen in GRAVE else []
    target = (*fresh, *alive, None)[0]
    if target is None:
        return _none(tracked, look, said)
    theirs = tracked.theirs or target.id != tracked.run
    # Its word of an end is on the way, or it has begun anew and Connect's word of that is.
    turning = ending(tracked) or tracked.condition is look.seen
    if target.live and look.seen in GRAVE and theirs and turning and look.within(SETTLES):
        return Choice(tracked, Condition.UNSETTLED, said)
    others = {run.id for run in alive} - {target.id}
    if tracked.open and not tracked.theirs and tracked.run != target.id:
        others.add(tracked.run)  # the server need not have heard of it
    for run in sorted(others):  # their producer died, or began anew beside ours
        at = max(look.now, tracked.at + 1)
        ended = replace(tracked, run=run, said=EventType.ABORT, at=at)
        tracked = replace(tracked, at=at)
        said = (*said, Said(EventType.ABORT, ended, inferred=True))
    if not (target.id == tracked.run and tracked.open):
        tracked = replace(tracked, run=target.id, said=EventType.RUNNING, told="", theirs=True)
    if target.live or target.ended is None:
        return Choice(tracked, look.seen, said)
    return _over(tracked, look, fresh, said)


def _loud(tracked: Tracked) -> Tracked:
    """A connector whose run may be spoken of from now on; it was in none that anyone heard of."""
    return replace(tracked, mute=False, said=None, run="")


def _fresh(tracked: Tracked, look: Look, runs: list[Run]) -> list[Run]:
    """Runs whose end can be the one that is seen: the one spoken of and those begun since."""
    known = [run for run in runs if run.id not in tracked.ended]
    ids = [run.id for run in runs]
    if not tracked.run:
        return [run for run in known if run.live or run.started >= look.birth]
    if tracked.run not in ids:
        return [run for run in known if run.live]
    since = set(ids[: ids.index(tracked.run)])
    if tracked.open or tracked.condition not in _OVER:
        since.add(tracked.run)
    return [run for run in known if run.id in since]


def _none(tracked: Tracked, look: Look, said: tuple[Said, ...]) -> Choice:
    """No run of its own is there to speak of; its word of one may be on the way."""
    if tracked.open and tracked.theirs and look.seen not in GRAVE:  # over, by its own word
        tracked = replace(tracked, said=EventType.COMPLETE, theirs=False)
    waits = False
    if look.seen is Condition.RUNNING:
        slept = tracked.condition is Condition.PAUSED
        waits = not tracked.open and not slept and look.within(look.patience)
    elif look.seen is Condition.FAILED:
        news = tracked.condition is not Condition.FAILED
        waits = not tracked.open and news and look.within(SETTLES)
    return Choice(tracked, Condition.UNSETTLED if waits else look.seen, said)


def ending(tracked: Tracked) -> bool:
    """Whether the task that reports the run has come to its end, by Connect's word."""
    first = [task.state for task in tracked.status.tasks if task.id == 0]
    return tracked.status.state != "RUNNING" or first != ["RUNNING"]


def _over(tracked: Tracked, look: Look, fresh: list[Run], said: tuple[Said, ...]) -> Choice:
    """It has ended its runs itself, and called the last complete that was not."""
    kind, newest = ENDS[look.seen], fresh[0]
    since = fresh[1:] if tracked.condition is look.seen else []  # it failed, and failed again
    for run in (newest, *(run for run in since if run.state == COMPLETED)):
        if run.ended is not None and (kind is EventType.FAIL or run.state == COMPLETED):
            at = replace(tracked, run=run.id, said=kind, at=run.ended)
            said = (*said, Said(kind, at))
    after = replace(
        tracked, said=kind, at=max(tracked.at, newest.ended or 0), told=fingerprint(tracked),
        condition=look.seen,
    )  # fmt: skip
    return Choice(after, look.seen, said, over=True)


def _corrected(tracked: Tracked, runs: list[Run]) -> tuple[Said, ...]:
    """Say ends again that were said of runs which an earlier word, come late, calls complete."""
    said: tuple[Said, ...] = ()
    for run in runs:
        end = tracked.ended.get(run.id)
        if end is None or run.ended is None or run.state != COMPLETED:
            continue
        if end.type is not EventType.COMPLETE and run.ended < end.at:
            at = replace(tracked, run=run.id, said=end.type, at=run.ended)
            said = (*said, Said(end.type, at))
    return said


def remember(tracked: Tracked, said: tuple[Said, ...]) -> Tracked:
    """A connector that knows which ends were said, so that none is said twice."""
    ends = {
        one.tracked.run: Ended(one.type, 0 if one.inferred else one.tracked.at)
        for one in said
        if one.type in TERMINAL
    }
    if not ends:
        return tracked
    kept = {run: end for run, end in tracked.ended.items() if run not in ends} | ends
    most = KEPT + tracked.parts
    return replace(tracked, ended=dict(list(kept.items())[-most:]))
