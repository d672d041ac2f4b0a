"""A dataset's schema over time: each version, what changed, and whether readers survive it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.events import iso
from headwater.lineage.schema import Schema, SchemaError, compatible, diff, read_facet
from headwater.server.api.v1.lists import the_dataset
from headwater.server.api.v1.present import when
from headwater.server.api.v1.search import moment
from headwater.server.api.v2.page import describe
from headwater.server.api.v2.paging import bad
from headwater.server.store.timeline import members, schemas

if TYPE_CHECKING:
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["changes", "difference", "history", "read"]

LIMIT, MOST = 30, 100
CHANGES = 200


def read(body: bytes | None) -> Schema:
    """A stored schema facet; one that cannot be read counts as empty."""
    try:
        return read_facet(msgspec.json.decode(body)) if body else Schema()
    except SchemaError:
        return Schema()


def changes(old: Schema, new: Schema) -> dict[str, Any]:
    """What changed between two schemas, in words and in parts."""
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


def history(view: View, request: Request) -> dict[str, Any]:
    """Each schema the dataset has had, the newest first, with what it changed."""
    named = the_dataset(view, request)
    limit = request.integer("limit", LIMIT, 1, MOST)
    until = moment(request, "before", 0) - 1 if request.query.get("before") else None
    rows = schemas(view, members(view, named.root), until, limit + 1)
    bodies = view.bodies(facet for _, facet in rows)
    versions = []
    for i, (at, facet) in enumerate(rows[:limit]):
        body = bodies.get(facet)
        entry: dict[str, Any] = {"time": iso(at), "fields": describe.flat(body)}
        if i + 1 < len(rows):
            entry |= changes(read(bodies.get(rows[i + 1][1])), read(body))
        versions.append(entry)
    more = len(rows) > limit
    return {
        "versions": versions,
        "next": versions[-1]["time"] if more else None,
        "truncated": more,
    }


def difference(view: View, request: Request) -> dict[str, Any]:
    """The schema of a dataset at two moments, and what lies between them."""
    named = the_dataset(view, request)
    if not request.query.get("from"):
        raise bad("from", "is missing")
    start, end = moment(request, "from", 0), moment(request, "to", 2**62)
    ids = members(view, named.root)
    found = [next(iter(schemas(view, ids, at, 1)), None) for at in (start, end)]
    bodies = view.bodies(row[1] for row in found if row)
    sides = [bodies.get(row[1]) if row else None for row in found]
    return {
        "from": when(start),
        "to": when(end) if end < 2**62 else None,
        "before": describe.flat(sides[0]),
        "after": describe.flat(sides[1]),
        **changes(read(sides[0]), read(sides[1])),
    }
