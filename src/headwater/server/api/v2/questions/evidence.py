"""Why an edge is drawn: when it held, which runs showed it, and what their producers know it from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict
from uuid import UUID

from headwater.insight import between
from headwater.lineage.openlineage.evidence_facet import FACET, read_evidence
from headwater.server.api import describe
from headwater.server.api.lookup import dataset_node, job_node, kind_of
from headwater.server.api.parameters import text
from headwater.server.api.present import when
from headwater.server.api.types import Named, Object, Time
from headwater.server.http import HttpError
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.read.evidence import evidence as of_pair
from headwater.server.store.read.evidence import intervals
from headwater.server.store.read.timeline import members, runs_of_dataset

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.openlineage.evidence_facet import Item
    from headwater.server.http import Request
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

INTERVALS = 100
JOBS = 20
RUNS = 10
ITEMS = 100


class EdgeInterval(TypedDict):
    """When an edge held."""

    since: Time
    until: Time | None


class Through(TypedDict):
    """A job that brings data of one dataset to another."""

    job: Named
    basis: Literal["lineage", "columnLineage", "all"]
    since: Time | None
    evidence: list[Object]


class _Proof(TypedDict, total=False):
    current: bool
    intervals: list[EdgeInterval]
    runs: list[Object]
    evidence: list[Object]
    jobs: list[Through]


class Evidence(_Proof):
    """Why an edge is shown: its evidence."""

    origin: str
    destination: str
    truncated: bool


@api.get("/api/v2/evidence", answer=Evidence)
def evidence(
    view: View,
    request: Request,
    origin: str = text(required=True, example="job:shop:load"),
    destination: str = text(required=True, example="dataset:s3://lake:orders"),
) -> dict[str, Any]:
    """The proof of one edge, between a job and a dataset in either order, or two datasets."""
    ends = [kind_of(origin), kind_of(destination)]
    kinds = [kind for kind, _ in ends]
    if kinds == ["dataset", "dataset"]:
        first, second = (dataset_node(view, rest) for _, rest in ends)
        found = _between(view, first, second)
        return {"origin": origin, "destination": destination, **found}
    if sorted(kinds) != ["dataset", "job"]:
        raise request.bad("origin", "must be a dataset, or a job with a dataset as destination")
    direction = OUTPUT if kinds[0] == "job" else INPUT
    job = job_node(view, next(rest for kind, rest in ends if kind == "job"))
    named = dataset_node(view, next(rest for kind, rest in ends if kind == "dataset"))
    ids = members(view, named.root)
    spans = intervals(view, job.id, ids, direction)
    if not spans:
        raise HttpError(404, "There is no such edge.")
    datasets = view.datasets(ids)
    items = _evidence(view, job, datasets.values(), direction)
    return {
        "origin": origin,
        "destination": destination,
        "current": any(until is None for _, until in spans),
        "intervals": [
            {"since": when(since), "until": when(until)} for since, until in spans[:INTERVALS]
        ],
        "runs": _runs(view, job, ids, direction),
        "evidence": items[:ITEMS],
        "truncated": len(spans) > INTERVALS or len(items) > ITEMS,
    }


def _between(view: View, origin: Dataset, target: Dataset) -> dict[str, Any]:
    """Through which jobs data of one dataset reaches another, and what says so."""
    numbers = [number for _, number in between(view.graph(), origin.node, target.node)]
    found = []
    for number, job in sorted(view.jobs(numbers[:JOBS]).items()):
        proof = of_pair(view, number, origin.root, target.root)
        if proof is not None:
            named = {"namespace": job.space, "name": job.name}
            since = when(proof["since"])
            found.append(
                {"job": named, "basis": proof["basis"], "since": since, "evidence": proof["items"]}
            )
    if not found:
        raise HttpError(404, "No job brings data of the one to the other.")
    return {"jobs": found, "truncated": len(numbers) > JOBS}


def _runs(view: View, job: Job, ids: list[int], direction: int) -> list[dict[str, Any]]:
    page = runs_of_dataset(view, ids, None, RUNS * 10, (direction,))
    return [
        {
            "id": str(UUID(bytes=run.uuid)),
            "state": run.state.life.state.value,
            "lastHeardAt": when(run.state.life.last),
        }
        for run in page.runs
        if run.job == job.id
    ][:RUNS]


def _evidence(
    view: View, job: Job, datasets: Iterable[Dataset], direction: int
) -> list[dict[str, Any]]:
    """The evidence that the job reports for this edge, and that the dataset reports for itself."""
    wanted = list(datasets)
    names = {(d.space, d.name) for d in wanted}
    facets = describe.Facets(view, [job.state.facets, *(d.state.facets for d in wanted)], FACET)
    own = read_evidence(facets.get(job.state.facets, FACET))
    found: list[dict[str, Any]] = []
    for edge in own.edges:
        near, far = (edge.output, edge.input) if direction == OUTPUT else (edge.input, edge.output)
        if near in names:
            shown: dict[str, Any] = {"with": {"namespace": far[0], "name": far[1]}}
            if edge.columns is not None:
                shown |= {"columns": edge.columns}
            found += [{**_item(item), **shown} for item in edge.items]
    for name, items in own.datasets:
        if name in names:
            found += map(_item, items)
    if not found:
        for dataset in wanted:
            found += map(_item, read_evidence(facets.get(dataset.state.facets, FACET)).items)
    return found


def _item(reported: Item) -> dict[str, Any]:
    return {name: reported.get(name) for name in ("source", "detail", "observed")}
