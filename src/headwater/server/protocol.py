"""The shortest way in for an event: from the socket to the writer and back, without a task.

Everything but a plain `POST /api/v1/lineage` goes on to the ASGI application as usual.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from headwater.server.auth import refuse_foreign
from headwater.server.http import HttpError, Response, encode, unpack_body

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
    413: b"Content Too Large",
    415: b"Unsupported Media Type",
    422: b"Unprocessable Content",
    500: b"Internal Server Error",
    503: b"Service Unavailable",
}


class _Hot:
    """One event on its way; stands where uvicorn keeps the request it is answering."""

    __slots__ = (
        "body", "disconnected", "keep_alive", "message_event", "more_body", "response_complete",
        "size",
    )  # fmt: skip

    def __init__(self, keep_alive: bool) -> None:
        self.body: list[bytes] = []
        self.size = 0
        self.keep_alive = keep_alive
        self.response_complete = False
        self.disconnected = False
        self.more_body = True
        self.message_event = _NOBODY


class _Nobody:
    """No task waits for an event's body, so nobody is to be woken."""

    def set(self) -> None:
        """Wake nobody."""


_NOBODY = _Nobody()


def protocol_for(app: App) -> type[asyncio.Protocol]:
    """The protocol of connections to this app."""
    limit = app.settings.body_limit

    class LineageProtocol(HttpToolsProtocol):
        """HTTP as uvicorn speaks it, with a way of its own for events."""

        cycle: Any

        def on_message_begin(self) -> None:
            """Note what the parser will tell; what ASGI wants is made only if it is needed."""
            self.url = b""
            self.expect_100_continue = False
            self.headers = []

        def on_headers_complete(self) -> None:
            """Keep an event to ourselves; hand every other request on."""
            busy = self.cycle is not None and not self.cycle.response_complete
            parser = self.parser
            if (
                busy
                or self.url != LINEAGE
                or parser.get_method() != b"POST"
                or self.expect_100_continue
                or parser.should_upgrade()
            ):
                url, headers, expects = self.url, self.headers, self.expect_100_continue
                super().on_message_begin()
                self.url, self.expect_100_continue = url, expects
                self.headers.extend(headers)
                super().on_headers_complete()
            else:
                lasting = parser.get_http_version() != "1.0" and parser.should_keep_alive()
                self.cycle = _Hot(lasting)

        def on_body(self, body: bytes) -> None:
            """Gather an event's body, up to the limit."""
            hot = self.cycle
            if type(hot) is not _Hot:
                super().on_body(body)
            elif not hot.response_complete:
                hot.body.append(body)
                hot.size += len(body)
                if hot.size > limit:
                    hot.keep_alive = False
                    text = f"the body is larger than {limit} bytes"
                    self._fail(hot, HttpError(413, text))

        def on_message_complete(self) -> None:
            """Hand a whole event to the writer."""
            hot = self.cycle
            if type(hot) is not _Hot:
                super().on_message_complete()
            elif not hot.response_complete:
                self._submit(hot)

        def _submit(self, hot: _Hot) -> None:
            body = hot.body[0] if len(hot.body) == 1 else b"".join(hot.body)
            encoding = authorization = site = host = None
            for name, value in self.headers:
                if name == b"content-encoding":
                    encoding = value
                elif name == b"authorization":
                    authorization = value
                elif name == b"sec-fetch-site":
                    site = value
                elif name == b"host":
                    host = value
            try:
                app.hosts.check(host)
                refuse_foreign(site)
                app.gate.check(authorization, "write")
                if encoding:
                    body = unpack_body(body, encoding, limit)
                app.ingest.hand_in(body, partial(self._answer, hot))
            except Exception as error:  # noqa: BLE001  (every failure has its answer)
                self._fail(hot, error)

        def _answer(self, hot: _Hot, answer: list[Receipt] | BaseException) -> None:
            error = answer if isinstance(answer, BaseException) else answer[0].error
            if error is not None:
                self._fail(hot, error)
            else:
                self._write(hot, CREATED)

        def _fail(self, hot: _Hot, error: BaseException) -> None:
            found = app.failure("POST /api/v1/lineage", error)
            self._write(hot, _head(found) + encode(found))

        def _write(self, hot: _Hot, answer: bytes) -> None:
            hot.response_complete = True
            if hot.disconnected or self.transport.is_closing():
                return
            if hot.keep_alive:
                self.transport.write(answer)
                self.on_response_complete()
            else:
                first, rest = answer.split(b"\r\n", 1)
                self.transport.write(first + b"\r\nconnection: close\r\n" + rest)
                self.server_state.total_requests += 1
                self.transport.close()

    return LineageProtocol


def _head(response: Response) -> bytes:
    size = str(len(encode(response))).encode()
    lines = [b"HTTP/1.1 %d %s" % (response.status, PHRASES.get(response.status, b"Error"))]
    headers = [h for h in response.headers if h[0] != b"connection"]
    lines += [name + b": " + value for name, value in (*headers, (b"content-length", size))]
    return b"\r\n".join(lines) + b"\r\n\r\n"
