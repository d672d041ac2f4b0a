"""`/api/v2/openapi.json` and `/api/docs`: every route, for programs and for people."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

from headwater import __version__
from headwater.server.api.described import ROUTES, Route
from headwater.server.api.shapes import SCHEMAS, ref
from headwater.server.http import Request, Response

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.app import App

__all__ = ["document", "routes"]

EXAMPLES = {
    "namespace": "shop",
    "job": "load",
    "dataset": "orders",
    "source": "s3://lake",
    "field": "id",
    "tag": "pii",
    "name": "pii",
    "id": "00000000-0000-4000-8000-000000000001",
    "version": "00000000-0000-4000-8000-000000000001",
}
FAILURES = {
    400: "A parameter or the body cannot be read",
    401: "A token is needed, or is not known",
    403: "The token's role does not allow this",
    404: "There is no such thing",
    413: "The body is too large",
    415: "The body's packing is not known",
    422: "The body can be read and is wrong",
    503: "The store is away; try again after a moment",
}
ROLES = {"none": "no token", "read": "read", "write": "write", "admin": "admin"}
HTML = (
    (b"content-type", b"text/html; charset=utf-8"),
    (b"content-security-policy", b"default-src 'none'; style-src 'unsafe-inline'"),
    (b"x-content-type-options", b"nosniff"),
    (b"referrer-policy", b"no-referrer"),
)
STYLE = """
:root { color-scheme: light dark; font: 15px/1.5 system-ui, sans-serif; }
body { max-width: 72rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; width: 100%; margin: 0 0 2rem; }
th, td { text-align: left; vertical-align: top; padding: .35rem .6rem; border-bottom: 1px solid #8884; }
code { font: 13px ui-monospace, monospace; overflow-wrap: anywhere; }
"""


def document(app: App) -> dict[str, Any]:
    """The OpenAPI description of every route of an app."""
    paths: dict[str, dict[str, Any]] = {}
    for method, path, role in _routes(app):
        described = ROUTES[f"{method} {path}"]
        paths.setdefault(path, {})[method.lower()] = _operation(method, path, role, described)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headwater",
            "version": __version__,
            "description": "Lineage: Marquez's API under /api/v1, Headwater's own under /api/v2.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": SCHEMAS,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _routes(app: App) -> Iterable[tuple[str, str, str]]:
    yield "POST", "/api/v1/lineage", "write"
    for route in app.router.routes:
        yield route.method, "/" + "/".join(route.pattern), route.role


def _operation(method: str, path: str, role: str, described: Route) -> dict[str, Any]:
    names = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    parameters: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            "example": "s3://lake" if name == "namespace" and "dataset" in path else EXAMPLES[name],
        }
        for name in names
    ]
    for name, schema in described.query:
        needed = name in described.required
        bare = {key: value for key, value in schema.items() if key != "example"}
        one: dict[str, Any] = {"name": name, "in": "query", "required": needed, "schema": bare}
        if "example" in schema:
            one["example"] = schema["example"]
        parameters.append(one)
    operation: dict[str, Any] = {
        "summary": described.summary,
        "operationId": f"{method.lower()} {path}",
        "tags": [path.split("/")[2]],
        "parameters": parameters,
        "responses": _responses(described),
        "x-role": role,
    }
    if role != "none":
        operation["security"] = [{}, {"token": []}]
    if described.body:
        content = {"application/json": {"schema": ref(described.body)}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _responses(described: Route) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for code in described.status:
        content = {described.media: {"schema": ref(described.answer)}}
        responses[str(code)] = {"description": "Done", "content": content}
        if described.answer == "Any" and code == 201:
            responses[str(code)] = {"description": "Done"}
    for code, text in FAILURES.items():
        failed = {"application/json": {"schema": ref("Error")}}
        responses.setdefault(str(code), {"description": text, "content": failed})
    return responses


def _page(found: dict[str, Any]) -> str:
    parts = [
        "<!doctype html><html lang='en'><head><meta charset='utf-8'>",
        "<meta name='viewport' content='width=device-width'><title>Headwater: the API</title>",
        f"<style>{STYLE}</style></head><body><main><h1>Headwater {escape(__version__)}: the API</h1>",
        "<p>The same for programs: <a href='/api/v2/openapi.json'>/api/v2/openapi.json</a></p>",
    ]
    for version in sorted({path.split("/")[2] for path in found["paths"]}):
        parts.append(f"<h2>/api/{escape(version)}</h2><table><thead><tr><th>Call</th>")
        parts.append("<th>Query</th><th>What it does</th><th>Role</th></tr></thead><tbody>")
        for path, methods in found["paths"].items():
            if path.split("/")[2] == version:
                parts += [_row(method, path, one) for method, one in methods.items()]
        parts.append("</tbody></table>")
    return "".join([*parts, "</main></body></html>"])


def _row(method: str, path: str, one: dict[str, Any]) -> str:
    query = ", ".join(
        f"<code>{escape(p['name'])}</code>" for p in one["parameters"] if p["in"] == "query"
    )
    return (
        f"<tr><td><code>{escape(method.upper())} {escape(path)}</code></td><td>{query}</td>"
        f"<td>{escape(one['summary'])}</td><td>{escape(ROLES[one['x-role']])}</td></tr>"
    )


def routes(app: App) -> None:
    """Put the routes on the app's router."""

    async def openapi(request: Request) -> Response:  # noqa: ARG001
        return Response(document(app))

    async def docs(request: Request) -> Response:  # noqa: ARG001
        return Response(_page(document(app)).encode(), 200, HTML)

    app.router.add("GET", "/api/v2/openapi.json", openapi, "none", direct=True)
    app.router.add("GET", "/api/docs", docs, "none", direct=True)
