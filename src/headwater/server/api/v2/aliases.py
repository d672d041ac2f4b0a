"""Names declared by hand to stand for a dataset."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headwater.lineage.openlineage.events import Limits
from headwater.server.api.parameters import integer, text
from headwater.server.api.submit_command import carry_out
from headwater.server.api.types import Named
from headwater.server.http import Response, bad_member
from headwater.server.routing import Routes
from headwater.server.store.write.incoming.name_limits import too_long

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

LONGEST = Limits().name


class Alias(TypedDict):
    """A name, and the dataset that it stands for."""

    alias: Named
    dataset: Named


class Aliases(TypedDict):
    """A page of aliases."""

    aliases: list[Alias]
    truncated: bool


@api.get("/api/v2/aliases", answer=Aliases)
def aliases(
    view: View,
    limit: int = integer(100, 1, 1_000),
    namespace: str = text(name="afterNamespace"),
    name: str = text(name="afterName"),
) -> dict[str, Any]:
    """Every name that stands for a dataset of another name, by name."""
    sql = (
        "SELECT a.namespace, a.name, n.name, d.name FROM alias a JOIN dataset o ON o.id = a.dataset"
        " JOIN dataset d ON d.id = o.root JOIN namespace n ON n.id = d.namespace"
        " WHERE (a.namespace, a.name) > (?, ?) ORDER BY a.namespace, a.name LIMIT ?"
    )
    rows = view.all(sql, (namespace, name, limit + 1))
    found = [
        {
            "alias": {"namespace": space, "name": alias},
            "dataset": {"namespace": owner, "name": dataset},
        }
        for space, alias, owner, dataset in rows[:limit]
    ]
    return {"aliases": found, "truncated": len(rows) > limit}


def _named(body: dict[str, Any], member: str) -> tuple[str, str]:
    value = body.get(member)
    for key in ("namespace", "name"):
        text = value.get(key) if isinstance(value, dict) else None
        if not isinstance(text, str) or not text or too_long(text, LONGEST) or "\0" in text:
            raise bad_member(f"{member}.{key}", f"must be a string of 1 to {LONGEST} bytes")
    assert isinstance(value, dict)
    return value["namespace"], value["name"]


@api.route("POST", "/api/v2/aliases", body=Alias, answer=Alias, status=(201,))
async def declare(app: App, request: Request) -> Response:
    """Declare an alias."""
    body = request.json()
    alias, dataset = _named(body, "alias"), _named(body, "dataset")
    if alias == dataset:
        raise bad_member("alias", "is the dataset itself")
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
