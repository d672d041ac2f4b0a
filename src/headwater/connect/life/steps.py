"""The rules of a connector's run: which events follow from the condition that a poll shows.

Pure. What may follow what in a run, and at which time, is `headwater.lineage.lifecycle`'s.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from headwater.connect.life.state import Condition, TrackedConnector, fingerprint
from headwater.emit.run_emitter import new_run_id
from headwater.lineage.model import End
from headwater.lineage.openlineage.events import EventType, from_micros

if TYPE_CHECKING:
    from collections.abc import Callable

# The event that ends a run under way, by the condition of its connector.
END_EVENTS = {
    Condition.FAILED: EventType.FAIL,
    Condition.PAUSED: EventType.COMPLETE,
    Condition.DELETED: EventType.COMPLETE,
    Condition.STOPPED: EventType.ABORT,
    Condition.RESTARTING: EventType.ABORT,
    Condition.LOST: EventType.ABORT,
}


class Emission(msgspec.Struct, frozen=True):
    """One event to emit: its type, and the connector as it is then."""

    type: EventType
    tracked: TrackedConnector
    inferred: bool = False
    task: int = 0
    """The further task whose own job the event is about; without a run, it declares that job."""
    deleted: bool = False
    """Whether it reports that the job itself is no more, and nothing of a run."""
    end: End | None = None
    """Why the run is over, where somebody is known to have ordered it."""


class Step(msgspec.Struct, frozen=True):
    """What becomes of a connector, and the events that report it."""

    tracked: TrackedConnector
    emissions: tuple[Emission, ...] = ()


def new_run(now: int) -> str:
    """A run id, UUIDv7, of this moment."""
    return new_run_id(from_micros(now))


def next_step(
    tracked: TrackedConnector,
    seen: Condition,
    now: int,
    *,
    heartbeat: bool = False,
    restarted: bool = False,
    make_run: Callable[[int], str] = new_run,
) -> Step:
    """The next step in the life of a connector's run.

    `tracked` holds the configuration, tasks and lineage of this poll. `heartbeat`: one is due;
    `restarted`: a restart was ordered since the last step.
    """
    if seen is Condition.UNSETTLED or (seen is Condition.LOST and not tracked.open):
        return Step(tracked)
    run = _ConnectorRun(tracked, now, make_run)
    if seen is Condition.RUNNING:
        if tracked.open and restarted:
            run.emit(EventType.ABORT)
        if not run.tracked.open:
            run.start()
        elif heartbeat or fingerprint(tracked) != tracked.fingerprint:
            run.emit(EventType.RUNNING)
    elif seen is Condition.FAILED:
        if not tracked.open and (restarted or tracked.condition is not Condition.FAILED):
            run.start()
        if run.tracked.open:
            run.emit(EventType.FAIL)
    elif tracked.open:
        run.emit(END_EVENTS[seen], inferred=seen is Condition.LOST)
    if seen is Condition.DELETED and tracked.condition is not seen:
        run.report_deletion()
    after = run.tracked
    if after.condition is not seen:
        after = replace(after, condition=seen)
    return Step(after, tuple(run.emissions))


def rename_job(
    before: TrackedConnector,
    after: TrackedConnector,
    seen: Condition,
    now: int,
    *,
    make_run: Callable[[int], str] = new_run,
) -> Step:
    """The step of a connector whose job has another name now: one run ends, another begins."""
    ended = next_step(before, Condition.DELETED, now)
    fresh = replace(
        after,
        run="",
        last_event=None,
        emitted_at=ended.tracked.emitted_at,
        by_debezium=False,
        suppressed=False,
        ended={},
        task_jobs=0,
        tasks_declared="",
        tasks_to_check=(),
    )
    begun = next_step(fresh, seen, now, make_run=make_run)
    return Step(begun.tracked, ended.emissions + begun.emissions)


class _ConnectorRun:
    """A connector's run while one step is made."""

    def __init__(self, tracked: TrackedConnector, now: int, make_run: Callable[[int], str]) -> None:
        self.tracked = tracked
        self.emissions: list[Emission] = []
        self._now = now
        self._make_run = make_run

    def start(self) -> None:
        self.tracked = replace(
            self.tracked, run=self._make_run(self._now), last_event=None, by_debezium=False
        )
        self.emit(EventType.START)

    def emit(self, event_type: EventType, *, inferred: bool = False) -> None:
        # The time goes on across runs, so that any reader sorts a connector's events as we do.
        after = self.tracked.emitted.emit(event_type, self._now)
        self.tracked = replace(
            self.tracked,
            last_event=after.last,
            emitted_at=after.at,
            fingerprint=fingerprint(self.tracked),
        )
        self.emissions.append(Emission(event_type, self.tracked, inferred))

    def report_deletion(self) -> None:
        """Report the jobs as deleted, where any event of theirs was emitted: nobody reads there now."""
        if not (self.tracked.run or self.tracked.suppressed):
            return
        at = max(self._now, self.tracked.emitted_at)
        job_only = replace(self.tracked, run="", emitted_at=at)
        self.emissions += [
            Emission(EventType.OTHER, job_only, task=task, deleted=True)
            for task in range(self.tracked.task_jobs + 1)
        ]
