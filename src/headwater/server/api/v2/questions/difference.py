"""What changed between two moments, in the estate or around a node."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypedDict

from headwater.insight import Moment, around, spanned
from headwater.insight import difference as compare
from headwater.server.api.lookup import node_of
from headwater.server.api.parameters import check_period, integer, moment, text
from headwater.server.api.present import when
from headwater.server.api.types import Edge, Sourced, Time
from headwater.server.routing import Past, Routes
from headwater.server.store.entities import DELETED
from headwater.server.store.read.changed import (
    changed_columns,
    changed_parts,
    differing,
    shown_at,
    states_at,
)
from headwater.server.store.read.observed import read_schema
from headwater.server.store.read.timeline import schemas_at

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.insight import Neighbourhood
    from headwater.server.store.entities import Node
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

CHANGES = 50
COLUMNS = 50_000
NEVER = 2**62
Name = tuple[str, str, str]
"""A node by its kind, its namespace and its name."""


_From = TypedDict("_From", {"from": Time}, total=False)


class ColumnEdge(Edge):
    """Values go from one column to another; beside their ids as they are typed, NAMESPACE:NAME.COLUMN."""

    originName: str  # noqa: N815
    destinationName: str  # noqa: N815


class ChangedSchema(TypedDict):
    """What became of the columns of a dataset, in words, and whether its readers survive that."""

    dataset: str
    compatible: bool
    changes: list[str]


class ChangedState(TypedDict):
    """How a job stood at each of the moments."""

    job: str
    before: str
    after: str


class GraphDifference(_From, Sourced):
    """What changed between two moments."""

    to: Time | None
    appeared: list[str]
    vanished: list[str]
    added: list[Edge]
    removed: list[Edge]
    schemas: list[ChangedSchema]
    columnsAdded: list[ColumnEdge]  # noqa: N815
    columnsRemoved: list[ColumnEdge]  # noqa: N815
    states: list[ChangedState]
    hidden: int
    truncated: bool


@api.get("/api/v2/graph/diff", answer=GraphDifference, past=Past(changes=True))
def difference(
    view: View,
    node: str = text(example="job:shop:load"),
    start: int = moment(name="from", required=True),
    end: int = moment(NEVER, name="to"),
    depth: int = integer(3, 0, 50),
    limit: int = integer(300, 1, 5_000),
) -> dict[str, Any]:
    """What came, went and changed between two moments, in the whole estate or around a node.

    Of each kind of change at most `limit` are listed. `states` are those of the runs that decide: of a batch
    only whether it delivers (`OK`) or how it failed. `hidden` counts the jobs and datasets that a
    limited token cannot see: in the whole estate, or next to those around the node.
    """
    check_period(start, end)
    moments = (start, end)
    if node:
        near = _around(view, node_of(view, node), moments, depth, limit)
        jobs = {number for _, number in near.jobs}
        datasets = {number for _, number in near.datasets}
        parts = _moments(view, near.nodes, datasets, jobs, moments, near.cut)
        shown = {name for names in _names(view, jobs, datasets, moments) for name in names.values()}
        parts = [_within(part, shown) for part in parts]
        unseen = view.hidden_beside(*near.nodes)
    else:
        changed = changed_parts(view, start, end)
        parts = _moments(view, changed.nodes, changed.datasets, changed.jobs, moments, changed.cut)
        unseen = view.hidden_anywhere()
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
        "hidden": unseen,
        "truncated": found.cut
        or any(len(some) > limit for some in (*lists.values(), *whole))
        or any(len(one.changes) > CHANGES for one in found.schemas[:limit]),
    }


def _around(
    view: View, start: Node, moments: tuple[int, int], depth: int, limit: int
) -> Neighbourhood[Node]:
    """What lay around a node at one of two moments."""
    before, after = (
        around(view.graph(at, deleted_in=_deleted(at, moments)), start, depth=depth, limit=limit)
        for at in moments
    )
    return before | after


def _deleted(at: int, moments: tuple[int, int]) -> tuple[int, int] | None:
    """In which time what is deleted now may have been, to be in the graph of a moment."""
    return moments if at == moments[0] else None


def _within(part: Moment[Name], shown: set[Name]) -> Moment[Name]:
    """What of a moment lies between nodes that are shown."""
    return replace(
        part,
        nodes=part.nodes & shown,
        edges=frozenset(edge for edge in part.edges if shown.issuperset(edge)),
    )


def _names(
    view: View, jobs: Iterable[int], datasets: Iterable[int], moments: tuple[int, int]
) -> list[dict[Node, Name]]:
    """The names of these nodes at each of two moments, as far as they were there."""
    found_jobs, found_datasets = view.jobs(jobs), view.datasets(datasets)
    deleted = {job.id: job.hidden == DELETED for job in found_jobs.values()}
    gone = {one.id: one.hidden == DELETED for one in found_datasets.values()}
    return [
        {
            **{
                ("job", number): ("job", job.space, job.name)
                for number, job in found_jobs.items()
                if job.id in shown_jobs
            },
            **{
                ("dataset", number): ("dataset", one.space, one.name)
                for number, one in found_datasets.items()
                if one.id in shown_datasets
            },
        }
        for shown_jobs, shown_datasets in zip(
            shown_at(view, 1, deleted, moments), shown_at(view, 0, gone, moments), strict=True
        )
    ]


def _moments(
    view: View,
    nodes: Iterable[Node],
    datasets: set[int],
    jobs: set[int],
    moments: tuple[int, int],
    cut: bool,
) -> list[Moment[Name]]:
    """The edges of nodes at two moments by name, and what differs of datasets and jobs.

    Most of what a day touches is at its end what it was: only what is stored differently is read.
    """
    near = list(nodes)
    graphs = [view.graph(at, deleted_in=_deleted(at, moments)) for at in moments]
    drawn = [spanned(graph, near).edges for graph in graphs]
    schemas = differing(*(schemas_at(view, datasets, at) for at in moments))
    states = differing(*(states_at(view, jobs, at) for at in moments))
    columns = changed_columns(view, datasets, moments, COLUMNS)
    bodies = view.bodies(facet for some in schemas for facet in some.values())
    ends = {node for edges in drawn for edge in edges for node in edge}
    owners = {column[0] for some, _ in columns for edge in some for column in edge}
    both = _names(
        view,
        states[0].keys() | {number for kind, number in ends if kind == "job"},
        owners | schemas[0].keys() | {number for kind, number in ends if kind == "dataset"},
        moments,
    )
    parts = []
    for names, edges, facets, (fields, more), state_of in zip(
        both, drawn, schemas, columns, states, strict=True
    ):
        named = {(names[a], names[b]) for a, b in edges if a in names and b in names}
        parts.append(
            Moment(
                # A dataset with no edge at that moment was not part of the graph.
                frozenset(node for edge in named for node in edge),
                frozenset(named),
                {
                    names["dataset", number]: read_schema(bodies.get(facet))
                    for number, facet in facets.items()
                    if ("dataset", number) in names
                },
                cut or more,
                frozenset(
                    ((names["dataset", a[0]], a[1]), (names["dataset", b[0]], b[1]))
                    for a, b in fields
                    if ("dataset", a[0]) in names and ("dataset", b[0]) in names
                ),
                {
                    names["job", job]: state
                    for job, state in state_of.items()
                    if ("job", job) in names
                },
            )
        )
    return parts


def _column_edge(edge: tuple[tuple[Name, str], tuple[Name, str]]) -> ColumnEdge:
    (origin, origin_field), (destination, destination_field) = (
        (":".join(dataset[1:]), field) for dataset, field in edge
    )
    return {
        "origin": f"datasetField:{origin}:{origin_field}",
        "destination": f"datasetField:{destination}:{destination_field}",
        "originName": f"{origin}.{origin_field}",
        "destinationName": f"{destination}.{destination_field}",
    }


def _edge(edge: tuple[Name, Name]) -> dict[str, str]:
    return {"origin": ":".join(edge[0]), "destination": ":".join(edge[1])}
