"""Which troubles are one: each job that broke by itself, with what broke or went stale behind it."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Generic

from headwater.insight.freshness import JobProblem
from headwater.insight.neighbourhood import is_job
from headwater.lineage.graph import Direction, Graph, MemoryGraph, N, Walk, walk

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

__all__ = ["RootCause", "downstream", "families", "root_causes"]

HOUR = 3_600_000_000
WITHIN = HOUR
"""How long after a job broke another one behind it counts as broken by it."""
FAR = 1_000_000


@dataclass(frozen=True)
class RootCause(Generic[N]):
    """A job in trouble that nothing before it explains, and what is in trouble because of it.

    `jobs` are those behind it that are in trouble too, `datasets` all that it leaves stale and no
    earlier cause does; `behind` is everything downstream, nearest first.
    """

    job: N
    problem: JobProblem
    since: int
    jobs: tuple[N, ...]
    datasets: tuple[N, ...]
    behind: tuple[N, ...]
    cut: bool


def families(runs: Mapping[N, tuple[str, str]]) -> list[list[N]]:
    """Jobs that broke together: each with those whose run is part of its run, the parts first.

    `runs` has the newest run of each job and the run that it is part of. An application that fails
    with one of its queries is one trouble, not two.
    """
    owners = {run: job for job, (run, _) in runs.items()}

    def above(job: N) -> list[N]:
        chain = [job]
        while (up := owners.get(runs[chain[-1]][1])) is not None and up not in chain:
            chain.append(up)
        return chain

    found: dict[N, list[tuple[int, N]]] = {}
    for job in runs:
        chain = above(job)
        found.setdefault(chain[-1], []).append((-len(chain), job))
    return [[job for _, job in sorted(some)] for some in found.values()]


def downstream(graph: Graph[N], starts: Iterable[N], *, limit: int) -> tuple[tuple[N, ...], bool]:
    """What lies behind some nodes, nearest first, up to `limit`; and whether there is more."""
    known = list(starts)
    found = walk(graph, known, Direction.DOWNSTREAM, depth=FAR, limit=limit + len(known))
    first = set(known)
    return tuple(node for node in found.distance if node not in first), found.cut


def root_causes(
    graph: Graph[N], wrong: Mapping[N, tuple[JobProblem, int]], *, limit: int = 10_000
) -> list[RootCause[N]]:
    """The causes among jobs in trouble, the oldest first.

    A job belongs to an older cause before it if it broke within an hour of it: one that breaks
    later has a reason of its own. What somebody paused or stopped is no trouble, and explains why a
    job behind it is late.
    """
    order = sorted(wrong, key=lambda job: (wrong[job][1], job))
    found = walk(graph, order, Direction.DOWNSTREAM, depth=FAR, limit=limit + len(order))
    pairs = graph.pairs([node for node in found.distance if is_job(node)])
    near = MemoryGraph(found.edges, pairs)
    late = _late_by_plan(near, wrong)

    def broken_by(job: N, other: N) -> bool:
        if other not in wrong or wrong[other][0].planned:
            return False
        since, then = wrong[job][1], wrong[other][1]
        return then <= since + WITHIN and (since, job) < (then, other)

    causes: list[RootCause[N]] = []
    taken: set[N] = set()
    explained: set[N] = set()
    for job in order:
        problem, since = wrong[job]
        if problem.planned or job in late or job in explained:
            continue
        reach: Walk[N] = Walk({job: 0})
        jobs: list[N] = []
        added = [job]
        while added:
            # A job that broke with it leaves all that it writes stale, whatever feeds that.
            known = len(reach.distance)
            most = limit + 1 + len(jobs)
            walk(near, added, Direction.DOWNSTREAM, depth=FAR, limit=most, found=reach)
            rest = [*islice(reversed(reach.distance), len(reach.distance) - known)][::-1]
            added = [one for one in rest if broken_by(job, one) and one not in explained]
            jobs += added
        behind = tuple(reach.distance)[1:]
        explained.update(jobs)
        datasets = tuple(one for one in behind if not is_job(one) and one not in taken)
        taken.update(datasets)
        cut = reach.cut or found.cut
        causes.append(RootCause(job, problem, since, tuple(jobs), datasets, behind, cut))
    return causes


def _late_by_plan(graph: MemoryGraph[N], wrong: Mapping[N, tuple[JobProblem, int]]) -> set[N]:
    """The jobs that are late behind one that somebody had paused or stopped by then."""
    reach: Walk[N] = Walk({})
    found: set[N] = set()
    for job in sorted(wrong, key=lambda job: (wrong[job][1], not wrong[job][0].planned)):
        problem, _ = wrong[job]
        if problem.planned:
            reach.distance.setdefault(job, 0)
            walk(graph, [job], Direction.DOWNSTREAM, depth=FAR, limit=FAR, found=reach)
        elif problem is JobProblem.LATE and job in reach.distance:
            found.add(job)
    return found
