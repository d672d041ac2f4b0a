"""Where columns and runs come from, and where they lead."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Generic, Protocol

from headwater.lineage.graph import Direction, Edge, N, Walk, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from headwater.lineage.graph import Graph, Pairs, Step

__all__ = ["ColumnJobs", "LineageTree", "TreeRow", "carriers", "trace", "tree"]

ROWS = 5_000

Column = tuple[int, str]
"""A dataset by its number, and the name of one of its columns."""


class ColumnJobs(Protocol):
    """A graph of columns that knows which jobs carry columns into a dataset."""

    def carried(self, datasets: Collection[int]) -> Iterable[tuple[int, int, int]]:
        """Source dataset, target dataset and job, for each that writes one of these datasets."""
        ...


def trace(
    graph: Graph[N],
    start: Collection[N],
    *,
    depth: int,
    limit: int,
    downstream: bool = False,
    follow: Callable[[Edge[N]], bool] | None = None,
    counts: Callable[[N], bool] | None = None,
) -> Walk[N]:
    """Everything that leads to these nodes, and if asked everything that they lead to.

    With `counts`, only the nodes it accepts count towards the limit.
    """
    known = graph if follow is None else _Followed(graph, follow)
    found = walk(known, start, Direction.UPSTREAM, depth=depth, limit=limit, counts=counts)
    if downstream:
        walk(
            known, start, Direction.DOWNSTREAM, depth=depth, limit=limit, counts=counts, found=found
        )
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


@dataclass(frozen=True)
class TreeRow(Generic[N]):
    """A node in a tree: how far from the root, below which row, and whether it was opened elsewhere."""

    node: N
    level: int
    parent: int | None
    repeated: bool


@dataclass(frozen=True)
class LineageTree(Generic[N]):
    """What leads to a node, or what it leads to, as a tree in the order in which it is read."""

    rows: tuple[TreeRow[N], ...]
    edges: frozenset[Edge[N]]
    cut: bool

    def path(self, row: int) -> tuple[N, ...]:
        """The nodes from a row to the root."""
        found: list[N] = []
        at: int | None = row
        while at is not None:
            found.append(self.rows[at].node)
            at = self.rows[at].parent
        return tuple(found)


class _Followed(Generic[N]):
    """A graph without the edges that are not to be followed."""

    def __init__(self, graph: Graph[N], follow: Callable[[Edge[N]], bool]) -> None:
        self._graph = graph
        self._follow = follow
        self.pairs = graph.pairs

    def next(self, nodes: Collection[N], direction: Direction | None) -> Iterator[Step[N]]:
        """The steps along edges that are to be followed."""
        for near, far, forward in self._graph.next(nodes, direction):
            if self._follow((near, far) if forward else (far, near)):
                yield near, far, forward


def tree(
    graph: Graph[N],
    start: N,
    *,
    depth: int,
    limit: int,
    downstream: bool = False,
    follow: Callable[[Edge[N]], bool] | None = None,
) -> LineageTree[N]:
    """Everything that leads to a node, or that it leads to, within `depth` steps, as a tree.

    A node that is reached on several ways is opened where it is nearest to the start. A job with
    pairs is opened for each dataset through which it is reached, with what belongs to that one.
    """
    direction = Direction.DOWNSTREAM if downstream else Direction.UPSTREAM
    known = graph if follow is None else _Followed(graph, follow)
    found = walk(known, [start], direction, depth=depth, limit=limit)
    nodes = _TreeNodes(found, known.pairs(found.distance), direction)
    rows: list[TreeRow[N]] = []
    opened: set[N] = set()
    waiting: list[tuple[N, int, int | None]] = [(start, 0, None)]
    while waiting and len(rows) < ROWS:
        node, level, parent = waiting.pop()
        below = nodes.below(node, None if parent is None else rows[parent].node)
        fresh = nodes.is_paired(node) or (node not in opened and level == found.distance[node])
        if fresh and level < depth:
            opened.add(node)
            waiting += [(other, level + 1, len(rows)) for other in reversed(below)]
        rows.append(TreeRow(node, level, parent, bool(below) and not fresh))
    return LineageTree(tuple(rows), frozenset(found.edges), found.cut or bool(waiting))


class _TreeNodes(Generic[N]):
    """What a walk found, by what lies below each node in its direction."""

    def __init__(self, found: Walk[N], pairs: Mapping[N, Pairs[N]], direction: Direction) -> None:
        self._below: dict[N, dict[N, None]] = defaultdict(dict)
        for near, far, _ in found.steps:
            self._below[near][far] = None
        self._pairs = pairs
        self._upstream = direction is Direction.UPSTREAM

    def is_paired(self, node: N) -> bool:
        return node in self._pairs

    def below(self, node: N, entry: N | None) -> list[N]:
        """What lies below a node that was reached from `entry`."""
        found = list(self._below.get(node, ()))
        pairs = self._pairs.get(node)
        if pairs is None or entry is None:
            return found
        if self._upstream:
            return [other for other in found if other in pairs.get(entry, ())]
        return [other for other in found if entry in pairs.get(other, ())]
