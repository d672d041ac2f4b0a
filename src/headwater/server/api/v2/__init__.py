"""Headwater's own API: the graph at any moment, the log by cursor, what the page asks, metrics."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.server.api.v1 import reader
from headwater.server.api.v2 import (
    aliases,
    events,
    evidence,
    freshness,
    graph,
    metrics,
    page,
    purge,
    runs,
    schemas,
    stream,
    timeline,
)

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["routes"]

_DATASET = "/api/v2/datasets/{namespace}/{dataset}"
READS = {
    _DATASET + "/history": schemas.history,
    _DATASET + "/schema/diff": schemas.difference,
    _DATASET + "/freshness": freshness.freshness,
    _DATASET + "/runs": timeline.dataset_runs,
    "/api/v2/jobs/{namespace}/{job}/runs": timeline.job_runs,
    "/api/v2/runs/{id}": timeline.run,
    "/api/v2/evidence": evidence.evidence,
}


def routes(app: App) -> None:
    """Put the routes on the app's router."""
    for part in (aliases, events, graph, metrics, page, purge, runs, stream):
        part.routes(app)
    for path, handler in READS.items():
        app.router.add("GET", path, reader(app, handler))
