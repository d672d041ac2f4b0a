"""Where columns and runs come from, and where they lead."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Protocol

from headwater.lineage.graph import Direction, N, Walk, walk

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headwater.lineage.graph import Graph

__all__ = ["ColumnJobs", "carriers", "trace"]

Column = tuple[int, str]
"""A dataset by its number, and the name of one of its columns."""


class ColumnJobs(Protocol):
    """A graph of columns that knows which jobs carry columns into a dataset."""

    def carried(self, datasets: Collection[int]) -> Iterable[tuple[int, int, int]]:
        """Source dataset, target dataset and job, for each that writes one of these datasets."""
        ...


def trace(
    graph: Graph[N], start: Collection[N], *, depth: int, limit: int, downstream: bool = False
) -> Walk[N]:
    """Everything that leads to these nodes, and if asked everything that they lead to."""
    found = walk(graph, start, Direction.UPSTREAM, depth=depth, limit=limit)
    if downstream:
        walk(graph, start, Direction.DOWNSTREAM, depth=depth, limit=limit, found=found)
    return found


def carriers(
    graph: ColumnJobs, edges: Iterable[tuple[Column, Column]]
) -> dict[tuple[Column, Column], frozenset[int]]:
    """The jobs that carry columns from the dataset of each edge's source to that of its target."""
    wanted = list(edges)
    jobs: dict[tuple[int, int], set[int]] = defaultdict(set)
    for source, target, job in graph.carried({target for _, (target, _) in wanted}):
        jobs[source, target].add(job)
    return {edge: frozenset(jobs.get((edge[0][0], edge[1][0]), ())) for edge in wanted}
