"""What changed between two moments of a graph: jobs, datasets, edges, columns."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.lineage.graph import Direction, walk
from headwater.lineage.schema import Schema, compatible, diff

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.lineage.graph import Edge, Graph, Node
    from headwater.lineage.schema import Change

__all__ = ["Difference", "Moment", "SchemaDifference", "around", "difference"]


class Moment(NamedTuple):
    """A graph as it was: its nodes, its edges, the schemas of its datasets."""

    nodes: frozenset[Node] = frozenset()
    edges: frozenset[Edge] = frozenset()
    schemas: Mapping[Node, Schema] = {}
    cut: bool = False


class SchemaDifference(NamedTuple):
    """What became of the columns of one dataset, and whether its readers survive that."""

    dataset: Node
    changes: tuple[Change, ...]
    compatible: bool


class Difference(NamedTuple):
    """What came and what went."""

    appeared: tuple[Node, ...] = ()
    vanished: tuple[Node, ...] = ()
    added: tuple[Edge, ...] = ()
    removed: tuple[Edge, ...] = ()
    schemas: tuple[SchemaDifference, ...] = ()
    cut: bool = False

    def __bool__(self) -> bool:
        return any((self.appeared, self.vanished, self.added, self.removed, self.schemas))


def around(
    graph: Graph,
    node: Node,
    schemas: Mapping[Node, Schema] | None = None,
    *,
    depth: int = 20,
    limit: int = 2_000,
) -> Moment:
    """All that leads to a node and all that it leads to, as one moment."""
    walks = [walk(graph, node, way, depth=depth, limit=limit) for way in Direction]
    nodes = frozenset(n for found in walks for n in found.distance)
    return Moment(
        nodes,
        frozenset(edge for found in walks for edge in found.edges),
        {n: s for n, s in (schemas or {}).items() if n in nodes},
        any(found.cut for found in walks),
    )


def difference(before: Moment, after: Moment) -> Difference:
    """What has to change in `before` to make it `after`."""
    return Difference(
        _sorted(after.nodes - before.nodes),
        _sorted(before.nodes - after.nodes),
        tuple(sorted(after.edges - before.edges)),
        tuple(sorted(before.edges - after.edges)),
        tuple(_schemas(before, after)),
        before.cut or after.cut,
    )


def _sorted(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(sorted(nodes))


def _schemas(before: Moment, after: Moment) -> Iterable[SchemaDifference]:
    for dataset in sorted(before.schemas.keys() & after.schemas.keys()):
        old, new = before.schemas[dataset], after.schemas[dataset]
        changes = tuple(diff(old, new))
        if changes:
            yield SchemaDifference(dataset, changes, bool(compatible(old, new)))
