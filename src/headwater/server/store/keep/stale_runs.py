"""Ends the runs of which no event has come for too long."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from uuid import UUID

from headwater.lineage.moments import SECOND
from headwater.server.store.write.commands import NoSuchError

if TYPE_CHECKING:
    from headwater.server.store.store import Store

__all__ = ["SilentRuns", "close_stale"]

AWAY, RETURN = 15 * SECOND, 30 * SECOND
"""After so long without a round, producers that wait between two attempts get so long to come back."""


class SilentRuns:
    """Closes runs round by round, and waits where producers had no time to report.

    They had none while no server looked after the store, whether it was down, could not reach the
    store, or was only about to take over. A server that restarts again and again closes nothing.
    """

    def __init__(self, max_age: int | None = None) -> None:
        self._max_age = max_age
        self._last = self._since = self._head = 0

    def interrupted(self) -> None:
        """Note that nothing could be reported, or that another server looked after the store."""
        self._last = 0

    def close(self, store: Store, now: int) -> list[UUID]:
        """Close what is silent; for half a minute after an interruption, only what reported since."""
        if not 0 <= now - self._last <= AWAY:
            self._since = now
            ((self._head,),) = store.connection.all("SELECT seq FROM head WHERE id = 1")
        reported_after = self._head if now - self._since < RETURN else None
        closed = close_stale(store, now, self._max_age, reported_after)
        self._last = now
        return closed


def close_stale(
    store: Store, now: int, max_age: int | None = None, reported_after: int | None = None
) -> list[UUID]:
    """Close the runs that have missed three heartbeats, or passed an age that was asked for.

    With `reported_after`, only those that reported after this record of the log.
    """
    sql = "SELECT id, uuid, deadline FROM run WHERE deadline <= ?"
    silent = {number: (uuid, end) for number, uuid, end in store.connection.all(sql, (now,))}
    if max_age is not None:
        sql = "SELECT id, uuid, updated FROM run WHERE status = 1 AND updated <= ?"
        for number, uuid, updated in store.connection.all(sql, (now - max_age,)):
            silent.setdefault(number, (uuid, updated + max_age))
    if silent and reported_after is not None:
        sql = "SELECT DISTINCT run FROM log WHERE seq > ? AND run IS NOT NULL"
        reported = {number for (number,) in store.connection.all(sql, (reported_after,))}
        silent = {number: one for number, one in silent.items() if number in reported}
    closed = []
    for uuid, end in silent.values():
        run = UUID(bytes=bytes(uuid))
        command = {"command": "run", "run": str(run), "state": "ABORT", "time": end}
        # Another server on the same database may have been quicker.
        with contextlib.suppress(NoSuchError):
            store.perform({**command, "inferred": True})
            closed.append(run)
    return closed
