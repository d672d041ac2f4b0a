"""Runs of a job or of a dataset and the schemas of a dataset, page by page, the newest first."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from headwater.server.store.database import within
from headwater.server.store.entities import MERGED, slot, to_run
from headwater.server.store.read.column_graph import ColumnGraph

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.server.store.entities import Run
    from headwater.server.store.view import View

__all__ = [
    "Cursor", "members", "runs_of_dataset", "runs_of_job", "schema_histories", "schemas", "schemas_at",
]  # fmt: skip

STEP = 200
MOST_JOBS = 200
MOST_RUNS = 2_000

Cursor = tuple[int, int]
"""Where a page ended: a run's first moment and its number."""

START: Cursor = (2**62, 2**62)


class Page(NamedTuple):
    """Some runs, where the next page begins, and whether something was left out."""

    runs: list[Run]
    next: Cursor | None
    cut: bool = False


def runs_of_job(view: View, job: int, before: Cursor | None, limit: int) -> Page:
    """The runs of one job."""
    sql = (
        "SELECT r.id, r.uuid, r.job, r.state, r.created FROM run r"
        " WHERE r.job = ? AND (r.created, r.id) < (?, ?)"
        " ORDER BY r.created DESC, r.id DESC LIMIT ?"
    )
    rows = view.all(sql, (job, *(before or START), limit + 1))
    more = len(rows) > limit
    rows = rows[:limit]
    runs = [to_run(row[:4]) for row in rows]
    last = (rows[-1][4], rows[-1][0]) if rows and more else None
    return Page([run for run in runs if not run.state.static], last)


def members(view: View, root: int) -> list[int]:
    """Every dataset that stands for this one, itself first."""
    rows = view.all("SELECT id FROM dataset WHERE root = ? AND root <> id LIMIT 100", (root,))
    return [root, *(row[0] for row in rows)]


def runs_of_dataset(
    view: View, ids: Sequence[int], before: Cursor | None, limit: int, directions: Sequence[int]
) -> Page:
    """The runs that read or wrote a dataset under one of its names; not those of task jobs."""
    sql = (
        "SELECT DISTINCT e.job FROM edge e JOIN job j ON j.id = e.job"
        " WHERE j.hidden <> ? AND e.dataset IN ({in})"
    )
    found = sorted({row[0] for row in within(view.connection, sql, ids, (MERGED,))})
    jobs, cut = found[:MOST_JOBS], len(found) > MOST_JOBS
    if not jobs:
        return Page([], None)
    wanted = {slot(number, direction) for number in ids for direction in directions}
    marks = ",".join("?" * len(jobs))
    sql = (
        f"SELECT r.id, r.uuid, r.job, r.state, r.created FROM run r WHERE r.job IN ({marks})"  # noqa: S608
        " AND (r.created, r.id) < (?, ?) ORDER BY r.created DESC, r.id DESC LIMIT ?"
    )
    runs: list[Run] = []
    place, seen = before or START, 0
    while seen < MOST_RUNS:
        rows = view.all(sql, (*jobs, *place, STEP))
        for row in rows:
            place = (row[4], row[0])
            run = to_run(row[:4])
            if not run.state.static and not wanted.isdisjoint(run.state.io):
                runs.append(run)
                if len(runs) >= limit:
                    return Page(runs, place, cut)
        seen += len(rows)
        if len(rows) < STEP:
            return Page(runs, None, cut)
    return Page(runs, place, cut)


def schemas(view: View, ids: Sequence[int], until: int | None, limit: int) -> list[tuple[int, int]]:
    """Moments at which a dataset's schema changed with the facet it then had, the newest first."""
    rows: list[tuple[int, int]] = []
    for number in ids:
        sql = (
            "SELECT time, facet FROM facet_change WHERE kind = 0 AND entity = ? AND name = 'schema'"
            " AND time <= ? ORDER BY time DESC LIMIT ?"
        )
        found = view.all(sql, (number, 2**62 if until is None else until, limit))
        rows += [(row[0], row[1]) for row in found if row[1]]
    return _changes(rows)[:limit]


def _changes(rows: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Of facets and when they were set, under any name of a dataset, those that replaced another one."""
    rows.sort(reverse=True)
    return [row for i, row in enumerate(rows) if i + 1 == len(rows) or rows[i + 1][1] != row[1]]


def schema_histories(
    view: View, roots: Iterable[int], limit: int
) -> dict[int, list[tuple[int, int]]]:
    """`schemas` of many datasets, each under all its names, by two statements."""
    roots_by_member = ColumnGraph(view).members(roots)
    sql = (
        "SELECT entity, time, facet FROM (SELECT entity, time, facet,"  # noqa: S608
        " ROW_NUMBER() OVER (PARTITION BY entity ORDER BY time DESC) AS place FROM facet_change"
        " WHERE kind = 0 AND name = 'schema' AND entity IN ({in})) AS newest"
        f" WHERE facet <> 0 AND place <= {int(limit)}"
    )
    rows: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for number, time, facet in within(view.connection, sql, roots_by_member):
        rows[roots_by_member[number]].append((time, facet))
    return {root: _changes(some)[:limit] for root, some in rows.items()}


def schemas_at(view: View, roots: Iterable[int], at: int) -> dict[int, int]:
    """The schema facet that each dataset, under any of its names, had at a moment."""
    roots_by_member = ColumnGraph(view).members(roots)
    sql = (
        "SELECT entity, time, facet FROM facet_change WHERE kind = 0 AND name = 'schema'"
        " AND facet <> 0 AND time <= ? AND entity IN ({in})"
    )
    newest: dict[int, tuple[int, int]] = {}
    for number, time, facet in within(view.connection, sql, roots_by_member, (at,)):
        root = roots_by_member[number]
        newest[root] = max(newest.get(root, (-1, 0)), (time, facet))
    return {root: facet for root, (_, facet) in newest.items()}
