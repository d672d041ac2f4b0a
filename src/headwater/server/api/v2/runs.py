"""Closing a run by hand."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from headwater.server.api.commands import carry_out
from headwater.server.api.v1 import runs
from headwater.server.http import Request, Response
from headwater.server.store.view import View

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["routes"]


def routes(app: App) -> None:
    """`POST /api/v2/runs/{id}/abort`."""

    async def abort(request: Request) -> Response:
        run = str(runs.to_uuid(request.path["id"]))
        command = {"command": "run", "run": run, "state": "ABORT", "time": time.time_ns() // 1000}
        await carry_out(app, command)
        with app.store.database.reading() as connection:
            return Response(runs.run(View(connection, app.bodies), request))

    app.router.add("POST", "/api/v2/runs/{id}/abort", abort, "write", direct=True)
