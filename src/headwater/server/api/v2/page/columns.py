"""Column edges as the page draws them: how each comes about, by which job, on what evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headwater.insight import Hand, carriers, handed, trace
from headwater.server.api import describe
from headwater.server.api.lookup import column_node, dataset_node, kind_of
from headwater.server.api.missing_columns import check_column
from headwater.server.api.parameters import integer, moment, text
from headwater.server.api.types import Object, Sourced
from headwater.server.http import HttpError
from headwater.server.routing import Past, Routes
from headwater.server.store.read.evidence import ReportedItems

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.server.store.entities import Column, Dataset, Job
    from headwater.server.store.view import ColumnGraph, StoredGraph, View

    Edge = tuple[Column, Column]

__all__ = [
    "Silent", "api", "between", "column_id", "edges", "silent", "silent_beside",
]  # fmt: skip

api = Routes()

LIMIT = 1_000


class Silent(TypedDict):
    """A job that reads a dataset and writes another; nobody reported which columns go along."""

    job: str
    origin: str
    destination: str


class ColumnPaths(Sourced):
    """Columns, and how they come about."""

    columnsKnown: bool  # noqa: N815
    columns: list[Object]
    edges: list[Object]
    truncated: bool


@api.get("/api/v2/columns", answer=ColumnPaths, past=Past("both"))
def columns(
    view: View,
    node: str = text(required=True, example="dataset:s3://lake:orders"),
    depth: int = integer(20, 1, 50),
    at: int | None = moment(),
) -> dict[str, Any]:
    """The columns that lead to a column (or to a dataset's columns) and those it leads to.

    A dataset that nobody reported, or a column that the dataset lacks, is 404; `columnsKnown` is false
    while no producer has reported the columns of the dataset.
    """
    kind, rest = kind_of(node)
    graph = view.column_graph(at)
    if kind == "datasetField":
        dataset, name = column_node(view, rest)
        start = [(dataset.root, name)] if check_column(view, dataset, name, at) else []
    elif kind == "dataset":
        dataset = dataset_node(view, rest)
        facets = describe.Facets(view, [dataset.state.facets], "schema")
        fields = describe.flat(facets.raw(dataset.state.facets, "schema"))
        start = [(dataset.root, f["name"]) for f in fields]
        start += sorted(graph.outputs([dataset.root]) - set(start))
    else:
        raise HttpError(400, "node: must be a dataset or a column (datasetField:…)")
    found = trace(graph, start, depth=depth, downstream=True, limit=LIMIT)
    datasets = view.datasets({column[0] for column in found.distance})
    return {
        "columnsKnown": bool(start),
        "columns": [
            {**_named(column, datasets[column[0]]), "distance": far}
            for column, far in found.distance.items()
            if column[0] in datasets
        ],
        "edges": edges(view, graph, found.edges, datasets),
        "truncated": found.cut,
    }


def between(view: View, datasets: dict[int, Dataset], at: int | None) -> dict[str, Any]:
    """The column edges that both begin and end in these datasets."""
    graph = view.column_graph(at)
    start = sorted(graph.outputs(datasets))
    found = trace(graph, start, depth=1, limit=20 * LIMIT)
    return {"edges": edges(view, graph, found.edges, datasets), "truncated": found.cut}


def _named(column: Column, dataset: Dataset) -> dict[str, str]:
    return {
        "id": column_id(column, dataset),
        "dataset": describe.dataset_id(dataset),
        "field": column[1],
    }


def column_id(column: Column, dataset: Dataset) -> str:
    return f"datasetField:{dataset.space}:{dataset.name}:{column[1]}"


def _end(column: Column, dataset: Dataset) -> dict[str, str]:
    return {"namespace": dataset.space, "name": dataset.name, "field": column[1]}


def edges(
    view: View, graph: ColumnGraph, found: Iterable[Edge], datasets: dict[int, Dataset]
) -> list[dict[str, Any]]:
    """Column edges with how each comes about, by which jobs and on what evidence, in order."""
    shown = sorted(edge for edge in found if edge[0][0] in datasets and edge[1][0] in datasets)
    # Evidence on the edge itself is stronger than that jobs carry something between its datasets.
    jobs_by_edge = {
        edge: some & graph.ways(*edge).keys() or some
        for edge, some in carriers(graph, shown).items()
    }
    known = view.jobs({job for jobs in jobs_by_edge.values() for job in jobs})
    reported = ReportedItems(view, known.values(), datasets.values())
    answers = []
    for source, target in shown:
        jobs = [n for n in sorted(jobs_by_edge[source, target]) if n in known]
        answers.append(
            {
                "origin": column_id(source, datasets[source[0]]),
                "destination": column_id(target, datasets[target[0]]),
                "from": describe.dataset_id(datasets[source[0]]),
                "to": describe.dataset_id(datasets[target[0]]),
                "source": _end(source, datasets[source[0]]),
                "target": _end(target, datasets[target[0]]),
                "jobs": sorted({describe.job_id(known[n]) for n in jobs}),
                "masked": handed(graph.how(source, target)) is Hand.MASKED,
                "maskedBy": sorted(
                    describe.job_id(known[job])
                    for job, ways in graph.ways(source, target).items()
                    if job in known and handed(ways) is Hand.MASKED
                ),
                "how": [
                    {
                        "type": step.type,
                        "subtype": step.subtype,
                        "description": step.description,
                        "masking": bool(step.masking),
                    }
                    for step in graph.how(source, target)
                ],
                "evidence": reported.between(jobs, source[0], target[0]),
            }
        )
    return answers


def silent(
    found: Iterable[tuple[int, int, int]], jobs: Mapping[int, Job], datasets: Mapping[int, Dataset]
) -> list[Silent]:
    """Jobs that report no columns, each with an input and an output, as far as all three may be seen."""
    return [
        {
            "job": describe.job_id(jobs[job]),
            "origin": describe.dataset_id(datasets[origin]),
            "destination": describe.dataset_id(datasets[output]),
        }
        for job, origin, output in found
        if job in jobs and origin in datasets and output in datasets
    ]


def silent_beside(
    view: View, dataset: Dataset, graph: StoredGraph | None = None, *, downstream: bool = False
) -> list[Silent]:
    """Jobs that write a dataset now, or read it, and report no columns: more may come or go that way.

    `graph` is that of now, where the question has it already.
    """
    tagged, root = view.tagged_columns(), dataset.root
    found = tagged.silent_readers([root]) if downstream else tagged.silent_writers(root, graph)
    found = found[:LIMIT]
    jobs = view.jobs({job for job, _, _ in found})
    return silent(found, jobs, view.datasets({root for _, *ends in found for root in ends}))
