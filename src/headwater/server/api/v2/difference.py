"""What changed around a node between two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headwater.insight import Moment, around
from headwater.insight import difference as compare
from headwater.server.api.lookup import node_of
from headwater.server.api.parameters import integer, moment, text
from headwater.server.api.present import when
from headwater.server.api.types import Edge, Object, Time
from headwater.server.api.v2.schemas import read
from headwater.server.routing import Routes
from headwater.server.store.read.timeline import schemas_at

if TYPE_CHECKING:
    from headwater.server.store.entities import Node
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

CHANGES = 50
NEVER = 2**62
Name = tuple[str, str, str]
"""A node by its kind, its namespace and its name."""


_From = TypedDict("_From", {"from": Time}, total=False)


class Changed(_From):
    """What changed between two moments."""

    to: Time | None
    appeared: list[str]
    vanished: list[str]
    added: list[Edge]
    removed: list[Edge]
    schemas: list[Object]
    truncated: bool


@api.get("/api/v2/graph/diff", answer=Changed)
def difference(
    view: View,
    node: str = text(required=True, example="job:shop:load"),
    start: int = moment(name="from", required=True),
    end: int = moment(NEVER, name="to"),
    depth: int = integer(3, 0, 50),
    limit: int = integer(300, 1, 5_000),
) -> dict[str, Any]:
    """What came, went and changed around a node between two moments."""
    at = node_of(view, node)
    found = compare(_moment(view, at, start, depth, limit), _moment(view, at, end, depth, limit))
    return {
        "from": when(start),
        "to": when(end) if end < NEVER else None,
        "appeared": [":".join(node) for node in found.appeared],
        "vanished": [":".join(node) for node in found.vanished],
        "added": [_edge(edge) for edge in found.added],
        "removed": [_edge(edge) for edge in found.removed],
        "schemas": [
            {
                "dataset": ":".join(change.dataset),
                "compatible": change.compatible,
                "changes": [str(one) for one in change.changes[:CHANGES]],
            }
            for change in found.schemas
        ],
        "truncated": found.cut,
    }


def _moment(view: View, start: Node, at: int, depth: int, limit: int) -> Moment[Name]:
    """A part of the graph as it stood, by name, with the schemas that were in force."""
    found = around(view.graph(at), start, depth=depth, limit=limit)
    jobs = view.jobs(number for _, number in found.jobs)
    datasets = view.datasets(number for _, number in found.datasets)
    names = {("job", n): ("job", job.space, job.name) for n, job in jobs.items()}
    names |= {("dataset", n): ("dataset", one.space, one.name) for n, one in datasets.items()}
    edges = {(names[a], names[b]) for a, b in found.edges if a in names and b in names}
    latest = schemas_at(view, datasets, at)
    bodies = view.bodies(latest.values())
    known = {names["dataset", n]: read(bodies.get(facet)) for n, facet in latest.items()}
    # A dataset with no edge at that moment was not part of the graph.
    nodes = {node for edge in edges for node in edge}
    return Moment(frozenset(nodes), frozenset(edges), known, found.cut)


def _edge(edge: tuple[Name, Name]) -> dict[str, str]:
    return {"origin": ":".join(edge[0]), "destination": ":".join(edge[1])}
