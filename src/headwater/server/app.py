"""The ASGI application: the ingest path first and thin, everything else through the router."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.events import EventError
from headwater.server.auth import Gate, refuse_foreign
from headwater.server.flow import Flow, keep_flow
from headwater.server.hosts import Hosts
from headwater.server.http import (
    HttpError,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    failure,
    read_body,
    respond,
    unpack_body,
)
from headwater.server.ingest import Ingest
from headwater.server.live import Live
from headwater.server.logs import Calm
from headwater.server.page import Page
from headwater.server.routing import Router
from headwater.server.stale import close_stale_runs, let_go_of_history
from headwater.server.store import StoreUnavailableError
from headwater.server.store.view import Bodies

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.store import Store

__all__ = ["App", "Settings"]

log = logging.getLogger("headwater.server")
log.addFilter(Calm())

LINEAGE = "/api/v1/lineage"
CREATED: dict[str, Any] = {
    "type": "http.response.start", "status": 201, "headers": [(b"content-length", b"0")],
}  # fmt: skip
EMPTY: dict[str, Any] = {"type": "http.response.body", "body": b""}
RETRY = [(b"retry-after", b"2")]


class Settings(msgspec.Struct, kw_only=True):
    """What a server is told at start."""

    tokens: list[str] = []
    body_limit: int = 10 * 1024 * 1024
    batch_limit: int = 100 * 1024 * 1024
    page: bool = True
    stale_every: float = 5.0
    flow_every: float = 5.0
    max_age: float | None = None
    keep: float | None = None


class App:
    """Answers HTTP for one store."""

    def __init__(self, store: Store, settings: Settings | None = None) -> None:
        from headwater.server.api import routes

        self.store = store
        self.settings = settings or Settings()
        self.bodies = Bodies(store.packer)
        self.live = Live()
        self.flow = Flow()
        self.gate = Gate(store.database, self.settings.tokens)
        self.hosts = Hosts()
        self.refusals: Counter[str] = Counter()
        self.router = Router()
        self.page = Page() if self.settings.page else None
        self.background: list[Callable[[App], Any]] = [
            close_stale_runs, keep_flow, let_go_of_history,
        ]  # fmt: skip
        self._ingest: Ingest | None = None
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="headwater-reader")
        self._tasks: list[asyncio.Task[Any]] = []
        routes(self)

    @property
    def ingest(self) -> Ingest:
        """The writer, started with the event loop it answers on."""
        if self._ingest is None:
            self._ingest = Ingest(self.store)
            self._watch(self._ingest, asyncio.get_running_loop())
            self._tasks = [asyncio.ensure_future(start(self)) for start in self.background]
        return self._ingest

    def _watch(self, ingest: Ingest, loop: asyncio.AbstractEventLoop) -> None:
        """Let the changes of every writer reach the live stream."""

        def tell(seq: int, changes: list[dict[str, Any]]) -> None:
            if changes and not loop.is_closed():
                loop.call_soon_threadsafe(self.live.publish, seq, changes)

        if not self.store.database.watch(tell):
            ingest.publish = self.live.publish
        with self.store.database.reading() as connection:
            ((seq,),) = connection.all("SELECT seq FROM head WHERE id = 1")
        self.live.start(seq)

    async def close(self) -> None:
        """Finish writing and let go of the store."""
        self.live.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._ingest is not None:
            await self._ingest.close()
        self._readers.shutdown()
        self.gate.close()
        self.store.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        try:
            if scope["path"] == LINEAGE and scope["method"] == "POST":
                await self._lineage(scope, receive)
                await send(CREATED)
                await send(EMPTY)
                return
            response = await self._answer(scope, receive, send)
        except Exception as error:  # noqa: BLE001  (every failure has its answer)
            response = self.failure(f"{scope['method']} {scope['path']}", error)
        if response is not None:
            await respond(send, response, head=scope["method"] == "HEAD")

    def failure(self, what: str, error: BaseException) -> Response:
        """What to answer when a request could not be carried out."""
        if isinstance(error, HttpError):
            self.refusals[str(error.code)] += 1
            return failure(error)
        if isinstance(error, EventError):
            return failure(self.refusal(error))
        if isinstance(error, StoreUnavailableError):
            return failure(HttpError(503, error.message, headers=RETRY))
        log.error("%s failed", what, exc_info=error)
        return failure(HttpError(500, "the server failed; its log says why"))

    async def _lifespan(self, receive: Receive, send: Send) -> None:
        while True:
            message = await receive()
            if message["type"] == "lifespan.startup":
                _ = self.ingest
                await send({"type": "lifespan.startup.complete"})
            else:
                await self.close()
                await send({"type": "lifespan.shutdown.complete"})
                return

    async def _lineage(self, scope: Scope, receive: Receive) -> None:
        encoding = authorization = None
        for name, value in scope["headers"]:
            if name == b"content-encoding":
                encoding = value
            elif name == b"authorization":
                authorization = value
            elif name == b"sec-fetch-site":
                refuse_foreign(value)
            elif name == b"host":
                self.hosts.check(value)
        self.gate.check(authorization, "write")
        body = await read_body(receive, self.settings.body_limit)
        if encoding:
            body = unpack_body(body, encoding, self.settings.body_limit)
        (receipt,) = await self.ingest.submit((body,))
        if receipt.error is not None:
            raise receipt.error

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        request = Request(scope)
        self.hosts.check(request.header(b"host"))
        if self.page is not None and self.page.wants(request):
            return self.page.answer(request)
        route = self.router.find(request)
        if any("\0" in text for text in (*request.segments, *request.query.values())):
            raise HttpError(400, "the address holds a NUL")
        if route.role != "none":
            self.gate.check(request.header(b"authorization"), route.role)
        if request.method in ("POST", "PUT", "DELETE"):
            refuse_foreign(request.header(b"sec-fetch-site"))
            limit = self.settings.batch_limit if route.direct else self.settings.body_limit
            body = await read_body(receive, limit)
            request.body = unpack_body(body, request.header(b"content-encoding"), limit)
        if route.direct:
            answer = await route.handler(request)
            if callable(answer):
                await answer(receive, send)
                return None
        else:
            answer = await asyncio.get_running_loop().run_in_executor(
                self._readers, self._read, route.handler, request
            )
        return answer if isinstance(answer, Response) else Response(answer)

    def _read(self, handler: Callable[..., Any], request: Request) -> Any:
        with self.store.database.reading() as connection:
            answer = handler(connection, request)
        if isinstance(answer, Response):
            return answer
        return Response(msgspec.json.encode(answer))

    def refusal(self, error: EventError) -> HttpError:
        """A refused event as an answer, counted by its reason."""
        first = error.problems[0]
        if len(self.refusals) < 200:
            self.refusals[f"{first.field.split('[')[0]}: {first.problem.split(':')[0]}"[:120]] += 1
        code = 400 if first.field == "$" else 422
        return HttpError(code, f"{first.field} {first.problem}", error.problems)
