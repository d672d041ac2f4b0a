"""Where tags on columns get to: along the values that jobs hand on, until a job masks them."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Generic, Protocol

from headwater.lineage.graph import Direction, Edge, Graph, MemoryGraph, N, walk

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping

    from headwater.lineage.graph import Step
    from headwater.lineage.model import Transformation

__all__ = ["Hand", "TagGraph", "TagReach", "along_values", "handed", "tag_reach", "tags_on"]


class Hand(str, Enum):
    """What an edge between two columns hands on: the value, the value masked, or only which rows."""

    VALUE = "value"
    MASKED = "masked"
    ROWS = "rows"


def handed(how: Collection[Transformation]) -> Hand:
    """What these transformations hand on; a value that goes along in the clear once is in the clear."""
    values = [step for step in how if step.type != "INDIRECT"]
    if how and not values:
        return Hand.ROWS
    return Hand.MASKED if how and all(step.masking for step in values) else Hand.VALUE


class HandingGraph(Graph[N], Protocol[N]):
    """A graph of columns that knows how values go along."""

    def how(self, source: N, target: N) -> Collection[Transformation]:
        """What becomes of a column on its way into another one."""
        ...


def along_values(graph: HandingGraph[N]) -> Callable[[Edge[N]], bool]:
    """Which edges to follow to the columns that values come from: those that hand any on."""
    return lambda edge: handed(graph.how(*edge)) is not Hand.ROWS


class TagGraph(HandingGraph[N], Protocol[N]):
    """A graph of columns that also knows which tags were set."""

    def tags_set(self, columns: Collection[N]) -> Mapping[N, Collection[str]]:
        """The tags that somebody set on these columns."""
        ...

    def tags_inside(self, columns: Collection[N]) -> Mapping[N, Collection[str]]:
        """The tags that somebody set on columns which these hold."""
        ...


@dataclass(frozen=True)
class TagReach(Generic[N]):
    """The columns a tag gets to, each with the one it came from, and the edges that masked it."""

    reached: Mapping[N, N | None]
    stops: tuple[Edge[N], ...]
    cut: bool

    def path(self, column: N) -> tuple[N, ...]:
        """The columns from the nearest one on which the tag was set to this one."""
        found = [column]
        while (before := self.reached[found[-1]]) is not None:
            found.append(before)
        return tuple(reversed(found))


class _Handing(Generic[N]):
    """A graph of the edges that hand on a value; those that mask it are kept apart."""

    def __init__(self, graph: TagGraph[N], *, masked: bool) -> None:
        self._graph = graph
        self._masked = masked
        self.pairs = graph.pairs
        self.stops: dict[Edge[N], None] = {}

    def next(self, nodes: Collection[N], direction: Direction | None) -> Iterator[Step[N]]:
        """The steps along those edges; with `masked`, along edges that mask too."""
        for near, far, forward in self._graph.next(nodes, direction):
            edge = (near, far) if forward else (far, near)
            hand = handed(self._graph.how(*edge))
            if hand is Hand.MASKED:
                self.stops[edge] = None
            if hand is Hand.VALUE or (hand is Hand.MASKED and self._masked):
                yield near, far, forward


def tag_reach(graph: TagGraph[N], seeds: Collection[N], *, depth: int, limit: int) -> TagReach[N]:
    """Where a tag gets to that was set on these columns, nearest first."""
    handing = _Handing(graph, masked=False)
    found = walk(handing, seeds, Direction.DOWNSTREAM, depth=depth, limit=limit)
    return _reach(found.distance, found.steps, handing.stops, cut=found.cut or bool(found.ahead))


def _reach(
    distance: Mapping[N, int], steps: Collection[Step[N]], stops: Collection[Edge[N]], *, cut: bool
) -> TagReach[N]:
    reached: dict[N, N | None] = {node: None for node, far in distance.items() if far == 0}
    for near, far, _ in steps:
        if far not in reached and distance.get(far) == distance[near] + 1:
            reached[far] = near
    return TagReach(reached, tuple(sorted(edge for edge in stops if edge[0] in reached)), cut)


def tags_on(
    graph: TagGraph[N], columns: Collection[N], *, depth: int, limit: int
) -> tuple[dict[str, TagReach[N]], bool]:
    """The tags that get to these columns or that a job masked on the way, and whether all was seen.

    Of each tag, what it gets to among the columns that lead to these.
    """
    handing = _Handing(graph, masked=True)
    found = walk(handing, columns, Direction.UPSTREAM, depth=depth, limit=limit)
    seeds: dict[str, set[N]] = defaultdict(set)
    # Whoever takes a column takes what it holds; of these columns themselves only their own tags count.
    taken = [column for column, far in found.distance.items() if far]
    for held in (graph.tags_set(found.distance), graph.tags_inside(taken)):
        for column, tags in held.items():
            for tag in tags:
                seeds[tag].add(column)
    clear = MemoryGraph(edge for edge in found.edges if edge not in handing.stops)
    answers = {
        tag: _within(clear, sorted(some), handing.stops) for tag, some in sorted(seeds.items())
    }
    return answers, found.cut or bool(found.ahead)


def _within(clear: Graph[N], seeds: list[N], stops: Collection[Edge[N]]) -> TagReach[N]:
    unbounded = 1 << 30
    found = walk(clear, seeds, Direction.DOWNSTREAM, depth=unbounded, limit=unbounded)
    return _reach(found.distance, found.steps, stops, cut=False)
