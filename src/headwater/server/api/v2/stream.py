"""`/api/v2/live`, a stream of server-sent events, and `/api/v2/flow`."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headwater.lineage.events import Problem
from headwater.server.api.v1.search import moment
from headwater.server.flow import read_flow
from headwater.server.http import HttpError, Receive, Request, Response, Send

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from headwater.server.app import App
    from headwater.server.store.database import Connection

__all__ = ["routes"]

HEADERS = [
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-store"),
    (b"x-accel-buffering", b"no"),
]


def routes(app: App) -> None:
    """Put the routes on the app's router."""

    async def live(request: Request) -> Callable[[Receive, Send], Awaitable[None]]:
        text = (request.header(b"last-event-id") or b"").decode("latin-1")
        text = text or request.query.get("after", "")
        after = int(text) if text.isdecimal() else None

        async def stream(receive: Receive, send: Send) -> None:
            await send({"type": "http.response.start", "status": 200, "headers": HEADERS})
            gone = asyncio.ensure_future(_gone(receive))
            pump = asyncio.ensure_future(_pump(app, after, send))
            _, left = await asyncio.wait({gone, pump}, return_when=asyncio.FIRST_COMPLETED)
            for task in left:
                task.cancel()
                with contextlib.suppress(asyncio.CancelledError):
                    await task
            with contextlib.suppress(OSError):
                await send({"type": "http.response.body", "body": b""})

        return stream

    async def flow(request: Request) -> Response:
        try:
            taken, problems = app.flow.take(request.body)
        except (msgspec.DecodeError, KeyError, RecursionError) as error:
            raise HttpError(
                400, "not a list of samples", [Problem("samples", str(error))]
            ) from None
        for sample in taken:
            app.live.tell("flow", sample)
        return Response(
            {"accepted": len(taken), "refused": problems}, 202 if taken or not problems else 422
        )

    def flows(connection: Connection, request: Request) -> dict[str, Any]:
        text = request.query.get("run")
        try:
            run = UUID(text) if text else None
        except ValueError:
            raise HttpError(400, "run: not a UUID") from None
        since = moment(request, "since", 0) // 1_000_000 if request.query.get("since") else None
        return {"flow": read_flow(connection, run=run, since=since)}

    app.router.add("GET", "/api/v2/live", live, direct=True)
    app.router.add("POST", "/api/v2/flow", flow, "write", direct=True)
    app.router.add("GET", "/api/v2/flow", flows)


async def _gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _pump(app: App, after: int | None, send: Send) -> None:
    async for chunk in app.live.listen(after):
        await send({"type": "http.response.body", "body": chunk, "more_body": True})
