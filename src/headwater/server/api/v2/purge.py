"""Hard deletion over HTTP, for administrators who say the name twice."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.events import Problem
from headwater.server.http import HttpError, Request, Response
from headwater.server.store.commands import NoSuchError
from headwater.server.store.purge import KINDS, Purged, Target, purge

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.store import Store

__all__ = ["routes"]


def _text(body: dict[str, Any], member: str) -> str:
    value = body.get(member)
    if not isinstance(value, str) or not value or "\0" in value:
        raise _bad(member, "must be a string that is not empty")
    return value


def _bad(member: str, problem: str) -> HttpError:
    return HttpError(422, f"{member} {problem}", [Problem(member, problem)])


def target_of(body: dict[str, Any]) -> Target:
    """What a request wants gone; it must say the last part of the name again in `confirm`."""
    kind = _text(body, "kind")
    if kind not in KINDS:
        raise _bad("kind", f"must be one of {', '.join(KINDS)}")
    namespace = _text(body, "namespace")
    target = Target(kind, namespace, "" if kind == "namespace" else _text(body, "name"))
    if body.get("confirm") != (target.name or target.namespace):
        raise _bad("confirm", "must be the name once more: what is deleted cannot be had back")
    return target


def routes(app: App) -> None:
    """`POST /api/v2/purge`."""

    async def handle(request: Request) -> Response:
        target = target_of(request.json())

        def work(store: Store) -> Purged:
            app.flow.forget()
            return purge(store, target)

        try:
            gone = await app.ingest.perform(work)
        except NoSuchError as error:
            raise HttpError(404, error.message) from error
        app.bodies.forget()
        return Response(gone._asdict())

    app.router.add("POST", "/api/v2/purge", handle, "admin", direct=True)
