"""Why a dataset is not up to date, and which inputs of a column changed last."""

from __future__ import annotations

import time
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from headwater.insight import along_values, last_change, tree
from headwater.insight import why as explain
from headwater.lineage.openlineage.events import iso
from headwater.server.api import describe
from headwater.server.api.lookup import the_dataset
from headwater.server.api.missing_columns import check_column
from headwater.server.api.parameters import integer, text
from headwater.server.api.present import when
from headwater.server.api.types import Named, Time
from headwater.server.api.v2.page import columns
from headwater.server.api.v2.questions.freshness import hidden_upstream
from headwater.server.ingest.flow import last_records, read_lags
from headwater.server.routing import Routes
from headwater.server.store.read.observed import read_schema
from headwater.server.store.read.timeline import schema_histories

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.insight import ObservedChange, Reason
    from headwater.server.store.entities import Column, Dataset, Node
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

CAUSES = 50
INPUTS = 200
VERSIONS = 10


class RecentChange(TypedDict):
    """What became different about a job or a dataset."""

    time: Time
    node: str
    text: str


class WhyCause(TypedDict):
    """What is wrong with a job or a dataset; `root` if nothing further up explains it.

    `by` is who ended the job's run, where that is known.
    """

    kind: Literal[
        "failed",
        "aborted",
        "late",
        "lagging",
        "schema",
        "ended",
        "quality",
        "paused",
        "stopped",
    ]
    planned: bool
    root: bool
    node: str
    named: Named
    since: Time | None
    detail: str | None
    by: str | None
    distance: int
    path: list[str]
    changes: list[RecentChange]


class ColumnInput(TypedDict):
    """A column that the values of another one come from, and when it last became a different one."""

    namespace: str
    name: str
    field: str
    node: str
    changedAt: Time | None
    change: str | None
    lastWrittenAt: Time | None


class Why(TypedDict):
    """The verdict on a dataset and what explains it; `inputs` for a column.

    `unknown` are jobs that write its dataset and do not report from which columns: it may come from more.
    """

    node: str
    verdict: Literal["live", "fresh", "stale", "unknown"]
    since: Time | None
    lastWrittenAt: Time | None
    lastWrittenFrom: Literal["flow", "run", "heartbeat"] | None
    usualSeconds: int | None
    dueAt: Time | None
    causes: list[WhyCause]
    recent: list[RecentChange]
    inputs: list[ColumnInput] | None
    unknown: list[columns.Silent] | None
    hidden: int
    truncated: bool


@api.get("/api/v2/datasets/{namespace}/{dataset}/why", answer=Why)
def why(
    view: View,
    namespace: str,
    dataset: str,
    column: str = text(),
    depth: int = integer(20, 1, 50),
) -> dict[str, Any]:
    """Whether a dataset is up to date and, if not, what is wrong upstream of it.

    Each cause has its path to the dataset and what changed shortly before it. With `column`, also the
    columns that it comes from, the one that changed last first. While nothing is wrong, `recent` has the
    schemas upstream that changed in the last day so that a reader could break. `depth` counts jobs.
    """
    found = the_dataset(view, namespace, dataset)
    if column:
        check_column(view, found, column)
    graph = view.observed_graph(
        partial(read_lags, view.connection), partial(last_records, view.connection)
    )
    now = time.time_ns() // 1000
    answer = explain(graph, found.node, now, depth=2 * depth)
    fresh = answer.freshness
    inputs, cut = _inputs(view, found, column, depth) if column else (None, False)
    return {
        "node": describe.dataset_id(found),
        "verdict": fresh.verdict,
        "since": when(fresh.since),
        "lastWrittenAt": when(fresh.last),
        "lastWrittenFrom": fresh.source,
        "usualSeconds": None if fresh.usual is None else fresh.usual // 1_000_000,
        "dueAt": when(fresh.due),
        "causes": _causes(view, list(answer.reasons)),
        "recent": _recent(view, answer.recent),
        "inputs": inputs,
        "unknown": columns.silent_beside(view, found, graph) if column else None,
        "hidden": hidden_upstream(view, found, depth),
        "truncated": answer.cut or cut or len(answer.reasons) > CAUSES,
    }


def _causes(view: View, reasons: list[Reason[Node]]) -> list[dict[str, Any]]:
    nodes = {node for reason in reasons for node in reason.path}
    nodes |= {node for reason in reasons for node, _ in reason.changes}
    jobs = view.jobs(number for kind, number in nodes if kind == "job")
    datasets = view.datasets(number for kind, number in nodes if kind == "dataset")
    described = describe.jobs(view, list({job.id: job for job in jobs.values()}.values()))
    ids: dict[Node, str] = {("job", n): describe.job_id(job) for n, job in jobs.items()}
    ids |= {("dataset", n): describe.dataset_id(one) for n, one in datasets.items()}
    found = []
    for reason in reasons[:CAUSES]:
        one = (jobs if reason.node[0] == "job" else datasets).get(reason.node[1])
        if one is None:
            continue
        error = described[one.id]["error"] if reason.node[0] == "job" else None
        found.append(
            {
                "kind": reason.kind.value,
                "planned": reason.kind.planned,
                "root": reason.root,
                "node": ids[reason.node],
                "named": {"namespace": one.space, "name": one.name},
                "since": when(reason.since or None),
                "detail": reason.detail or error,
                "by": reason.by or None,
                "distance": (len(reason.path)) // 2,
                "path": [ids[node] for node in reason.path if node in ids],
                "changes": [
                    {"time": when(change.time), "node": ids[node], "text": change.text}
                    for node, change in reason.changes
                    if node in ids
                ],
            }
        )
    return found


def _recent(view: View, changes: Sequence[tuple[Node, ObservedChange]]) -> list[RecentChange]:
    """Changes of datasets; while nothing is wrong, only schema changes are listed."""
    datasets = view.datasets(number for (_, number), _ in changes)
    return [
        {
            "time": iso(change.time),
            "node": describe.dataset_id(datasets[number]),
            "text": change.text,
        }
        for (_, number), change in changes
        if number in datasets
    ]


def _inputs(
    view: View, dataset: Dataset, column: str, depth: int
) -> tuple[list[dict[str, Any]], bool]:
    """The columns that the values of a column come from, as `trace` has them, and whether there are more.

    The one that changed last comes first.
    """
    graph = view.column_graph()
    start = dataset.root, column
    found = tree(graph, start, depth=depth, limit=INPUTS, follow=along_values(graph))
    sources: dict[Column, None] = dict.fromkeys(row.node for row in found.rows[1:])
    datasets = view.datasets({number for number, _ in sources})
    rows = schema_histories(view, datasets, VERSIONS)
    several = {number: some for number, some in rows.items() if len(some) > 1}
    bodies = view.bodies(facet for some in several.values() for _, facet in some)
    histories = {
        number: [(at, read_schema(bodies.get(facet))) for at, facet in some]
        for number, some in several.items()
    }
    answers: list[tuple[int, int, dict[str, Any]]] = []
    for source in sources:
        if (owner := datasets.get(source[0])) is None:
            continue
        changed = last_change(histories.get(source[0], ()), source[1])
        written = owner.state.modified
        answers.append(
            (
                -(changed[0] if changed else 0),
                -(written or 0),
                {
                    "namespace": owner.space,
                    "name": owner.name,
                    "field": source[1],
                    "node": columns.column_id(source, owner),
                    "changedAt": when(changed[0]) if changed else None,
                    "change": str(changed[1]) if changed else None,
                    "lastWrittenAt": when(written),
                },
            )
        )
    answers.sort(key=lambda one: (*one[:2], one[2]["node"]))
    return [one for _, _, one in answers], found.cut
