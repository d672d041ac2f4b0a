"""Programs: an application, and the jobs that it runs and that name it as their parent."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.api.v2.page import describe
from headwater.server.store.entities import DELETED
from headwater.server.store.read.parent_runs import jobs_naming, parent_runs

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Job
    from headwater.server.store.view import View

__all__ = ["children", "parents"]

NEAR = 500
"""Jobs that named one as their parent, of which the newest run is looked at."""
CHILDREN = 100


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
