"""Is the server up, and does its store answer?"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater import __version__

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.database import Connection

__all__ = ["routes"]


def routes(app: App) -> None:
    """`GET /api/v2/health`."""

    def health(connection: Connection, request: Request) -> dict[str, Any]:
        ((seq,),) = connection.all("SELECT seq FROM head WHERE id = 1")
        return {
            "status": "ok",
            "version": __version__,
            "store": app.store.database.dialect,
            "events": seq,
            "may": app.gate.may(request.header(b"authorization")),
        }

    app.router.add("GET", "/api/v2/health", health, "none")
