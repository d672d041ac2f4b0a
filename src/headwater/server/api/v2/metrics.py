"""Figures for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.lineage.lifecycle import State
from headwater.server.http import Response
from headwater.server.routing import Routes
from headwater.server.store.entities import STATUSES

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

TEXT = (b"content-type", b"text/plain; version=0.0.4")


@api.get("/api/v2/metrics", media="text/plain")
def metrics(app: App, view: View) -> Response:
    """Figures for Prometheus."""
    ((seq,),) = view.all("SELECT seq FROM head WHERE id = 1")
    running = STATUSES.index(State.RUNNING)
    sql = (
        "SELECT count(*) FROM job j JOIN run r ON r.id = j.latest"
        " WHERE r.status = ? AND j.hidden = 0"
    )
    ((live,),) = view.all(sql, (running,))
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
    ]
    for name, counts in (("refused", app.refusals), ("assumed", app.store.assumed)):
        lines.append(f"# TYPE headwater_{name}_total counter")
        for reason, count in sorted(counts.items()):
            text = reason.replace("\\", "\\\\").replace('"', '\\"').replace("\n", " ")
            lines.append(f'headwater_{name}_total{{reason="{text}"}} {count}')
    return Response("\n".join([*lines, ""]).encode(), 200, (TEXT,))
