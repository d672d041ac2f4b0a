"""What the web page asks: one bounded answer for each of its views, as JSON that anyone may have."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.api.v1 import reader
from headwater.server.api.v2.page import columns, connectors, entities, estate, overview
from headwater.server.api.v2.page.search import Names
from headwater.server.store.view import View

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.database import Connection

__all__ = ["routes"]


def routes(app: App) -> None:
    """Put the routes on the app's router."""
    names = Names()

    def search(connection: Connection, request: Request) -> object:
        return names.answer(View(connection, app.bodies), request)

    add = app.router.add
    add("GET", "/api/v2/overview", reader(app, overview.overview))
    add("GET", "/api/v2/map", reader(app, estate.draw))
    add("GET", "/api/v2/columns", reader(app, columns.columns))
    add("GET", "/api/v2/datasets/{namespace}/{dataset}", reader(app, entities.dataset))
    add("GET", "/api/v2/jobs/{namespace}/{job}", reader(app, entities.job))
    add("GET", "/api/v2/connectors", reader(app, connectors.connectors))
    add("GET", "/api/v2/search", search)
