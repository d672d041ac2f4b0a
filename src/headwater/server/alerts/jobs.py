"""The jobs of a store between two evaluations: only those that changed are read again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from headwater.insight import JobProblem, JobStatus, trouble_of
from headwater.lineage.graph import NodeKind
from headwater.lineage.lifecycle import State
from headwater.server.store.entities import unslot
from headwater.server.store.read.graph import failing
from headwater.server.store.read.observed import ASSERTIONS
from headwater.server.store.read.parent_runs import parent_runs
from headwater.server.store.view import uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.store.entities import Node, Run
    from headwater.server.store.view import View

__all__ = ["FailedRun", "MonitoredJob", "MonitoredJobs", "Trouble"]

Trouble = tuple[JobProblem, int]
ENDS = {State.FAILED: JobProblem.FAILED, State.ABORTED: JobProblem.ABORTED}
SOME = 200
"""Jobs that are read at once: other threads get their turn in between."""
ENOUGH = 8
"""As many runs as are read: trouble may have begun before the first of them."""


class FailedRun(NamedTuple):
    """A run that failed or was aborted."""

    run: str
    end: int
    problem: JobProblem
    error: int = 0
    """Its facet `errorMessage`, by number."""
    inferred: bool = False


@dataclass
class MonitoredJob:
    """A job as it was last read."""

    stamp: tuple[object, ...]
    node: Node
    namespace: str
    name: str
    updated: int
    status: JobStatus
    run: str = ""
    parent: str = ""
    inferred: bool = False
    error: int = 0
    retried: Trouble | None = None
    """What went wrong before the attempt that is running now."""
    began: int | None = None
    """Since when it has been in trouble, where that is longer ago than its last runs reach."""
    failures: tuple[FailedRun, ...] = ()
    checked: tuple[int, ...] = ()

    def trouble(self, now: int) -> Trouble | None:
        """What is wrong with it and since when; a batch that is tried again is not well yet."""
        found = trouble_of(self.status, now) or self.retried
        if found is not None and self.began is not None:
            return found[0], min(found[1], self.began)
        return found


class MonitoredJobs:
    """All jobs that are shown and not deleted where they ran, by id."""

    def __init__(self) -> None:
        self.all: dict[int, MonitoredJob] = {}

    def refresh(self, view: View, now: int) -> list[MonitoredJob]:
        """Read what changed since the last time; the jobs that did."""
        sql = (
            "SELECT j.id, n.name, j.name, j.updated, j.latest, r.status, r.updated FROM job j"
            " JOIN namespace n ON n.id = j.namespace LEFT JOIN run r ON r.id = j.latest"
            " WHERE j.hidden = 0"
        )
        deleted = view.deleted_jobs()
        rows = {row[0]: row for row in view.all(sql) if row[0] not in deleted}
        for gone in self.all.keys() - rows.keys():
            del self.all[gone]
        stale = [n for n, row in rows.items() if n not in self.all or self.all[n].stamp != row[1:]]
        changed: list[MonitoredJob] = []
        for start in range(0, len(stale), SOME):
            some = stale[start : start + SOME]
            graph = view.graph()
            nodes = {number: (NodeKind.JOB.value, number) for number in some}
            statuses = graph.statuses(list(nodes.values()))
            runs = graph.recent(some)
            above = parent_runs(view, {n: last[0].state for n, last in runs.items() if last})
            for number in some:
                if nodes[number] not in statuses:
                    continue
                row, status = rows[number], statuses[nodes[number]]
                job = MonitoredJob(row[1:], nodes[number], row[1], row[2], row[3], status)
                _fill(job, runs[number], self.all.get(number), now)
                if number in above:
                    job.parent = uuid_text(above[number].uuid)
                self.all[number] = job
                changed.append(job)
        return changed

    def in_trouble(self, now: int) -> Iterator[tuple[MonitoredJob, Trouble]]:
        """The jobs with which something is wrong, planned or not."""
        for job in self.all.values():
            if (found := job.trouble(now)) is not None:
                yield job, found


def _fill(job: MonitoredJob, runs: list[Run], before: MonitoredJob | None, now: int) -> None:
    if not runs:
        return
    newest, status = runs[0], job.status
    job.run = uuid_text(newest.uuid)
    job.parent = newest.state.parent or ""
    job.inferred = newest.state.life.is_inferred
    job.failures = tuple(
        FailedRun(
            uuid_text(run.uuid),
            life.end or 0,
            ENDS[life.state],
            run.state.facets.get("errorMessage", (0,))[0],
            life.is_inferred,
        )
        for run in runs
        if (life := run.state.life).state in ENDS
    )
    job.checked = tuple(
        {
            unslot(key)[0]
            for run in runs
            for key, use in run.state.io.items()
            if ASSERTIONS in use.facets
        }
    )
    lives = [run.state.life for run in runs]
    failed = next((run for run in runs if run.state.life.state in ENDS), None)
    held = failed.state.facets.get("errorMessage") if failed else None
    job.error = held[0] if held else 0
    if not status.streaming and not status.state.finished:
        # By their ends: a run that completed after the failure made it good, whenever it began.
        ended = sorted((x for x in lives if x.state.finished), key=lambda x: -(x.end or 0))
        if wrong := failing(ended, streaming=False):
            job.retried = ENDS[ended[0].state], min(life.end or 0 for life in wrong)
    if before is not None and len(failing(lives, streaming=status.streaming)) >= ENOUGH:
        known = before.trouble(now)
        job.began = known[1] if known else None
