"""Every connector that an agent reports: its tasks, their traces, what it reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from headwater.server.api.parameters import integer
from headwater.server.api.present import identifier
from headwater.server.api.types import Object
from headwater.server.api.v2.page import describe
from headwater.server.routing import Routes
from headwater.server.store.entities import OUTPUT, unslot

if TYPE_CHECKING:
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

LIMIT = 500
REPORT = "headwater_connect"


class Connectors(TypedDict):
    """Connectors as their page shows them."""

    connectors: list[Object]
    truncated: bool


@api.get("/api/v2/connectors", answer=Connectors)
def connectors(view: View, limit: int = integer(LIMIT, 1, LIMIT)) -> dict[str, Any]:
    """The connectors of every watched cluster, those in trouble first."""
    numbers = _numbers(view)
    shown = {job.id: job for job in view.jobs(numbers).values() if not job.hidden}
    found = list(shown.values())
    described = describe.jobs(view, found)
    runs = describe.latest_runs(view, found)
    held = [run.state.facets for run in runs.values()]
    facets = describe.Facets(view, held, REPORT, "errorMessage")
    opened = view.opened(found)
    datasets = view.datasets(unslot(key)[0] for held in opened.values() for key in held)
    answers = []
    for job in found:
        run = runs.get(job.id)
        own = run.state.facets if run else {}
        report = facets.get(own, REPORT)
        sides: dict[bool, list[dict[str, str]]] = {True: [], False: []}
        for key in opened[job.id]:
            number, direction = unslot(key)
            if number in datasets:
                one = datasets[number]
                sides[direction == OUTPUT].append(identifier(one.space, one.name))
        answers.append(
            {
                **described[job.id],
                "report": {k: v for k, v in report.items() if not k.startswith("_")},
                "failure": facets.get(own, "errorMessage") or None,
                "inputs": sides[False][:50],
                "outputs": sides[True][:50],
            }
        )
    order = ("FAILED", "ABORTED", "RUNNING", "NEW", "COMPLETED")
    answers.sort(key=lambda a: (order.index(a["state"]), a["namespace"], a["name"]))
    return {"connectors": answers[:limit], "truncated": len(answers) > limit}


def _numbers(view: View) -> list[int]:
    """The jobs whose `jobType` names Kafka Connect; equal facets are one, so few are read.

    Task jobs count as their parent job, so that many tasks leave room for others.
    """
    rows = view.job_facets("jobType")
    bodies = view.bodies({row[1] for row in rows})
    connect = {n for n, body in bodies.items() if _is_connect(body)}
    return sorted({entity for entity, facet in rows if facet in connect})[: LIMIT * 4]


def _is_connect(body: bytes) -> bool:
    value = msgspec.json.decode(body)
    integration = value.get("integration") if isinstance(value, dict) else None
    return isinstance(integration, str) and integration.upper() in (
        "KAFKA_CONNECT",
        "CONNECT",
        "DEBEZIUM",
    )
