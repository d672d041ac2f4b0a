"""`/api/v2beta/search`: the search that Marquez's page asks of OpenSearch, answered from the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from headwater.lineage.lifecycle import State
from headwater.server.api.parameters import text
from headwater.server.api.present import job_type
from headwater.server.api.types import Object
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT, to_dataset, to_job, unslot
from headwater.server.store.view import DATASETS, JOBS

if TYPE_CHECKING:
    import msgspec

    from headwater.server.store.entities import Held, Run
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes(blank=True)  # as Marquez takes them

HITS = 10
SOUGHT = text(required=True, example="load")
TYPES = {
    State.NEW: "OTHER",
    State.RUNNING: "RUNNING",
    State.COMPLETED: "COMPLETE",
    State.FAILED: "FAIL",
    State.ABORTED: "ABORT",
}


class Hits(TypedDict):
    """What was found, as OpenSearch says it."""

    hits: list[Object]
    highlights: list[Object]


def _facets(view: View, *held: dict[str, Held]) -> list[dict[str, msgspec.Raw]]:
    bodies = view.facets(h[0] for one in held for h in one.values())
    return [{name: bodies[h[0]] for name, h in one.items() if h[0] in bodies} for one in held]


def _answer(hits: list[dict[str, Any]]) -> dict[str, Any]:
    return {"hits": hits, "highlights": [{"name": [hit["name"]]} for hit in hits]}


@api.get("/api/v2beta/search/jobs", answer=Hits)
def jobs(view: View, q: str = SOUGHT) -> dict[str, Any]:
    """Jobs whose name holds the text, the latest first, with their newest run."""
    holds = view.connection.holds.format("j")
    sql = JOBS + f" WHERE j.hidden = 0 AND {holds} ORDER BY j.updated DESC LIMIT ?"
    found = [to_job(row) for row in view.all(sql, (view.connection.sought(q), HITS))]
    runs = view.runs(job.latest for job in found if job.latest is not None)
    hits = []
    for job in found:
        run = runs.get(job.latest or 0)
        own, ran = _facets(view, job.state.facets, run.state.facets if run else {})
        hits.append(
            {
                "run_id": str(UUID(bytes=run.uuid)) if run else None,
                "name": job.name,
                "namespace": job.space,
                "eventType": TYPES[run.state.life.state if run else State.NEW],
                "type": job_type(job.kind),
                "facets": own,
                "runFacets": ran,
            }
        )
    return _answer(hits)


@api.get("/api/v2beta/search/datasets", answer=Hits)
def datasets(view: View, q: str = SOUGHT) -> dict[str, Any]:
    """Datasets whose name holds the text, the latest first, with the run that last wrote them."""
    holds = view.connection.holds.format("d")
    sql = DATASETS + f" WHERE d.hidden = 0 AND {holds} ORDER BY d.updated DESC LIMIT ?"
    found = [to_dataset(row) for row in view.all(sql, (view.connection.sought(q), HITS))]
    hits = []
    for dataset in found:
        run = _writer(view, dataset.id)
        uses: dict[int, dict[str, Held]] = {0: {}, 1: {}}
        for key, io in run.state.io.items() if run else ():
            if unslot(key)[0] == dataset.id:
                uses[unslot(key)[1]] = io.facets
        own, read, written = _facets(view, dataset.state.facets, uses[INPUT], uses[1 - INPUT])
        hits.append(
            {
                "run_id": str(UUID(bytes=run.uuid)) if run else None,
                "name": dataset.name,
                "namespace": dataset.space,
                "eventType": TYPES[run.state.life.state if run else State.NEW],
                "facets": own,
                "inputFacets": read,
                "outputFacets": written,
            }
        )
    return _answer(hits)


def _writer(view: View, dataset: int) -> Run | None:
    sql = (
        "SELECT run FROM dataset_version WHERE dataset = ? AND run IS NOT NULL"
        " ORDER BY time DESC, id DESC LIMIT 1"
    )
    rows = view.all(sql, (dataset,))
    return view.runs([rows[0][0]]).get(rows[0][0]) if rows else None
