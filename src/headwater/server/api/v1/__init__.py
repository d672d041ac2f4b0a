"""The Marquez-compatible API, a thin presenter over the store."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.server.api.v1 import beta, lineage, lists, runs, search, versions, writes
from headwater.server.store.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.app import App
    from headwater.server.http import Request
    from headwater.server.store.database import Connection

__all__ = ["routes"]

_DATASET = "/api/v1/namespaces/{namespace}/datasets/{dataset}"
_JOB = "/api/v1/namespaces/{namespace}/jobs/{job}"
READS: dict[str, Callable[[View, Request], Any]] = {
    "/api/v1/lineage": lineage.lineage,
    "/api/v1/column-lineage": lineage.column_lineage,
    "/api/v1/runlineage/upstream": runs.upstream_runs,
    "/api/v1/events/lineage": search.events,
    "/api/v1/events": search.events,
    "/api/v1/search": search.search,
    "/api/v1/namespaces": lists.namespaces,
    "/api/v1/namespaces/{namespace}": lists.namespace,
    "/api/v1/sources": lists.sources,
    "/api/v1/sources/{source}": lists.source,
    "/api/v1/namespaces/{namespace}/datasets": lists.datasets,
    _DATASET: lists.dataset,
    _DATASET + "/versions": versions.dataset_versions,
    _DATASET + "/versions/{version}": versions.dataset_version,
    "/api/v1/jobs": lists.jobs,
    "/api/v1/namespaces/{namespace}/jobs": lists.jobs,
    _JOB: lists.job,
    _JOB + "/versions": versions.job_versions,
    _JOB + "/versions/{version}": versions.job_version,
    _JOB + "/runs": lists.job_runs,
    "/api/v1/jobs/runs/{id}": runs.run,
    "/api/v1/jobs/runs/{id}/facets": runs.run_facets,
    "/api/v1/tags": lists.tags,
    "/api/v1/stats/lineage-events": search.counted_events,
    "/api/v1/stats/jobs": search.counter("jobs"),
    "/api/v1/stats/datasets": search.counter("datasets"),
    "/api/v1/stats/sources": search.counter("sources"),
    "/api/v2beta/search/jobs": beta.jobs,
    "/api/v2beta/search/datasets": beta.datasets,
}


def routes(app: App) -> None:
    """Put the routes on the app's router."""
    for path, handler in READS.items():
        app.router.add("GET", path, reader(app, handler))
    writes.routes(app)


def reader(app: App, handler: Callable[[View, Request], Any]) -> Callable[..., Any]:
    """A handler of a view as a handler of a connection."""

    def answer(connection: Connection, request: Request) -> Any:
        return handler(View(connection, app.bodies), request)

    return answer
