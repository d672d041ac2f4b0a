"""Names declared by hand to stand for a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.events import Problem
from headwater.server.api.commands import carry_out
from headwater.server.api.v1 import reader
from headwater.server.http import HttpError, Request, Response

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.store.view import View

__all__ = ["routes"]

LIMIT, MOST = 100, 1_000
LONGEST = 4_096


def aliases(view: View, request: Request) -> dict[str, Any]:
    """Every name that stands for a dataset of another name, by name."""
    limit = request.integer("limit", LIMIT, 1, MOST)
    after = (request.query.get("afterNamespace", ""), request.query.get("afterName", ""))
    sql = (
        "SELECT a.namespace, a.name, n.name, d.name FROM alias a JOIN dataset o ON o.id = a.dataset"
        " JOIN dataset d ON d.id = o.root JOIN namespace n ON n.id = d.namespace"
        " WHERE (a.namespace, a.name) > (?, ?) ORDER BY a.namespace, a.name LIMIT ?"
    )
    rows = view.all(sql, (*after, limit + 1))
    found = [
        {
            "alias": {"namespace": space, "name": name},
            "dataset": {"namespace": owner, "name": dataset},
        }
        for space, name, owner, dataset in rows[:limit]
    ]
    return {"aliases": found, "truncated": len(rows) > limit}


def _named(body: dict[str, Any], member: str) -> tuple[str, str]:
    value = body.get(member)
    for key in ("namespace", "name"):
        text = value.get(key) if isinstance(value, dict) else None
        if not isinstance(text, str) or not 0 < len(text) <= LONGEST or "\0" in text:
            problem = Problem(f"{member}.{key}", f"must be a string of 1 to {LONGEST} characters")
            raise HttpError(422, f"{problem.field} {problem.problem}", [problem])
    assert isinstance(value, dict)
    return value["namespace"], value["name"]


def routes(app: App) -> None:
    """`GET` and `POST /api/v2/aliases`."""

    async def declare(request: Request) -> Response:
        body = request.json()
        alias, dataset = _named(body, "alias"), _named(body, "dataset")
        if alias == dataset:
            problem = Problem("alias", "is the dataset itself")
            raise HttpError(422, "alias is the dataset itself", [problem])
        await carry_out(
            app,
            {
                "command": "alias",
                "namespace": dataset[0],
                "name": dataset[1],
                "alias": list(alias),
            },
        )
        answer = {
            "alias": dict(zip(("namespace", "name"), alias, strict=True)),
            "dataset": dict(zip(("namespace", "name"), dataset, strict=True)),
        }
        return Response(answer, 201)

    app.router.add("GET", "/api/v2/aliases", reader(app, aliases))
    app.router.add("POST", "/api/v2/aliases", declare, "write", direct=True)
