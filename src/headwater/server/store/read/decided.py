"""Which runs decided about the states of jobs at a moment in the past."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.server.store.deciding_run import decided_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Job, Run
    from headwater.server.store.view import View

__all__ = ["decided_runs"]

OVERLAPPING = 8
"""Runs of a job that may be under way at once at a moment in the past."""
DECLARED = 1_000
"""How far back a run is looked for among the declarations of a job."""
_BEGUN = (
    "SELECT id, created, ended FROM run WHERE job = ? AND created <= ?"
    " ORDER BY created DESC, id DESC LIMIT ?"
)


def decided_runs(view: View, jobs: Iterable[Job], at: int) -> dict[int, Run]:
    """The run of each job that decided about its state at a moment."""
    wanted = list(jobs)
    overlapping: dict[int, set[int]] = {}
    for job in wanted:
        rows = _begun(view, job.id, at)
        # Those that ended before the newest began have no say.
        some = {number for number, _, ended in rows if ended is None or ended >= rows[0][1]}
        overlapping[job.id] = some | {row[0] for row in rows[:1]}
    runs = view.runs(number for some in overlapping.values() for number in some)
    found = (
        decided_at(job, (runs[n] for n in overlapping[job.id] if n in runs), at) for job in wanted
    )
    return {run.job: run for run in found if run is not None}


def _begun(view: View, job: int, at: int) -> list[tuple[Any, ...]]:
    """The last runs of a job that had begun at a moment (id, begin, end), without declarations."""
    found: list[tuple[Any, ...]] = []
    for limit in (OVERLAPPING, DECLARED):
        rows = view.all(_BEGUN, (job, at, limit))
        # A declaration is kept as a run that ended when it began.
        at_once = view.runs(number for number, began, ended in rows if began == ended)
        found = [row for row in rows if row[0] not in at_once or not at_once[row[0]].state.static]
        if found or len(rows) < limit:
            break
    return found[:OVERLAPPING]
