"""The consumer groups in which jobs that report themselves read a topic."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from headwater.lineage.lifecycle import State
from headwater.server.api import describe
from headwater.server.api.lookup import the_dataset
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT

if TYPE_CHECKING:
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

FACET = "headwater_consumerGroups"


class ConsumerGroups(TypedDict):
    """Names of groups, or the beginning of one and `*`."""

    groups: list[str]


@api.get("/api/v2/datasets/{namespace}/{dataset}/groups", answer=ConsumerGroups)
def groups(view: View, namespace: str, dataset: str) -> ConsumerGroups:
    """The consumer groups that queries which read a topic now name as theirs.

    An agent reports a group that the brokers show as a reader of its own, unless it is one of these.
    """
    topic = the_dataset(view, namespace, dataset)
    readers = {job for job, _, _ in view.graph().of_datasets([topic.root], INPUT)}
    runs = describe.latest_runs(view, view.jobs(readers).values()).values()
    held = [run.state.facets for run in runs if run.state.life.state is State.RUNNING]
    facets = describe.Facets(view, held, FACET)
    named = (facets.get(own, FACET).get("groups") for own in held)
    return {
        "groups": sorted({str(one) for some in named if isinstance(some, list) for one in some})
    }
