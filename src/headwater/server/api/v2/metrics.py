"""Figures for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.lifecycle import State
from headwater.server.http import Request, Response
from headwater.server.store.entities import STATUSES

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.store.database import Connection

__all__ = ["routes"]

TEXT = (b"content-type", b"text/plain; version=0.0.4")


def routes(app: App) -> None:
    """`GET /api/v2/metrics`."""

    def metrics(connection: Connection, request: Request) -> Response:  # noqa: ARG001
        ((seq,),) = connection.all("SELECT seq FROM head WHERE id = 1")
        running = STATUSES.index(State.RUNNING)
        sql = (
            "SELECT count(*) FROM job j JOIN run r ON r.id = j.latest"
            " WHERE r.status = ? AND j.hidden = 0"
        )
        ((live,),) = connection.all(sql, (running,))
        ingest = app.ingest
        lines = [
            "# TYPE headwater_log_records counter",
            f"headwater_log_records {seq}",
            "# TYPE headwater_events_accepted_total counter",
            f"headwater_events_accepted_total {ingest.accepted}",
            "# TYPE headwater_commits_total counter",
            f"headwater_commits_total {ingest.commits}",
            "# TYPE headwater_jobs_running gauge",
            f"headwater_jobs_running {live}",
            "# TYPE headwater_refused_total counter",
        ]
        for reason, count in sorted(app.refusals.items()):
            text = reason.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            lines.append(f'headwater_refused_total{{reason="{text}"}} {count}')
        return Response("\n".join([*lines, ""]).encode(), 200, (TEXT,))

    app.router.add("GET", "/api/v2/metrics", metrics)
