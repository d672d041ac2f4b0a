"""HTTP on one connection, within its limits, and the shortest way in for an event.

An event goes from the socket to the writer and back without a task; everything but a plain
`POST /api/v1/lineage` goes on to the ASGI application as usual. Who sends an event, and how long it
is to be, is checked before its body is received.
"""

from __future__ import annotations

from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any

from httptools import HttpParserError, HttpParserUpgrade, HttpRequestParser
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headwater.logs import request_id
from headwater.server.http import HttpError, Response, check_length, encode, failure
from headwater.server.http.csrf import refuse_foreign
from headwater.server.http.inflate import inflate
from headwater.server.http.requests import EVENT, id_of, with_id

if TYPE_CHECKING:
    import asyncio

    from headwater.server.app import App
    from headwater.server.store import Receipt

__all__ = ["protocol_for"]

LINEAGE = b"/api/v1/lineage"
CREATED = b"HTTP/1.1 201 Created\r\ncontent-length: 0\r\n\r\n"
PHRASES = {
    400: b"Bad Request",
    401: b"Unauthorized",
    403: b"Forbidden",
    408: b"Request Timeout",
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    422: b"Unprocessable Content",
    431: b"Request Header Fields Too Large",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}
OFFER = (b"upgrade", b"http2-settings")
"""Headers, and options of `Connection`, that offer another protocol."""
PIPELINED = 32
"""Requests of one connection that may wait for the answer to an earlier one."""
RATE = 16 * 1024
"""Bytes of a body that earn its sender one more second."""
UNREAD_SECONDS = 30
"""How long a client may leave its answer unread before the connection is closed."""


class _EventRequest:
    """One event on its way; stands where uvicorn keeps the request it is answering."""

    __slots__ = (
        "began", "body", "client", "disconnected", "encoding", "held", "keep_alive", "message_event",
        "more_body", "request_id", "response_complete",
    )  # fmt: skip

    def __init__(self, keep_alive: bool) -> None:
        self.began = monotonic()
        self.client = ""
        """The client behind a trusted proxy, once it is counted."""
        self.request_id: bytes | None = None
        self.body: list[bytes] = []
        self.encoding: bytes | None = None
        self.held = 0
        self.keep_alive = keep_alive
        self.response_complete = False
        self.disconnected = False
        self.more_body = True
        self.message_event = _NO_WAITER


class _NoWaiter:
    """No task waits for an event's body, so there is none to wake."""

    def set(self) -> None:
        """There is no task to wake."""


_NO_WAITER = _NoWaiter()


def protocol_for(app: App) -> type[asyncio.Protocol]:
    """The protocol of connections to this app."""
    limit = app.settings.body_limit
    head_limit = app.settings.header_limit
    patience = app.settings.request_timeout
    places = {LINEAGE, app.settings.root_path.encode() + LINEAGE}
    traffic = app.traffic

    class LineageProtocol(HttpToolsProtocol):
        """HTTP as uvicorn speaks it, with limits, and a way of its own for events."""

        cycle: Any
        url = b""
        _chunk = 0
        """Bytes of the part of the stream that is being parsed."""
        _begun = 0
        """Requests whose first byte was received."""
        _in_head = False
        _head = 0
        """Bytes of an unfinished head, without the part of the stream it began in."""
        _receiving = True
        """Whether the client has to send something: a request, or the rest of one."""
        _seconds = 0
        _received = 0
        _unsent = 0
        _unread_seconds = 0
        _refusal: HttpError | None = None
        _offered = False
        """Whether the request just read offers another protocol, which is declined."""

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            """Take the connection, unless there are too many."""
            super().connection_made(transport)
            self._peer = self.client[0] if self.client else ""
            self._client = "" if app.proxies.trusts(self._peer) else self._peer
            try:
                traffic.enter(self, self._client)
            except HttpError as error:
                self._refuse(error)

        def connection_lost(self, exc: Exception | None) -> None:
            """Forget the connection and the half of a body it may have sent."""
            traffic.leave(self, self._client)
            hot = self.cycle
            if type(hot) is _EventRequest and hot.more_body:
                self._release(hot)
                self._ended(hot)
            super().connection_lost(exc)

        def tick(self) -> None:
            """Close the connection if its client is too slow; called every second."""
            unsent = self.transport.get_write_buffer_size()
            self._unread_seconds = self._unread_seconds + 1 if 0 < self._unsent <= unsent else 0
            self._unsent = unsent
            if self._unread_seconds > UNREAD_SECONDS:
                self.transport.abort()
            if not self._receiving or self.transport.is_closing():
                return
            self._seconds += 1
            cycle = self.cycle
            answered = cycle is None or cycle.response_complete
            # The rest of a body that was answered already is not wanted.
            earned = 0 if answered and not self._in_head else self._received // RATE
            if self._seconds <= patience + (earned if not self._in_head else 0):
                return
            if self._in_head or not answered:
                text = f"the request was not sent within {patience} s"
                self._refuse(HttpError(408, f"{text} and a second for each {RATE} bytes"))
            else:
                self.transport.close()

        def data_received(self, data: bytes) -> None:
            """Parse what came; a head that goes on for too long is refused."""
            begun, in_head = self._begun, self._in_head
            self._chunk = len(data)
            self._received += len(data)
            self._unset_keepalive_if_required()
            while data:
                try:
                    self.parser.feed_data(data)
                    break
                except HttpParserError:
                    self.send_400_response("Invalid HTTP request received.")
                    break
                except HttpParserUpgrade as upgrade:
                    data = self._declined() + data[upgrade.args[0] :] if self._offered else b""
            # A head is counted here too, because the parser shows a header only when it is whole.
            if in_head and self._in_head and begun == self._begun:
                self._head += len(data)
                if self._head > head_limit:
                    self._refuse(_head_too_large(head_limit))

        def _declined(self) -> bytes:
            """The head of a request that offers another protocol, without the offer.

            Java's HttpClient offers HTTP/2 with its first request, also if that has a body, which the
            parser would take for the other protocol.
            """
            self._offered = False
            old = self.parser
            lines = [
                b"%s %s HTTP/%s" % (old.get_method(), self.url, old.get_http_version().encode())
            ]
            for name, value in self.headers:
                if name == b"connection":
                    options = (one.strip() for one in value.split(b","))
                    kept = b", ".join(one for one in options if one.lower() not in OFFER)
                    lines.append(b"connection: " + kept)
                elif name not in OFFER:
                    lines.append(name + b": " + value)
            self.parser = HttpRequestParser(self)
            return b"\r\n".join(lines) + b"\r\n\r\n"

        def on_message_begin(self) -> None:
            """Note what the parser will report; what ASGI wants is made only if it is needed."""
            self.url = b""
            self.expect_100_continue = False
            self.headers = []
            self._begun += 1
            self._head = 0
            self._in_head = True

        def on_headers_complete(self) -> None:
            """Keep an event to ourselves; hand every other request on."""
            self._in_head = False
            if self._chunk + self._head > head_limit:
                self._measure_head()
            busy = self.cycle is not None and not self.cycle.response_complete
            parser = self.parser
            self._offered = parser.should_upgrade() and parser.get_method() != b"CONNECT"
            if self._offered:
                return
            if (
                busy
                or self.url not in places
                or parser.get_method() != b"POST"
                or self.expect_100_continue
                or parser.should_upgrade()
            ):
                if len(self.pipeline) >= PIPELINED:
                    self._refusal = HttpError(400, f"more than {PIPELINED} requests wait")
                    raise self._refusal
                url, headers, expects = self.url, self.headers, self.expect_100_continue
                super().on_message_begin()
                self.url, self.expect_100_continue = url, expects
                self.headers.extend(headers)
                super().on_headers_complete()
            else:
                lasting = parser.get_http_version() != "1.0" and parser.should_keep_alive()
                self.cycle = hot = _EventRequest(lasting)
                try:
                    self._admit(hot)
                except Exception as error:  # noqa: BLE001  (every failure has its answer)
                    self._fail(hot, error)

        def on_body(self, body: bytes) -> None:
            """Gather an event's body, up to the limit."""
            hot = self.cycle
            if type(hot) is not _EventRequest:
                super().on_body(body)
            elif not hot.response_complete:
                hot.body.append(body)
                hot.held += len(body)
                try:
                    traffic.hold(len(body))
                    if hot.held > limit:
                        check_length(hot.held, limit)
                except HttpError as error:
                    self._fail(hot, error)

        def on_message_complete(self) -> None:
            """Hand a whole event to the writer."""
            if self._offered:
                return
            hot = self.cycle
            self._receiving = hot is None or hot.response_complete
            if self._receiving:
                self._await_request()
            if type(hot) is not _EventRequest:
                super().on_message_complete()
                return
            hot.more_body = False
            hot.began = monotonic()
            if not hot.response_complete:
                self._submit(hot)
            elif not hot.keep_alive:
                self.transport.close()

        def on_response_complete(self) -> None:
            """Wait for the next request."""
            self._await_request()
            super().on_response_complete()

        def shutdown(self) -> None:
            """Let go of a connection when the server stops: a request half sent is not waited for."""
            cycle = self.cycle
            if cycle is not None and not cycle.response_complete and cycle.more_body:
                self.transport.close()
            else:
                super().shutdown()

        def send_400_response(self, msg: str) -> None:
            """Answer what the parser cannot go on with."""
            self._refuse(self._refusal or HttpError(400, msg))

        def _await_request(self) -> None:
            self._receiving = True
            self._seconds = self._received = 0

        def _measure_head(self) -> None:
            """Refuse a head that came whole and is too large."""
            size = len(self.url) + sum(len(n) + len(v) + 4 for n, v in self.headers)
            if size > head_limit:
                self._refusal = _head_too_large(head_limit)
                raise self._refusal

        def _refuse(self, error: HttpError) -> None:
            """Answer an error that no request on this connection can recover from, and close it."""
            if not self.transport.is_closing():
                app.refusals[str(error.code)] += 1
                answer = failure(error)
                self.transport.write(_closing(_head(answer) + encode(answer)))
                self.transport.close()

        def _admit(self, hot: _EventRequest) -> None:
            """Check by its headers whether an event is to be received."""
            headers, peer = self.headers, self._peer
            encoding = site = host = origin = kind = None
            for name, value in self.headers:
                if name == b"content-encoding":
                    encoding = value if encoding is None else encoding + b"," + value
                elif name == b"sec-fetch-site":
                    site = value
                elif name == b"host":
                    host = value
                elif name == b"origin":
                    origin = value
                elif name == b"content-type":
                    kind = value
                elif name == b"x-request-id":
                    hot.request_id = value
                elif name == b"content-length":
                    check_length(value, limit)
            app.hosts.check(host)
            refuse_foreign(app.hosts, host, site, origin, kind)
            app.auth.check(app.proxies.credential(peer, headers), "write")
            if client := app.forwarded(peer, headers):
                traffic.begun(client)
                hot.client = client
            hot.encoding = encoding

        def _submit(self, hot: _EventRequest) -> None:
            body = hot.body[0] if len(hot.body) == 1 else b"".join(hot.body)
            try:
                if hot.encoding:
                    body = inflate(body, hot.encoding, limit)
                    hot.held += len(body)
                    traffic.hold(len(body))
                hot.body = []
                app.ingest.hand_in(body, partial(self._answer, hot))
            except Exception as error:  # noqa: BLE001  (every failure has its answer)
                self._fail(hot, error)

        def _answer(self, hot: _EventRequest, answer: list[Receipt] | BaseException) -> None:
            error = answer if isinstance(answer, BaseException) else answer[0].error
            if error is not None:
                self._fail(hot, error)
            else:
                app.requests.answered(EVENT, 201, monotonic() - hot.began)
                self._write(hot, CREATED)

        def _fail(self, hot: _EventRequest, error: BaseException) -> None:
            own = id_of(hot.request_id)
            request_id.set(own)
            found = with_id(app.failure("POST /api/v1/lineage", error), own)
            request_id.set("")
            app.requests.answered(EVENT, found.status, monotonic() - hot.began)
            self._write(hot, _head(found) + encode(found))

        def _release(self, hot: _EventRequest) -> None:
            traffic.release(hot.held)
            hot.held = 0
            hot.body = []

        def _ended(self, hot: _EventRequest) -> None:
            traffic.ended(hot.client)
            hot.client = ""

        def _write(self, hot: _EventRequest, answer: bytes) -> None:
            hot.response_complete = True
            self._release(hot)
            self._ended(hot)
            if hot.disconnected or self.transport.is_closing():
                return
            if hot.keep_alive:
                self.transport.write(answer)
                self.on_response_complete()
            else:
                self.transport.write(_closing(answer))
                self.server_state.total_requests += 1
                if not hot.more_body:
                    self.transport.close()

    return LineageProtocol


def _head_too_large(limit: int) -> HttpError:
    return HttpError(431, f"the address and headers are larger than {limit} bytes")


def _closing(answer: bytes) -> bytes:
    first, rest = answer.split(b"\r\n", 1)
    return first + b"\r\nconnection: close\r\n" + rest


def _head(response: Response) -> bytes:
    size = str(len(encode(response))).encode()
    lines = [b"HTTP/1.1 %d %s" % (response.status, PHRASES.get(response.status, b"Error"))]
    headers = [h for h in response.headers if h[0] != b"connection"]
    lines += [name + b": " + value for name, value in (*headers, (b"content-length", size))]
    return b"\r\n".join(lines) + b"\r\n\r\n"
