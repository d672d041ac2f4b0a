"""Alerts: the rules, what is open, what was of late, and a test message."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, TypedDict

from msgspec.structs import replace

from headwater.lineage.moments import SECOND
from headwater.server.alerts import incidents
from headwater.server.alerts.messages import shown
from headwater.server.alerts.schema_breaks import breaking_title
from headwater.server.api.parameters import integer
from headwater.server.api.present import when
from headwater.server.api.types import Object, Time
from headwater.server.http import HttpError, Response, bad_member
from headwater.server.routing import Routes
from headwater.server.store.read.namespace_limit import HIDDEN

if TYPE_CHECKING:
    from headwater.server.alerts.incidents import Incident
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["api", "listed"]

api = Routes()

SENT = ("opened", "resolved")


class AlertRule(TypedDict):
    """A rule of this server's file: what it reports, to which channels, after how long."""

    name: str
    when: str
    to: list[str]
    forSeconds: float


class AlertDelivery(TypedDict):
    """What became of a message: it is `waiting` until it has arrived or is given up."""

    channel: str
    message: Literal["opened", "resolved"]
    state: Literal["sent", "waiting", "given up"]
    attempts: int
    error: str | None


class AlertIncident(TypedDict):
    """Something that is wrong, or was.

    `with` broke together with the subject; `stale` are the datasets that rules asked for;
    `affected` is what lies downstream.
    """

    id: str
    kind: Literal[
        "run-failed", "stale", "schema-breaks", "new-reader", "producer-silent", "check-failed"
    ]
    title: str
    subject: Object
    since: Time
    openedAt: Time
    resolvedAt: Time | None
    detail: str | None
    run: str | None
    rules: list[str]
    owners: list[str]
    stale: list[Object]
    affected: Object
    deliveries: list[AlertDelivery]


class AlertList(TypedDict):
    """The rules of this server, what is open, and what was; the newest first.

    `lookedAt` is None on a server that does not lead, or has no rules.
    """

    rules: list[AlertRule]
    lookedAt: Time | None
    open: list[AlertIncident]
    resolved: list[AlertIncident]
    truncated: bool


class PostTest(TypedDict, total=False):
    """The rule to test; without one, all of them."""

    rule: str


class TestedChannel(TypedDict):
    """Whether a test message arrived."""

    rule: str
    channel: str
    sent: bool
    error: str | None


class TestedChannels(TypedDict):
    """What became of the test messages."""

    results: list[TestedChannel]


@api.get("/api/v2/alerts", answer=AlertList)
def alerts(app: App, view: View, limit: int = integer(50, 1, 1_000)) -> dict[str, Any]:
    """Alert rules, open incidents, and those that are over, with what was sent of each."""
    found = incidents.list_incidents(view.connection, limit=limit + 1)
    past = incidents.list_incidents(view.connection, resolved_since=0, limit=limit + 1)
    rules = app.alerts.rules.rules.values() if app.alerts else ()
    return {
        "rules": [
            {
                "name": rule.name,
                "when": rule.when,
                "to": list(rule.to),
                "forSeconds": rule.lasting / SECOND,
            }
            for rule in rules
        ],
        "lookedAt": when(app.alerts.evaluated_at) if app.alerts else None,
        "open": listed(view, found[:limit]),
        "resolved": listed(view, past[:limit]),
        "truncated": max(len(found), len(past)) > limit,
    }


def listed(view: View, some: list[Incident]) -> list[dict[str, Any]]:
    """Incidents with what became of their messages."""
    sent = incidents.deliveries(view.connection, [one.id for one in some])
    return [
        {
            **shown(_without_hidden(view, one)),
            "deliveries": [
                {
                    "channel": channel,
                    "message": SENT[phase],
                    "state": "waiting" if done is None else "given up" if error else "sent",
                    "attempts": attempts,
                    "error": error,
                }
                for channel, phase, attempts, done, error in sent.get(one.id, ())
            ],
        }
        for one in some
    ]


def _without_hidden(view: View, one: Incident) -> Incident:
    """The incident without what its texts say of jobs that the token may not read."""
    jobs = [job for job in one.body.members if job.type == "job"]
    if view.limit is None or all(view.limit.allows(job.namespace) for job in jobs):
        return one
    names = [job.name if view.limit.allows(job.namespace) else HIDDEN for job in jobs]
    body = one.body
    if one.kind == "new-reader":
        # Its one job has the owners too.
        rest = body.title.removeprefix(jobs[0].name)
        body = replace(body, title=f"{names[0]}{rest}", owners=[])
    elif one.kind == "schema-breaks":
        count = body.breaks or len(names)  # an incident of an earlier release has none
        body = replace(body, title=breaking_title(body.subject.name, names, count))
    return replace(one, body=body)


@api.route("POST", "/api/v2/alerts/test", role="admin", body=PostTest, answer=TestedChannels)
async def test(app: App, request: Request) -> Response:
    """Send a test message, marked as one, through the channels of a rule or of all."""
    if app.alerts is None:
        raise HttpError(404, "this server has no alert rules: start it with --alerts FILE")
    rule = request.json().get("rule") if request.body else None
    if rule is not None and not isinstance(rule, str):
        raise bad_member("rule", "must be the name of a rule")
    known = app.alerts.rules.rules
    if rule is not None and rule not in known:
        raise HttpError(404, f"no alert rule is called {rule}; known: {', '.join(known)}")
    results = [
        {"rule": name, "channel": channel, "sent": error is None, "error": error}
        for name in ([rule] if rule is not None else known)
        for channel, error in await app.alerts.test(name)
    ]
    return Response({"results": results})
