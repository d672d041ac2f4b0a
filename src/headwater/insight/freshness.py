"""Is a dataset up to date, and if it is not: since when, and because of which job?"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Literal, NamedTuple, Protocol

from headwater.insight.neighbourhood import is_job
from headwater.lineage.graph import Direction, Graph, MemoryGraph, N, walk
from headwater.lineage.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping

    from headwater.lineage.graph import Walk

__all__ = ["Cause", "Freshness", "JobGraph", "JobProblem", "JobStatus", "freshness", "trouble_of"]

Verdict = Literal["live", "fresh", "stale", "unknown"]
WriteSource = Literal["flow", "run", "heartbeat"]
"""What the last write of a dataset is known from: records that flowed, the end of a complete run, or
only that a job which writes it reported that it runs."""
Trouble = tuple["JobProblem", int]
"""What is wrong with a job, and since when."""
MINUTE = 60_000_000
PATIENCE = 2
"""A job is late once it has been silent for twice its usual interval and a minute."""


class JobStatus(NamedTuple):
    """The status of a job: its newest run, and how often it usually writes (in microseconds)."""

    state: State
    since: int | None = None
    last: int | None = None
    usual: int | None = None
    streaming: bool = False
    planned: JobProblem | None = None
    """How somebody ended the newest run on purpose, where its producer reports that."""
    by: str = ""
    """Who ended the newest run, where that is known."""
    complete: int | None = None
    """When the newest complete run of a batch ended, which is when it had written."""


class JobProblem(str, Enum):
    """Why a job delivers nothing."""

    FAILED = "failed"
    ABORTED = "aborted"
    ENDED = "ended"
    LATE = "late"
    PAUSED = "paused"
    STOPPED = "stopped"

    @property
    def planned(self) -> bool:
        """Whether somebody wanted it so."""
        return self in (JobProblem.PAUSED, JobProblem.STOPPED)


@dataclass(frozen=True)
class Cause(Generic[N]):
    """A job upstream that delivers nothing; `root` if nothing further up explains it."""

    job: N
    trouble: JobProblem
    since: int
    distance: int
    root: bool
    by: str = ""
    """Who ended its run, where that is known."""

    @property
    def rank(self) -> tuple[bool, int, int]:
        """What orders causes: roots first, then the longest and the nearest trouble."""
        return not self.root, self.since, self.distance


@dataclass(frozen=True)
class Freshness(Generic[N]):
    """The verdict on a dataset: `live`, `fresh`, `stale` or `unknown`."""

    verdict: Verdict
    since: int | None = None
    last: int | None = None
    usual: int | None = None
    due: int | None = None
    causes: tuple[Cause[N], ...] = ()
    cut: bool = False
    source: WriteSource | None = None
    """What `last` is known from."""


class JobGraph(Graph[N], Protocol[N]):
    """A graph that knows the status of its jobs."""

    def statuses(self, jobs: Collection[N]) -> Mapping[N, JobStatus]:
        """The status of these jobs, as far as it is known."""
        ...

    def last_records(self, dataset: N, jobs: Collection[N]) -> Mapping[N, int | None]:
        """When each of these jobs last wrote a record to a dataset, None where its flow had none.

        Only jobs whose flow into the dataset is known.
        """
        ...


def trouble_of(status: JobStatus, now: int) -> Trouble | None:
    """What is wrong with a job and since when, if anything is."""
    since = status.since if status.since is not None else status.last
    if status.state is State.FAILED:
        return JobProblem.FAILED, since or 0
    if status.planned is not None and status.state.finished:
        return status.planned, since or 0
    if status.state is State.ABORTED:
        return JobProblem.ABORTED, since or 0
    if status.state is State.COMPLETED:
        if status.streaming:
            return JobProblem.ENDED, since or 0
        due = _due(status)
        if due is not None and now > due:
            return JobProblem.LATE, due
    return None


def _due(status: JobStatus) -> int | None:
    if status.usual is None or status.last is None:
        return None
    return status.last + PATIENCE * status.usual + MINUTE


def freshness(
    estate: JobGraph[N], dataset: N, now: int, *, depth: int = 20, limit: int = 500
) -> Freshness[N]:
    """Whether a dataset is up to date now, judged by every job that its data passes through.

    A dataset is stale since the first moment at which one of the jobs before it, however far,
    stopped delivering; a batch job counts as late only against its own habit.
    """
    # One step further than asked: a node there means that the verdict is not complete.
    found = walk(estate, [dataset], Direction.UPSTREAM, depth=depth + 1, limit=limit)
    near = {node for node, far in found.distance.items() if far <= depth}
    cut = found.cut or len(near) < len(found.distance)
    jobs = [node for node in found.distance if is_job(node) and node in near]
    known = estate.statuses(jobs)
    wrong = {
        job: trouble
        for job in jobs
        if job in known and (trouble := trouble_of(known[job], now)) is not None
    }
    before = MemoryGraph((e for e in found.edges if near.issuperset(e)), estate.pairs(jobs))
    causes = [
        Cause(
            job, kind, since, found.distance[job], not _explained(job, before, found, wrong),
            known[job].by,
        )
        for job, (kind, since) in wrong.items()
    ]  # fmt: skip
    causes.sort(key=lambda cause: (*cause.rank, cause.job))
    near_jobs = [node for node in jobs if found.distance[node] == 1 and node in known]
    writers = [known[node] for node in near_jobs]
    flowed = estate.last_records(dataset, near_jobs)
    writes = [write for node in near_jobs for write in _writes(node, known[node], flowed)]
    last, source = max(writes, default=(None, None))
    usual = min((s.usual for s in writers if s.usual is not None), default=None)
    due = min((d for s in writers if (d := _due(s)) is not None), default=None)
    since = min((cause.since for cause in causes), default=None)
    verdict: Verdict
    if causes:
        verdict = "stale"
    elif any(status.state is State.RUNNING for status in writers):
        verdict = "live"
    else:
        verdict = "fresh" if due is not None else "unknown"
    return Freshness(verdict, since, last, usual, due, tuple(causes), cut, source)


def _writes(
    job: N, status: JobStatus, flowed: Mapping[N, int | None]
) -> Iterator[tuple[int, WriteSource]]:
    """When a job last wrote a dataset, and what that is known from.

    A heartbeat says that a job runs, not that it writes: it counts only while the job's flow into the
    dataset is not known.
    """
    if status.complete is not None:
        yield status.complete, "run"
    if job not in flowed:
        if status.last is not None and status.last != status.complete:
            yield status.last, "heartbeat"
    elif (last := flowed[job]) is not None:
        yield last, "flow"


def _explained(job: N, before: MemoryGraph[N], found: Walk[N], wrong: Mapping[N, Trouble]) -> bool:
    """Whether a job further up was in trouble before this one, or as soon.

    Of the jobs of a ring that broke as soon, each is further up than the others: the nearest to what
    was asked for explains the rest.
    """
    since = wrong[job][1]
    far = _upstream(before, job)
    others = [one for one in far if one in wrong and one != job and wrong[one][1] <= since]
    if not others or any(wrong[one][1] < since for one in others):
        return bool(others)
    # By edges alone, so that no way around a ring is missed where pairs are known.
    edges = MemoryGraph(found.edges)
    rank = found.distance[job], job
    return any(
        (found.distance[one], one) < rank or job not in _upstream(edges, one) for one in others
    )


def _upstream(graph: Graph[N], node: N) -> dict[N, int]:
    return walk(graph, [node], Direction.UPSTREAM, depth=1_000_000, limit=1_000_000).distance
