"""What was deleted: jobs in the systems that ran them, datasets that only they used, and things by hand."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.lifecycle import State
from headwater.server.store.database import within
from headwater.server.store.entities import STATUSES, decode_job

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.server.store.view import View

__all__ = ["deleted_by_hand", "deleted_jobs", "drawn_though_deleted", "left_behind"]

_REPORTED = (
    "SELECT j.id, j.state, r.status, r.updated FROM job j LEFT JOIN run r ON r.id = j.latest"
    " WHERE j.hidden = 0 AND j.id IN (SELECT entity FROM facet_change"
    " WHERE kind = 1 AND name = 'headwater_deleted')"
)


def deleted_by_hand(kind: int, entity: str, period: tuple[int, int]) -> str:
    """The condition of SQL that a person deleted something, in a period, and it is deleted still."""
    return (
        f"EXISTS (SELECT 1 FROM deletion x WHERE x.kind = {kind} AND x.entity = {entity}.id"  # noqa: S608
        f" AND x.until IS NULL AND x.since > {period[0]} AND x.since <= {period[1]})"
    )


def drawn_though_deleted(table: str, period: tuple[int, int]) -> str:
    """The condition that a row `t` was deleted by hand in a period, for what is drawn under its own name."""
    if table == "dataset":
        return deleted_by_hand(0, "t", period)
    # A task job that went with its parent has no name of its own.
    folded = "EXISTS (SELECT 1 FROM fold p WHERE p.job = t.id)"
    return f"({deleted_by_hand(1, 't', period)} AND NOT {folded})"


def deleted_jobs(view: View, at: int | None = None) -> dict[int, int]:
    """The jobs that are deleted now, or were at a moment, and since when; hidden ones are left out.

    A run that began later, or an edge of the job or of one of its parts, shows that it is there.
    """
    found: dict[int, int] = {}
    for job, state, status, updated in view.all(_REPORTED):
        times = [one for one in decode_job(bytes(state)).deletions if at is None or one <= at]
        if not times:
            continue
        alive = at is None and status is not None and STATUSES[status] is State.RUNNING
        if not (alive and updated > times[-1]):
            found[job] = times[-1]
    if not found:
        return found
    sql = "SELECT job, max(created) FROM run WHERE job IN ({in})"
    if at is not None:
        sql += f" AND created <= {at:d}"
    for job, began in within(view.connection, sql + " GROUP BY job", list(found)):
        if began > found[job]:
            del found[job]
    for job, _, _ in view.graph(at).of_jobs(list(found)):
        found.pop(job, None)
    return found


def left_behind(view: View, deleted: Collection[int], at: int | None = None) -> set[int]:
    """The datasets that deleted jobs read or wrote, and no job reads or writes now or at a moment.

    Those that somebody deleted by hand are left out.
    """
    if not deleted:
        return set()
    sql = "SELECT job FROM fold WHERE whole IN ({in})"
    jobs = {*deleted, *(row[0] for row in within(view.connection, sql, list(deleted)))}
    sql = (
        "SELECT DISTINCT d.root FROM edge e JOIN dataset d ON d.id = e.dataset"
        " JOIN dataset o ON o.id = d.root WHERE o.hidden = 0 AND e.job IN ({in})"
    )
    roots = {row[0] for row in within(view.connection, sql, list(jobs))}
    return roots - {root for _, root, _ in view.graph(at).of_datasets(roots)}
