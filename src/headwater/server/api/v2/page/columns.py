"""Column edges as the page draws them: how each comes about, by which job, on what evidence."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from headwater.server.api.v1.nodes import column_node, dataset_node, kind_of
from headwater.server.api.v1.search import moment
from headwater.server.api.v2.page import describe
from headwater.server.http import HttpError
from headwater.server.store.column_graph import ColumnGraph
from headwater.server.store.database import within

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.http import Request
    from headwater.server.store.column_graph import Column, Columns
    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["between", "columns"]

LIMIT = 1_000


def columns(view: View, request: Request) -> dict[str, Any]:
    """The columns that lead to a column (or to a dataset's columns) and those it leads to."""
    kind, rest = kind_of(request.query.get("node"))
    at = moment(request, "at", 0) if request.query.get("at") else None
    depth = request.integer("depth", 20, 1, 50)
    graph = ColumnGraph(view, at)
    if kind == "datasetField":
        dataset, name = column_node(view, rest)
        start = [(dataset.root, name)]
    elif kind == "dataset":
        dataset = dataset_node(view, rest)
        facets = describe.Facets(view, [dataset.state.facets], "schema")
        fields = describe.flat(facets.raw(dataset.state.facets, "schema"))
        start = [(dataset.root, f["name"]) for f in fields]
        start += sorted(graph.outputs([dataset.root]) - set(start))
    else:
        raise HttpError(400, "node: must be a dataset or a column (datasetField:…)")
    found = graph.walk(start, depth=depth, downstream=True, limit=LIMIT)
    datasets = view.datasets({column[0] for column in found.distance})
    return {
        "columns": [
            {**_named(column, datasets[column[0]]), "distance": far}
            for column, far in found.distance.items()
            if column[0] in datasets
        ],
        "edges": _edges(view, found, datasets),
        "truncated": found.cut,
    }


def between(view: View, datasets: dict[int, Dataset], at: int | None) -> dict[str, Any]:
    """The column edges that both begin and end in these datasets."""
    graph = ColumnGraph(view, at)
    start = sorted(graph.outputs(datasets))
    found = graph.walk(start, depth=1, limit=20 * LIMIT)
    return {"edges": _edges(view, found, datasets), "truncated": found.cut}


def _named(column: Column, dataset: Dataset) -> dict[str, str]:
    return {
        "id": _id(column, dataset),
        "dataset": describe.dataset_id(dataset),
        "field": column[1],
    }


def _id(column: Column, dataset: Dataset) -> str:
    return f"datasetField:{dataset.space}:{dataset.name}:{column[1]}"


def _end(column: Column, dataset: Dataset) -> dict[str, str]:
    return {"namespace": dataset.space, "name": dataset.name, "field": column[1]}


def _edges(view: View, found: Columns, datasets: dict[int, Dataset]) -> list[dict[str, Any]]:
    makers = _makers(view, datasets)
    proofs = _proofs(view, datasets)
    told = _told(view, {job for jobs in makers.values() for job in jobs})
    answers = []
    for (source, target), how in sorted(found.edges.items()):
        if source[0] not in datasets or target[0] not in datasets:
            continue
        jobs = makers.get((source[0], target[0]), {}).values()
        ends = (datasets[source[0]].name, datasets[target[0]].name)
        proof = [item for job in jobs for item in told.get((job, *ends), ())]
        answers.append(
            {
                "origin": _id(source, datasets[source[0]]),
                "destination": _id(target, datasets[target[0]]),
                "from": describe.dataset_id(datasets[source[0]]),
                "to": describe.dataset_id(datasets[target[0]]),
                "source": _end(source, datasets[source[0]]),
                "target": _end(target, datasets[target[0]]),
                "jobs": sorted(set(jobs)),
                "how": [
                    {
                        "type": step.type,
                        "subtype": step.subtype,
                        "description": step.description,
                        "masking": bool(step.masking),
                    }
                    for step in how
                ],
                "evidence": proof or proofs.get(target[0], []),
            }
        )
    return answers


def _makers(view: View, datasets: Iterable[int]) -> dict[tuple[int, int], dict[int, str]]:
    """The jobs that carry columns from one dataset to another."""
    wanted = {root: root for root in datasets}
    sql = "SELECT id, root FROM dataset WHERE root <> id AND root IN ({in})"
    wanted.update(dict(within(view.connection, sql, list(wanted))))
    sql = (
        "SELECT DISTINCT c.source, c.dataset, coalesce(f.whole, c.job) FROM column_link c"
        " LEFT JOIN fold f ON f.job = c.job WHERE c.dataset IN ({in})"
    )
    rows = within(view.connection, sql, list(wanted))
    roots = view.roots(row[0] for row in rows)
    jobs = view.jobs(row[2] for row in rows)
    found: dict[tuple[int, int], dict[int, str]] = defaultdict(dict)
    for source, dataset, job in rows:
        if job in jobs and source in roots:
            found[roots[source], wanted[dataset]][job] = describe.job_id(jobs[job])
    return found


def _proofs(view: View, datasets: dict[int, Dataset]) -> dict[int, list[dict[str, Any]]]:
    """What each dataset's producers say they know it from."""
    facets = describe.Facets(
        view, (d.state.facets for d in datasets.values()), "headwater_evidence"
    )
    found = {}
    for number, dataset in datasets.items():
        said = describe.evidence_of(facets.get(dataset.state.facets, "headwater_evidence"))
        if said:
            found[number] = said
    return found


def _told(view: View, jobs: Iterable[int]) -> dict[tuple[str, str, str], list[dict[str, Any]]]:
    """What jobs say they know an edge from, by job and the names at both ends."""
    wanted = view.jobs(jobs)
    facets = describe.Facets(view, (j.state.facets for j in wanted.values()), "headwater_evidence")
    found: dict[tuple[str, str, str], list[dict[str, Any]]] = {}
    for job in wanted.values():
        said = facets.get(job.state.facets, "headwater_evidence")
        for edge in describe.listed(said, "edges"):
            names = [describe.name_of(edge, side) for side in ("input", "output")]
            found[describe.job_id(job), names[0], names[1]] = describe.evidence_of(edge)
    return found
