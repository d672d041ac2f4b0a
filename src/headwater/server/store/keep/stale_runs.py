"""Ends the runs of which no event has come for too long."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING
from uuid import UUID

from headwater.server.store.write.commands import NoSuchError

if TYPE_CHECKING:
    from headwater.server.store.store import Store

__all__ = ["close_stale"]


def close_stale(store: Store, now: int, max_age: int | None = None) -> list[UUID]:
    """Close the runs that have missed three heartbeats, or passed an age that was asked for."""
    sql = "SELECT uuid, deadline FROM run WHERE deadline <= ?"
    silent = {bytes(uuid): end for uuid, end in store.connection.all(sql, (now,))}
    if max_age is not None:
        sql = "SELECT uuid, updated FROM run WHERE status = 1 AND updated <= ?"
        for uuid, updated in store.connection.all(sql, (now - max_age,)):
            silent.setdefault(bytes(uuid), updated + max_age)
    closed = []
    for uuid, end in silent.items():
        run = UUID(bytes=uuid)
        command = {"command": "run", "run": str(run), "state": "ABORT", "time": end}
        # Another server on the same database may have been quicker.
        with contextlib.suppress(NoSuchError):
            store.perform({**command, "inferred": True})
            closed.append(run)
    return closed
