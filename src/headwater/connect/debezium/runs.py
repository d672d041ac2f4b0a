"""One run for a connector that Debezium reports, too: the one that Debezium has started.

Debezium begins a run with each start of its task and ends it with the task. It does not report a
pause, calls a failure COMPLETE, and leaves the run of a worker that died open. So the server is
asked which run Debezium has open, and the agent reports that run's life like any other. A run of
our own is started only where Debezium has none: after a pause (its task goes on), for a failure
before its first event, or when it never emits at all.

A lineage transform is treated alike. It begins its run with the first record, so until Connect
reports a topic in use the lineage is emitted for the job alone, for one heartbeat at most.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.connect.debezium.run_selection import (
    END_TIMEOUT,
    MISREPORTED,
    START_TIMEOUT,
    Observation,
    remember_ends,
    select_run,
    select_unknown,
    task_is_ending,
)
from headwater.connect.debezium.task_jobs import declare_task_jobs, mark_tasks_to_check
from headwater.connect.life.intervals import Intervals
from headwater.connect.life.state import Condition
from headwater.connect.life.steps import Step, next_step, rename_job
from headwater.connect.model import TRANSFORM
from headwater.lineage.moments import SECOND

if TYPE_CHECKING:
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.life.steps import Emission
    from headwater.connect.life.watched import WatchedConnector
    from headwater.connect.services.lineage_server import RunLookup, ServerRun

# Connectors whose runs are asked for in one poll; the others have their turn in the next ones.
LOOKUPS_PER_POLL = 150


class DebeziumRuns:
    """Makes the steps of connectors, in Debezium's own run where it has one."""

    def __init__(self, lookup: RunLookup, intervals: Intervals | None = None) -> None:
        self._lookup = lookup
        self._intervals = intervals or Intervals()
        self._poll_time = 0
        self._lookups_left = LOOKUPS_PER_POLL

    def step(
        self,
        watched: WatchedConnector,
        tracked: TrackedConnector,
        seen: Condition,
        now: int,
        *,
        heartbeat: bool = False,
        restarted: bool = False,
    ) -> Step:
        """The next step in the life of a connector's run."""
        derived = tracked.derived
        alone = derived is None or not derived.joined
        if watched.tracked.job not in (None, tracked.job):
            watched.await_debezium(None if alone else Condition.UNSETTLED, now)
            return rename_job(watched.tracked, tracked, seen if alone else Condition.UNSETTLED, now)
        may_be_debezium = not alone and (tracked.by_debezium or not tracked.open)
        if seen is Condition.RESTARTING and may_be_debezium:
            # Connect shows a restart late: Debezium may have started its new run already.
            seen = Condition.UNSETTLED
        if alone or seen in (Condition.UNSETTLED, Condition.RESTARTING):
            watched.await_debezium(None, now)
            declared: tuple[Emission, ...] = ()
            if tracked.status.planned:  # Debezium reports tasks before Connect shows them
                tracked, declared = declare_task_jobs(tracked, now, self._lookup)
            step = next_step(tracked, seen, now, heartbeat=heartbeat, restarted=restarted)
            return Step(step.tracked, declared + step.emissions)
        urgent = bool(heartbeat or watched.awaiting or seen is not tracked.condition)
        if not self._may_look_up(now, urgent):
            if urgent:
                watched.postpone(now)
            return Step(tracked)
        tracked, declared = declare_task_jobs(tracked, now, self._lookup)
        again = heartbeat or (watched.is_due_again(now) and seen is not Condition.RUNNING)
        step = self._joined(watched, tracked, seen, now, heartbeat, restarted)
        after = remember_ends(step.tracked, step.emissions)
        after = mark_tasks_to_check(watched.tracked, after, now, again)
        watched.schedule_task_check(after, now, END_TIMEOUT)
        return Step(after, declared + step.emissions)

    def _may_look_up(self, now: int, urgent: bool) -> bool:
        """Whether one more lookup is allowed in this poll; half of them are for what changed."""
        if now != self._poll_time:
            self._poll_time, self._lookups_left = now, LOOKUPS_PER_POLL
        if self._lookups_left <= (0 if urgent else LOOKUPS_PER_POLL // 2):
            return False
        self._lookups_left -= 1
        return True

    def _before_first_record(
        self, tracked: TrackedConnector, poll: Observation, runs: list[ServerRun]
    ) -> bool:
        """Whether a lineage transform, which reports with the first record, is still to begin."""
        derived = tracked.derived
        if derived is None or derived.joined != TRANSFORM or poll.seen is not Condition.RUNNING:
            return False
        if tracked.topics or any(run.live for run in runs):
            return False
        waited = poll.now - tracked.started if tracked.suppressed else 0
        return (
            tracked.suppressed or not tracked.open
        ) and waited < self._intervals.heartbeat * SECOND

    def _joined(
        self,
        watched: WatchedConnector,
        tracked: TrackedConnector,
        seen: Condition,
        now: int,
        heartbeat: bool,
        restarted: bool,
    ) -> Step:
        derived = tracked.derived
        assert derived is not None
        runs = self._lookup.runs_of(derived.job.namespace, derived.job.name)
        # The first task ran on while another failed, and need not start a new run.
        ran_on = tracked.condition is Condition.FAILED and not task_is_ending(watched.tracked)
        since = watched.observe(seen, now, ran_on)
        poll = Observation(
            seen,
            now,
            since,
            watched.created_after,
            self._lookup.may_answer_later,
            self._intervals.grace,
            END_TIMEOUT if watched.ran_on else START_TIMEOUT,
        )
        if runs is None or self._before_first_record(tracked, poll, runs):
            selected = select_unknown(tracked, poll)
        else:
            selected = select_run(tracked, poll, runs)
        watched.await_debezium(seen if selected.seen is not seen else None, now)
        watched.poll_again(now, seen, self._intervals)
        if selected.complete:
            return Step(selected.tracked, selected.emissions)
        step = next_step(
            selected.tracked,
            selected.seen,
            since if selected.seen in MISREPORTED else now,
            heartbeat=heartbeat,
            restarted=restarted and not selected.tracked.by_debezium,
        )
        return Step(step.tracked, selected.emissions + step.emissions)
