"""The jobs that Debezium has for each task of a connector, merged into the connector's one job.

The first task's job is the connector's. Every further one is declared as a part of it, so that a
server shows one job. The runs of those jobs are Debezium's, until it leaves one open.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headwater.connect.debezium.naming import task_job
from headwater.connect.debezium.run_selection import remember_ends
from headwater.connect.life.state import Condition
from headwater.connect.life.steps import END_EVENTS, Emission, Step
from headwater.connect.model import DEBEZIUM, TRANSFORM
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.life.watched import WatchedConnector
    from headwater.connect.model import Derived
    from headwater.connect.services.lineage_server import RunLookup, ServerRun

# Task jobs that are asked for in one poll, so that a thousand connectors stay cheap.
LOOKUPS_PER_POLL = 50
# A check that no server could answer for so long is given up.
CHECK_TIMEOUT = 24 * 3600 * SECOND


def declare_task_jobs(
    tracked: TrackedConnector, now: int, lookup: RunLookup
) -> tuple[TrackedConnector, tuple[Emission, ...]]:
    """Declare every further task's job a part, once and when the configuration changes."""
    if tracked.derived is None or tracked.derived.joined != DEBEZIUM:
        return tracked, ()
    status = tracked.status
    count = max([tracked.task_jobs, *status.planned, *(task.id for task in status.tasks)])
    if not count and not status.tasks and not tracked.tasks_declared:
        known = _earlier_task_jobs(tracked, lookup)
        if known is None:  # no server answers now
            return tracked, ()
        count = known
    mark = f"{tracked.config_digest}/{count}"
    if mark == tracked.tasks_declared:
        return tracked, ()
    after = replace(tracked, task_jobs=count, tasks_declared=mark)
    job_only = replace(after, run="", emitted_at=now)
    emissions = (Emission(EventType.OTHER, job_only, task=task) for task in range(1, count + 1))
    return after, tuple(emissions)


def _earlier_task_jobs(tracked: TrackedConnector, lookup: RunLookup) -> int | None:
    """How many task jobs a server knows of a connector that was never seen with tasks."""
    derived, count = tracked.derived, 0
    while derived and count < LOOKUPS_PER_POLL:
        runs = lookup.runs_of(derived.job.namespace, task_job(derived.job.name, count + 1))
        if not runs:
            return None if runs is None else count
        count += 1
    return count


def mark_tasks_to_check(
    before: TrackedConnector, after: TrackedConnector, now: int, again: bool
) -> TrackedConnector:
    """Mark the tasks that may have left a run open: `again`, or after a change."""
    turned = after.condition is not before.condition or after.run != before.run
    moved = after.status.workers != before.status.workers or after.task_jobs != before.task_jobs
    if not (turned or moved or again):
        return after
    if after.condition is Condition.DELETED:  # the first task's job is checked once more, too
        after = replace(after, emitted_at=max(after.emitted_at, now))
        return replace(after, tasks_to_check=tuple(range(after.task_jobs + 1)))
    return replace(after, tasks_to_check=tuple(range(1, after.task_jobs + 1)))


class TaskRunCloser:
    """Ends runs that were left open in the jobs of further tasks."""

    def __init__(self, lookup: RunLookup) -> None:
        self._lookup = lookup

    def steps(self, connectors: Iterable[WatchedConnector], now: int) -> list[Step]:
        """Check some of the tasks that are marked, the longest waiting first."""
        left, steps = LOOKUPS_PER_POLL, []
        due = [one for one in connectors if one.has_tasks_to_check(now)]
        for watched in sorted(due, key=lambda one: one.check_tasks_at):
            some = watched.tracked.tasks_to_check[:left]
            step = self._check(watched.tracked, some, now)
            if step is None:  # no server answers now
                break
            steps.append(step)
            left -= len(some)
            if left <= 0:
                break
        return steps

    def _check(self, tracked: TrackedConnector, tasks: tuple[int, ...], now: int) -> Step | None:
        derived = tracked.derived
        emissions: list[Emission] = []
        for task in tasks:
            job = _reported_job(derived, task) if derived else ""
            runs = self._lookup.runs_of(derived.job.namespace, job) if derived and job else []
            if runs is None:
                if self._lookup.may_answer_later and now - tracked.emitted_at < CHECK_TIMEOUT:
                    return None
                return Step(replace(tracked, tasks_to_check=()))
            emissions += end_open_runs(tracked, task, runs, now)
        after = replace(tracked, tasks_to_check=tracked.tasks_to_check[len(tasks) :])
        return Step(remember_ends(after, tuple(emissions)), tuple(emissions))


def _reported_job(derived: Derived, task: int) -> str:
    """The job under which a task's runs are reported; a transform has one for all tasks."""
    if derived.joined == TRANSFORM:
        return derived.job.name
    return task_job(derived.job.name, task) if derived.joined else ""


def end_open_runs(
    tracked: TrackedConnector, task: int, runs: list[ServerRun], now: int
) -> list[Emission]:
    """The ends of those runs of a task's job that no other producer will end; newest runs first."""
    open_runs = [run.id for run in runs if run.live and run.id not in tracked.ended]
    kind, inferred = END_EVENTS.get(tracked.condition, EventType.ABORT), False
    if tracked.condition is Condition.LOST:
        inferred = True
    elif tracked.condition not in END_EVENTS or tracked.condition is Condition.RESTARTING:
        exists = tracked.status.has_task(task)
        # The newest is the task's own; older ones were left by a worker that died.
        open_runs, inferred = open_runs[1:] if exists else open_runs, exists
        kind = EventType.ABORT if exists else EventType.COMPLETE
    return [
        Emission(
            kind,
            replace(tracked, run=run, last_event=kind, emitted_at=now, suppressed=False),
            inferred,
            task,
        )
        for run in open_runs
    ]
