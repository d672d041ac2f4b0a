"""Is a dataset up to date, and if it is not: since when, and because of which job?"""

from __future__ import annotations

from collections import defaultdict
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from headwater.lineage.graph import Direction, NodeKind, walk
from headwater.lineage.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Mapping

    from headwater.lineage.graph import Graph, Node

__all__ = ["Cause", "Freshness", "Standing", "Trouble", "freshness"]

MINUTE = 60_000_000
PATIENCE = 2
"""A job is late once it has been silent for twice its usual interval and a minute."""


class Standing(NamedTuple):
    """How a job stands: its newest run, and how often it usually writes (in microseconds)."""

    state: State
    since: int | None = None
    last: int | None = None
    usual: int | None = None
    streaming: bool = False


class Trouble(str, Enum):
    """Why a job delivers nothing."""

    FAILED = "failed"
    ABORTED = "aborted"
    ENDED = "ended"
    LATE = "late"


class Cause(NamedTuple):
    """A job upstream that delivers nothing; `root` if nothing further up explains it."""

    job: Node
    trouble: Trouble
    since: int
    distance: int
    root: bool


class Freshness(NamedTuple):
    """The verdict on a dataset: `live`, `fresh`, `stale` or `unknown`."""

    verdict: str
    since: int | None = None
    last: int | None = None
    due: int | None = None
    causes: tuple[Cause, ...] = ()
    cut: bool = False


def trouble_of(standing: Standing, now: int) -> tuple[Trouble, int] | None:
    """What is wrong with a job and since when, if anything is."""
    since = standing.since if standing.since is not None else standing.last
    if standing.state is State.FAILED:
        return Trouble.FAILED, since or 0
    if standing.state is State.ABORTED:
        return Trouble.ABORTED, since or 0
    if standing.state is State.COMPLETED:
        if standing.streaming:
            return Trouble.ENDED, since or 0
        due = _due(standing)
        if due is not None and now > due:
            return Trouble.LATE, due
    return None


def _due(standing: Standing) -> int | None:
    if standing.usual is None or standing.last is None:
        return None
    return standing.last + PATIENCE * standing.usual + MINUTE


def freshness(
    graph: Graph,
    dataset: Node,
    standings: Callable[[Collection[Node]], Mapping[Node, Standing]],
    now: int,
    *,
    depth: int = 20,
    limit: int = 2_000,
) -> Freshness:
    """Whether a dataset is up to date now, judged by every job that its data passes through.

    A dataset is stale since the first moment at which one of the jobs before it, however far,
    stopped delivering; a batch job counts as late only against its own habit.
    """
    found = walk(graph, dataset, Direction.UPSTREAM, depth=depth, limit=limit)
    jobs = [node for node in found.distance if node.kind is NodeKind.JOB]
    known = standings(jobs)
    wrong = {
        job: trouble
        for job in jobs
        if job in known and (trouble := trouble_of(known[job], now)) is not None
    }
    before: dict[Node, set[Node]] = defaultdict(set)
    for edge in found.edges:
        before[edge.destination].add(edge.origin)
    causes = [
        Cause(job, kind, since, found.distance[job], not _explained(job, before, wrong))
        for job, (kind, since) in wrong.items()
    ]
    causes.sort(key=lambda cause: (not cause.root, cause.since, cause.distance, cause.job))
    writers = [known[node] for node in jobs if found.distance[node] == 1 and node in known]
    last = max((s.last for s in writers if s.last is not None), default=None)
    due = min((d for s in writers if (d := _due(s)) is not None), default=None)
    if causes:
        since = min(cause.since for cause in causes)
        return Freshness("stale", since, last, due, tuple(causes), found.cut)
    if any(standing.state is State.RUNNING for standing in writers):
        verdict = "live"
    else:
        verdict = "fresh" if due is not None else "unknown"
    return Freshness(verdict, None, last, due, (), found.cut)


def _explained(job: Node, before: Mapping[Node, set[Node]], wrong: Collection[Node]) -> bool:
    """Whether a job further up is in trouble too."""
    seen, stack = {job}, [job]
    while stack:
        for node in before.get(stack.pop(), ()):
            if node not in seen:
                if node in wrong:
                    return True
                seen.add(node)
                stack.append(node)
    return False
