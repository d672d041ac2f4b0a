"""Which handler answers a method and a path."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.server.http import HttpError

if TYPE_CHECKING:
    from headwater.server.http import Request

__all__ = ["Route", "Router"]

Handler = Callable[..., Any]


class Route(NamedTuple):
    """What answers a method and a path, and the role it takes to ask."""

    method: str
    pattern: tuple[str, ...]
    handler: Handler
    role: str
    direct: bool


class Router:
    """Routes by the number of path segments, then segment by segment."""

    def __init__(self) -> None:
        self.routes: list[Route] = []
        self._by_shape: dict[tuple[str, int], list[Route]] = {}

    def add(
        self, method: str, path: str, handler: Handler, role: str = "read", *, direct: bool = False
    ) -> None:
        """Answer `method path` with `handler`; `{name}` in the path takes one segment.

        A `direct` handler runs on the event loop; the others in a thread, with a reader.
        """
        route = Route(method, tuple(path.strip("/").split("/")), handler, role, direct)
        self.routes.append(route)
        self._by_shape.setdefault((method, len(route.pattern)), []).append(route)

    def find(self, request: Request) -> Route:
        """The route of a request, its path parameters filled in."""
        method = "GET" if request.method == "HEAD" else request.method
        for route in self._by_shape.get((method, len(request.segments)), ()):
            found = _match(route.pattern, request.segments)
            if found is not None:
                request.path = found
                return route
        allowed = sorted(
            {r.method for r in self.routes if _match(r.pattern, request.segments) is not None}
        )
        if allowed:
            raise HttpError(
                405,
                "HTTP 405 Method Not Allowed",
                headers=[(b"allow", ", ".join(allowed).encode())],
            )
        raise HttpError(404, "HTTP 404 Not Found")


def _match(pattern: tuple[str, ...], segments: tuple[str, ...]) -> dict[str, str] | None:
    if len(pattern) != len(segments):
        return None
    found: dict[str, str] = {}
    for want, have in zip(pattern, segments, strict=True):
        if want[0] == "{":
            found[want[1:-1]] = have
        elif want != have:
            return None
    return found
