"""Whether a dataset is up to date, since when it is not, and which job is to blame."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Literal, TypedDict

from headwater import insight
from headwater.lineage.moments import SECOND
from headwater.server.api.lookup import the_dataset
from headwater.server.api.parameters import integer
from headwater.server.api.present import when
from headwater.server.api.types import Named, Time
from headwater.server.ingest.flow import last_records
from headwater.server.routing import Routes

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["api", "hidden_upstream", "judged"]

api = Routes()

CAUSES = 50
DEPTH = 20
NODES = 1_000


class FreshnessCause(TypedDict):
    """A job that delivers nothing; `root` if nothing further up explains it."""

    job: Named
    trouble: Literal["failed", "aborted", "ended", "late", "paused", "stopped"]
    since: Time | None
    distance: int
    root: bool


class Freshness(TypedDict):
    """Whether a dataset is up to date, and if not, since when and why.

    `lastWrittenAt` is null where no write was reported: that does not mean that there was none.
    `lastWrittenFrom` says what it is known from: records that flowed, the end of a complete run, or
    only a heartbeat, by which a job that writes the dataset reported that it runs.
    """

    verdict: Literal["live", "fresh", "stale", "unknown"]
    since: Time | None
    lastWrittenAt: Time | None
    lastWrittenFrom: Literal["flow", "run", "heartbeat"] | None
    usualSeconds: int | None
    dueAt: Time | None
    causes: list[FreshnessCause]
    hidden: int
    truncated: bool


@api.get("/api/v2/datasets/{namespace}/{dataset}/freshness", answer=Freshness)
def freshness(
    view: View, namespace: str, dataset: str, depth: int = integer(DEPTH, 1, 50)
) -> Freshness:
    """The verdict on one dataset, judged by every job its data passes through.

    `depth` counts jobs; `truncated` if there are more, further away.
    """
    return judged(view, the_dataset(view, namespace, dataset), depth)


def judged(view: View, dataset: Dataset, depth: int = DEPTH) -> Freshness:
    """The verdict on a dataset as the API and the page give it."""
    now = time.time_ns() // 1000
    graph = view.graph(records=partial(last_records, view.connection))
    found = insight.freshness(graph, dataset.node, now, depth=2 * depth)
    jobs = view.jobs(cause.job[1] for cause in found.causes)
    # Jobs in equal trouble stand by name: their ids depend on the order in which events arrived.
    causes = sorted(
        ((cause, jobs[cause.job[1]]) for cause in found.causes),
        key=lambda one: (*one[0].rank, one[1].space, one[1].name),
    )
    return {
        "verdict": found.verdict,
        "since": when(found.since),
        "lastWrittenAt": when(found.last),
        "lastWrittenFrom": found.source,
        "usualSeconds": None if found.usual is None else found.usual // SECOND,
        "dueAt": when(found.due),
        "causes": [
            {
                "job": {"namespace": job.space, "name": job.name},
                "trouble": cause.trouble.value,
                "since": when(cause.since),
                "distance": cause.distance,
                "root": cause.root,
            }
            for cause, job in causes[:CAUSES]
        ],
        "hidden": hidden_upstream(view, dataset, depth),
        "truncated": found.cut or len(causes) > CAUSES,
    }


def hidden_upstream(view: View, dataset: Dataset, depth: int) -> int:
    """How many jobs and datasets right before a dataset, or what it comes from, may not be read."""
    if view.limit is None:
        return 0
    found = insight.tree(view.graph(), dataset.node, depth=2 * depth, limit=NODES)
    return view.hidden_before(*{row.node for row in found.rows})
