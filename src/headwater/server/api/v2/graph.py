"""The graph around a node, now or at a past moment, and what changed between two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from headwater.insight import Moment
from headwater.insight import difference as compare
from headwater.lineage.graph import Edge
from headwater.lineage.lifecycle import State
from headwater.server.api.v1 import reader
from headwater.server.api.v1.nodes import dataset_node, job_node, kind_of
from headwater.server.api.v1.present import when
from headwater.server.api.v1.search import moment
from headwater.server.api.v2.schemas import read
from headwater.server.http import HttpError
from headwater.server.store import stored_graph as stored
from headwater.server.store.entities import OUTPUT
from headwater.server.store.neighbourhood import Found, Neighbourhood
from headwater.server.store.timeline import schemas_at

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.entities import Dataset, Job, Run
    from headwater.server.store.view import View

__all__ = ["routes"]

NODES = 300
CHANGES = 50


def _found(view: View, request: Request, at: int | None) -> Found:
    kind, rest = kind_of(request.query.get("node"))
    depth = request.integer("depth", 3, 0, 50)
    limit = request.integer("limit", NODES, 1, 5_000)
    around = Neighbourhood(view, at)
    if kind == "dataset":
        return around.around(datasets=[dataset_node(view, rest).root], depth=depth, limit=limit)
    if kind == "job":
        return around.around(jobs=[job_node(view, rest).id], depth=depth, limit=limit)
    raise HttpError(400, "node: must be a dataset or a job")


def _hidden(view: View, found: Found, at: int | None) -> dict[int, tuple[int, int]]:
    """For each dataset shown: how many jobs before and after it are not."""
    counts: dict[int, tuple[int, int]] = {}
    for job, dataset, direction in Neighbourhood(view, at).of_datasets(found.datasets):
        if job not in found.jobs:
            up, down = counts.get(dataset, (0, 0))
            counts[dataset] = (up + 1, down) if direction == OUTPUT else (up, down + 1)
    return counts


def graph(view: View, request: Request) -> dict[str, Any]:
    """Jobs and datasets within some steps of a node, bounded, with counts of what was left out."""
    at = moment(request, "at", 0) if request.query.get("at") else None
    found = _found(view, request, at)
    jobs, datasets = view.jobs(found.jobs), view.datasets(found.datasets)
    runs = view.runs(job.latest for job in jobs.values() if job.latest is not None)
    more = _hidden(view, found, at)
    nodes = [_dataset(d, found, more.get(d.id, (0, 0))) for d in datasets.values()]
    nodes += [_job(j, found, runs.get(j.latest or 0)) for j in jobs.values()]
    edges = []
    for job, dataset, direction in sorted(found.edges):
        if job in jobs and dataset in datasets:
            ends = (_id(datasets[dataset]), _id(jobs[job]))
            origin, destination = reversed(ends) if direction == OUTPUT else ends
            edges.append({"origin": origin, "destination": destination})
    return {
        "at": when(at),
        "nodes": sorted(nodes, key=lambda node: str(node["id"])),
        "edges": edges,
        "truncated": found.cut,
    }


def _id(item: Dataset | Job) -> str:
    kind = "job" if hasattr(item, "latest") else "dataset"
    return f"{kind}:{item.space}:{item.name}"


def _dataset(dataset: Dataset, found: Found, more: tuple[int, int]) -> dict[str, Any]:
    return {
        "id": _id(dataset),
        "kind": "dataset",
        "namespace": dataset.space,
        "name": dataset.name,
        "type": dataset.kind,
        "distance": found.datasets[dataset.id],
        "updatedAt": when(dataset.updated),
        "more": {"upstream": more[0], "downstream": more[1]},
    }


def _job(job: Job, found: Found, run: Run | None) -> dict[str, Any]:
    life = run.state.life if run else None
    return {
        "id": _id(job),
        "kind": "job",
        "namespace": job.space,
        "name": job.name,
        "type": job.kind,
        "distance": found.jobs[job.id],
        "updatedAt": when(job.updated),
        "state": life.state.value if life else State.NEW.value,
        "inferred": bool(life and life.is_inferred),
        "run": str(UUID(bytes=run.uuid)) if run else None,
    }


def difference(view: View, request: Request) -> dict[str, Any]:
    """What came, went and changed around a node between two moments."""
    if not request.query.get("from"):
        raise HttpError(400, "from: is missing")
    start = moment(request, "from", 0)
    end = moment(request, "to", 2**62)
    moments = [_moment(view, _found(view, request, at), at) for at in (start, end)]
    found = compare(*moments)
    return {
        "from": when(start),
        "to": when(end) if end < 2**62 else None,
        "appeared": [node.id for node in found.appeared],
        "vanished": [node.id for node in found.vanished],
        "added": [_edge(edge) for edge in found.added],
        "removed": [_edge(edge) for edge in found.removed],
        "schemas": [
            {
                "dataset": change.dataset.id,
                "compatible": change.compatible,
                "changes": [str(one) for one in change.changes[:CHANGES]],
            }
            for change in found.schemas
        ],
        "truncated": found.cut,
    }


def _moment(view: View, found: Found, at: int) -> Moment:
    """A part of the graph as it stood, with the schemas that were in force."""
    jobs = {number: stored.job_node(job) for number, job in view.jobs(found.jobs).items()}
    datasets = {
        number: stored.dataset_node(one) for number, one in view.datasets(found.datasets).items()
    }
    edges = set()
    for job, dataset, direction in found.edges:
        if job in jobs and dataset in datasets:
            ends = (datasets[dataset], jobs[job])
            edges.add(Edge(*(reversed(ends) if direction == OUTPUT else ends)))
    latest = schemas_at(view, datasets, at)
    bodies = view.bodies(latest.values())
    known = {datasets[n]: read(bodies.get(facet)) for n, facet in latest.items()}
    # A dataset with no edge at that moment was not part of the graph.
    nodes = {node for edge in edges for node in edge}
    return Moment(frozenset(nodes), frozenset(edges), known, found.cut)


def _edge(edge: Edge) -> dict[str, str]:
    return {"origin": edge.origin.id, "destination": edge.destination.id}


def routes(app: App) -> None:
    """`GET /api/v2/graph` and `GET /api/v2/graph/diff`."""
    app.router.add("GET", "/api/v2/graph", reader(app, graph))
    app.router.add("GET", "/api/v2/graph/diff", reader(app, difference))
