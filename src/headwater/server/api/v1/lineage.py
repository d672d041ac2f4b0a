"""`/lineage` and `/column-lineage`, in Marquez's shape."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, TypedDict

from headwater.insight import around, trace
from headwater.server.api.lookup import column_node, dataset_node, has_column, job_node, kind_of
from headwater.server.api.parameters import flag, integer, text
from headwater.server.api.present import Presenter
from headwater.server.api.types import Edge, Object
from headwater.server.http import HttpError
from headwater.server.routing import Routes
from headwater.server.store.entities import OUTPUT, unslot

if TYPE_CHECKING:
    from headwater.server.store.entities import Column, Dataset
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes(blank=True)  # as Marquez takes them

UNKNOWN = "HTTP 404 Not Found"
"""Marquez's error for a node id that is none."""

NODE, DEPTH = text(name="nodeId", required=True, example="job:shop:load"), integer(20, 0, 100)
JOBS, COLUMNS = 2_000, 20_000


class GraphNode(TypedDict):
    """A job, a dataset or a column, and the edges at it."""

    id: str
    type: str
    data: Object
    inEdges: list[Edge]
    outEdges: list[Edge]


class _Cut(TypedDict, total=False):
    truncated: bool


class Graph(_Cut):
    """A part of the graph as Marquez shows it."""

    graph: list[GraphNode]


@api.get("/api/v1/lineage", answer=Graph)
def lineage(view: View, node: str = NODE, depth: int = DEPTH) -> dict[str, Any]:
    """Jobs and datasets around a node, both ways."""
    kind, rest = kind_of(node, UNKNOWN)
    if kind not in ("dataset", "job"):
        raise HttpError(404, f"Node '{node}' must be of type dataset or job!")
    start = dataset_node(view, rest).node if kind == "dataset" else job_node(view, rest).node
    found = around(view.graph(), start, depth=depth, limit=JOBS)
    jobs = view.jobs(number for _, number in found.jobs)
    datasets = view.datasets(number for _, number in found.datasets)
    job_ids = {i: f"job:{j.space}:{j.name}" for i, j in jobs.items()}
    dataset_ids = {i: f"dataset:{d.space}:{d.name}" for i, d in datasets.items()}
    into: dict[str, list[dict[str, str]]] = defaultdict(list)
    out: dict[str, list[dict[str, str]]] = defaultdict(list)
    for (_, job), (_, dataset), writes in sorted(found.links):
        if job not in job_ids or dataset not in dataset_ids:
            continue
        ends = (dataset_ids[dataset], job_ids[job])
        origin, destination = reversed(ends) if writes else ends
        edge = {"origin": origin, "destination": destination}
        out[origin].append(edge)
        into[destination].append(edge)
    presenter = Presenter(view)
    nodes = []
    for kind_name, ids, answers in (
        ("DATASET", dataset_ids, presenter.datasets(list(datasets.values()), node=True)),
        ("JOB", job_ids, presenter.jobs(list(jobs.values()), facets=False, node=True)),
    ):
        for node_id, data in zip(ids.values(), answers, strict=True):
            nodes.append(
                {
                    "id": node_id,
                    "type": kind_name,
                    "data": data,
                    "inEdges": into[node_id],
                    "outEdges": out[node_id],
                }
            )
    answer: dict[str, Any] = {"graph": sorted(nodes, key=lambda n: str(n["id"]))}
    if found.cut:
        answer["truncated"] = True
    return answer


@api.get("/api/v1/column-lineage", answer=Graph)
def column_lineage(
    view: View, node: str = NODE, depth: int = DEPTH, downstream: bool = flag(name="withDownstream")
) -> dict[str, Any]:
    """Columns upstream of a column, of a dataset's columns or of a job's outputs."""
    kind, rest = kind_of(node, UNKNOWN)
    graph = view.column_graph()
    try:
        if kind == "datasetField":
            dataset, name = column_node(view, rest)
            start = [(dataset.root, name)]
            if not has_column(view, dataset, name):
                raise HttpError(404, "Could not find node")
        elif kind == "dataset":
            start = _columns(view, graph.outputs([root := dataset_node(view, rest).root]), [root])
        elif kind == "job":
            job = job_node(view, rest)
            outputs = [unslot(slot) for slot in view.opened([job])[job.id]]
            ids = [dataset for dataset, direction in outputs if direction == OUTPUT]
            roots = list(view.roots(ids).values())
            start = _columns(view, graph.outputs(roots), roots)
        else:
            raise HttpError(404, "Could not find node")
    except HttpError as error:
        raise HttpError(404, "Could not find node") from error
    found = trace(graph, start, depth=depth, limit=COLUMNS, downstream=downstream)
    datasets = view.datasets({column[0] for column in found.distance})
    types = _types(view, datasets)
    versions = view.versions("dataset", (d.version for d in datasets.values()))
    into: dict[Column, list[Column]] = defaultdict(list)
    out: dict[Column, list[Column]] = defaultdict(list)
    for source, target in sorted(found.edges):
        into[target].append(source)
        out[source].append(target)

    def node_id(column: Column) -> str:
        dataset = datasets[column[0]]
        return f"datasetField:{dataset.space}:{dataset.name}:{column[1]}"

    def described(column: Column) -> dict[str, Any]:
        dataset = datasets[column[0]]
        return {
            "namespace": dataset.space,
            "dataset": dataset.name,
            "datasetVersion": versions.get(dataset.version or 0),
            "field": column[1],
        }

    def step(source: Column, target: Column) -> dict[str, Any]:
        how = graph.how(source, target)
        first = how[0] if how else None
        return {
            "transformationDescription": (first.description or None) if first else None,
            "transformationType": first.subtype if first else None,
        }

    nodes: list[dict[str, Any]] = []
    for column in found.distance:
        if column[0] not in datasets:
            continue
        me = node_id(column)
        nodes.append(
            {
                "id": me,
                "type": "DATASET_FIELD",
                "data": described(column)
                | {
                    "fieldType": types.get(column, ""),
                    "transformationDescription": None,
                    "transformationType": None,
                    "inputFields": [
                        {**described(source), **step(source, column)} for source in into[column]
                    ],
                },
                "inEdges": [{"origin": me, "destination": node_id(s)} for s in into[column]],
                "outEdges": [{"origin": me, "destination": node_id(t)} for t in out[column]],
            }
        )
    answer: dict[str, Any] = {"graph": sorted(nodes, key=lambda n: str(n["id"]))}
    if found.cut:
        answer["truncated"] = True
    return answer


def _columns(view: View, known: set[Column], roots: list[int]) -> list[Column]:
    """The columns of datasets that have column lineage, and those in their schema."""
    return sorted(known | _types(view, view.datasets(roots)).keys())


def _types(view: View, datasets: dict[int, Dataset]) -> dict[Column, str]:
    presenter = Presenter(view)
    held = {d.id: d.state.facets.get("schema") for d in datasets.values()}
    bodies = view.bodies(h[0] for h in held.values() if h)
    return {
        (dataset, f["name"]): f["type"] or ""
        for dataset, facet in held.items()
        for f in presenter.fields(facet, bodies)
    }
