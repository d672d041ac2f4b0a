"""`/api/v2/live`, a stream of server-sent events, and `/api/v2/flow`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

import msgspec

from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventProblem
from headwater.server.api.parameters import moment, text
from headwater.server.api.types import Object
from headwater.server.http import HttpError, Receive, Request, Response, Send
from headwater.server.ingest.flow import read_flow
from headwater.server.routing import Parameter, Routes

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headwater.server.app import App
    from headwater.server.store.read.namespace_limit import Limit
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()


AFTER: Any = Parameter(
    lambda request, name: request.query.get(name, ""),
    {"type": "integer", "minimum": 0, "default": 0},
)
"""Where to go on; one that is no number counts as none, as `Last-Event-ID` does."""


class Samples(TypedDict):
    """Samples of what flows."""

    samples: list[Object]


class Taken(TypedDict):
    """How many samples were taken, and what was wrong with the others."""

    accepted: int
    refused: Any


class Flow(TypedDict):
    """What flows."""

    flow: list[Object]


HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


@api.get("/api/v2/live", media="text/event-stream")
async def live(
    app: App, request: Request, after: str = AFTER
) -> Callable[[Receive, Send], Awaitable[None]]:
    """Server-sent events: what changes."""
    last = (request.header(b"last-event-id") or b"").decode("latin-1") or after
    start = int(last) if last.isdecimal() else None
    limit = app.auth.limit(request.credential)

    async def stream(receive: Receive, send: Send) -> None:
        await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
        gone = asyncio.ensure_future(_gone(receive))
        pump = asyncio.ensure_future(_pump(app, start, limit, send))
        _, left = await asyncio.wait({gone, pump}, return_when=asyncio.FIRST_COMPLETED)
        for task in left:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        with contextlib.suppress(OSError):
            await send({"type": "http.response.body", "body": b""})

    return stream


@api.route("POST", "/api/v2/flow", body=Samples, answer=Taken, status=(202, 422))
async def post_flow(app: App, request: Request) -> Response:
    """Send samples of what flows."""
    try:
        taken, problems = app.flow.take(request.body, app.settings.batch_events)
    except (msgspec.DecodeError, KeyError, RecursionError) as error:
        raise HttpError(
            400, "not a list of samples", [EventProblem("samples", str(error))]
        ) from None
    for sample in taken:
        app.live.broadcast("flow", sample)
    return Response(
        {"accepted": len(taken), "refused": problems}, 202 if taken or not problems else 422
    )


@api.get("/api/v2/flow", answer=Flow)
def flow(view: View, run: str = text(), since: int | None = moment()) -> dict[str, Any]:
    """What flows now, or in one run."""
    try:
        wanted = UUID(run) if run else None
    except ValueError:
        raise HttpError(400, "run: not a UUID") from None
    seconds = None if since is None else since // SECOND
    return {"flow": read_flow(view.connection, run=wanted, since=seconds)}


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _pump(app: App, after: int | None, limit: Limit | None, send: Send) -> None:
    async for chunk in app.live.listen(after, limit):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
