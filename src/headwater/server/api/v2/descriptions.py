"""Descriptions and owners that people give by hand; tags have routes of their own (`api/v1`)."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypedDict

import headwater
from headwater.lineage.openlineage.facets import ABOUT
from headwater.lineage.openlineage.writer import facet, head
from headwater.server.api.lookup import the_dataset, the_job
from headwater.server.api.submit_command import carry_out
from headwater.server.http import Response, bad_member
from headwater.server.routing import Routes
from headwater.server.store.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.entities import Dataset, Job

__all__ = ["api"]

api = Routes()

PRODUCER = f"urn:headwater:server:{headwater.__version__}"
LONGEST = 4_000
NAME = 200
OWNERS = 20


class About(TypedDict):
    """What a job or a dataset is for, and who owns it; empty for what its producer says."""

    description: str
    owners: list[str]


@api.route("PUT", "/api/v2/datasets/{namespace}/{dataset}/about", body=About, answer=About)
async def describe_dataset(app: App, request: Request, namespace: str, dataset: str) -> Response:
    """Say what a dataset is for and who owns it; that stands whatever its producer reports."""

    def shown(view: View) -> Dataset:
        """The dataset whose page has this name."""
        found = the_dataset(view, namespace, dataset)
        root = view.datasets([found.root]).get(found.root, found)
        return found if root.hidden else root

    return await _describe(app, request, "dataset", shown)


@api.route("PUT", "/api/v2/jobs/{namespace}/{job}/about", body=About, answer=About)
async def describe_job(app: App, request: Request, namespace: str, job: str) -> Response:
    """Say what a job is for and who owns it; that stands whatever its producer reports."""
    return await _describe(app, request, "job", lambda view: the_job(view, namespace, job))


async def _describe(
    app: App, request: Request, kind: str, find: Callable[[View], Dataset | Job]
) -> Response:
    body = request.json()
    description, owners = _description(body), _owners(body)
    with app.store.database.reading() as connection:
        found = find(View(connection, app.bodies))
    made = facet(
        PRODUCER,
        ABOUT,
        description=description or None,
        owners=[{"name": name} for name in owners] or None,
        _deleted=None if description or owners else True,
    )
    named = {"namespace": found.space, "name": found.name, "facets": {ABOUT: made}}
    event = {
        **head(PRODUCER, f"{kind.capitalize()}Event", datetime.now(timezone.utc)),
        kind: named,
    }
    await carry_out(app, {"command": "event", "event": event})
    return Response({"description": description, "owners": owners}, 200)


def _description(body: dict[str, Any]) -> str:
    value = body.get("description", "")
    if not isinstance(value, str) or len(value) > LONGEST:
        raise bad_member("description", f"must be a string of at most {LONGEST} characters")
    return value.strip()


def _owners(body: dict[str, Any]) -> list[str]:
    value = body.get("owners", [])
    if not isinstance(value, list) or len(value) > OWNERS:
        raise bad_member("owners", f"must be a list of at most {OWNERS} names")
    for name in value:
        if not isinstance(name, str) or not name.strip() or len(name) > NAME:
            raise bad_member("owners", f"must hold names of 1 to {NAME} characters")
    return list(dict.fromkeys(name.strip() for name in value))
