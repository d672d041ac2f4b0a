"""`/lineage` and `/column-lineage`, in Marquez's shape."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from headwater.server.api.v1.nodes import column_node, dataset_node, job_node, kind_of
from headwater.server.api.v1.present import Presenter
from headwater.server.http import HttpError, Request
from headwater.server.store.column_graph import ColumnGraph
from headwater.server.store.entities import OUTPUT, unslot
from headwater.server.store.neighbourhood import Neighbourhood

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["column_lineage", "lineage"]

DEPTH = 20
DEEPEST = 100


def lineage(view: View, request: Request) -> dict[str, Any]:
    """Jobs and datasets around a node, both ways."""
    kind, rest = kind_of(request.query.get("nodeId"))
    depth = request.integer("depth", DEPTH, 0, DEEPEST)
    neighbourhood = Neighbourhood(view)
    if kind == "dataset":
        found = neighbourhood.around(datasets=[dataset_node(view, rest).root], depth=depth)
    elif kind == "job":
        found = neighbourhood.around(jobs=[job_node(view, rest).id], depth=depth)
    else:
        node = request.query["nodeId"]
        raise HttpError(404, f"Node '{node}' must be of type dataset or job!")
    jobs, datasets = view.jobs(found.jobs), view.datasets(found.datasets)
    job_ids = {i: f"job:{j.space}:{j.name}" for i, j in jobs.items()}
    dataset_ids = {i: f"dataset:{d.space}:{d.name}" for i, d in datasets.items()}
    into: dict[str, list[dict[str, str]]] = defaultdict(list)
    out: dict[str, list[dict[str, str]]] = defaultdict(list)
    for job, dataset, direction in sorted(found.edges):
        if job not in job_ids or dataset not in dataset_ids:
            continue
        ends = (dataset_ids[dataset], job_ids[job])
        origin, destination = reversed(ends) if direction == OUTPUT else ends
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


def column_lineage(view: View, request: Request) -> dict[str, Any]:
    """Columns upstream of a column, of a dataset's columns or of a job's outputs."""
    kind, rest = kind_of(request.query.get("nodeId"))
    depth = request.integer("depth", DEPTH, 0, DEEPEST)
    graph = ColumnGraph(view)
    try:
        if kind == "datasetField":
            dataset, name = column_node(view, rest)
            start = [(dataset.root, name)]
        elif kind == "dataset":
            start = graph_columns(graph, [dataset_node(view, rest).root])
        elif kind == "job":
            job = job_node(view, rest)
            outputs = [unslot(slot) for slot in view.opened([job])[job.id]]
            ids = [dataset for dataset, direction in outputs if direction == OUTPUT]
            start = graph_columns(graph, view.roots(ids).values())
        else:
            raise HttpError(404, "Could not find node")
    except HttpError as error:
        raise HttpError(404, "Could not find node") from error
    found = graph.walk(start, depth=depth, downstream=request.flag("withDownstream"))
    datasets = view.datasets({column[0] for column in found.distance})
    types = _types(view, datasets)
    versions = view.versions("dataset", (d.version for d in datasets.values()))
    into: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
    out: dict[tuple[int, str], list[tuple[int, str]]] = defaultdict(list)
    for source, target in sorted(found.edges):
        into[target].append(source)
        out[source].append(target)

    def node_id(column: tuple[int, str]) -> str:
        dataset = datasets[column[0]]
        return f"datasetField:{dataset.space}:{dataset.name}:{column[1]}"

    def described(column: tuple[int, str]) -> dict[str, Any]:
        dataset = datasets[column[0]]
        return {
            "namespace": dataset.space,
            "dataset": dataset.name,
            "datasetVersion": versions.get(dataset.version or 0),
            "field": column[1],
        }

    def step(source: tuple[int, str], target: tuple[int, str]) -> dict[str, Any]:
        how = found.edges[source, target]
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


def graph_columns(graph: ColumnGraph, roots: Any) -> list[tuple[int, str]]:
    """The columns of datasets that have column lineage or a schema."""
    wanted = list(roots)
    columns = set(graph.outputs(wanted))
    columns |= set(_types(graph.view, graph.view.datasets(wanted)))
    return sorted(columns)


def _types(view: View, datasets: dict[int, Dataset]) -> dict[tuple[int, str], str]:
    presenter = Presenter(view)
    held = {d.id: d.state.facets.get("schema") for d in datasets.values()}
    bodies = view.bodies(h[0] for h in held.values() if h)
    return {
        (dataset, f["name"]): f["type"] or ""
        for dataset, facet in held.items()
        for f in presenter.fields(facet, bodies)
    }
