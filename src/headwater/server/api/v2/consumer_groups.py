"""The consumer groups in which jobs that report themselves read the topics of a Kafka cluster."""

from __future__ import annotations

from collections import defaultdict
from itertools import islice
from typing import TYPE_CHECKING, TypedDict

from headwater.lineage.lifecycle import State
from headwater.server.api import describe
from headwater.server.api.parameters import text
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT

if TYPE_CHECKING:
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

FACET = "headwater_consumerGroups"
MAX_TOPICS = 10_000
TOPICS = (
    "SELECT d.name, d.root FROM dataset d JOIN namespace n ON n.id = d.namespace"
    " WHERE n.name = ? AND d.hidden = 0"
    " UNION SELECT a.name, d.root FROM alias a JOIN dataset d ON d.id = a.dataset"
    " WHERE a.namespace = ? AND d.hidden = 0"
)


class ConsumerGroups(TypedDict):
    """By topic, names of groups, or a prefix and `-*`, which stands for a UUID and what may follow it."""

    topics: dict[str, list[str]]
    truncated: bool


@api.get("/api/v2/consumer-groups", answer=ConsumerGroups)
def groups(
    view: View, namespace: str = text(required=True, example="kafka://broker:9092")
) -> ConsumerGroups:
    """The consumer groups that queries which run now name as theirs, by the topic that they read.

    An agent reports a group that the brokers show as a reader of its own, unless it is one of these.
    """
    roots: dict[str, int] = dict(sorted(view.all(TOPICS, (namespace, namespace))))
    readers = {(job, root) for job, root, _ in view.graph().of_datasets(roots.values(), INPUT)}
    jobs = view.jobs({job for job, _ in readers})
    runs = describe.latest_runs(view, jobs.values())
    held = {
        job: runs[one.id].state.facets
        for job, one in jobs.items()
        if one.id in runs and runs[one.id].state.life.state is State.RUNNING
    }
    facets = describe.Facets(view, held.values(), FACET)
    named: dict[int, set[str]] = defaultdict(set)
    for job, root in readers:
        if isinstance(some := facets.get(held.get(job, {}), FACET).get("groups"), list):
            named[root] |= {str(one) for one in some}
    found = ((topic, sorted(named[root])) for topic, root in roots.items() if named.get(root))
    return {
        "topics": dict(islice(found, MAX_TOPICS)),
        "truncated": next(found, None) is not None,
    }
