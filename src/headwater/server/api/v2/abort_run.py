"""Closing a run by hand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING
from uuid import UUID

from headwater.lineage.model import End
from headwater.lineage.openlineage.writer import Writer
from headwater.server.api.lookup import the_run
from headwater.server.api.present import Presenter
from headwater.server.api.submit_command import carry_out
from headwater.server.api.types import Run
from headwater.server.api.v2.descriptions import PRODUCER
from headwater.server.http import Request, Response
from headwater.server.routing import Routes
from headwater.server.store.view import View

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["api"]

api = Routes()


@api.route("POST", "/api/v2/runs/{id}/abort", answer=Run)
async def abort(app: App, request: Request) -> Response:
    """Close a run by hand; `headwater_end` among its facets names the person or token that did."""
    given = request.path["id"]
    try:
        run = str(UUID(given))
    except ValueError:
        raise request.bad("id", f"'{given[:64]}' is not a UUID") from None
    end = End("aborted by hand", by=app.auth.name(request.credential))
    command = {
        "command": "run",
        "run": run,
        "state": "ABORT",
        "time": time.time_ns() // 1000,
        "facets": {"headwater_end": Writer(PRODUCER).end_facet(end)},
    }
    await carry_out(app, command)
    with app.store.database.reading() as connection:
        view = View(connection, app.bodies)
        found = the_run(view, run)
        return Response(Presenter(view).runs([found], view.jobs([found.job]))[found.id])
