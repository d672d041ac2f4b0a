"""A dataset's schema over time: each version, what changed, and whether readers survive it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headwater.lineage.openlineage.events import iso
from headwater.lineage.schema import compatible, diff
from headwater.server.api import describe
from headwater.server.api.lookup import the_dataset
from headwater.server.api.parameters import check_period, integer, moment
from headwater.server.api.present import when
from headwater.server.api.types import Object, Time
from headwater.server.routing import Routes
from headwater.server.store.read.observed import read_schema
from headwater.server.store.read.timeline import members, schemas

if TYPE_CHECKING:
    from headwater.lineage.schema import Schema
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

DATASET = "/api/v2/datasets/{namespace}/{dataset}"
CHANGES = 200
NEVER = 2**62


class SchemaVersion(TypedDict):
    """A schema, and since when it held."""

    time: Time
    fields: list[Object]


class VersionPage(TypedDict):
    """A page of schemas, the newest first."""

    versions: list[SchemaVersion]
    next: str | None
    truncated: bool


class SchemaDifference(TypedDict):
    """A schema at two moments."""

    before: list[Object]
    after: list[Object]
    compatible: bool
    changes: list[Object]


def changes(old: Schema, new: Schema) -> dict[str, Any]:
    """What changed between two schemas, as text and in parts."""
    found, verdict = diff(old, new), compatible(old, new)
    why = {str(broken.change): broken.why for broken in verdict.breaks}
    return {
        "compatible": bool(verdict),
        "changes": [
            {
                "kind": change.kind,
                "column": change.path,
                "old": change.old or None,
                "new": change.new or None,
                "text": str(change),
                "breaks": why.get(str(change)),
            }
            for change in found[:CHANGES]
        ],
        "truncated": len(found) > CHANGES,
    }


@api.get(DATASET + "/history", answer=VersionPage)
def history(
    view: View,
    namespace: str,
    dataset: str,
    limit: int = integer(30, 1, 100),
    before: int | None = moment(),
) -> dict[str, Any]:
    """Each schema the dataset has had, the newest first, with what it changed."""
    named = the_dataset(view, namespace, dataset)
    until = None if before is None else before - 1
    rows = schemas(view, members(view, named.root), until, limit + 1)
    bodies = view.bodies(facet for _, facet in rows)
    versions = []
    for i, (at, facet) in enumerate(rows[:limit]):
        body = bodies.get(facet)
        entry: dict[str, Any] = {"time": iso(at), "fields": describe.flat(body)}
        if i + 1 < len(rows):
            entry |= changes(read_schema(bodies.get(rows[i + 1][1])), read_schema(body))
        versions.append(entry)
    more = len(rows) > limit
    return {
        "versions": versions,
        "next": versions[-1]["time"] if more else None,
        "truncated": more,
    }


@api.get(DATASET + "/schema/diff", answer=SchemaDifference)
def difference(
    view: View,
    namespace: str,
    dataset: str,
    start: int = moment(name="from", required=True),
    end: int = moment(NEVER, name="to"),
) -> dict[str, Any]:
    """The schema of a dataset at two moments, and what lies between them."""
    check_period(start, end)
    named = the_dataset(view, namespace, dataset)
    ids = members(view, named.root)
    found = [next(iter(schemas(view, ids, at, 1)), None) for at in (start, end)]
    bodies = view.bodies(row[1] for row in found if row)
    sides = [bodies.get(row[1]) if row else None for row in found]
    return {
        "from": when(start),
        "to": when(end) if end < NEVER else None,
        "before": describe.flat(sides[0]),
        "after": describe.flat(sides[1]),
        **changes(read_schema(sides[0]), read_schema(sides[1])),
    }
