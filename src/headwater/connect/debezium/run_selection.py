"""Selects the run to report for a connector, among the runs that Debezium reported of its job.

Pure. Debezium calls a failed or stopped run COMPLETE. Its end is emitted again as FAIL or ABORT at
the very time of Debezium's own event: of two ends with one time a server takes the graver, and no
event that arrives late can be earlier.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from msgspec.structs import replace

from headwater.connect.life.state import Condition, EmittedEnd, fingerprint
from headwater.connect.life.steps import END_EVENTS, Emission
from headwater.lineage.lifecycle import TERMINAL
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.services.lineage_server import ServerRun

# Debezium emits START within moments of its task's start, or never.
START_TIMEOUT = 15.0
# Connect may show an end while Debezium's own event about it is still on its way.
END_TIMEOUT = 5.0
# Debezium emits START before it connects, and Connect shows the task's last failure until the task
# has started: for as long as its database takes to answer.
RESTART_TIMEOUT = 60.0
# Conditions in which Debezium emits COMPLETE although the run failed or was stopped.
MISREPORTED = (Condition.FAILED, Condition.STOPPED)
COMPLETED = "COMPLETED"
# How many emitted ends are remembered, beside one for each task job.
ENDS_KEPT = 20
# After these the last run is over for good, however the next begins.
_FINAL = (Condition.PAUSED, Condition.STOPPED, Condition.DELETED, Condition.LOST)


class Observation(NamedTuple):
    """What one poll shows of a connector; times are microseconds."""

    seen: Condition
    now: int
    since: int
    """When this condition was first seen while waiting for Debezium's event; else now."""
    created_after: int = 0
    """The connector did not exist before this time; 0 where that is not known."""
    may_answer_later: bool = False
    """Whether servers that cannot list runs now may do so later."""
    grace: float = 0.0
    start_timeout: float = START_TIMEOUT
    """How long to wait for Debezium's event about a run that it starts, in seconds."""

    def within(self, seconds: float) -> bool:
        """Whether this condition was first seen less than that ago."""
        return self.now - self.since < seconds * SECOND


class Selection(NamedTuple):
    """A connector in the run to report, the condition to report, and events to emit before."""

    tracked: TrackedConnector
    seen: Condition
    emissions: tuple[Emission, ...] = ()
    complete: bool = False
    """Whether there is nothing to emit beside these."""


def select_unknown(tracked: TrackedConnector, poll: Observation) -> Selection:
    """What to report while no server can list the runs of the job."""
    if poll.seen is Condition.RUNNING:
        # Lineage is emitted for the job alone until the run is known.
        suppressed = tracked.suppressed or not tracked.open
        return Selection(replace(tracked, suppressed=suppressed), poll.seen)
    if poll.seen is not Condition.FAILED:
        return Selection(tracked, poll.seen)
    if tracked.open and not tracked.suppressed:
        waits = poll.within(END_TIMEOUT)
    else:  # Debezium may have a run that failed, which a server can name once it answers
        is_new = tracked.condition is not Condition.FAILED
        waits = is_new and poll.may_answer_later and poll.within(poll.grace)
    if waits:
        return Selection(tracked, Condition.UNSETTLED)
    return Selection(_unsuppressed(tracked) if tracked.suppressed else tracked, poll.seen)


def select_run(tracked: TrackedConnector, poll: Observation, runs: list[ServerRun]) -> Selection:
    """Select among the runs that a server lists, the newest first."""
    if tracked.suppressed:
        tracked = _unsuppressed(tracked)
    emissions = _corrected_ends(tracked, runs)
    # A run that was ended here is still live on a server that our event has not reached.
    live = [run for run in runs if run.id not in tracked.ended and run.live]
    candidates = _possibly_ended(tracked, poll, runs) if poll.seen in MISREPORTED else []
    target = (*candidates, *live, None)[0]
    if target is None:
        return _select_none(tracked, poll, emissions)
    by_debezium = tracked.by_debezium or target.id != tracked.run
    # Debezium's event about the end is on its way; or it has restarted, which Connect shows late.
    ending, reported = task_is_ending(tracked), tracked.condition is poll.seen
    timeout = RESTART_TIMEOUT if ending and reported and not tracked.open else END_TIMEOUT
    misreported = target.live and poll.seen in MISREPORTED
    if misreported and by_debezium and (ending or reported) and poll.within(timeout):
        return Selection(tracked, Condition.UNSETTLED, emissions)
    others = {run.id for run in live} - {target.id}
    if tracked.open and not tracked.by_debezium and tracked.run != target.id:
        others.add(tracked.run)  # our own; the server may not have received its START
    for run in sorted(others):  # their task died, or Debezium restarted beside our run
        at = max(poll.now, tracked.emitted_at + 1)
        ended = replace(tracked, run=run, last_event=EventType.ABORT, emitted_at=at)
        tracked = replace(tracked, emitted_at=at)
        emissions = (*emissions, Emission(EventType.ABORT, ended, inferred=True))
    if not (target.id == tracked.run and tracked.open):
        tracked = replace(
            tracked, run=target.id, last_event=EventType.RUNNING, fingerprint="", by_debezium=True
        )
    if target.live or target.ended is None:
        return Selection(tracked, poll.seen, emissions)
    return _select_ended(tracked, poll, candidates, emissions)


def _unsuppressed(tracked: TrackedConnector) -> TrackedConnector:
    """Allow emitting for this connector; no earlier run was ever emitted."""
    return replace(tracked, suppressed=False, last_event=None, run="")


def _possibly_ended(
    tracked: TrackedConnector, poll: Observation, runs: list[ServerRun]
) -> list[ServerRun]:
    """Runs whose end can be the one that Connect shows: the tracked one and those begun since."""
    open_here = [run for run in runs if run.id not in tracked.ended]
    ids = [run.id for run in runs]
    if not tracked.run:
        return [run for run in open_here if run.live or run.started >= poll.created_after]
    if tracked.run not in ids:
        return [run for run in open_here if run.live]
    since = set(ids[: ids.index(tracked.run)])
    if tracked.open or tracked.condition not in _FINAL:
        since.add(tracked.run)
    return [run for run in open_here if run.id in since]


def _select_none(
    tracked: TrackedConnector, poll: Observation, emissions: tuple[Emission, ...]
) -> Selection:
    """Debezium has no run to report; its event about one may be on its way."""
    if tracked.open and tracked.by_debezium and poll.seen not in MISREPORTED:
        # Debezium has emitted the end itself.
        tracked = replace(tracked, last_event=EventType.COMPLETE, by_debezium=False)
    waits = False
    if poll.seen is Condition.RUNNING:
        resumed = tracked.condition is Condition.PAUSED
        waits = not tracked.open and not resumed and poll.within(poll.start_timeout)
    elif poll.seen is Condition.FAILED:
        is_new = tracked.condition is not Condition.FAILED
        waits = not tracked.open and is_new and poll.within(END_TIMEOUT)
    return Selection(tracked, Condition.UNSETTLED if waits else poll.seen, emissions)


def task_is_ending(tracked: TrackedConnector) -> bool:
    """Whether the first task, which reports the connector's run, does not run any more."""
    first = [task.state for task in tracked.status.tasks if task.id == 0]
    return tracked.status.state != "RUNNING" or first != ["RUNNING"]


def _select_ended(
    tracked: TrackedConnector,
    poll: Observation,
    candidates: list[ServerRun],
    emissions: tuple[Emission, ...],
) -> Selection:
    """Emit the true end of runs that Debezium ended as COMPLETE although they were not."""
    kind, newest = END_EVENTS[poll.seen], candidates[0]
    failed_again = candidates[1:] if tracked.condition is poll.seen else []
    for run in (newest, *(run for run in failed_again if run.state == COMPLETED)):
        if run.ended is not None and (kind is EventType.FAIL or run.state == COMPLETED):
            at = replace(tracked, run=run.id, last_event=kind, emitted_at=run.ended)
            emissions = (*emissions, Emission(kind, at))
    after = replace(
        tracked,
        last_event=kind,
        emitted_at=max(tracked.emitted_at, newest.ended or 0),
        fingerprint=fingerprint(tracked),
        condition=poll.seen,
    )
    return Selection(after, poll.seen, emissions, complete=True)


def _corrected_ends(tracked: TrackedConnector, runs: list[ServerRun]) -> tuple[Emission, ...]:
    """Re-emit the end of runs that Debezium reported COMPLETE after we had already ended them.

    Its event is older than ours, so it would win.
    """
    emissions: tuple[Emission, ...] = ()
    for run in runs:
        end = tracked.ended.get(run.id)
        if end is None or run.ended is None or run.state != COMPLETED:
            continue
        if end.type is not EventType.COMPLETE and run.ended < end.at:
            at = replace(tracked, run=run.id, last_event=end.type, emitted_at=run.ended)
            emissions = (*emissions, Emission(end.type, at))
    return emissions


def remember_ends(tracked: TrackedConnector, emissions: tuple[Emission, ...]) -> TrackedConnector:
    """Record the ends among these events, so that none is emitted twice."""
    ends = {
        one.tracked.run: EmittedEnd(one.type, 0 if one.inferred else one.tracked.emitted_at)
        for one in emissions
        if one.type in TERMINAL
    }
    if not ends:
        return tracked
    kept = {run: end for run, end in tracked.ended.items() if run not in ends} | ends
    limit = ENDS_KEPT + tracked.task_jobs
    return replace(tracked, ended=dict(list(kept.items())[-limit:]))
