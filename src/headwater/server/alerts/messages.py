"""An incident as a message: JSON for programs, and the shape that Slack takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import iso
from headwater.lineage.url_paths import path_of
from headwater.lineage.wording import affected_text
from headwater.server.alerts.incidents import RESOLVED

if TYPE_CHECKING:
    from headwater.server.alerts.incidents import EntityRef, Incident
    from headwater.server.alerts.rules import Rule

__all__ = ["link_of", "message", "shown", "slack", "trial_message"]

SLACK_TEXT = 2_900
"""Slack takes 3,000 characters in one block."""


def link_of(page: str, named: EntityRef) -> str:
    """Where the page shows a job or a dataset; of a namespace, the overview."""
    if named.type == "namespace":
        return f"{page}/"
    return page + path_of(f"{named.type}s", named.namespace, named.name)


def _named(one: EntityRef) -> dict[str, Any]:
    return {"type": one.type, "namespace": one.namespace, "name": one.name}


def shown(one: Incident) -> dict[str, Any]:
    """An incident as messages and the API have it."""
    body = one.body
    return {
        "id": one.id,
        "kind": one.kind,
        "title": body.title,
        "subject": _named(body.subject),
        "since": iso(one.since),
        "openedAt": iso(one.opened),
        "resolvedAt": iso(one.resolved) if one.resolved is not None else None,
        "detail": body.detail or None,
        "run": body.run or None,
        "rules": body.rules,
        "owners": body.owners,
        "with": [_named(item) for item in body.members],
        "stale": [_named(item) for item in body.stale],
        "affected": {
            "jobs": body.jobs,
            "datasets": body.datasets,
            "more": body.more,
            "names": [_named(item) for item in body.affected],
        },
    }


def message(one: Incident, phase: int, page: str) -> dict[str, Any]:
    """What a channel gets: `delivery` is the same when a message has to be sent again.

    Without the address of the page there is no `link`.
    """
    status = "resolved" if phase == RESOLVED else "opened"
    found = {"status": status, "delivery": f"{one.id}-{status}", **shown(one)}
    return found | {"link": link_of(page, one.body.subject)} if page else found


def trial_message(rule: Rule, page: str) -> dict[str, Any]:
    """A message for a rule without an incident, marked as a test."""
    now = iso(time.time_ns() // 1000 // SECOND * SECOND)
    found = {
        "status": "test",
        "delivery": f"test-{rule.name}-{now}",
        "id": "test",
        "kind": rule.when,
        "title": f"Test of the alert rule {rule.name}: nothing is wrong",
        "subject": {"type": "rule", "namespace": "", "name": rule.name},
        "since": now,
        "openedAt": now,
        "resolvedAt": None,
        "detail": None,
        "run": None,
        "rules": [rule.name],
        "owners": [],
        "with": [],
        "stale": [],
        "affected": {"jobs": 0, "datasets": 0, "more": False, "names": []},
    }
    return found | {"link": f"{page}/"} if page else found


def _safe(text: str) -> str:
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def slack(payload: dict[str, Any]) -> dict[str, Any]:
    """A message as Slack's incoming webhooks take it."""
    prefix = {"resolved": "Resolved: ", "opened": "", "test": ""}[payload["status"]]
    head = _safe(f"{prefix}{payload['title']}")
    lines = [f"*<{payload['link']}|{head}>*" if "link" in payload else f"*{head}*"]
    if payload["status"] == "opened" and payload["detail"]:
        lines.append("> " + _safe(payload["detail"]).replace("\n", "\n> "))
    until = f" until {payload['resolvedAt']}" if payload["resolvedAt"] else ""
    lines.append(f"since {payload['since']}{until}")
    if behind := affected_text(payload["affected"], names=8):
        lines.append(_safe(behind))
    if payload["owners"]:
        lines.append(_safe("owners: " + ", ".join(payload["owners"])))
    lines.append(_safe(f"rule {', '.join(payload['rules'])} · incident {payload['id']}"))
    text = "\n".join(lines)[:SLACK_TEXT]
    return {"text": head, "blocks": [{"type": "section", "text": {"type": "mrkdwn", "text": text}}]}
