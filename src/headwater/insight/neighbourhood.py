"""What lies around a node: the jobs and datasets near it, what they reach, and what is left out."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Generic, NamedTuple

from headwater.lineage.graph import Direction, MemoryGraph, N, NodeKind, Step, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headwater.lineage.graph import Edge, Graph

__all__ = [
    "Link",
    "Neighbourhood",
    "Reach",
    "around",
    "behind_each",
    "beside",
    "between",
    "flow",
    "hidden",
    "is_job",
    "paired",
    "reach",
    "spanned",
]

JOB = NodeKind.JOB.value


Link = tuple[N, N, bool]
"""A job, a dataset, and whether the job writes it; otherwise it reads it."""


@dataclass
class Neighbourhood(Generic[N]):
    """A part of the graph: its jobs and datasets by distance, counted in jobs, and its links."""

    jobs: dict[N, int] = field(default_factory=dict)
    datasets: dict[N, int] = field(default_factory=dict)
    links: set[Link[N]] = field(default_factory=set)
    cut: bool = False
    asked: set[N] = field(default_factory=set)
    """The nodes that were asked for, of which everything next to them belongs to it."""

    def __or__(self, later: Neighbourhood[N]) -> Neighbourhood[N]:
        """What was there at either of two moments, with the distances of the later one."""
        return Neighbourhood(
            {**self.jobs, **later.jobs},
            {**self.datasets, **later.datasets},
            self.links | later.links,
            self.cut or later.cut,
            self.asked | later.asked,
        )

    @property
    def nodes(self) -> frozenset[N]:
        """Its jobs and its datasets."""
        return frozenset([*self.jobs, *self.datasets])

    @property
    def edges(self) -> frozenset[Edge[N]]:
        """Its links as data flows along them."""
        return frozenset(map(flow, self.links))


class Reach(NamedTuple):
    """How many jobs and datasets depend on something; `more` if there are more than counted."""

    jobs: int
    datasets: int
    more: bool


def is_job(node: N) -> bool:
    """Whether a node of a graph of jobs and datasets is a job."""
    return bool(node[0] == JOB)


def flow(link: Link[N]) -> Edge[N]:
    """A link as data flows along it."""
    job, dataset, writes = link
    return (job, dataset) if writes else (dataset, job)


def _link(step: Step[N]) -> Link[N]:
    near, far, forward = step
    return (near, far, forward) if is_job(near) else (far, near, not forward)


def around(graph: Graph[N], start: N, *, depth: int, limit: int) -> Neighbourhood[N]:
    """Jobs within `depth` job-to-job steps in either direction, with their datasets.

    Of a job that it comes to, only the datasets that belong to those it came through, where pairs
    are known; of the start, all. At most `limit` jobs are taken in; those of the start itself are
    always there.
    """
    jobs, first = [start], list[Step[N]]()
    if not is_job(start):
        first = list(graph.next([start], None))
        jobs = sorted({far for _, far, _ in first})
    depth = 2 * depth + 1
    found = walk(graph, jobs, None, depth=depth, limit=limit, counts=is_job, entered=first)
    part: Neighbourhood[N] = Neighbourhood(cut=found.cut, asked={start})
    if not is_job(start):
        part.datasets[start] = 0
    for node, far in found.distance.items():
        (part.jobs if is_job(node) else part.datasets).setdefault(node, far // 2)
    # A job's links are those that it has itself, not those that lead to it from a dataset.
    part.links = {step for step in found.steps if step[0][0] == JOB}
    return part


def spanned(graph: Graph[N], nodes: Iterable[N]) -> Neighbourhood[N]:
    """These jobs and datasets with everything next to them."""
    nodes = list(nodes)
    distance = dict.fromkeys(nodes, 0)
    # Where a walk starts it may go everywhere: one step needs no look at the pairs of jobs.
    steps = list(graph.next(list(distance), None))
    for _, other, _ in steps:
        distance.setdefault(other, 1)
    part: Neighbourhood[N] = Neighbourhood(links=set(map(_link, steps)), asked=set(nodes))
    for node, far in distance.items():
        (part.jobs if is_job(node) else part.datasets)[node] = far
    return part


def hidden(
    graph: Graph[N], shown: Collection[N], asked: Collection[N] = ()
) -> dict[N, tuple[int, int]]:
    """For each node shown: how many nodes before it and after it are not.

    Of a job with known pairs, those that belong to what is shown of it; of one that was asked for
    itself, or that nothing is shown of, all.
    """
    counts: dict[N, tuple[int, int]] = {}
    steps = list(graph.next(shown, None))
    if pairs := graph.pairs([node for node in shown if is_job(node) and node not in asked]):
        near_by = MemoryGraph(
            ((near, far) if forward else (far, near) for near, far, forward in steps), pairs
        )
        through = [(b, a, not forward) for a, b, forward in steps if a in pairs and b in shown]
        most = len(shown) + len(steps)
        steps = walk(near_by, shown, None, depth=1, limit=most, entered=through).steps
    for near, far, forward in steps:
        if far not in shown:
            before, after = counts.get(near, (0, 0))
            counts[near] = (before, after + 1) if forward else (before + 1, after)
    return counts


def paired(graph: Graph[N], jobs: Collection[N]) -> dict[N, list[Edge[N]]]:
    """Which inputs feed which outputs of these jobs, in order, where not all of them feed all."""
    return {
        job: sorted((origin, target) for target, fed in pairs.items() for origin in fed)
        for job, pairs in graph.pairs(jobs).items()
    }


def beside(graph: Graph[N], node: N) -> tuple[list[N], list[N]]:
    """What lies directly before a node and directly after it, in order."""
    steps = list(graph.next([node], None))
    before = sorted({far for _, far, forward in steps if not forward})
    return before, sorted({far for _, far, forward in steps if forward})


def behind_each(graph: Graph[N], nodes: Collection[N]) -> dict[N, list[N]]:
    """What lies directly after each of these nodes, in order; asked for all at once."""
    found: dict[N, set[N]] = {node: set() for node in nodes}
    for node, far, _ in graph.next(nodes, Direction.DOWNSTREAM):
        found[node].add(far)
    return {node: sorted(after) for node, after in found.items()}


def between(graph: Graph[N], origin: N, target: N) -> list[N]:
    """The jobs that bring data of one dataset to the other, in order."""
    readers = {far for _, far, _ in graph.next([origin], Direction.DOWNSTREAM)}
    writers = {far for _, far, _ in graph.next([target], Direction.UPSTREAM)}
    both = sorted(readers & writers)
    pairs = graph.pairs(both)
    return [job for job in both if job not in pairs or origin in pairs[job].get(target, ())]


def reach(graph: Graph[N], *jobs: N, limit: int) -> Reach:
    """How much lies downstream of a job, or of several together, counted up to `limit` nodes."""
    most = limit + len(jobs)
    found = walk(graph, jobs, Direction.DOWNSTREAM, depth=most, limit=most)
    further = sum(map(is_job, found.distance)) - len(jobs)
    return Reach(further, len(found.distance) - len(jobs) - further, found.cut)
