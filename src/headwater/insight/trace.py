"""Where columns and runs come from, and where they lead."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.graph import Direction, N, Walk, walk

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.lineage.graph import Graph

__all__ = ["trace"]


def trace(
    graph: Graph[N], start: Collection[N], *, depth: int, limit: int, downstream: bool = False
) -> Walk[N]:
    """Everything that leads to these nodes, and if asked everything that they lead to."""
    found = walk(graph, start, Direction.UPSTREAM, depth=depth, limit=limit)
    if downstream:
        walk(graph, start, Direction.DOWNSTREAM, depth=depth, limit=limit, found=found)
    return found
