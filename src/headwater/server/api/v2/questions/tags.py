"""Tags on columns, where they get to, and where a job masked what they mark."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headwater.insight import carriers, handed, tag_reach, tags_on
from headwater.server.api import describe
from headwater.server.api.lookup import nearest, the_dataset
from headwater.server.api.missing_columns import check_column
from headwater.server.api.parameters import integer, text
from headwater.server.api.v2.page import columns
from headwater.server.http import HttpNotFoundError
from headwater.server.routing import Routes

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.insight import TagReach
    from headwater.server.store.entities import Column, Dataset
    from headwater.server.store.read.tagged import TaggedColumns
    from headwater.server.store.view import View

    Edge = tuple[Column, Column]
    Row = tuple[str, TagReach[Column] | None, Column]

__all__ = ["api"]

api = Routes()

COLUMNS = 2_000
TAGS = 1_000
SHOWN = 1_000
DEPTH = 50


class TagUse(TypedDict):
    """A tag, and on how many columns and whole datasets it was set."""

    name: str
    description: str | None
    columns: int
    datasets: int


class TagList(TypedDict):
    """Every tag."""

    tags: list[TagUse]
    truncated: bool


class TagStep(TypedDict):
    """A column on a path, and the jobs that carried the value into it."""

    node: str
    namespace: str
    name: str
    field: str
    jobs: list[str]


class TaggedColumn(TypedDict):
    """A column that has a tag: set on it, or brought there along the path."""

    tag: str
    node: str
    namespace: str
    name: str
    field: str | None
    set: bool
    path: list[TagStep]


class Stop(TypedDict):
    """Where a tag ends: the jobs mask the value of one column on its way into the other."""

    tag: str
    origin: str
    destination: str
    source: TagStep
    target: TagStep
    jobs: list[str]


class Tagged(TypedDict):
    """Columns with tags, where tags stopped, and where it is not known."""

    columns: list[TaggedColumn]
    stopped: list[Stop]
    unknown: list[columns.Silent]
    truncated: bool


@api.get("/api/v2/tags", answer=TagList)
def all_tags(view: View) -> dict[str, Any]:
    """Every tag, and on how many columns and datasets it was set."""
    used, cut = view.tagged_columns().tagged()
    about = dict(view.all("SELECT name, description FROM tag ORDER BY name LIMIT ?", (TAGS + 1,)))
    names = sorted({*used, *about})
    return {
        "tags": [
            {
                "name": name,
                "description": about.get(name),
                "columns": sum(1 for _, field in used.get(name, ()) if field),
                "datasets": sum(1 for _, field in used.get(name, ()) if not field),
            }
            for name in names[:TAGS]
        ],
        "truncated": cut or len(names) > TAGS,
    }


@api.get("/api/v2/tags/{tag}", answer=Tagged)
def one_tag(view: View, tag: str, depth: int = integer(DEPTH, 1, DEPTH)) -> dict[str, Any]:
    """Where a tag gets to from the columns on which it was set.

    It goes along values, not along columns that only decide which rows there are, and ends where a
    job masks the value. A tag on a whole dataset stays there.
    """
    graph = view.tagged_columns()
    used, cut = graph.tagged()
    if tag not in used and not view.all("SELECT 1 FROM tag WHERE name = ?", (tag,)):
        raise _missing(view, tag, used)
    marked = sorted(used.get(tag, ()))
    seeds = [column for column in marked if column[1]]
    found = tag_reach(graph, seeds, depth=depth, limit=COLUMNS)
    silent = graph.silent_readers({root for root, _ in found.reached})
    shown = _TagsAnswer(view, graph, [found], marked, silent)
    rows: list[Row] = [(tag, found, column) for column in found.reached]
    rows += [(tag, found, column) for column in marked if not column[1]]
    stops = [(tag, edge) for edge in found.stops]
    return shown.answer(rows, {tag: set(marked)}, stops, cut=cut or found.cut)


@api.get("/api/v2/datasets/{namespace}/{dataset}/tags", answer=Tagged)
def dataset_tags(
    view: View,
    namespace: str,
    dataset: str,
    column: str = text(),
    depth: int = integer(DEPTH, 1, DEPTH),
) -> dict[str, Any]:
    """The tags of a dataset's columns: those set on them, and those that get there from elsewhere.

    `stopped` has the tags that a job masked on the way here, `unknown` the jobs that write the
    dataset and of which nobody reported what goes into its columns.
    """
    named = the_dataset(view, namespace, dataset)
    if column:
        check_column(view, named, column)
    graph = view.tagged_columns()
    own = [(named.root, column)] if column else _columns(view, named, graph)
    found, cut = tags_on(graph, own[:COLUMNS], depth=depth, limit=COLUMNS)
    whole = graph.tags_of([named.root])
    rows: list[Row] = [
        (tag, reach, one) for tag, reach in found.items() for one in own if one in reach.reached
    ]
    set_on = {
        tag: {c for c, some in whole.items() if tag in some} for tag in {*found, *_all(whole)}
    }
    if not column:
        rows += [(tag, None, (named.root, "")) for tag in sorted(whole.get((named.root, ""), ()))]
    stops = [(tag, edge) for tag, reach in found.items() for edge in reach.stops]
    silent = graph.silent_writers(named.root)
    shown = _TagsAnswer(view, graph, list(found.values()), [(named.root, "")], silent)
    return shown.answer(rows, set_on, stops, cut=cut or len(own) > COLUMNS)


def _missing(view: View, tag: str, used: Iterable[str]) -> HttpNotFoundError:
    """404 for a tag that is not there, with those that are most like it, or some."""
    about = view.all("SELECT name FROM tag ORDER BY name LIMIT ?", (TAGS,))
    known = {name.lower(): name for name in sorted({*used, *(row[0] for row in about)})[:TAGS]}
    near = nearest(tag.lower(), known)
    rows = [{"kind": "tag", "namespace": "", "name": known[one], "node": ""} for one in near]
    return HttpNotFoundError(f"Tag '{tag[:200]}' not found.", "tag", tag, rows)


def _all(tags: dict[Column, set[str]]) -> set[str]:
    return set().union(*tags.values())


def _columns(view: View, dataset: Dataset, graph: TaggedColumns) -> list[Column]:
    """The columns of a dataset, in its schema or in somebody's column lineage."""
    held = view.datasets([dataset.root]).get(dataset.root, dataset).state.facets
    facets = describe.Facets(view, [held], "schema")
    known = [(dataset.root, field["name"]) for field in describe.flat(facets.raw(held, "schema"))]
    return list(dict.fromkeys([*known, *sorted(graph.outputs([dataset.root]))]))


def _deciding_jobs(graph: TaggedColumns, edge: Edge, jobs: frozenset[int]) -> frozenset[int]:
    """Those of the jobs by which a value gets through, or where none lets it through, that mask it."""
    hand = handed(graph.how(*edge))
    alike = {job for job, how in graph.ways(*edge).items() if handed(how) is hand}
    return jobs & alike or jobs


class _TagsAnswer:
    """Columns, paths and stops as an answer shows them."""

    def __init__(
        self,
        view: View,
        graph: TaggedColumns,
        reaches: list[TagReach[Column]],
        more: Iterable[Column],
        silent: list[tuple[int, int, int]],
    ) -> None:
        edges: set[Edge] = set()
        for reach in reaches:
            edges.update((before, node) for node, before in reach.reached.items() if before)
            edges.update(reach.stops)
        roots = {column[0] for edge in edges for column in edge} | {column[0] for column in more}
        roots |= {root for reach in reaches for root, _ in reach.reached}
        roots |= {root for _, *ends in silent for root in ends}
        self._datasets = view.datasets(roots)
        self._carriers = {
            edge: _deciding_jobs(graph, edge, some) for edge, some in carriers(graph, edges).items()
        }
        jobs = {job for some in self._carriers.values() for job in some}
        self._jobs = view.jobs(jobs | {job for job, _, _ in silent})
        self._silent = silent

    def answer(
        self,
        rows: list[Row],
        set_on: dict[str, set[Column]],
        stops: list[tuple[str, Edge]],
        *,
        cut: bool,
    ) -> dict[str, Any]:
        """The whole answer."""
        known = self._datasets
        return {
            "columns": [
                {
                    "tag": tag,
                    "node": self._node(column),
                    "namespace": known[column[0]].space,
                    "name": known[column[0]].name,
                    "field": column[1] or None,
                    "set": column in set_on.get(tag, ()),
                    "path": self._path(reach, column) if reach and column[1] else [],
                }
                for tag, reach, column in rows[:SHOWN]
                if column[0] in known
            ],
            "stopped": [
                {
                    "tag": tag,
                    "origin": self._node(source),
                    "destination": self._node(target),
                    "source": self._step(source, None),
                    "target": self._step(target, source),
                    "jobs": self._by(source, target),
                }
                for tag, (source, target) in stops[:SHOWN]
                if source[0] in known and target[0] in known
            ],
            "unknown": columns.silent(self._silent[:SHOWN], self._jobs, known),
            "truncated": cut or max(len(rows), len(stops), len(self._silent)) > SHOWN,
        }

    def _node(self, column: Column) -> str:
        dataset = self._datasets[column[0]]
        return columns.column_id(column, dataset) if column[1] else describe.dataset_id(dataset)

    def _by(self, source: Column, target: Column) -> list[str]:
        numbers = self._carriers.get((source, target), frozenset())
        return sorted({describe.job_id(self._jobs[n]) for n in numbers if n in self._jobs})

    def _step(self, column: Column, before: Column | None) -> dict[str, Any]:
        dataset = self._datasets[column[0]]
        return {
            "node": self._node(column),
            "namespace": dataset.space,
            "name": dataset.name,
            "field": column[1],
            "jobs": self._by(before, column) if before else [],
        }

    def _path(self, reach: TagReach[Column], column: Column) -> list[dict[str, Any]]:
        path = reach.path(column)
        if any(root not in self._datasets for root, _ in path):
            return []
        return [self._step(one, path[i - 1] if i else None) for i, one in enumerate(path)]
