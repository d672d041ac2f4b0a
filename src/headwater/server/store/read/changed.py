"""What may have become different between two moments, and the states of jobs at one."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headwater.lineage.graph import Direction
from headwater.lineage.lifecycle import State
from headwater.server.store.database import within
from headwater.server.store.deciding_run import decided_runs
from headwater.server.store.entities import STATUSES
from headwater.server.store.read.graph import DATASET, JOB

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.server.store.entities import Column, Node
    from headwater.server.store.view import View

    ColumnEdge = tuple[Column, Column]

__all__ = ["ChangedParts", "changed_columns", "changed_parts", "differing", "shown_at", "states_at"]

V = TypeVar("V")

LIMIT = 20_000
_ENDS = (
    " LEFT JOIN fold f ON f.job = e.job"
    " WHERE ((x.since > ? AND x.since <= ?) OR (x.until > ? AND x.until <= ?))"
    " AND (e.until IS NULL OR e.until > ?)"
)
# With what is next to it: that has other edges, and is there without it.
_DELETED = (
    "SELECT coalesce(f.whole, e.job), d.root FROM deletion x"  # noqa: S608
    " JOIN edge e ON e.job = x.entity AND x.kind = 1 JOIN dataset d ON d.id = e.dataset"
    + _ENDS
    + " UNION SELECT coalesce(f.whole, e.job), d.root FROM deletion x"
    " JOIN dataset d ON d.id = x.entity AND x.kind = 0 JOIN edge e ON e.dataset = d.id"
    + _ENDS
    + " LIMIT ?"
)
DELIVERS = (State.NEW, State.RUNNING, State.COMPLETED)


class ChangedParts(NamedTuple):
    """Nodes with other edges, datasets with another schema or other columns, jobs with runs."""

    nodes: set[Node]
    datasets: set[int]
    jobs: set[int]
    cut: bool


def changed_parts(view: View, since: int, until: int) -> ChangedParts:
    """All that can differ between two moments; the rest of the store need not be compared."""
    span = (since, until)
    edges = view.all(
        "SELECT coalesce(f.whole, e.job), d.root FROM edge e JOIN dataset d ON d.id = e.dataset"
        " LEFT JOIN fold f ON f.job = e.job WHERE (e.since > ? AND e.since <= ?)"
        " OR (e.until > ? AND e.until <= ?) LIMIT ?",
        (*span, *span, LIMIT),
    )
    nodes: set[Node] = {(JOB, job) for job, _ in edges} | {(DATASET, root) for _, root in edges}
    schemas = view.all(
        "SELECT DISTINCT d.root FROM facet_change c JOIN dataset d ON d.id = c.entity"
        " WHERE c.kind = 0 AND c.name = 'schema' AND c.time > ? AND c.time <= ? LIMIT ?",
        (*span, LIMIT),
    )
    columns = view.all(
        "SELECT DISTINCT d.root FROM column_map c JOIN dataset d ON d.id = c.dataset"
        " WHERE c.time > ? AND c.time <= ? LIMIT ?",
        (*span, LIMIT),
    )
    deleted = view.all(_DELETED, (*span, *span, since, *span, *span, since, LIMIT))
    nodes |= {(JOB, job) for job, _ in deleted} | {(DATASET, root) for _, root in deleted}
    datasets = {root for (root,) in schemas + columns} | {root for _, root in edges + deleted}
    # Ends of runs without datasets are in no index: of those, the newest of each job will do.
    runs = view.all(
        "SELECT job FROM run WHERE created > ? AND created <= ?"
        " UNION SELECT job FROM run WHERE linked = 1 AND ended > ? AND ended <= ?"
        " UNION SELECT j.id FROM job j JOIN run r ON r.id = j.latest"
        " WHERE r.ended > ? AND r.ended <= ?",
        (*span, *span, *span),
    )
    cut = max(len(edges), len(schemas), len(columns), len(deleted)) >= LIMIT
    return ChangedParts(nodes, datasets, {job for (job,) in runs}, cut)


def shown_at(
    view: View, kind: int, entities: Mapping[int, bool], moments: tuple[int, int]
) -> tuple[set[int], set[int]]:
    """Which jobs or datasets were there at each of two moments, given whether they are deleted now.

    What is deleted now was there at the first moment if that happened between the two; otherwise it is
    part of none.
    """
    start, end = moments
    sql = "SELECT entity, since, until FROM deletion WHERE kind = ? AND entity IN ({in})"
    gone: dict[int, list[tuple[int, int | None]]] = defaultdict(list)
    for entity, since, until in within(view.connection, sql, list(entities), (kind,)):
        gone[entity].append((since, until))
    found: tuple[set[int], set[int]] = (set(), set())
    for entity, deleted in entities.items():
        spans = gone[entity]
        if deleted and not any(until is None and start < since <= end for since, until in spans):
            continue
        for at, there in zip(moments, found, strict=True):
            if not any(since <= at and (until is None or at < until) for since, until in spans):
                there.add(entity)
    return found


def states_at(view: View, jobs: Iterable[int], at: int) -> dict[int, str]:
    """How each job stood at a moment; a batch that runs counts as what it was.

    A batch starts and completes all day: only that it failed, or no longer does, is another state.
    """
    # Where runs overlap, or the newest is what a job event declared, more than one is to be asked.
    sql = (
        "SELECT r.job, r.status, r.ended, j.kind, r.id, r.created, EXISTS"
        " (SELECT 1 FROM run o WHERE o.job = r.job AND o.created <= ? AND o.id <> r.id"
        " AND (o.ended IS NULL OR o.ended >= r.created))"
        " FROM (SELECT job, max(created) AS created FROM run"
        " WHERE created <= ? AND job IN ({in}) GROUP BY job) m"
        " JOIN run r ON r.job = m.job AND r.created = m.created"
        " JOIN job j ON j.id = r.job WHERE j.hidden = 0"
    )
    ends: dict[int, tuple[State, int | None]] = {}
    streams: set[int] = set()
    several: set[int] = set()
    at_once: dict[int, int] = {}
    rows = within(view.connection, sql, list(jobs), (at, at))
    for job, status, ended, kind, run, created, more in rows:
        ends[job] = STATUSES[status], ended
        if kind.upper() in ("STREAMING", "STREAM"):
            streams.add(job)
        if more:
            several.add(job)
        elif ended == created:  # a declaration is kept as such a run
            at_once[run] = job
    several.update(at_once[run.id] for run in view.runs(at_once).values() if run.state.static)
    lives = {
        job: run.state.life
        for job, run in decided_runs(view, view.jobs(several).values(), at).items()
    }
    ends |= {job: (life.state, life.end) for job, life in lives.items()}
    found = {}
    for job, (last, ended) in ends.items():
        state = last if ended is not None and ended <= at else State.RUNNING
        found[job] = "OK" if job not in streams and state in DELIVERS else state.value
    return found


def differing(before: Mapping[int, V], after: Mapping[int, V]) -> tuple[dict[int, V], dict[int, V]]:
    """What was there at both moments and is another value at the second."""
    keys = [key for key, value in before.items() if key in after and after[key] != value]
    return {key: before[key] for key in keys}, {key: after[key] for key in keys}


def _deleted_datasets(view: View, moments: tuple[int, int]) -> set[int]:
    """The datasets that were deleted by hand, or are there again since, between two moments."""
    sql = (
        "SELECT d.root FROM deletion x JOIN dataset d ON d.id = x.entity WHERE x.kind = 0"
        " AND ((x.since > ? AND x.since <= ?) OR (x.until > ? AND x.until <= ?)) LIMIT ?"
    )
    return {root for (root,) in view.all(sql, (*moments, *moments, LIMIT))}


def changed_columns(
    view: View, datasets: set[int], moments: tuple[int, int], limit: int
) -> list[tuple[set[ColumnEdge], bool]]:
    """At each moment, the edges into columns of datasets that are not the same, and if cut."""
    graphs = [
        view.column_graph(at, deleted_in=moments if at == moments[0] else None) for at in moments
    ]
    members = graphs[0].members(datasets)
    before, after = (set(graph.held(members)) for graph in graphs)
    changed = {members[dataset] for dataset, _, _ in before ^ after}
    # Nobody has to report anything else for the columns of a dataset that is deleted to go.
    if gone := _deleted_datasets(view, moments):
        changed |= gone | graphs[0].targets(gone)
    found = []
    for graph in graphs:
        steps = graph.next(graph.outputs(changed), Direction.UPSTREAM)
        edges = {(source, target) for target, source, _ in itertools.islice(steps, limit + 1)}
        found.append((edges, len(edges) > limit))
    return found
