"""Routes, declared where they are answered, and which of them a request is for.

    api = Routes()

    @api.get("/api/v2/datasets/{namespace}/{dataset}/freshness", answer=Freshness)
    def freshness(view: View, namespace: str, dataset: str, depth: int = integer(20, 1, 50)) -> …:
        '''Is it up to date, and if not, why?'''

A handler names what it needs: `view` (one moment of the store), `app`, `request`, the parts of its
path, and its query parameters, whose defaults declare them. The description in OpenAPI is made of
the same declaration: the first line of the docstring, the parameters, the types.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.server.http import HttpError
from headwater.server.store.view import View

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.database import Connection

__all__ = ["Declared", "Parameter", "Past", "Route", "Router", "Routes"]

Handler = Callable[..., Any]
GIVEN = ("app", "view", "request")


@dataclass(frozen=True)
class Parameter:
    """A query parameter: how it is read from a request, and its description in OpenAPI."""

    read: Callable[[Request, str], Any]
    schema: dict[str, Any]
    name: str = ""
    required: bool = False
    example: str = ""
    filled: bool = False
    """Whether it may not be given without a value: a script whose time is empty does not mean now."""

    def value(self, request: Request) -> Any:
        """The value in a request; 400 if it is required and missing, or empty where it must not be."""
        given = request.query.get(self.name)
        if self.filled and given == "":
            raise request.bad(self.name, "is empty")
        if self.required and not given:
            raise request.bad(self.name, "is missing")
        return self.read(request, self.name)


class Past(NamedTuple):
    """On which part of the past an answer depends, where a history beside the store has to give it."""

    direction: str = "around"
    """`up`, `down`, `both`, or `around` the node for what is beside it too; a parameter may say it."""
    between: bool = False
    """Whether edges of all moments between `from` and `to` count, and not of these two alone."""
    changes: bool = False
    """Whether, of the whole estate, only what reported something in between counts."""
    programs: bool = False
    """Whether jobs are shown with the application that runs them."""


class Declared(NamedTuple):
    """A route as its handler declares it."""

    method: str
    path: str
    handler: Handler
    role: str
    summary: str
    parameters: dict[str, Parameter]
    body: Any = None
    answer: Any = None
    status: tuple[int, ...] = (200,)
    media: str = "application/json"
    past: Past | None = None
    """How it depends on times that the store may no longer have; None where only the store answers."""
    slow: bool = False
    """Whether it reads the lake, which may take seconds: it keeps no other question waiting then."""

    @property
    def direct(self) -> bool:
        """Whether the handler runs on the event loop; the others run in a thread, with a view."""
        return inspect.iscoroutinefunction(self.handler)

    def bound(self, app: App) -> Handler:
        """The handler as the app calls it."""
        wanted = list(inspect.signature(self.handler).parameters)
        given = [name for name in wanted if name in GIVEN]
        parts = [name for name in wanted if "{" + name + "}" in self.path]
        parameters, handler = self.parameters, self.handler

        def arguments(request: Request, view: View | None) -> dict[str, Any]:
            known = {"app": app, "view": view, "request": request}
            found: dict[str, Any] = {name: known[name] for name in given}
            for name in parts:
                found[name] = request.path[name]
            for name, parameter in parameters.items():
                found[name] = parameter.value(request)
            return found

        async def direct(request: Request) -> Any:
            return await handler(**arguments(request, None))

        def read(connection: Connection, request: Request) -> Any:
            return handler(**arguments(request, View(connection, app.bodies)))

        return direct if self.direct else read


@dataclass
class Routes:
    """The routes of one module; with `blank`, a parameter may be given without a value."""

    declared: list[Declared] = field(default_factory=list)
    blank: bool = False

    def get(self, path: str, *, role: str = "read", **rest: Any) -> Callable[[Handler], Handler]:
        """Answer GET with the handler below."""
        return self.route("GET", path, role=role, **rest)

    def route(
        self, method: str, path: str, *, role: str = "write", summary: str = "", **rest: Any
    ) -> Callable[[Handler], Handler]:
        """Answer a method and a path with the handler below; `{name}` takes one segment.

        `answer` and `body` are the types of what goes out and comes in, `status` the codes of
        success, `media` the content type of the answer, `past` how it asks about
        times that the store may no longer have, `slow` whether it reads the lake.
        """

        def declare(handler: Handler) -> Handler:
            about = summary or (handler.__doc__ or "").partition("\n")[0].rstrip(".")
            found = _parameters(path, handler, blank=self.blank)
            self.declared.append(Declared(method, path, handler, role, about, found, **rest))
            return handler

        return declare


def _parameters(path: str, handler: Handler, *, blank: bool) -> dict[str, Parameter]:
    found: dict[str, Parameter] = {}
    for name, one in inspect.signature(handler).parameters.items():
        if isinstance(one.default, Parameter):
            declared = one.default
            filled = declared.filled and not blank
            found[name] = replace(declared, name=declared.name or name, filled=filled)
        elif name not in GIVEN and "{" + name + "}" not in path:
            raise TypeError(f"{handler.__name__}: {name} is neither in {path} nor declared")
    return found


class Route(NamedTuple):
    """What answers a method and a path, and the role it takes to ask."""

    method: str
    pattern: tuple[str, ...]
    handler: Handler
    role: str
    direct: bool
    declared: Declared


@dataclass
class _Branch:
    """What may follow a part of a path: segments by name, any segment, or nothing more."""

    named: dict[str, _Branch] = field(default_factory=dict)
    any: _Branch | None = None
    routes: dict[str, Route] = field(default_factory=dict)

    def grown(self, segment: str) -> _Branch:
        """The branch of one more segment of a pattern, made if it is not there."""
        if segment[0] != "{":
            return self.named.setdefault(segment, _Branch())
        if self.any is None:
            self.any = _Branch()
        return self.any

    def find(self, segments: tuple[str, ...], at: int = 0) -> dict[str, Route]:
        """The routes of a path by method; a segment by its name goes before any segment."""
        if at == len(segments):
            return self.routes
        branch = self.named.get(segments[at])
        found = branch.find(segments, at + 1) if branch is not None else {}
        if not found and self.any is not None:
            found = self.any.find(segments, at + 1)
        return found


class Router:
    """Routes by the segments of their paths."""

    def __init__(self) -> None:
        self.routes: list[Route] = []
        self._tree = _Branch()

    def mount(self, app: App, routes: Routes) -> None:
        """Answer with the handlers of a module, for an app."""
        for one in routes.declared:
            pattern = tuple(one.path.strip("/").split("/"))
            route = Route(one.method, pattern, one.bound(app), one.role, one.direct, one)
            self.routes.append(route)
            branch = self._tree
            for segment in pattern:
                branch = branch.grown(segment)
            branch.routes[one.method] = route

    def find(self, request: Request) -> Route:
        """The route of a request, its path parameters filled in."""
        routes = self._of(request)
        route = routes.get("GET" if request.method == "HEAD" else request.method)
        if route is None:
            allow = (b"allow", self.allowed(request))
            raise HttpError(405, "HTTP 405 Method Not Allowed", headers=[allow])
        request.path = {
            want[1:-1]: have
            for want, have in zip(route.pattern, request.segments, strict=True)
            if want[0] == "{"
        }
        return route

    def allowed(self, request: Request) -> bytes:
        """The methods that the path of a request takes, as `Allow` lists them."""
        methods = {"OPTIONS", *self._of(request)}
        return ", ".join(sorted(methods | {"HEAD"} if "GET" in methods else methods)).encode()

    def _of(self, request: Request) -> dict[str, Route]:
        routes = self._tree.find(request.segments)
        if not routes:
            raise HttpError(404, "HTTP 404 Not Found")
        return routes
