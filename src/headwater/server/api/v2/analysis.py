"""What lies behind datasets and columns in the whole estate, and which of them nobody uses."""

from __future__ import annotations

import heapq
import itertools
from typing import TYPE_CHECKING, Literal, TypedDict

from headwater.server.api.lookup import the_dataset
from headwater.server.api.parameters import integer, text
from headwater.server.api.present import when
from headwater.server.api.types import Named, Time
from headwater.server.routing import Routes
from headwater.server.store.database import within

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.analysis import AnalysedDataset, AnalysedEstate
    from headwater.server.app import App
    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

STEP = 500
COMPONENTS = 20
NAMES = 5
"""Datasets of a component that are tried as its name: the server may no longer have some."""
ORDERS = ("jobs", "datasets", "owners", "unused-columns")
_KNOWN = (
    "WITH k (space, name) AS ({in}) SELECT k.space, k.name, d.root FROM k"
    " JOIN namespace n ON n.name = k.space"
    " JOIN dataset d ON d.namespace = n.id AND d.name = k.name WHERE d.hidden = 0"
)


class AnalysedFigures(TypedDict):
    """How much lies behind a dataset, and how much of it is used; of the whole estate.

    `jobs` and `datasets` lie downstream, directly or behind others, `owners` own them, `readers` are
    jobs that read it themselves. `unused`: a job wrote it in the period and none read it.
    """

    jobs: int
    datasets: int
    owners: int
    readers: int
    unused: bool
    columns: int
    unusedColumns: int
    component: int


class RankedDataset(AnalysedFigures):
    """A dataset in the list."""

    namespace: str
    name: str


class Component(TypedDict):
    """A part of the estate that no edge joins to the others, and its dataset with the most downstream."""

    component: int
    datasets: int
    jobs: int
    columns: int
    around: Named | None


class Components(TypedDict):
    """How many parts the estate has, and the largest of them."""

    total: int
    largest: list[Component]


class RankedDatasets(TypedDict):
    """Datasets by what lies behind them, as of `analysedAt`; null while nothing was analysed.

    Use counts since `since`. `unused` counts the unused datasets of the estate, `hidden` the datasets
    that may not be read. `components` are those in which something may be read.
    """

    analysedAt: Time | None
    since: Time | None
    by: Literal["jobs", "datasets", "owners", "unused-columns"]
    datasets: list[RankedDataset]
    total: int
    unused: int
    hidden: int
    truncated: bool
    components: Components


class AnalysedField(TypedDict):
    """What lies behind a column; `unused` is null where a reader does not report columns."""

    name: str
    columns: int
    datasets: int
    jobs: int
    unused: bool | None


class DatasetAnalysis(TypedDict):
    """What lies behind a dataset and its columns; nulls while it was not analysed."""

    analysedAt: Time | None
    since: Time | None
    figures: AnalysedFigures | None
    columns: list[AnalysedField]


@api.get("/api/v2/analysis", answer=RankedDatasets, slow=True)
def analysis(
    app: App,
    view: View,
    by: str = text("jobs", options=ORDERS),
    show: str = text("all", options=("all", "unused")),
    limit: int = integer(100, 1, 1_000),
) -> RankedDatasets:
    """Datasets by what lies behind them, or those that nobody reads, as the lake last found it."""
    view.release()
    estate = app.analysis.estate() if app.analysis else None
    rows = [
        row
        for row in (estate.datasets if estate else ())
        if view.limit is None or view.limit.allows(row.namespace)
    ]
    field = "unused_columns" if by == "unused-columns" else by
    shown = [
        row for row in rows
        if (row.unused if show == "unused" else by != "unused-columns" or row.unused_columns)
    ]  # fmt: skip
    shown.sort(key=lambda row: (-getattr(row, field), -row.datasets, row.namespace, row.name))
    # Names that the server no longer has, since they were deleted or purged, are left out.
    found = list(itertools.islice(_known(view, shown), limit + 1))
    return {
        "analysedAt": when(estate.at) if estate else None,
        "since": when(estate.since) if estate else None,
        "by": by,  # type: ignore[typeddict-item]
        "datasets": found[:limit],
        "total": len(rows),
        "unused": sum(row.unused for row in rows),
        "hidden": len(estate.datasets) - len(rows) if estate else 0,
        "truncated": len(found) > limit,
        "components": _components(view, estate, rows),
    }


def _components(
    view: View, estate: AnalysedEstate | None, rows: list[AnalysedDataset]
) -> Components:
    readable = {row.component for row in rows}
    seen = [one for one in (estate.components if estate else ()) if one.component in readable]
    shown = seen[:COMPONENTS]
    members: dict[int, list[AnalysedDataset]] = {one.component: [] for one in shown}
    for row in rows:
        if row.component in members:
            members[row.component].append(row)
    first = [
        row
        for some in members.values()
        for row in heapq.nlargest(NAMES, some, lambda row: row.jobs)
    ]
    around: dict[int, Named] = {}
    for named in _known(view, first):
        name: Named = {"namespace": named["namespace"], "name": named["name"]}
        around.setdefault(named["component"], name)
    return {
        "total": len(seen),
        "largest": [
            {
                "component": one.component,
                "datasets": one.datasets,
                "jobs": one.jobs,
                "columns": one.columns,
                "around": around.get(one.component),
            }
            for one in shown
        ],
    }


def _known(view: View, rows: list[AnalysedDataset]) -> Iterator[RankedDataset]:
    met: set[int] = set()
    for first in range(0, len(rows), STEP):
        some = rows[first : first + STEP]
        names = {(row.namespace, row.name) for row in some}
        roots = {(s, n): root for s, n, root in within(view.connection, _KNOWN, names)}
        datasets = view.datasets(roots.values())
        for row in some:
            dataset = datasets.get(roots.get((row.namespace, row.name), 0))
            if dataset is not None and dataset.id not in met:
                met.add(dataset.id)
                yield {"namespace": dataset.space, "name": dataset.name, **_figures(row)}


def _figures(row: AnalysedDataset) -> AnalysedFigures:
    return {
        "jobs": row.jobs,
        "datasets": row.datasets,
        "owners": row.owners,
        "readers": row.readers,
        "unused": row.unused,
        "columns": row.columns,
        "unusedColumns": row.unused_columns,
        "component": row.component,
    }


@api.get(
    "/api/v2/datasets/{namespace}/{dataset}/analysis", answer=DatasetAnalysis, slow=True
)  # fmt: skip
def dataset_analysis(app: App, view: View, namespace: str, dataset: str) -> DatasetAnalysis:
    """What lies behind a dataset and each of its columns, and what nobody uses."""
    names = _names(view, the_dataset(view, namespace, dataset))
    view.release()
    estate = app.analysis.estate() if app.analysis else None
    # The lake may know several datasets that are one here since: their columns are not mixed.
    known = (row for row in (estate.datasets if estate else ()) if row[:2] in names)
    figures = max(known, key=lambda row: (row.jobs, row.datasets, row[:2]), default=None)
    columns = app.analysis.columns({figures[:2]}) if app.analysis and figures else []
    return {
        "analysedAt": when(estate.at) if estate else None,
        "since": when(estate.since) if estate else None,
        "figures": _figures(figures) if figures else None,
        "columns": [
            {"name": one.field, "columns": one.columns, "datasets": one.datasets,
             "jobs": one.jobs, "unused": one.unused}
            for one in columns
        ],
    }  # fmt: skip


def _names(view: View, dataset: Dataset) -> set[tuple[str, str]]:
    """The names of a dataset: the lake may lead with another one of them."""
    sql = "SELECT n.name, d.name FROM dataset d JOIN namespace n ON n.id = d.namespace WHERE d.root = ?"
    rows = view.all(sql, (dataset.root,))
    return {(row[0], row[1]) for row in rows} | {(dataset.space, dataset.name)}
