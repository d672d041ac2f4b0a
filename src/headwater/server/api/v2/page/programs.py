"""Programs: an application, and the jobs that it runs and that name it as their parent."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.server.api import describe
from headwater.server.store.entities import DELETED, OUTPUT
from headwater.server.store.planned_ends import is_stream
from headwater.server.store.read.parent_runs import jobs_naming, parent_runs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Job
    from headwater.server.store.view import View

__all__ = ["children", "parents", "working"]

NEAR = 500
"""Jobs that named one as their parent, of which the newest run is looked at."""
CHILDREN = 100
# As the graph folds actions (`web/src/graph/programs.ts`).
_READS = re.compile(
    r"(?:count|head|first|take|tail|show|isempty|is_empty|collect_limit)(?:$|\.)", re.IGNORECASE
)
_CREATES = re.compile(r"(?:execute_)?(?:create|replace)_(?!\w*as_select)")


def parents(view: View, jobs: Iterable[Job], at: int | None = None) -> dict[int, Job]:
    """The job whose run the newest run of each job names as its parent, where it is known."""
    runs = describe.latest_runs(view, jobs, at)
    above = parent_runs(view, {number: run.state for number, run in runs.items()})
    # In the place of a task job, the one that it is shown as.
    shown = view.jobs({run.job for run in above.values()})
    found = {number: shown.get(run.job) for number, run in above.items()}
    return {
        number: job
        for number, job in found.items()
        if job is not None and job.id != number and job.hidden != DELETED
    }


def children(view: View, parent: Job) -> list[Job]:
    """The jobs whose newest run names this job, and one of its runs, as its parent."""
    near = [job for job in jobs_naming(view, parent, NEAR) if job.id != parent.id]
    found = parents(view, near)
    mine = [job for job in near if job.id in found and found[job.id].id == parent.id]
    return sorted(mine, key=lambda job: job.name)[:CHILDREN]


def working(view: View, parent: Job, actions: list[Job]) -> list[Job]:
    """The actions of an application by which the graph draws it.

    What only makes a table, or only looks at one, is left out where the program does more than that.
    """
    edges = view.graph().of_jobs([job.id for job in actions])
    written = {job for job, _, way in edges if way == OUTPUT}
    reading = {job for job, _, way in edges if way != OUTPUT}

    def aside(job: Job) -> bool:
        if is_stream(job):
            return False
        does = job.name.removeprefix(f"{parent.name}.")
        only_reads = job.id not in written and _READS.match(does)
        return bool(only_reads or (job.id not in reading and _CREATES.match(does)))

    return [job for job in actions if not aside(job)] or actions
