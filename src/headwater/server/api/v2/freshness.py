"""Whether a dataset is up to date, since when it is not, and which job is to blame."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.insight import freshness as judge
from headwater.server.api.v1.lists import the_dataset
from headwater.server.api.v1.present import when
from headwater.server.store.stored_graph import StoredGraph, dataset_node

if TYPE_CHECKING:
    from headwater.server.http import Request
    from headwater.server.store.view import View

__all__ = ["freshness"]

CAUSES = 50


def freshness(view: View, request: Request) -> dict[str, Any]:
    """The verdict on one dataset, judged by every job its data passes through."""
    named = the_dataset(view, request)
    depth = request.integer("depth", 20, 1, 50)
    graph = StoredGraph(view)
    now = time.time_ns() // 1000
    found = judge(graph, dataset_node(named), graph.standings, now, depth=depth, limit=500)
    return {
        "verdict": found.verdict,
        "since": when(found.since),
        "lastWrittenAt": when(found.last),
        "dueAt": when(found.due),
        "causes": [
            {
                "job": {"namespace": cause.job.namespace, "name": cause.job.name},
                "trouble": cause.trouble.value,
                "since": when(cause.since),
                "distance": cause.distance,
                "root": cause.root,
            }
            for cause in found.causes[:CAUSES]
        ],
        "truncated": found.cut or len(found.causes) > CAUSES,
    }
