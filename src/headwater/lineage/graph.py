"""The graph of datasets, jobs and columns, and the one way to walk it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

__all__ = [
    "Direction", "Edge", "Graph", "MemoryGraph", "NodeKind", "Pairs", "Step", "Walk", "walk",
]  # fmt: skip

N = TypeVar("N", bound="tuple[Any, ...]")
"""What identifies a node; of a graph of jobs and datasets, the first part is its kind."""


class NodeKind(str, Enum):
    """What a node of a graph of jobs and datasets stands for."""

    DATASET = "dataset"
    JOB = "job"


class Direction(str, Enum):
    """Against the flow of data, or with it."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"


Edge = tuple[N, N]
"""Data flows from the first node to the second."""

Step = tuple[N, N, bool]
"""From a node to a neighbour; true where data flows that way, false where it flows back."""


Pairs = dict[N, "frozenset[N]"]
"""Of one job: each of its outputs with the inputs that feed it."""


class Graph(Protocol[N]):
    """Anything that lists, for many nodes at once, their neighbours."""

    def next(self, nodes: Collection[N], direction: Direction | None) -> Iterable[Step[N]]:
        """The steps that lead from these nodes in one direction, or in both without one.

        A walk visits neighbours in the order in which they come.
        """
        ...

    def pairs(self, nodes: Collection[N]) -> Mapping[N, Pairs[N]]:
        """Which inputs feed which outputs of these nodes; in one left out, each input all outputs."""
        ...


@dataclass
class Walk(Generic[N]):
    """What a walk found: each node with its distance in the order reached, and the steps taken."""

    distance: dict[N, int]
    steps: list[Step[N]] = field(default_factory=list)
    cut: bool = False
    """Whether nodes were left out because there were too many."""
    ahead: list[N] = field(default_factory=list)
    """The nodes at the greatest depth, whose neighbours were not asked for."""
    passages: _Passages[N] | None = field(default=None, repr=False)
    """Through which datasets it came to each job; a walk that goes on in it needs that."""

    @property
    def edges(self) -> set[Edge[N]]:
        """The edges along which the walk went."""
        return {(a, b) if forward else (b, a) for a, b, forward in self.steps}


Port = tuple[N, bool]
"""A dataset at a job, and whether the job writes it; otherwise it reads it."""


class _Passages(Generic[N]):
    """What a walk may go on to from a job, by the datasets through which it came to it."""

    def __init__(self, graph: Graph[N], direction: Direction | None) -> None:
        self._graph = graph
        self._direction = direction
        self._pairs: dict[N, Pairs[N] | None] = {}
        self._entries: dict[N, set[Port[N]]] = defaultdict(set)
        self._passed: dict[N, set[Port[N]]] = defaultdict(set)

    def goes_on(self, graph: Graph[N], direction: Direction | None) -> bool:
        """Whether a walk of this graph in this direction can go on with what is known here."""
        return graph is self._graph and direction is self._direction

    def open(self, nodes: Iterable[N]) -> None:
        """Let a walk start at these nodes, however it came to them before."""
        for node in nodes:
            self._entries.pop(node, None)

    def enter(self, step: Step[N]) -> bool:
        """Note how a node was reached; true if it has to be visited again for that."""
        near, node, forward = step
        port = (near, not forward)
        if self._pairs.get(node, {}) is None or port in self._entries[node]:
            return False
        self._entries[node].add(port)
        return node in self._pairs

    def steps(self, nodes: list[N], *, start: bool) -> Iterator[Step[N]]:
        """The steps from nodes that follow the pairs; all those of a node where a walk starts."""
        pairs = self._graph.pairs(nodes)
        for node in nodes:
            whole = start and not self._entries.get(node)
            self._pairs[node] = None if whole else pairs.get(node)
        ways = {node: self._ways(node) for node in nodes if self._pairs[node] is not None}
        for step in self._graph.next(nodes, self._direction):
            near, far, forward = step
            if near in ways:
                inputs, outputs = ways[near]
                if far not in (outputs if forward else inputs):
                    continue
                if (far, forward) in self._passed[near]:
                    continue
                self._passed[near].add((far, forward))
            yield step

    def _ways(self, node: N) -> tuple[set[N], set[N]]:
        """The inputs and the outputs of a job that belong to those it was entered through."""
        pairs = self._pairs[node] or {}
        entries = self._entries[node]
        outputs = {dataset for dataset, written in entries if written}
        inputs = {dataset for dataset, written in entries if not written}
        if self._direction is Direction.UPSTREAM:
            return set().union(*(pairs.get(output, ()) for output in outputs)), set()
        if self._direction is Direction.DOWNSTREAM:
            return set(), {output for output, fed in pairs.items() if fed & inputs}
        grown = True
        while grown:
            grown = False
            for output, fed in pairs.items():
                if (output in outputs or fed & inputs) and not (
                    output in outputs and fed <= inputs
                ):
                    outputs.add(output)
                    inputs |= fed
                    grown = True
        return inputs, outputs


def walk(
    graph: Graph[N],
    start: Iterable[N],
    direction: Direction | None,
    *,
    depth: int,
    limit: int,
    counts: Callable[[N], bool] | None = None,
    found: Walk[N] | None = None,
    entered: Iterable[Step[N]] = (),
) -> Walk[N]:
    """Everything within `depth` steps of the start, nearest first, at most `limit` nodes.

    From a job with known pairs it goes on only to what belongs to the datasets through which it
    came; from one where it starts, to all, unless `entered` has the steps that led there. With
    `counts`, only the nodes it accepts count towards the limit. With `found`, the walk goes on in
    what an earlier one found: what is known already is not visited again, unless it leads further from
    one of the nodes where it starts now.
    """
    nodes = list(start)
    if found is None:
        # Few jobs have pairs. Without them the walk finds at least as much, and asks for the pairs
        # of all jobs at once; where there are any, they are followed in what was found.
        wide = Walk(dict.fromkeys(nodes, 0))
        _spread(_Passages(_Unpaired(graph), direction), nodes, depth, limit, counts, wide)
        if not wide.cut:
            pairs = graph.pairs(wide.distance)
            if not pairs:
                return wide
            graph = MemoryGraph(wide.edges, pairs)
        found = Walk(dict.fromkeys(nodes, 0))
    passages = found.passages
    if passages is None or not passages.goes_on(graph, direction):
        passages = found.passages = _Passages(graph, direction)
    passages.open(nodes)
    for step in entered:
        passages.enter(step)
    _spread(passages, nodes, depth, limit, counts, found)
    return found


def _spread(
    passages: _Passages[N],
    frontier: list[N],
    depth: int,
    limit: int,
    counts: Callable[[N], bool] | None,
    found: Walk[N],
) -> None:
    distance, steps = found.distance, found.steps
    left = limit - (len(distance) if counts is None else sum(map(counts, distance)))
    for far in range(1, depth + 1):
        if not frontier:
            break
        following: dict[N, None] = {}
        for step in passages.steps(frontier, start=far == 1):
            other = step[1]
            if other not in distance:
                if counts is None or counts(other):
                    if left <= 0:
                        found.cut = True
                        continue
                    left -= 1
                distance[other] = far
                following[other] = None
            steps.append(step)
            if passages.enter(step):
                following[other] = None
        frontier = list(following)
    found.ahead = frontier


class _Unpaired(Generic[N]):
    """A graph in which every input feeds every output."""

    def __init__(self, graph: Graph[N]) -> None:
        self.next = graph.next

    def pairs(self, nodes: Collection[N]) -> Mapping[N, Pairs[N]]:
        """None."""
        return {}


class MemoryGraph(Generic[N]):
    """A graph held in memory: part of another one, or made up in a test."""

    def __init__(
        self, edges: Iterable[tuple[N, N]] = (), pairs: Mapping[N, Pairs[N]] | None = None
    ) -> None:
        self._ahead: dict[N, set[N]] = defaultdict(set)
        self._back: dict[N, set[N]] = defaultdict(set)
        for origin, destination in edges:
            self._ahead[origin].add(destination)
            self._back[destination].add(origin)
        self._pairs = dict(pairs or {})

    def next(self, nodes: Collection[N], direction: Direction | None) -> Iterable[Step[N]]:
        """The steps to the neighbours of each node, by name."""
        for forward, side in ((False, self._back), (True, self._ahead)):
            if direction is None or forward == (direction is Direction.DOWNSTREAM):
                for node in nodes:
                    for other in sorted(side.get(node, ())):
                        yield node, other, forward

    def pairs(self, nodes: Collection[N]) -> Mapping[N, Pairs[N]]:
        """The pairs that it was given."""
        return {node: self._pairs[node] for node in nodes if node in self._pairs}
