"""One run, its facets, and the runs before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from headwater.insight import trace
from headwater.server.api.lookup import the_run
from headwater.server.api.parameters import integer, text
from headwater.server.api.present import Presenter, identifier, when
from headwater.server.api.types import Run
from headwater.server.api.v1.lists import Runs
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT, slot

if TYPE_CHECKING:
    from headwater.server.http import Request
    from headwater.server.store import entities
    from headwater.server.store.view import View

__all__ = ["RUN", "api", "one_run"]

api = Routes(blank=True)  # as Marquez takes them

RUN = "/api/v1/jobs/runs/{id}"


@api.get(RUN, answer=Run)
def one_run(view: View, request: Request) -> dict[str, Any]:
    """One run."""
    found = the_run(view, request.path["id"])
    return Presenter(view).runs([found], view.jobs([found.job]))[found.id]


@api.get(RUN + "/facets")
def run_facets(
    view: View, request: Request, kind: str = text("run", name="type", options=("run", "job"))
) -> dict[str, Any]:
    """A run's own facets, or those its job had in it."""
    found = the_run(view, request.path["id"])
    numbers = found.state.job_facets
    if kind == "run":
        numbers = {name: held[0] for name, held in found.state.facets.items()}
    bodies = view.facets(numbers.values())
    facets = {name: bodies[number] for name, number in numbers.items() if number in bodies}
    return {"runId": str(UUID(bytes=found.uuid)), "facets": facets}


@api.get("/api/v1/runlineage/upstream", answer=Runs)
def upstream_runs(
    view: View,
    run: str = text(name="runId", required=True, example="00000000-0000-4000-8000-000000000001"),
    depth: int = integer(10, 0, 50),
) -> dict[str, Any]:
    """The runs that made what a run read, and those before them.

    Of a run before it, as far as pairs are known, the inputs that feed what was read of it.
    """
    first = the_run(view, run)
    graph = view.run_graph()
    # A step from a run leads to what it read, the next one to the run that made that.
    found = trace(
        graph, [(first.id, 0)], depth=2 * depth + 1, limit=1_000, counts=lambda node: not node[1]
    )
    passed = {(near, far) for near, far, _ in found.steps}
    answers = []
    for node in found.distance:
        one = None if node[1] else graph.run(node[0])
        if one is not None:
            reads = [read for read in graph.inputs(one.id) if (node, graph.node(read)) in passed]
            answers.append(_upstream(view, one, reads))
    return {"runs": answers}


def _upstream(view: View, run: entities.Run, inputs: list[entities.RunInput]) -> dict[str, Any]:
    owner = view.jobs([run.job]).get(run.job)
    versions = view.versions("job", [run.state.version])
    life = run.state.life
    return {
        "job": {
            "namespace": owner.space if owner else None,
            "name": owner.name if owner else None,
            "version": versions.get(run.state.version or 0),
        },
        "run": {
            "id": str(UUID(bytes=run.uuid)),
            "start": when(life.started),
            "end": when(life.end),
            "status": life.state.value,
        },
        "inputs": [_read(view, run, read) for read in inputs],
    }


def _read(view: View, run: entities.Run, read: entities.RunInput) -> dict[str, Any]:
    named = view.datasets([read.dataset])[read.dataset]
    version = str(UUID(bytes=read.version)) if read.version else None
    if version is None:
        held = run.state.io[slot(read.dataset, INPUT)].version
        version = view.versions("dataset", [held]).get(held or 0)
    return {
        **identifier(named.space, named.name),
        "version": version,
        "producedByRunId": str(UUID(bytes=read.maker.uuid)) if read.maker else None,
    }
