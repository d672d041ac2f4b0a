"""The ASGI application: the ingest path first and thin, everything else through the router."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventError, EventProblem
from headwater.logs import request_id
from headwater.server.alerts.rules import Rules
from headwater.server.alerts.rules_reload import follow_rules
from headwater.server.alerts.watch import Alerts
from headwater.server.history import PastQuestions, past_question
from headwater.server.http import (
    WHO,
    HttpError,
    HttpNotFoundError,
    Receive,
    Request,
    Response,
    Scope,
    Send,
    check_length,
    failure,
    read_body,
    respond,
)
from headwater.server.http.auth import Authenticator
from headwater.server.http.connection_limits import (
    ConnectionLimits,
    InFlightBody,
    watch_connections,
)
from headwater.server.http.csrf import refuse_foreign
from headwater.server.http.hosts import Hosts
from headwater.server.http.inflate import inflate
from headwater.server.http.page_files import PageFiles
from headwater.server.http.proxies import Proxies
from headwater.server.http.request_metrics import API, EVENT, PAGE, RequestMetrics, id_of, with_id
from headwater.server.ingest.flow import FlowRollups, keep_flow
from headwater.server.ingest.group_commit import Ingest
from headwater.server.ingest.upkeep import (
    apply_retention,
    check_for_damage,
    close_stale_runs,
    try_failing_writes,
    watch_writer,
)
from headwater.server.live import Live
from headwater.server.refusal_reasons import refusal_reason
from headwater.server.routing import Router
from headwater.server.store import StoreError, StoreUnavailableError, UnstorableError
from headwater.server.store.database import DamagedError
from headwater.server.store.keep.retention import retained
from headwater.server.store.read.namespace_limit import LimitedConnection
from headwater.server.store.view import Bodies, View

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, MutableMapping

    from headwater.lineage.schema import Schema
    from headwater.server.analysis import Analysis
    from headwater.server.history import PastQuestion
    from headwater.server.routing import Route
    from headwater.server.store import Store
    from headwater.server.store.database import ReadConnection
    from headwater.server.store.read.namespace_limit import Limit

    Message = MutableMapping[str, Any]
    Preview = Callable[[str, str, Callable[[str], Schema | None]], dict[str, Any]]
    Stream = Callable[[Receive, Send], Awaitable[None]]

__all__ = ["App", "ServerSettings"]

log = logging.getLogger("headwater.server")

LINEAGE = "/api/v1/lineage"
CREATED: dict[str, Any] = {
    "type": "http.response.start", "status": 201, "headers": [(b"content-length", b"0")],
}  # fmt: skip
EMPTY: dict[str, Any] = {"type": "http.response.body", "body": b""}
RETRY = [(b"retry-after", b"2")]
DIGITS = 1_000
PATIENCE = 3.5
"""Seconds that a question may take before the server checks whether the store answers at all."""
RESTART, LONGEST = 1.0, 300.0
"""Seconds after which a background task that failed starts again: twice as long each time."""
RECHECK = 1.0
"""How often, in seconds, a stream makes sure that its token still lets it in."""


class ServerSettings(msgspec.Struct, kw_only=True):
    """What a server is configured with at start."""

    tokens: list[str] = []
    insecure: bool = False
    """Whether the server may be open to everyone although it once had tokens."""
    body_limit: int = 10 * 1024 * 1024
    batch_limit: int = 100 * 1024 * 1024
    batch_events: int = 10_000
    """Events, or flow samples, of one request."""
    header_limit: int = 32 * 1024
    bodies_limit: int = 256 * 1024 * 1024
    """Bytes of all bodies that are being received or answered, packed and unpacked."""
    connections: int = 1_000
    client_connections: int = 250
    request_timeout: int = 10
    """Seconds to send a request's head; its body gets more time, by its size."""
    page: bool = True
    root_path: str = ""
    """The path below which a proxy serves it, as `read_root_path` gives it."""
    trusted_proxies: list[str] = []
    user_header: str | None = None
    """The header in which a trusted proxy names the person it has signed in."""
    people: dict[str, str] = {}
    """The roles of people, as `read_people` gives them."""
    stale_every: float = 5.0
    flow_every: float = 5.0
    max_age: float | None = None
    keep: float | None = None
    alerts: Rules | None = None
    address: str = ""
    """Where people find the page, as far as the server itself knows: alerts link there."""
    alerts_every: float = 5.0
    """Seconds between two evaluations of the rules."""


class App:
    """Answers HTTP for one store."""

    def __init__(self, store: Store, settings: ServerSettings | None = None) -> None:
        from headwater.server.api import routes

        self.store = store
        self.settings = settings or ServerSettings()
        self.bodies = Bodies(store.packer)
        self.live = Live()
        self.flow = FlowRollups()
        self.proxies = Proxies(self.settings.trusted_proxies, self.settings.user_header)
        self.auth = Authenticator(
            store.database,
            self.settings.tokens,
            insecure=self.settings.insecure,
            people=self.settings.people if self.proxies.sign_in else None,
        )
        self.hosts = Hosts()
        self.traffic = ConnectionLimits(
            self.settings.connections, self.settings.client_connections, self.settings.bodies_limit
        )
        self.requests = RequestMetrics()
        self.refusals: Counter[str] = Counter()
        self.warnings: dict[str, str] = {}
        """Warnings that health lists beside its status, by component: events are still accepted."""
        self.log_forwarded: int | None = None
        """The last record of the log that Kafka has, where the log is forwarded."""
        self.forwards = False
        """Whether this server is the one, of several on a store, that forwards the log."""
        self.router = Router()
        self.preview: Preview | None = None
        """Derives the lineage of a pasted connector; whoever puts the server together sets it."""
        self.past = PastQuestions()
        """Asks about times that the store no longer has, once its `history` is set like `preview`."""
        self.analysis: Analysis | None = None
        """Has results of work on the whole estate; set like `preview`."""
        self.page = PageFiles(root=self.settings.root_path) if self.settings.page else None
        self.background: list[Callable[[App], Any]] = [
            close_stale_runs, keep_flow, apply_retention, try_failing_writes, watch_connections,
            watch_writer, check_for_damage,
        ]  # fmt: skip
        self.alerts = (
            Alerts(self.settings.alerts, self.settings.address) if self.settings.alerts else None
        )
        if self.alerts is not None:
            self.background += [self.alerts.run, follow_rules]
        self._ingest: Ingest | None = None
        self._readers = ThreadPoolExecutor(4, thread_name_prefix="headwater-reader")
        self._prober = ThreadPoolExecutor(1, thread_name_prefix="headwater-probe")
        self.trouble: str | None = None
        """What was wrong with the store, though it answered, when it was last asked."""
        self.damage: str | None = None
        """What a reader last met in the store that nobody can have written there."""
        self._probing: asyncio.Future[int] | None = None
        self._unpacking = asyncio.Lock()
        self._tasks: list[asyncio.Task[Any]] = []
        self._closing = False
        store.on_reset = self._forget
        routes(self)

    @property
    def ingest(self) -> Ingest:
        """The writer, started with the event loop it answers on."""
        if self._ingest is None:
            self._ingest = Ingest(self.store)
            self._watch(self._ingest, asyncio.get_running_loop())
            self._tasks = [
                asyncio.ensure_future(self._keep_running(start)) for start in self.background
            ]
        return self._ingest

    async def _keep_running(self, start: Callable[[App], Any]) -> None:
        """Run a background task until the server ends; one that fails is started again."""
        pause = RESTART
        while True:
            began = time.monotonic()
            try:
                await start(self)
            except Exception:
                name = f"{start.__module__}.{start.__qualname__}"
                log.exception("background task %s failed", name)
            else:
                return
            if self._closing:
                return
            if time.monotonic() - began > LONGEST:
                pause = RESTART
            await asyncio.sleep(pause)
            pause = min(2 * pause, LONGEST)

    def _watch(self, ingest: Ingest, loop: asyncio.AbstractEventLoop) -> None:
        """Let the changes of every writer reach the live stream."""

        def publish(seq: int, changes: list[dict[str, Any]]) -> None:
            if changes and not loop.is_closed():
                loop.call_soon_threadsafe(self.live.publish, seq, changes)

        if not self.store.database.watch(publish):
            ingest.publish = self.live.publish
        with self.store.database.reading() as connection:
            ((seq,),) = connection.all("SELECT seq FROM head WHERE id = 1")
        self.live.start(seq)

    def _forget(self) -> None:
        """Let go of what may name what is deleted from the store, by whichever process."""
        self.flow.forget()
        self.bodies.forget()

    async def close(self) -> None:
        """Finish writing and close the store."""
        self._closing = True
        self.live.close()
        for task in self._tasks:
            task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await task
        if self._ingest is not None:
            await self._ingest.close()
        stuck = self._ingest is not None and self._ingest.stalled is not None
        self._readers.shutdown(wait=not stuck)
        self._prober.shutdown(wait=not stuck)
        self.auth.close()
        if not stuck:  # else the writer may come back to what was closed under it
            self.store.close()
        await self.past.close()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one connection of the server."""
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
            return
        if scope["type"] != "http":
            return
        began = time.monotonic()
        self._below_root(scope)
        asked = Request(scope)
        own = id_of(asked.header(b"x-request-id"))
        request_id.set(own)
        kind = self._kind(asked)
        peer = scope["client"][0] if scope.get("client") else ""
        try:
            scope[WHO] = self.proxies.credential(peer, scope["headers"])
            with self.traffic.request(self.forwarded(peer, scope["headers"])):
                if kind == EVENT:
                    await self._lineage(scope, receive)
                    await send(CREATED)
                    await send(EMPTY)
                    self.requests.answered(kind, 201, time.monotonic() - began)
                    return
                response = await self._answer(scope, receive, send)
        except Exception as error:  # noqa: BLE001  (every failure has its answer)
            response = self.failure(f"{scope['method']} {scope['path']}", error)
        if response is not None:  # else it was a stream, which lasts as long as its reader stays
            self.requests.answered(kind, response.status, time.monotonic() - began)
            response = with_id(response, own)
            await respond(send, response, head=scope["method"] == "HEAD")

    def forwarded(self, peer: str, headers: list[tuple[bytes, bytes]]) -> str:
        """The client behind a trusted proxy; empty where the connection itself is the client's."""
        return self.proxies.client(peer, headers) if self.proxies.trusts(peer) else ""

    def _below_root(self, scope: Scope) -> None:
        """Take the root path off; a proxy may have done that before."""
        root = self.settings.root_path
        raw = bytes(scope.get("raw_path") or scope["path"].encode())
        if root and (raw + b"/").startswith(root.encode() + b"/"):
            scope["raw_path"] = raw[len(root) :] or b"/"
            scope["path"] = scope["path"][len(root) :] or "/"

    def _kind(self, request: Request) -> str:
        if request.method == "POST" and request.scope["path"] == LINEAGE:
            return EVENT
        return PAGE if self.page is not None and self.page.wants(request) else API

    def failure(self, what: str, error: BaseException) -> Response:
        """What to answer when a request could not be carried out."""
        if isinstance(error, HttpError):
            self.refusals[str(error.code)] += 1
            return failure(error)
        if isinstance(error, EventError):
            return failure(self.refusal(error))
        if isinstance(error, DamagedError):
            self.damage = error.message
        if isinstance(error, StoreUnavailableError):
            return failure(HttpError(503, error.message, headers=RETRY))
        if isinstance(error, UnstorableError):
            self.refusals["the store cannot hold it"] += 1
            return failure(HttpError(422, error.message))
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
        request = Request(scope)
        encoding = request.encoding
        self.hosts.check(request.header(b"host"))
        self._refuse_foreign(request)
        self.auth.check(request.credential, "write")
        with self.traffic.body() as held:
            body = await self._body(scope, receive, encoding, self.settings.body_limit, held)
            (receipt,) = await self.ingest.submit((body,))
        if receipt.error is not None:
            raise receipt.error

    async def _answer(self, scope: Scope, receive: Receive, send: Send) -> Response | None:
        request = Request(scope)
        self.hosts.check(request.header(b"host"))
        if self.page is not None and self.page.wants(request):
            return self.page.answer(request)
        if request.method == "OPTIONS":
            # Says what there is and grants nothing: no other site gets leave to call from its page.
            return Response(None, 200, ((b"allow", self.router.allowed(request)),))
        route = self.router.find(request)
        _check_address(request)
        if route.role != "none":
            self.auth.check(request.credential, route.role)
        if request.method not in ("POST", "PUT", "DELETE"):
            return await self._handled(route, request, receive, send)
        self._refuse_foreign(request)
        limit = self.settings.batch_limit if route.direct else self.settings.body_limit
        with self.traffic.body() as held:
            request.body = await self._body(scope, receive, request.encoding, limit, held)
            try:
                return await self._handled(route, request, receive, send)
            except (UnicodeDecodeError, RecursionError) as error:
                if not request.body:
                    raise
                text = "it is nested too deep" if isinstance(error, RecursionError) else str(error)
                problem = EventProblem("$", text)
                raise HttpError(400, "the body cannot be read", [problem]) from None

    async def _body(
        self, scope: Scope, receive: Receive, encoding: bytes | None, limit: int, held: InFlightBody
    ) -> bytes:
        """The body of a request without its encoding, within the limits; `held` counts it."""
        for name, value in scope["headers"]:
            if name == b"content-length":
                check_length(value, limit)
        body = await read_body(receive, limit, held.hold)
        if not encoding:
            return body
        # One at a time, so that each is counted before the next takes memory; in a thread, because
        # a large one would keep the loop.
        async with self._unpacking:
            body = await asyncio.to_thread(inflate, body, encoding, limit)
            held.hold(len(body))
        return body

    async def _handled(
        self, route: Route, request: Request, receive: Receive, send: Send
    ) -> Response | None:
        if route.direct:
            answer = await route.handler(request)
            if callable(answer):
                await self._stream(answer, request, route, receive, send)
                return None
        elif (asked := await self._past(route, request)) is not None:
            answer = await self.past.ask(asked, request, self._limit(route, request))
        elif route.declared.slow and self.analysis is not None:
            limit = self._limit(route, request)
            answer = await self.past.answer(lambda: self._read(route.handler, request, limit))
        else:
            answer = await self._patiently(
                asyncio.get_running_loop().run_in_executor(
                    self._readers, self._read, route.handler, request, self._limit(route, request)
                )
            )
        return answer if isinstance(answer, Response) else Response(answer)

    async def _past(self, route: Route, request: Request) -> PastQuestion | None:
        """What a request asks about a time that the store no longer has; None for any other."""
        if self.past.history is None or (asked := past_question(route.declared, request)) is None:
            return None
        loop = asyncio.get_running_loop()
        kept = await self._patiently(loop.run_in_executor(self._readers, self._kept_since))
        return asked if asked.since < kept else None

    def _kept_since(self) -> int:
        """Since when the store has everything: a young one has nothing to delete, and no more for that."""
        keep = self.settings.keep
        bound = 0 if keep is None else int((time.time() - keep) * SECOND)
        with self.store.database.reading() as connection:
            return max(bound, retained(connection))

    def read(self, request: Request, limit: Limit | None) -> Response:
        """The answer to a GET, here and now, to what a token may read."""
        answer = self._read(self.router.find(request).handler, request, limit)
        return answer if isinstance(answer, Response) else Response(answer)

    def _limit(self, route: Route, request: Request) -> Limit | None:
        if route.role == "none":
            return None
        return self.auth.limit(request.credential)

    async def _stream(
        self, answer: Stream, request: Request, route: Route, receive: Receive, send: Send
    ) -> None:
        """Let a stream run until it ends, its client goes, or its token is revoked."""
        revoked = asyncio.Event()

        async def watch() -> None:
            while not revoked.is_set():
                await asyncio.sleep(RECHECK)
                try:
                    self.auth.check(request.credential, route.role)
                except HttpError:
                    revoked.set()
                except StoreUnavailableError:
                    pass

        async def receive_until_revoked() -> Message:
            incoming = asyncio.ensure_future(receive())
            ending = asyncio.ensure_future(revoked.wait())
            try:
                await asyncio.wait({incoming, ending}, return_when=asyncio.FIRST_COMPLETED)
                return incoming.result() if incoming.done() else {"type": "http.disconnect"}
            finally:
                incoming.cancel()
                ending.cancel()

        watcher = asyncio.ensure_future(watch())
        try:
            await answer(receive_until_revoked, send)
        finally:
            watcher.cancel()

    async def _patiently(self, reading: asyncio.Future[Any]) -> Any:
        """What a reading thread finds, however long it takes, as long as the store answers at all."""
        while not (await asyncio.wait({reading}, timeout=PATIENCE))[0]:
            try:
                await self.probe(1.0)
            except StoreError:
                reading.add_done_callback(_unheard)
                raise
        return reading.result()

    async def probe(self, seconds: float) -> int:
        """The newest record of the store, read on a thread of its own; raises StoreError.

        Other readers may be waiting for a store that does not answer, and this must say so.
        """
        probing = self._probing
        if probing is None or probing.done():
            loop = asyncio.get_running_loop()
            probing = self._probing = loop.run_in_executor(self._prober, self._newest)
        done, _ = await asyncio.wait({probing}, timeout=seconds)
        if not done:
            raise StoreUnavailableError(f"the store did not answer within {seconds:g} s")
        return probing.result()

    def _newest(self) -> int:
        with self.store.database.reading() as connection:
            ((seq,),) = connection.all("SELECT seq FROM head WHERE id = 1")
        self.trouble = self.store.database.trouble() or self.damage
        return int(seq)

    def _read(self, handler: Callable[..., Any], request: Request, limit: Limit | None) -> Any:
        with self.store.database.reading() as connection:
            if limit is not None:
                limited = LimitedConnection(connection, self.store.database.dialect, limit)
                return _without_hidden(self._asked(handler, limited, request), limited)
            answer = self._asked(handler, connection, request)
        if isinstance(answer, Response):
            return answer
        return Response(msgspec.json.encode(answer))

    def _asked(
        self, handler: Callable[..., Any], connection: ReadConnection, request: Request
    ) -> Any:
        try:
            return handler(connection, request)
        except HttpNotFoundError as error:
            # Marquez's dialect answers as Marquez does.
            if error.nearest is None and request.segments[:2] == ("api", "v2"):
                from headwater.server.api.v2.page.search import names_of

                view = View(connection, self.bodies)
                error.nearest = names_of(self, view).nearest(view, error.name, error.kind)
            raise

    def _refuse_foreign(self, request: Request) -> None:
        names = (b"host", b"sec-fetch-site", b"origin", b"content-type")
        refuse_foreign(self.hosts, *map(request.header, names))

    def refusal(self, error: EventError) -> HttpError:
        """A refused event as an answer, counted by its reason."""
        first = error.problems[0]
        self.refusals[refusal_reason(first)] += 1
        code = 400 if first.field == "$" else 422
        return HttpError(code, f"{first.field} {first.problem}", error.problems)


def _unheard(reading: asyncio.Future[Any]) -> None:
    """Take note of what became of a reading whose request was answered: asyncio logs it else."""
    if not reading.cancelled():
        reading.exception()


def _without_hidden(answer: Any, connection: LimitedConnection) -> Response:
    """An answer without what the token may not read; how much that is stands in a header."""
    counts = connection.hidden()
    response = answer if isinstance(answer, Response) else Response(answer)
    content = response.content
    if not isinstance(content, bytes):
        content = connection.without_others(msgspec.json.decode(msgspec.json.encode(content)))
        counts["beside"] = connection.beside(content)
    hidden = ", ".join(f"{kind}={count}" for kind, count in counts.items())
    header = (b"x-headwater-hidden", hidden.encode())
    return response._replace(content=content, headers=(*response.headers, header))


def _check_address(request: Request) -> None:
    """Refuse what no route can use: a NUL, or a number of more digits than Python reads."""
    texts = (*request.segments, *request.query.values())
    if any("\0" in text for text in texts):
        raise HttpError(400, "the address holds a NUL")
    last = (request.header(b"last-event-id") or b"").decode("latin-1")
    if any(len(text) > DIGITS and text.isdecimal() for text in (*texts, last)):
        raise HttpError(400, "a number in the request has too many digits")
