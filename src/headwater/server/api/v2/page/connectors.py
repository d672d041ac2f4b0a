"""Every connector that an agent reports: its tasks, their traces, what it reads and writes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from headwater.errors import UsageError
from headwater.lineage import naming
from headwater.lineage.openlineage.events import EventProblem
from headwater.lineage.schema import Schema
from headwater.server.api import describe
from headwater.server.api.parameters import integer
from headwater.server.api.present import sides
from headwater.server.api.types import Named, Object
from headwater.server.http import HttpError, bad_member
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.read.observed import read_schema

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

LIMIT = 500
LONGEST = 200_000
LONGEST_ADDRESS = 2_000
REPORT = "headwater_connect"


class Connectors(TypedDict):
    """Connectors as their page shows them."""

    connectors: list[Object]
    truncated: bool


class _PostPreview(TypedDict, total=False):
    bootstrap: str


class PostPreview(_PostPreview):
    """A connector's configuration, JSON or properties, and the address of its Kafka cluster."""

    config: str


class PreviewedEdge(TypedDict):
    """An input that would feed an output; `columns` are pairs, or null where they are not known."""

    input: Named
    output: Named
    columns: list[list[str]] | None
    evidence: list[str]


class ConnectorPreview(TypedDict):
    """What a connector would read and write."""

    name: str
    family: str
    type: str | None
    inputs: list[Named]
    outputs: list[Named]
    edges: list[PreviewedEdge]
    problems: list[str]


@api.get("/api/v2/connectors", answer=Connectors)
def connectors(view: View, limit: int = integer(LIMIT, 1, LIMIT)) -> dict[str, Any]:
    """The connectors of every watched cluster, those in trouble first; deleted ones are none."""
    numbers, gone = _numbers(view), view.deleted_jobs()
    shown = {
        job.id: job for job in view.jobs(numbers).values() if not job.hidden and job.id not in gone
    }
    found = list(shown.values())
    described = describe.jobs(view, found)
    runs = describe.latest_runs(view, found)
    held = [run.state.facets for run in runs.values()]
    facets = describe.Facets(view, held, REPORT, "errorMessage")
    used = sides(view, found)
    answers = []
    for job in found:
        run = runs.get(job.id)
        own = run.state.facets if run else {}
        report = facets.get(own, REPORT)
        answers.append(
            {
                **described[job.id],
                "report": {k: v for k, v in report.items() if not k.startswith("_")},
                "failure": facets.get(own, "errorMessage") or None,
                "inputs": used[job.id][INPUT][:50],
                "outputs": used[job.id][OUTPUT][:50],
            }
        )
    order = ("FAILED", "ABORTED", "RUNNING", "NEW", "COMPLETED")
    answers.sort(
        key=lambda a: (
            order.index("COMPLETED" if a["planned"] else a["state"]), a["namespace"], a["name"]
        )
    )  # fmt: skip
    return {"connectors": answers[:limit], "truncated": len(answers) > limit}


@api.route(
    "POST", "/api/v2/connectors/preview", role="read", body=PostPreview, answer=ConnectorPreview
)
def preview(app: App, view: View, request: Request) -> dict[str, Any]:
    """The lineage that a connector would have if it were deployed; nothing is sent to Connect.

    The columns of its topics are those that the server knows.
    """
    body = request.json()
    config, bootstrap = body.get("config"), body.get("bootstrap", "")
    if not isinstance(config, str) or not config.strip() or len(config) > LONGEST:
        problem = f"must be the text of a configuration, at most {LONGEST:,} characters"
        raise bad_member("config", problem)
    if not isinstance(bootstrap, str) or len(bootstrap) > LONGEST_ADDRESS:
        problem = "must be Kafka's address, such as kafka:9092"
        raise bad_member("bootstrap", problem)
    if app.preview is None:
        raise HttpError(404, "this server has no preview of connectors")
    try:
        return app.preview(config, bootstrap, lambda topic: _schema(view, bootstrap, topic))
    except UsageError as error:
        raise HttpError(422, error.message, [EventProblem("config", error.message)]) from None


def _schema(view: View, bootstrap: str, topic: str) -> Schema | None:
    """The value schema of a topic, as the server knows it now."""
    try:
        found = view.dataset(naming.kafka_namespace(bootstrap), topic)
    except naming.NamingError:
        return None
    held = found.state.facets.get("schema") if found and not found.hidden else None
    if held is None:
        return None
    known = read_schema(view.bodies([held[0]]).get(held[0]))
    fields = tuple(field for field in known.fields if field.name != "key")
    return Schema(fields) if fields else None


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
