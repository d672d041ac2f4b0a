"""`/api/v2/openapi.json` and `/api/docs`: every route, for programs and for people."""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING, Any

import msgspec

from headwater import __version__
from headwater.server.api.types import Error
from headwater.server.http import Response
from headwater.server.routing import Routes

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.routing import Declared

__all__ = ["api", "document"]

api = Routes()

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
    404: "Not found",
    413: "The body is too large",
    415: "The Content-Encoding is not supported",
    422: "The body is well-formed but invalid",
    503: "The store is unavailable; see Retry-After",
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
    routes = [route.declared for route in app.router.routes]
    types = [Error, *(one for route in routes for one in (route.body, route.answer) if one)]
    found, components = msgspec.json.schema_components(
        types, ref_template="#/components/schemas/{name}"
    )
    schemas = dict(zip(map(repr, types), found, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, schemas)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "Headwater",
            "version": __version__,
            "description": "Lineage: Marquez's API under /api/v1, Headwater's own under /api/v2.",
        },
        "paths": dict(sorted(paths.items())),
        "components": {
            "schemas": components,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
    }


def _operation(route: Declared, schemas: dict[str, Any]) -> dict[str, Any]:
    operation: dict[str, Any] = {
        "summary": route.summary,
        "operationId": f"{route.method.lower()} {route.path}",
        "tags": [route.path.split("/")[2]],
        "parameters": _parameters(route),
        "responses": _responses(route, schemas),
        "x-role": route.role,
    }
    if route.role != "none":
        operation["security"] = [{}, {"token": []}]
    if route.body:
        content = {"application/json": {"schema": schemas[repr(route.body)]}}
        operation["requestBody"] = {"required": True, "content": content}
    return operation


def _parameters(route: Declared) -> list[dict[str, Any]]:
    path = route.path
    found: list[dict[str, Any]] = [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {"type": "string", "minLength": 1, "maxLength": 200},
            "example": "s3://lake" if name == "namespace" and "dataset" in path else EXAMPLES[name],
        }
        for name in (part[1:-1] for part in path.split("/") if part.startswith("{"))
    ]
    for one in route.parameters.values():
        described: dict[str, Any] = {"name": one.name, "in": "query", "required": one.required}
        shortest = {"minLength": 1} if one.filled else {}
        described["schema"] = {**one.schema, **shortest}
        if one.example:
            described["example"] = one.example
        found.append(described)
    return found


def _responses(route: Declared, schemas: dict[str, Any]) -> dict[str, Any]:
    responses: dict[str, Any] = {}
    for code in route.status:
        done: dict[str, Any] = {"description": "Done"}
        if route.answer or code != 201:
            schema = schemas[repr(route.answer)] if route.answer else {}
            done["content"] = {route.media: {"schema": schema}}
        responses[str(code)] = done
    for code, text in FAILURES.items():
        failed = {"application/json": {"schema": schemas[repr(Error)]}}
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


@api.get("/api/v2/openapi.json", role="none")
async def openapi(app: App) -> Response:
    """This description."""
    return Response(document(app))


@api.get("/api/docs", role="none", media="text/html")
async def docs(app: App) -> Response:
    """This description, to be read."""
    return Response(_page(document(app)).encode(), 200, HTML)
