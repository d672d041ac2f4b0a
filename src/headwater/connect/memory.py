"""What an agent knows of its connectors, in memory and on disk, and the one way to change it.

Nothing is remembered before it is on disk: a step's events and the state after it are one
transaction, so that a process killed at any instant goes on with the same runs.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from headwater.connect.reader import Watched
from headwater.connect.state import Condition, bare, dump, key_of, load

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.life import Said, Step
    from headwater.connect.state import Tracked
    from headwater.connect.trouble import Troubles
    from headwater.emit import Outbox

log = logging.getLogger(__name__)

STATUS = "connect-status/"


def gone(tracked: Tracked) -> bool:
    """Whether nothing is left to do for a connector, so that it can be forgotten."""
    return tracked.condition is Condition.DELETED and not tracked.unsure


def _order(said: Said) -> str:
    """Under which events are sent in order: a run, or a job without one."""
    return said.tracked.run or f"{said.tracked.key}.{said.part}"


class Memory:
    """The connectors of one cluster."""

    def __init__(
        self,
        name: str,
        outbox: Outbox,
        troubles: Troubles,
        event: Callable[[Said], bytes | None],
    ) -> None:
        self.name = name
        self.outbox = outbox
        self.troubles = troubles
        self._event = event
        self._told: object = None
        self.watched: dict[str, Watched] = {}
        for key, value in outbox.state(key_of(name)).items():
            tracked = load(value)
            if tracked is None:
                log.warning("%s: state of an unknown form is left out", key)
            else:
                self.watched[tracked.name] = Watched(tracked)

    def commit(self, steps: list[Step]) -> int:
        """Write the events of some steps and the state after them; says how many events."""
        worded = [(step, bodies) for step in steps if (bodies := self._word(step)) is not None]
        if not worded:
            return 0
        try:
            with self.outbox.transaction() as transaction:
                for step, bodies in worded:
                    for run, body in bodies:
                        transaction.append(run, body)
                    if gone(step.tracked):
                        transaction.remove(step.tracked.key)
                    else:
                        transaction.put(step.tracked.key, dump(step.tracked))
        except Exception:
            # What is not on disk was not seen: everything is looked at anew.
            for watched in self.watched.values():
                watched.forget()
                watched.lineage = None
            raise
        for step, _ in worded:
            self._remember(step)
        return sum(len(bodies) for _, bodies in worded)

    def _word(self, step: Step) -> list[tuple[str, bytes]] | None:
        """The events of a step; None when they cannot be written, so that it is tried again."""
        try:
            bodies = [(_order(said), self._event(said)) for said in step.said]
        except Exception as error:  # noqa: BLE001
            self.troubles.fault(step.tracked.name, error)
            self.watched[step.tracked.name].forget()
            return None
        return [(run, body) for run, body in bodies if body is not None]

    def _remember(self, step: Step) -> None:
        after = step.tracked
        for said in step.said:
            if said.tracked.run:
                log.info("%s %s %s", said.type.value, after.name, said.tracked.run)
        if gone(after):
            del self.watched[after.name]
            self.troubles.forget(after.name)
            return
        watched = self.watched[after.name]
        watched.tracked = replace(after, status=bare(after.status))
        if after.condition in (Condition.LOST, Condition.DELETED):
            watched.forget()  # back again, it may look as it did before

    def tell(self) -> None:
        """Leave what is wrong where `headwater connect status` finds it, when it changes."""
        status = self.troubles.all()
        if status != self._told:
            with self.outbox.transaction() as transaction:
                transaction.put(f"{STATUS}{self.name}", msgspec.json.encode(status))
            self._told = status
