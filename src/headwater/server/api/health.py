"""Is the server up, does its store answer, and can it be written?"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict
from weakref import WeakKeyDictionary

from headwater import __version__
from headwater.server.http import Request, Response
from headwater.server.routing import Routes
from headwater.server.store import StoreError

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["api"]

api = Routes()

SECONDS = 3.0
"""How long the store may take to answer before health reports it as unavailable."""
_events: WeakKeyDictionary[App, int] = WeakKeyDictionary()
"""The newest record that each app has read, for when its store does not answer."""


class _Troubles(TypedDict, total=False):
    problems: list[str]
    warnings: list[str]


class Health(_Troubles):
    """What a server says of itself."""

    status: str
    version: str
    store: str
    events: int
    assumed: dict[str, int]
    may: list[str]
    analysis: bool


@api.get("/api/v2/health", role="none", answer=Health, status=(200, 503))
async def health(app: App, request: Request) -> Response:
    """Is the server up? 200 while events are taken in and questions answered, else 503."""
    problems: list[str] = []
    try:
        _events[app] = await app.probe(SECONDS)
    except StoreError as error:
        problems.append(f"reading: {error.message}")
    if app.trouble is not None:
        problems.append(f"store: {app.trouble}")
    if app.ingest.failing is not None:
        problems.append(f"writing: {app.ingest.failing}")
    body: Health = {
        "status": "failing" if problems else "ok",
        "version": __version__,
        "store": app.store.database.dialect,
        "events": _events.get(app, 0),
        "assumed": dict(sorted(app.store.assumed.items())),
        "may": app.auth.may(request.credential),
        "analysis": app.analysis is not None,
    }
    if problems:
        body["problems"] = problems
    warnings = [*filter(None, [app.auth.warning]), *app.warnings.values()]
    if warnings:
        body["warnings"] = warnings
    return Response(body, 503 if problems else 200)
