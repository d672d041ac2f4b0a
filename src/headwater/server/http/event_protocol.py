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
from headwater.server.http.request_metrics import EVENT, id_of, with_id

if TYPE_CHECKING:
    import asyncio

    from headwater.server.app import App
    from headwater.server.http.connection_limits import ConnectionLimits
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
ONCE = frozenset((b"host", b"authorization"))
"""Headers of which a proxy may check one and the server another."""
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


class LineageProtocol(HttpToolsProtocol):
    """HTTP as uvicorn speaks it, with limits, and a way of its own for events."""

    headwater: App
    traffic: ConnectionLimits
    body_limit: int
    head_limit: int
    patience: int
    """Seconds in which a request has to be sent, beside those that its bytes earn."""
    event_paths: frozenset[bytes]

    cycle: Any
    url = b""
    _chunk = 0
    """Bytes of the part of the stream that is being parsed."""
    _begun = 0
    """Requests whose first byte was received."""
    _in_head = False
    _head = 0
    """Bytes of an unfinished head, or of trailers, without the part of the stream it began in."""
    _in_trailers = False
    """Whether nothing of a body has followed the head of its last chunk: so it is before trailers."""
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
        self._proxy = self.headwater.proxies.trusts(self._peer)
        self._client = "" if self._proxy else self._peer
        try:
            self.traffic.enter(self, self._client)
        except HttpError as error:
            self._refuse(error)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and the half of a body it may have sent."""
        self.traffic.leave(self, self._client)
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
        if answered and not self._in_head and cycle is not None and not cycle.more_body:
            if self._seconds > min(self.patience, self.timeout_keep_alive):
                self.transport.close()
            return
        # The rest of a body that was answered already is not wanted.
        earned = 0 if answered and not self._in_head else self._received // RATE
        if self._seconds <= self.patience + (earned if not self._in_head else 0):
            return
        if self._in_head or not answered:
            text = f"the request was not sent within {self.patience} s"
            self._refuse(HttpError(408, f"{text} and a second for each {RATE} bytes"))
        else:
            self.transport.close()

    def data_received(self, data: bytes) -> None:
        """Parse what came; a head that goes on for too long is refused."""
        begun, in_head, in_trailers = self._begun, self._in_head, self._in_trailers
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
        if (in_head and self._in_head) or (in_trailers and self._in_trailers):
            if begun == self._begun:
                self._head += len(data)
            if self._head > self.head_limit:
                self._refuse(_head_too_large(self.head_limit))

    def _declined(self) -> bytes:
        """The head of a request that offers another protocol, without the offer.

        Java's HttpClient offers HTTP/2 with its first request, also if that has a body, which the
        parser would take for the other protocol.
        """
        self._offered = False
        old = self.parser
        lines = [b"%s %s HTTP/%s" % (old.get_method(), self.url, old.get_http_version().encode())]
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

    def on_header(self, name: bytes, value: bytes) -> None:
        """Keep a header; a trailer, which no proxy has checked, is none."""
        if self._in_head:
            name = name.lower()
            if name == b"expect" and value.lower() == b"100-continue":
                self.expect_100_continue = True
            elif name in ONCE and any(name == one for one, _ in self.headers):
                self._refusal = HttpError(400, f"more than one header {name.decode()}")
                raise self._refusal
            self.headers.append((name, value))

    def on_chunk_header(self) -> None:
        """A chunk of the body begins, or the trailers after the last of them."""
        self._in_trailers = True
        self._head = 0

    def on_chunk_complete(self) -> None:
        """A chunk, or the body with its trailers, has ended."""
        self._in_trailers = False

    def on_headers_complete(self) -> None:
        """Keep an event to ourselves; hand every other request on."""
        self._in_head = False
        if self._chunk + self._head > self.head_limit:
            self._measure_head()
        busy = self.cycle is not None and not self.cycle.response_complete
        parser = self.parser
        self._offered = parser.should_upgrade() and parser.get_method() != b"CONNECT"
        if self._offered:
            return
        if (
            busy
            or self.url not in self.event_paths
            or parser.get_method() != b"POST"
            or self.expect_100_continue
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
        self._in_trailers = False
        hot = self.cycle
        if type(hot) is not _EventRequest:
            super().on_body(body)
        elif not hot.response_complete:
            hot.body.append(body)
            hot.held += len(body)
            try:
                self.traffic.hold(len(body))
                if hot.held > self.body_limit:
                    check_length(hot.held, self.body_limit)
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
        """Wait for the next request, unless one that came whole is to be answered before.

        After an event no timer is set for a client that sends no other: `tick` looks.
        """
        self._await_request()
        self._receiving = self.cycle.response_complete or self.cycle.more_body
        if type(self.cycle) is _EventRequest and not self.pipeline:
            self.server_state.total_requests += 1
            self.flow.resume_reading()
        else:
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
        if size > self.head_limit:
            self._refusal = _head_too_large(self.head_limit)
            raise self._refusal

    def _refuse(self, error: HttpError) -> None:
        """Answer an error that no request on this connection can recover from, and close it."""
        cycle = self.cycle
        if cycle is not None and cycle.response_complete and cycle.more_body:
            self.transport.close()  # this request was answered before it was sent whole
        elif not self.transport.is_closing():
            self.headwater.refusals[str(error.code)] += 1
            answer = failure(error)
            self.transport.write(_closing(_head(answer) + encode(answer)))
            self.transport.close()

    def _admit(self, hot: _EventRequest) -> None:
        """Check by its headers whether an event is to be received."""
        headers, peer = self.headers, self._peer
        sent = dict(reversed(headers)).get  # of two, the first counts, as in other requests
        hot.request_id = sent(b"x-request-id")
        if length := sent(b"content-length"):
            check_length(length, self.body_limit)
        host, hosts = sent(b"host"), self.headwater.hosts
        hosts.check(host)
        refuse_foreign(hosts, host, sent(b"sec-fetch-site"), sent(b"origin"), sent(b"content-type"))
        if not self._proxy:
            self.headwater.auth.check(sent(b"authorization"), "write")
        else:
            proxies = self.headwater.proxies
            self.headwater.auth.check(proxies.credential(peer, headers), "write")
            client = proxies.client(peer, headers)
            self.traffic.begun(client)
            hot.client = client
        if sent(b"content-encoding") is not None:  # it may be given in parts
            hot.encoding = b",".join(v for name, v in headers if name == b"content-encoding")

    def _submit(self, hot: _EventRequest) -> None:
        body = hot.body[0] if len(hot.body) == 1 else b"".join(hot.body)
        try:
            if hot.encoding:
                body = inflate(body, hot.encoding, self.body_limit)
                hot.held += len(body)
                self.traffic.hold(len(body))
            hot.body = []
            self.headwater.ingest.hand_in(body, partial(self._answer, hot))
        except Exception as error:  # noqa: BLE001  (every failure has its answer)
            self._fail(hot, error)

    def _answer(self, hot: _EventRequest, answer: list[Receipt] | BaseException) -> None:
        error = answer if isinstance(answer, BaseException) else answer[0].error
        if error is not None:
            self._fail(hot, error)
        else:
            self.headwater.requests.answered(EVENT, 201, monotonic() - hot.began)
            self._write(hot, CREATED)

    def _fail(self, hot: _EventRequest, error: BaseException) -> None:
        own = id_of(hot.request_id)
        request_id.set(own)
        found = with_id(self.headwater.failure("POST /api/v1/lineage", error), own)
        request_id.set("")
        self.headwater.requests.answered(EVENT, found.status, monotonic() - hot.began)
        self._write(hot, _head(found) + encode(found))

    def _release(self, hot: _EventRequest) -> None:
        self.traffic.release(hot.held)
        hot.held = 0
        hot.body = []

    def _ended(self, hot: _EventRequest) -> None:
        self.traffic.ended(hot.client)
        hot.client = ""

    def _write(self, hot: _EventRequest, answer: bytes) -> None:
        hot.response_complete = True
        self._release(hot)
        if hot.client:
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


def protocol_for(app: App) -> type[LineageProtocol]:
    """The protocol of connections to this app; uvicorn makes one for each by calling the class."""

    class AppProtocol(LineageProtocol):
        headwater = app
        traffic = app.traffic
        body_limit = app.settings.body_limit
        head_limit = app.settings.header_limit
        patience = app.settings.request_timeout
        event_paths = frozenset({LINEAGE, app.settings.root_path.encode() + LINEAGE})

    return AppProtocol


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
