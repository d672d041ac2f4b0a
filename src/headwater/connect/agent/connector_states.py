"""The connectors of one cluster, in memory and on disk, and the one way to change them.

Nothing is remembered before it is on disk: the events of a step and the state after it are one
transaction, so that a process killed at any instant goes on with the same runs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec

from headwater.connect.life.reasons import reason
from headwater.connect.life.state import Condition, dump, key_of, load
from headwater.connect.life.watched import WatchedConnector
from headwater.emit import OutboxChange

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.agent.problems import Problems
    from headwater.connect.life.state import TrackedConnector
    from headwater.connect.life.steps import Emission, Step
    from headwater.emit import Outbox

log = logging.getLogger(__name__)

STATUS = "connect-status/"


def is_finished(tracked: TrackedConnector) -> bool:
    """Whether nothing is left to do for a connector, so that it can be forgotten."""
    return tracked.condition is Condition.DELETED and not tracked.tasks_to_check


def _queue_of(emission: Emission) -> str:
    """What an event is in order with: a run, or a job without one."""
    return emission.tracked.run or f"{emission.tracked.key}.{emission.task}"


class ConnectorStore:
    """The connectors of one cluster."""

    def __init__(
        self,
        name: str,
        outbox: Outbox,
        problems: Problems,
        event: Callable[[Emission], bytes | None],
    ) -> None:
        self.name = name
        self.outbox = outbox
        self.problems = problems
        self._event = event
        self._problems_written: object = None
        self.stopped = False
        """Whether somebody else writes the cluster's problems now, or nobody."""
        self.watched: dict[str, WatchedConnector] = {}
        for key, value in outbox.state(key_of(name)).items():
            tracked = load(value)
            if tracked is None:
                log.warning(
                    "%s: ignoring its state, which another version wrote; its next event starts "
                    "a new run", key,
                )  # fmt: skip
            else:
                self.watched[tracked.name] = WatchedConnector(tracked)

    def commit(self, steps: list[Step]) -> int:
        """Write the events of some steps and the state after them; returns how many events."""
        changes = [(step, change) for step in steps if (change := self._change(step)) is not None]
        if not changes:
            return 0
        try:
            self.outbox.commit(change for _, change in changes)
        except Exception:
            # What is not on disk was not emitted: every connector is examined again.
            for watched in self.watched.values():
                watched.forget_answer()
                watched.forget_lineage()
            raise
        for step, _ in changes:
            self._remember(step)
        return sum(len(change.events) for _, change in changes)

    def _change(self, step: Step) -> OutboxChange | None:
        """What a step writes; None when an event cannot be built, so that it is tried again."""
        try:
            built = [(_queue_of(one), self._event(one)) for one in step.emissions]
            state = None if is_finished(step.tracked) else dump(step.tracked)
        except Exception as error:  # noqa: BLE001
            self.problems.add_fault(step.tracked.name, error)
            self.watched[step.tracked.name].forget_answer()
            return None
        events = [(queue, body) for queue, body in built if body is not None]
        return OutboxChange(step.tracked.key, state, events)

    def _remember(self, step: Step) -> None:
        after = step.tracked
        before = self.watched[after.name].tracked
        for one in step.emissions:
            if one.tracked.run:
                log.info(
                    "%s: connector %s: %s of run %s: %s",
                    self.name, after.name, one.type.value, one.tracked.run,
                    reason(before, after, one), extra={"run": one.tracked.run},
                )  # fmt: skip
        if is_finished(after):
            del self.watched[after.name]
            self.problems.forget(after.name)
            return
        self.watched[after.name].remember(after)

    def write_problems(self) -> None:
        """Store the problems for `headwater connect status`, when they change."""
        problems = self.problems.all()
        if problems != self._problems_written:
            with self.outbox.transaction() as transaction:
                if self.stopped:
                    return
                transaction.put(f"{STATUS}{self.name}", msgspec.json.encode(problems))
            self._problems_written = problems
