"""What leads to a dataset or a column, or what it leads to, as a tree that can be read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from headwater.insight import along_values, tree
from headwater.lineage.moments import iso
from headwater.server.api import describe
from headwater.server.api.lookup import column_node, kind_of, node_of
from headwater.server.api.missing_columns import check_column
from headwater.server.api.parameters import flag, integer, moment, text
from headwater.server.api.present import when
from headwater.server.api.types import Object, Sourced, Time
from headwater.server.api.v2.page import columns
from headwater.server.http import HttpError
from headwater.server.routing import Past, Routes
from headwater.server.store.read.evidence import ReportedItems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.insight import LineageTree
    from headwater.server.store.entities import Column, Node
    from headwater.server.store.view import ColumnGraph, View

__all__ = ["api"]

api = Routes()

LIMIT = 1_000
EVIDENCE = 5


class Row(TypedDict):
    """A line of the tree: a node, below which line, and whether it is opened on another line."""

    node: str
    level: int
    parent: int | None
    repeated: bool


class Trace(Sourced):
    """A tree, and what its nodes and edges are; of a column's tree, `nodes` has the jobs too."""

    node: str
    direction: Literal["up", "down"]
    depth: int
    at: Time | None
    columnsKnown: bool | None  # noqa: N815
    rows: list[Row]
    nodes: list[Object]
    edges: list[Object]
    unknown: list[columns.Silent] | None
    hidden: int
    truncated: bool


@api.get("/api/v2/trace", answer=Trace, past=Past())
def trace(
    view: View,
    node: str = text(required=True, example="dataset:s3://lake:orders"),
    direction: str = text("up", options=("up", "down")),
    depth: int = integer(20, 1, 50),
    at: int | None = moment(),
    indirect: bool = flag(),
) -> dict[str, Any]:
    """What a dataset, a job or a column comes from, or what it leads to, as a tree.

    `depth` counts jobs between datasets. The columns of a tree are those whose values go along; with
    `indirect` also those that only decide which rows do. `columnsKnown` is false while no producer
    has reported the columns of the dataset, and null for a tree of jobs and datasets. `unknown` are jobs that
    write the dataset of a column (of a trace down: read it) and report no columns, null unless one is traced
    as it is now. 404 for a moment before anything was known of the node.
    """
    kind, rest = kind_of(node)
    asked = {"node": node, "direction": direction, "depth": depth, "at": when(at)}
    if kind == "datasetField":
        dataset, field = column_node(view, rest)
        _check_known(view, dataset.node, at)
        known = check_column(view, dataset, field, at)
        graph = view.column_graph(at, rows=indirect)
        start = (dataset.root, field)
        follow = None if indirect else along_values(graph)
        found = tree(
            graph, start, depth=depth, limit=LIMIT, downstream=direction == "down", follow=follow
        )
        down = direction == "down"
        unknown = columns.silent_beside(view, dataset, downstream=down) if at is None else None
        shown = {**_columns(view, graph, found, at, downstream=down), "unknown": unknown}
        return {**asked, "columnsKnown": known, **shown}
    here = node_of(view, node)
    _check_known(view, here, at)
    around = tree(
        view.graph(at), here, depth=2 * depth, limit=LIMIT, downstream=direction == "down"
    )
    return {**asked, "columnsKnown": None, "unknown": None, **_nodes(view, around, at)}


def _check_known(view: View, node: Node, at: int | None) -> None:
    """404 for a moment before the first record of a job or a dataset, under any of its names."""
    first = view.first_record(node)
    if at is not None and first is not None and at < first:
        raise HttpError(
            404,
            f"Nothing was known of this {node[0]} at {iso(at)}: its first record is of {iso(first)}.",
        )


def _rows(found: LineageTree[Any], ids: Mapping[Any, str]) -> list[Row]:
    """The lines of a tree; a parent is always there, since what is left out is left out at the ends."""
    rows: list[Row] = []
    places: dict[int, int] = {}
    for number, row in enumerate(found.rows):
        if row.node in ids and (row.parent is None or row.parent in places):
            places[number] = len(rows)
            parent = None if row.parent is None else places[row.parent]
            line: Row = {
                "node": ids[row.node],
                "level": row.level,
                "parent": parent,
                "repeated": row.repeated,
            }
            rows.append(line)
    return rows


def _columns(
    view: View, graph: ColumnGraph, found: LineageTree[Column], at: int | None, *, downstream: bool
) -> dict[str, Any]:
    shown = {row.node for row in found.rows}
    datasets = view.datasets({number for number, _ in shown})
    ids = {
        column: columns.column_id(column, datasets[column[0]])
        for column in shown
        if column[0] in datasets
    }
    edges = columns.edges(view, graph, found.edges, datasets)
    named = {job for edge in edges for job in edge["jobs"]}
    carrying = view.jobs({job for _, _, job in graph.carried(list(datasets))}).values()
    jobs = {job.id: job for job in carrying if describe.job_id(job) in named}
    beside = {("dataset", number) for number in datasets} | {("job", number) for number in jobs}
    if not downstream:
        beside |= {("job", number) for number in graph.partly_hidden(shown)}
    described = describe.datasets(view, datasets)
    nodes = [
        {**described[column[0]], "id": one, "kind": "column", "field": column[1]}
        for column, one in ids.items()
    ]
    nodes += describe.jobs(view, list(jobs.values()), at).values()
    return {
        "rows": _rows(found, ids),
        "nodes": sorted(nodes, key=lambda one: str(one["id"])),
        "edges": edges,
        "hidden": view.hidden_beside(*beside),
        "truncated": found.cut,
    }


def _nodes(view: View, found: LineageTree[Node], at: int | None) -> dict[str, Any]:
    shown = {row.node for row in found.rows}
    jobs = view.jobs(number for kind, number in shown if kind == "job")
    datasets = view.datasets(number for kind, number in shown if kind == "dataset")
    nodes: dict[Node, dict[str, Any]] = {
        ("dataset", number): one for number, one in describe.datasets(view, datasets).items()
    }
    described = describe.jobs(view, list(jobs.values()), at)
    nodes |= {("job", number): described[job.id] for number, job in jobs.items()}
    ids = {node: str(one["id"]) for node, one in nodes.items()}
    reported = ReportedItems(view, jobs.values(), ())
    known = {number: reported.beside(number) for number in jobs}
    edges = []
    for origin, destination in sorted(found.edges):
        if origin in ids and destination in ids:
            writes = origin[0] == "job"
            job, dataset = (origin, destination) if writes else (destination, origin)
            proof = known[job[1]].get((dataset[1], writes), [])
            ends = {"origin": ids[origin], "destination": ids[destination]}
            edges.append({**ends, "evidence": proof[:EVIDENCE]})
    return {
        "rows": _rows(found, ids),
        "nodes": sorted(nodes.values(), key=lambda one: str(one["id"])),
        "edges": edges,
        "hidden": view.hidden_beside(*shown),
        "truncated": found.cut,
    }
