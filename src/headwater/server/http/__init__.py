"""Requests and responses, as little of them as the API needs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import parse_qsl, unquote

import msgspec

from headwater.lineage.openlineage.events import EventProblem, Limits, check_values
from headwater.lineage.url_paths import DOTS

if TYPE_CHECKING:
    from headwater.server.http.proxies import Credential

__all__ = [
    "WHO",
    "HttpError",
    "HttpNotFoundError",
    "Receive",
    "Request",
    "Response",
    "Scope",
    "Send",
    "bad_member",
    "check_length",
    "encode",
    "failure",
    "read_body",
    "respond",
]

Scope = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[MutableMapping[str, Any]]]
Send = Callable[[MutableMapping[str, Any]], Awaitable[None]]

JSON = (b"content-type", b"application/json")
NOSNIFF = (b"x-content-type-options", b"nosniff")
WHO = "headwater.credential"
"""Where the app keeps in a request's scope who asks."""
LIMITS = Limits()
_encode = msgspec.json.Encoder().encode


class HttpError(Exception):
    """An answer other than success."""

    def __init__(
        self,
        code: int,
        message: str,
        problems: list[EventProblem] | None = None,
        headers: list[tuple[bytes, bytes]] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.problems = problems or []
        self.headers = headers or []


def bad_member(member: str, problem: str) -> HttpError:
    """The answer to a body with a member that cannot be used."""
    return HttpError(422, f"{member} {problem}", [EventProblem(member, problem)])


class HttpNotFoundError(HttpError):
    """404 for a name that is not there; `nearest` has names like it, once they were looked up."""

    def __init__(
        self, message: str, kind: str, name: str, nearest: list[dict[str, Any]] | None = None
    ) -> None:
        super().__init__(404, message)
        self.kind = kind
        self.name = name
        self.nearest = nearest


class Response(NamedTuple):
    """What goes back: `content` is encoded as JSON unless it is bytes already."""

    content: Any = None
    status: int = 200
    headers: tuple[tuple[bytes, bytes], ...] = (JSON, NOSNIFF)


def failure(error: HttpError) -> Response:
    """An error in the shape Marquez clients know, with our problems beside it."""
    body: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.problems:
        body["errors"] = [f"{p.field} {p.problem}" for p in error.problems]
        body["problems"] = error.problems
    elif error.code == 422:
        body["errors"] = [error.message]
    if isinstance(error, HttpNotFoundError) and error.nearest is not None:
        body["nearest"] = error.nearest
    return Response(body, error.code, (JSON, NOSNIFF, *error.headers))


class Request:
    """A request with its path split before unquoting, so that names may hold slashes."""

    def __init__(self, scope: Scope, body: bytes = b"") -> None:
        self.scope = scope
        self.method: str = scope["method"]
        raw = bytes(scope.get("raw_path") or scope["path"].encode()).split(b"?", 1)[0]
        self.segments = tuple(
            DOTS.get(part) or unquote(part) for part in raw.decode("latin-1").strip("/").split("/")
        )
        self.path: dict[str, str] = {}
        self.body = body
        self._query: dict[str, str] | None = None

    @property
    def query(self) -> dict[str, str]:
        """The query parameters; the last of a repeated one wins."""
        if self._query is None:
            text = bytes(self.scope.get("query_string") or b"").decode("latin-1")
            self._query = dict(parse_qsl(text, keep_blank_values=True))
        return self._query

    def header(self, name: bytes) -> bytes | None:
        """The first header of this lower-case name."""
        return next((bytes(v) for k, v in self.scope["headers"] if k == name), None)

    @property
    def credential(self) -> Credential:
        """Who asks, as the app found out; `Authorization` where it did not look."""
        found: Credential = self.scope.get(WHO, self.header(b"authorization"))
        return found

    @property
    def encoding(self) -> bytes:
        """The content encodings of all its headers of that name."""
        return b",".join(v for k, v in self.scope["headers"] if k == b"content-encoding")

    def integer(self, name: str, default: int, low: int = 0, high: int = 1_000) -> int:
        """A whole number from the query, held between `low` and `high`."""
        text = self.query.get(name)
        if text is None or text == "":
            return default
        try:
            value = int(text)
        except ValueError:
            raise self.bad(name, "not a whole number") from None
        if value < low:
            raise self.bad(name, f"less than {low}")
        return min(value, high)

    def flag(self, name: str) -> bool:
        """A truth value from the query."""
        return self.query.get(name, "").lower() in ("true", "1", "yes")

    def json(self) -> dict[str, Any]:
        """The body as a JSON object."""
        check_values(self.body, LIMITS)
        try:
            value = msgspec.json.decode(self.body or b"{}")
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            raise HttpError(400, "the body is not JSON", [EventProblem("$", str(error))]) from None
        if not isinstance(value, dict):
            raise HttpError(
                400, "the body is not a JSON object", [EventProblem("$", "not an object")]
            )
        return value

    @staticmethod
    def bad(name: str, problem: str) -> HttpError:
        """A query parameter that cannot be used."""
        return HttpError(400, f"{name}: {problem}", [EventProblem(name, problem)])


def check_length(size: int | bytes, limit: int) -> None:
    """Refuse a body of more than `limit` bytes, or with a larger `Content-Length`."""
    if isinstance(size, bytes):
        size = int(
            size[:19]
        )  # the parser lets only digits pass; a row of thousands is slow to read
    if size > limit:
        text = f"the body is larger than {limit} bytes"
        raise HttpError(413, text, headers=[(b"connection", b"close")])


async def read_body(receive: Receive, limit: int, hold: Callable[[int], None]) -> bytes:
    """The whole body, or 413 once it is longer than `limit`; `hold` counts what is in memory."""
    parts: list[bytes] = []
    size, more = 0, True
    while more:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise HttpError(400, "the request ended too early")
        part: bytes = message.get("body", b"")
        more = message.get("more_body", False)
        hold(len(part))
        parts.append(part)
        size += len(part)
        check_length(size, limit)
    return parts[0] if len(parts) == 1 else b"".join(parts)


def encode(response: Response) -> bytes:
    """The body of a response."""
    content = response.content
    return b"" if content is None else content if isinstance(content, bytes) else _encode(content)


async def respond(send: Send, response: Response, *, head: bool = False) -> None:
    """Send a response in one go."""
    body = encode(response)
    length = (b"content-length", str(len(body)).encode())
    await send(
        {
            "type": "http.response.start",
            "status": response.status,
            "headers": [*response.headers, length],
        }
    )
    await send({"type": "http.response.body", "body": b"" if head else body})
