"""Figures for Prometheus."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater import __version__
from headwater.lineage.lifecycle import State
from headwater.metrics import CONTENT_TYPE, Metric, exposition, gauge, labelled, total
from headwater.server.http import Response
from headwater.server.routing import Routes
from headwater.server.store.entities import STATUSES

if TYPE_CHECKING:
    from headwater.server.app import App
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

TEXT = (b"content-type", CONTENT_TYPE.encode())


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
    found = [
        labelled("headwater_build_info", "gauge", "The version.", [({"version": __version__}, 1)]),
        gauge("headwater_log_records", "Records of the log, events and commands.", seq),
        gauge("headwater_jobs_running", "Jobs whose newest run is RUNNING.", live),
        gauge(
            "headwater_store_bytes", "Bytes of the store on its disk.", app.store.database.size()
        ),
        *_service(app),
    ]
    if app.forwards:  # a server that stands by does not know how far another got
        about = "The last record of the log that Kafka has."
        found.append(gauge("headwater_forwarded_records", about, app.log_forwarded or 0))
    return Response(exposition(found).encode(), 200, (TEXT,))


def _service(app: App) -> list[Metric]:
    """What this process counts since its start."""
    ingest = app.ingest
    failing = bool(ingest.failing or app.trouble)
    return [
        gauge("headwater_failing", "1 while the store cannot be written or is damaged.", failing),
        total("headwater_events_accepted_total", "Events taken in.", ingest.accepted),
        total("headwater_commits_total", "Commits of events.", ingest.commits),
        Metric(
            "headwater_commit_events", "histogram", "Events of a commit.", ingest.sizes.samples({})
        ),
        gauge(
            "headwater_queue_events", "Events and changes that wait for a commit.", ingest.queued
        ),
        gauge("headwater_live_clients", "Open live streams: pages.", app.live.listeners),
        gauge("headwater_connections", "Open connections.", len(app.traffic.connections)),
        gauge("headwater_body_bytes", "Bytes of bodies in memory.", app.traffic.bytes),
        *app.requests.metrics(),
        *(
            labelled(
                f"headwater_{name}_total",
                "counter",
                about,
                (({"reason": reason}, count) for reason, count in sorted(counts.copy().items())),
            )
            for name, about, counts in (
                ("refused", "Requests and events refused, by reason.", app.refusals),
                ("assumed", "What was assumed of events, by reason.", app.store.assumed),
            )
        ),
    ]
