"""Where an edge came from: the evidence that its producers report, and which facet names it."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.openlineage.evidence_facet import FACET, read_evidence
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.read.column_graph import ColumnGraph

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headwater.lineage.openlineage.evidence_facet import Item
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["ReportedItems", "evidence", "feeds", "intervals"]

LIMIT = 100
OF_ONE = 10
"""Items of one edge or dataset, where those of many are shown."""


class ReportedItems:
    """The evidence that jobs, and datasets themselves, report, by whatever names they report it."""

    def __init__(self, view: View, jobs: Iterable[Job], datasets: Iterable[Dataset]) -> None:
        held = {("job", job.id): job.state.facets for job in jobs}
        held |= {("dataset", one.root): one.state.facets for one in datasets}
        numbers = {key: facets[FACET][0] for key, facets in held.items() if FACET in facets}
        bodies = view.bodies(numbers.values())
        read = {
            key: read_evidence(msgspec.json.decode(bodies[number]))
            for key, number in numbers.items()
            if number in bodies
        }
        roots = ColumnGraph(view).resolve({name for one in read.values() for name in one.names})
        self._own = {number: one.items for (kind, number), one in read.items() if kind == "dataset"}
        self._edges: dict[int, dict[tuple[int, int], list[Item]]] = defaultdict(dict)
        self._datasets: dict[int, dict[int, list[Item]]] = defaultdict(dict)
        for (kind, job), one in read.items():
            if kind == "job":
                for edge in one.edges:
                    if edge.input in roots and edge.output in roots:
                        ends = roots[edge.input], roots[edge.output]
                        _add(self._edges[job].setdefault(ends, []), edge.items)
                for name, items in one.datasets:
                    if name in roots:
                        _add(self._datasets[job].setdefault(roots[name], []), items)

    def of_pair(self, job: int, origin: int, target: int) -> list[Item]:
        """All that is reported of an edge through a job and of both its ends."""
        found = list(self._edges[job].get((origin, target), ()))
        for dataset, items in self._datasets[job].items():
            if dataset in (origin, target):
                _add(found, items)
        for dataset in (target, origin):
            _add(found, self._own.get(dataset, ()))
        return found

    def between(self, jobs: Iterable[int], origin: int, target: int) -> list[Item]:
        """What an edge through some jobs is known from; where none reports that, what its target is."""
        through, ends = list(jobs), (origin, target)
        found = [item for job in through for item in self._edges[job].get(ends, ())[:OF_ONE]]
        found = found or [
            i for job in through for i in self._datasets[job].get(target, ())[:OF_ONE]
        ]
        return found or self._own.get(target, [])[:OF_ONE]

    def beside(self, job: int) -> dict[tuple[int, bool], list[Item]]:
        """What a job knows each of its datasets from, by dataset and whether it writes it."""
        found: dict[tuple[int, bool], list[Item]] = defaultdict(list)
        for (origin, target), items in self._edges[job].items():
            _add(found[origin, False], items[:OF_ONE])
            _add(found[target, True], items[:OF_ONE])
        for dataset, items in self._datasets[job].items():
            _add(found[dataset, False], items[:OF_ONE])
            _add(found[dataset, True], items[:OF_ONE])
        return found


def _add(found: list[Item], items: Iterable[Item]) -> None:
    found += [item for item in items if item not in found]


def evidence(
    view: View, job: int, origin: int, target: int, at: int | None = None
) -> dict[str, Any] | None:
    """The evidence that data of `origin` reaches `target` through `job`; None without such an edge.

    `basis` is `lineage` or `columnLineage` when a facet names this very pair, and `all` when the
    job only lists its inputs and outputs. `items` are what the producers report.
    """
    sources = view.output_sources(at).of_jobs([job]).get(job, {}).get(target)
    if sources is None or origin not in sources.inputs - sources.unpaired:
        return None
    found = view.jobs([job])[job]
    datasets = view.datasets([origin, target])
    items = ReportedItems(view, [found], datasets.values()).of_pair(job, origin, target)
    sql = (
        "SELECT min(since) FROM edge WHERE direction = ? AND until IS NULL"
        " AND dataset IN (SELECT id FROM dataset WHERE root = ?)"
        " AND (job = ? OR job IN (SELECT job FROM fold WHERE whole = ?))"
    )
    ((since,),) = view.all(sql, (OUTPUT, target, job, job))
    return {"basis": sources.basis, "since": since, "items": items[:LIMIT]}


def intervals(
    view: View, job: int, datasets: Collection[int], direction: int
) -> list[tuple[int, int | None]]:
    """When a job, or a task job of it, had an edge to one of these datasets, the latest first."""
    sql = (
        "SELECT since, until FROM edge WHERE (job = ? OR job IN (SELECT job FROM fold WHERE whole = ?))"
        " AND direction = ? AND dataset IN ({in})"
    )
    found = within(view.connection, sql, list(datasets), (job, job, direction))
    return sorted(found, key=lambda span: -span[0])


def feeds(view: View, sources: Iterable[int], targets: Iterable[int]) -> bool:
    """Whether a job has ever read one of some datasets and written one of others."""
    jobs = "SELECT DISTINCT job FROM edge WHERE direction = ? AND dataset IN ({in})"
    readers = within(view.connection, jobs, sources, (INPUT,))
    return not set(readers).isdisjoint(within(view.connection, jobs, targets, (OUTPUT,)))
