"""The graph of datasets, jobs and columns, and how to walk it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

__all__ = [
    "Direction",
    "Edge",
    "Graph",
    "MemoryGraph",
    "Node",
    "NodeKind",
    "Walk",
    "downstream",
    "paths",
    "upstream",
    "walk",
]


class NodeKind(str, Enum):
    """What a node stands for."""

    DATASET = "dataset"
    JOB = "job"
    COLUMN = "datasetField"


class Node(NamedTuple):
    """A dataset, a job, or a column of a dataset."""

    kind: NodeKind
    namespace: str
    name: str
    column: str = ""

    @property
    def id(self) -> str:
        """The node as Marquez writes it, `dataset:ns:name`."""
        parts = [self.kind.value, self.namespace, self.name]
        return ":".join([*parts, self.column] if self.column else parts)


class Direction(str, Enum):
    """Against the flow of data, or with it."""

    UPSTREAM = "upstream"
    DOWNSTREAM = "downstream"


class Edge(NamedTuple):
    """Data flows from `origin` to `destination`."""

    origin: Node
    destination: Node


class Graph(Protocol):
    """Anything that can say, for many nodes at once, what lies next to them."""

    def resolve(self, node: Node) -> Node:
        """The node that stands for `node` once symlinks and aliases are followed."""
        ...

    def next(
        self, nodes: Collection[Node], direction: Direction
    ) -> Mapping[Node, Collection[Node]]:
        """The neighbours of each node, one step away in one direction."""
        ...


@dataclass
class Walk:
    """What a walk found: each node with its distance, the edges passed, and whether it was cut."""

    start: Node
    distance: dict[Node, int] = field(default_factory=dict)
    edges: set[Edge] = field(default_factory=set)
    cut: bool = False

    @property
    def nodes(self) -> list[Node]:
        """The nodes in the order they were reached."""
        return list(self.distance)


def walk(
    graph: Graph, start: Node, direction: Direction, *, depth: int = 20, limit: int = 10_000
) -> Walk:
    """Everything within `depth` steps of `start`, at most `limit` nodes, nearest first."""
    start = graph.resolve(start)
    found = Walk(start, {start: 0})
    frontier = [start]
    for step in range(1, depth + 1):
        following: list[Node] = []
        for node, others in graph.next(frontier, direction).items():
            for other in sorted(others):
                known = other in found.distance
                if not known and len(found.distance) >= limit:
                    found.cut = True
                    continue
                if not known:
                    found.distance[other] = step
                    following.append(other)
                pair = (other, node) if direction is Direction.UPSTREAM else (node, other)
                found.edges.add(Edge(*pair))
        frontier = following
        if not frontier:
            return found
    found.cut = found.cut or any(
        other not in found.distance
        for others in graph.next(frontier, direction).values()
        for other in others
    )
    return found


def upstream(graph: Graph, start: Node, *, depth: int = 20, limit: int = 10_000) -> Walk:
    """Where the data of `start` comes from."""
    return walk(graph, start, Direction.UPSTREAM, depth=depth, limit=limit)


def downstream(graph: Graph, start: Node, *, depth: int = 20, limit: int = 10_000) -> Walk:
    """What depends on `start`."""
    return walk(graph, start, Direction.DOWNSTREAM, depth=depth, limit=limit)


def paths(
    graph: Graph, origin: Node, destination: Node, *, depth: int = 20, limit: int = 100
) -> list[list[Node]]:
    """The simple paths along the data from `origin` to `destination`, shortest first."""
    origin, destination = graph.resolve(origin), graph.resolve(destination)
    ahead = walk(graph, origin, Direction.DOWNSTREAM, depth=depth)
    back: dict[Node, set[Node]] = defaultdict(set)
    for edge in ahead.edges:
        back[edge.destination].add(edge.origin)
    useful, stack = {destination}, [destination]
    while stack:
        for node in back[stack.pop()] - useful:
            useful.add(node)
            stack.append(node)
    found: list[list[Node]] = []
    trails = [[origin]] if origin in useful and destination in ahead.distance else []
    steps: dict[Node, list[Node]] = defaultdict(list)
    for edge in sorted(ahead.edges):
        if edge.origin in useful and edge.destination in useful:
            steps[edge.origin].append(edge.destination)
    while trails and len(found) < limit:
        longer: list[list[Node]] = []
        for trail in trails:
            if trail[-1] == destination:
                found.append(trail)
            elif len(trail) <= depth:
                longer += [[*trail, node] for node in steps[trail[-1]] if node not in trail]
        trails = longer[: limit * 10]
    return found[:limit]


class MemoryGraph:
    """A graph held in memory: for tests, for small answers, for what a store has loaded."""

    def __init__(
        self, edges: Iterable[tuple[Node, Node]] = (), aliases: Mapping[Node, Node] | None = None
    ) -> None:
        self._aliases = dict(aliases or {})
        self._ahead: dict[Node, set[Node]] = defaultdict(set)
        self._back: dict[Node, set[Node]] = defaultdict(set)
        for origin, destination in edges:
            self.add(origin, destination)

    def add(self, origin: Node, destination: Node) -> None:
        """Add one edge, under the nodes' resolved names."""
        origin, destination = self.resolve(origin), self.resolve(destination)
        self._ahead[origin].add(destination)
        self._back[destination].add(origin)

    def resolve(self, node: Node) -> Node:
        """Follow aliases to the name that stands for the node; columns follow their dataset."""
        owner = node._replace(kind=NodeKind.DATASET, column="") if node.column else node
        seen = {owner}
        while (other := self._aliases.get(owner)) is not None and other not in seen:
            owner = other
            seen.add(owner)
        return owner._replace(kind=node.kind, column=node.column)

    def next(
        self, nodes: Collection[Node], direction: Direction
    ) -> Mapping[Node, Collection[Node]]:
        """The neighbours of each node."""
        side = self._back if direction is Direction.UPSTREAM else self._ahead
        return {node: side.get(node, set()) for node in map(self.resolve, nodes)}
