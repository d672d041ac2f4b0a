"""The log, page by page from a cursor."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.events import iso
from headwater.server.api.v1 import reader

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["routes"]


def events(view: View, request: Request) -> dict[str, Any]:
    """Records after a cursor, the oldest first: events as they were sent, and commands."""
    after = request.integer("after", 0, 0, 2**62)
    limit = request.integer("limit", 100, 1, 1_000)
    sql = "SELECT seq, kind, at, hash, dictionary, body FROM log WHERE seq > ? ORDER BY seq LIMIT ?"
    records = [
        {
            "seq": seq,
            "receivedAt": iso(at),
            "hash": bytes(digest).hex(),
            "command" if kind else "event": msgspec.Raw(view.body(dictionary, body)),
        }
        for seq, kind, at, digest, dictionary, body in view.all(sql, (after, limit))
    ]
    return {"records": records, "next": records[-1]["seq"] if records else after}


def routes(app: App) -> None:
    """`GET /api/v2/events`."""
    app.router.add("GET", "/api/v2/events", reader(app, events))
