"""What changed between two moments, in the estate or around a node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from headwater.insight import Moment, around, spanned, trace
from headwater.insight import difference as compare
from headwater.server.api.lookup import node_of
from headwater.server.api.parameters import integer, moment, text
from headwater.server.api.present import when
from headwater.server.api.types import Edge, Object, Time
from headwater.server.routing import Routes
from headwater.server.store.read.changed import changed_parts, states_at
from headwater.server.store.read.observed import read_schema
from headwater.server.store.read.timeline import schemas_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.insight import Neighbourhood
    from headwater.server.store.entities import Node
    from headwater.server.store.read.changed import ChangedParts
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

CHANGES = 50
COLUMNS = 50_000
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
    columnsAdded: list[Edge]  # noqa: N815
    columnsRemoved: list[Edge]  # noqa: N815
    states: list[Object]
    truncated: bool


@api.get("/api/v2/graph/diff", answer=Changed)
def difference(
    view: View,
    node: str = text(example="job:shop:load"),
    start: int = moment(name="from", required=True),
    end: int = moment(NEVER, name="to"),
    depth: int = integer(3, 0, 50),
    limit: int = integer(300, 1, 5_000),
) -> dict[str, Any]:
    """What came, went and changed between two moments, in the whole estate or around a node.

    Of each kind of change at most `limit` are told. `states` are those of the newest runs: of a batch
    only whether it delivers (`OK`) or how it failed.
    """
    if node:
        near = _around(view, node_of(view, node), (start, end), depth, limit)
        parts = [_part(view, near, at) for at in (start, end)]
    else:
        changed = changed_parts(view, start, end)
        parts = [_estate(view, changed, at) for at in (start, end)]
    found = compare(*parts)
    lists: dict[str, list[Any]] = {
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
            for change in found.schemas[:limit]
        ],
        "columnsAdded": [_column_edge(edge) for edge in found.columns_added[:limit]],
        "columnsRemoved": [_column_edge(edge) for edge in found.columns_removed[:limit]],
        "states": [
            {"job": ":".join(one.job), "before": one.before, "after": one.after}
            for one in found.states[:limit]
        ],
    }
    whole = (found.schemas, found.columns_added, found.columns_removed, found.states)
    return {
        "from": when(start),
        "to": when(end) if end < NEVER else None,
        **{name: some[:limit] for name, some in lists.items()},
        "truncated": found.cut or any(len(some) > limit for some in (*lists.values(), *whole)),
    }


def _around(
    view: View, start: Node, moments: tuple[int, int], depth: int, limit: int
) -> Neighbourhood[Node]:
    """What lay around a node at one of two moments."""
    before, after = (around(view.graph(at), start, depth=depth, limit=limit) for at in moments)
    return before | after


def _part(view: View, near: Neighbourhood[Node], at: int) -> Moment[Name]:
    """Some nodes as they stood; one that had edges to others only was there too."""
    found = spanned(view.graph(at), near.nodes)
    jobs = {number for _, number in near.jobs}
    datasets = {number for _, number in near.datasets}
    moment = _moment(view, found.edges, datasets, jobs, at, near.cut)
    shown = {
        *(("job", one.space, one.name) for one in view.jobs(jobs).values()),
        *(("dataset", one.space, one.name) for one in view.datasets(datasets).values()),
    }
    return replace(
        moment,
        nodes=moment.nodes & shown,
        edges=frozenset(edge for edge in moment.edges if shown.issuperset(edge)),
    )


def _estate(view: View, changed: ChangedParts, at: int) -> Moment[Name]:
    """All that may have changed, as it stood."""
    found = spanned(view.graph(at), changed.nodes)
    return _moment(view, found.edges, changed.datasets, changed.jobs, at, changed.cut)


def _moment(
    view: View,
    edges: Iterable[tuple[Node, Node]],
    described: set[int],
    stated: set[int],
    at: int,
    cut: bool,
) -> Moment[Name]:
    """Edges by name, with the schemas and columns of these datasets and the states of these jobs."""
    drawn = list(edges)
    ends = {node for edge in drawn for node in edge}
    jobs = view.jobs(stated | {number for kind, number in ends if kind == "job"})
    graph = view.column_graph(at)
    columns = trace(graph, sorted(graph.outputs(described)), depth=1, limit=COLUMNS)
    owners = {column[0] for edge in columns.edges for column in edge}
    known = described | owners | {number for kind, number in ends if kind == "dataset"}
    datasets = view.datasets(known)
    names: dict[Node, Name] = {("job", n): ("job", job.space, job.name) for n, job in jobs.items()}
    names |= {("dataset", n): ("dataset", one.space, one.name) for n, one in datasets.items()}
    named = {(names[a], names[b]) for a, b in drawn if a in names and b in names}
    latest = schemas_at(view, described & datasets.keys(), at)
    bodies = view.bodies(latest.values())
    return Moment(
        # A dataset with no edge at that moment was not part of the graph.
        frozenset(node for edge in named for node in edge),
        frozenset(named),
        {names["dataset", n]: read_schema(bodies.get(facet)) for n, facet in latest.items()},
        cut or columns.cut,
        frozenset(
            ((names["dataset", a[0]], a[1]), (names["dataset", b[0]], b[1]))
            for a, b in columns.edges
            if a[0] in datasets and b[0] in datasets
        ),
        {
            names["job", job]: state
            for job, state in states_at(view, stated, at).items()
            if ("job", job) in names
        },
    )


def _column_edge(edge: tuple[tuple[Name, str], tuple[Name, str]]) -> dict[str, str]:
    origin, destination = (
        f"datasetField:{':'.join(dataset[1:])}:{field}" for dataset, field in edge
    )
    return {"origin": origin, "destination": destination}


def _edge(edge: tuple[Name, Name]) -> dict[str, str]:
    return {"origin": ":".join(edge[0]), "destination": ":".join(edge[1])}
