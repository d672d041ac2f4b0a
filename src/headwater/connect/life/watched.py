"""A connector in the agent's memory: its stored state, and what decides when it is examined."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headwater.connect.life.state import Condition, bare, condition
from headwater.lineage.moments import SECOND

if TYPE_CHECKING:
    from headwater.connect.derive.refresh import Derivation
    from headwater.connect.life.intervals import Intervals
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.model import ConnectorStatus

# A connector that has no tasks for so long has no work to divide, and runs all the same.
NO_TASKS_TIMEOUT = 15.0


class WatchedConnector:
    """One connector between polls; every change of it is a method here.

    A poll's answer is examined only if it differs from the last one examined, or if something is
    pending: a state that should pass, a move between workers, an event of Debezium's own.
    """

    def __init__(self, tracked: TrackedConnector, created_after: int = 0) -> None:
        self.tracked = tracked
        self.created_after = created_after
        """The connector did not exist before this time (microseconds); 0: not known."""
        self.lineage: Derivation | None = None
        self.refresh_at = 0.0
        """When topics and schemas are asked for again at the latest, in seconds."""
        self.refreshed_at = 0.0
        """When they were last asked for, in seconds."""
        self.awaiting: tuple[Condition, int] | None = None
        """The condition, and since when, in which Debezium's own event is awaited."""
        self.ran_on = False
        """Whether the first task went on while the connector counted as failed."""
        self.check_tasks_at = 0
        self._answer = b""
        self._unsettled_since: int | None = None
        self._again_at: int | None = None
        self._again_after = 0.0
        self._moving = False

    # What a poll shows

    def needs_examining(self, answer: bytes, now: int) -> bool:
        """Whether an answer, by its hash, has to be examined."""
        pending = self.is_pending or self.is_due_again(now)
        return pending or self._answer != answer

    def examine(self, answer: bytes) -> None:
        """An answer is examined now; after a new one the next examination comes soon."""
        if self._answer != answer:
            self._again_after = 0.0

    def examined(self, answer: bytes, emitted: bool) -> None:
        """The answer has been examined, and led to events or not."""
        self._answer = answer
        self._moving = self._moving and not emitted

    def forget_answer(self) -> None:
        """Examine the next poll's answer, even if it is the same."""
        self._answer = b""

    def remember(self, tracked: TrackedConnector) -> None:
        """Its state is on disk now; stack traces, which can be long, are not kept in memory."""
        self.tracked = replace(tracked, status=bare(tracked.status))
        if tracked.condition in (Condition.LOST, Condition.DELETED):
            self.forget_answer()  # when it is back, its answer may be the same as before

    # Its lineage

    def asked_for_lineage(self, at: float, wait: float) -> None:
        """Topics and schemas were asked for, and are again after a wait (seconds) at the latest."""
        self.refreshed_at, self.refresh_at = at, at + wait

    def derived(self, lineage: Derivation) -> None:
        """Its lineage was derived."""
        self.lineage = lineage

    def forget_lineage(self) -> None:
        """Derive the lineage again with the next examination."""
        self.lineage = None

    # How a status is taken

    def settled(self, status: ConnectorStatus, now: int, grace: float) -> Condition:
        """The condition; one that should pass and does not becomes LOST after the grace time."""
        seen = condition(status)
        # Connect shows a new connector as running before it has divided its work into tasks.
        new = seen is Condition.RUNNING and not status.tasks and not self.tracked.open
        if seen is not Condition.UNSETTLED and not new:
            self._unsettled_since = None
            return seen
        if self._unsettled_since is None:
            self._unsettled_since = now
        waited = now - self._unsettled_since
        if new:
            return seen if waited >= NO_TASKS_TIMEOUT * SECOND else Condition.UNSETTLED
        return Condition.LOST if waited >= grace * SECOND else seen

    def finished_moving(self, tracked: TrackedConnector, seen: Condition) -> bool:
        """Whether tasks have moved to other workers than was reported, and now stay there."""
        moves = tracked.status.workers != self.tracked.status.workers
        done = self._moving and not moves and seen is Condition.RUNNING
        self._moving = self.tracked.open and (moves or self._moving) and not done
        return done

    @property
    def is_pending(self) -> bool:
        """Whether it is to be examined even if the answer stays the same."""
        return self._moving or self._unsettled_since is not None or self.awaiting is not None

    # Waiting for Debezium

    def observe(self, seen: Condition, now: int, ran_on: bool) -> int:
        """Note a condition; since when it has been awaited so: now, if it has not."""
        if not (self.awaiting and self.awaiting[0] is seen):
            self.ran_on = ran_on
        return self._awaited_since(seen, now)

    def await_debezium(self, seen: Condition | None, now: int) -> None:
        """Keep waiting for Debezium's own event about this condition, or stop waiting."""
        self.awaiting = None if seen is None else (seen, self._awaited_since(seen, now))
        self._again_at = None

    def postpone(self, now: int) -> None:
        """Examine it in one of the next polls; this one has asked enough of the server."""
        self.awaiting = self.awaiting or (Condition.UNSETTLED, now)

    def _awaited_since(self, seen: Condition, now: int) -> int:
        return self.awaiting[1] if self.awaiting and self.awaiting[0] is seen else now

    def poll_again(self, now: int, seen: Condition, intervals: Intervals) -> None:
        """Examine it again though nothing changes: soon at first, then less and less often."""
        before = 0.0 if seen is not self.tracked.condition else self._again_after
        self._again_after = min(max(2 * before, intervals.poll), intervals.heartbeat)
        if seen is not Condition.RUNNING or self._again_after < intervals.heartbeat:
            self._again_at = now + int(self._again_after * SECOND)

    def is_due_again(self, now: int) -> bool:
        """Whether it is time to examine it again though nothing changed."""
        return self._again_at is not None and now >= self._again_at

    # Jobs of further tasks

    def schedule_task_check(self, after: TrackedConnector, now: int, delay: float) -> None:
        """Check its tasks' runs after a delay, if they are newly marked or its condition changed."""
        turned = after.condition is not self.tracked.condition
        if after.tasks_to_check and (turned or not self.tracked.tasks_to_check):
            self.check_tasks_at = now + int(delay * SECOND)

    def has_tasks_to_check(self, now: int) -> bool:
        """Whether tasks' runs are to be checked now; not while its condition is about to change."""
        if not self.tracked.tasks_to_check or now < self.check_tasks_at:
            return False
        gone = self.tracked.condition in (Condition.DELETED, Condition.LOST)
        return gone or not self.is_pending
