"""Which inputs of a job feed which of its outputs, and what says so.

An explicit `lineage` facet is taken at its word; then `columnLineage`; a job that says neither of
an output feeds it from all its inputs.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from headwater.lineage import facets as known
from headwater.server.store.column_graph import ColumnGraph
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT
from headwater.server.store.neighbourhood import Neighbourhood

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.view import View

__all__ = ["Feed", "Feeds"]


class Feed(NamedTuple):
    """The inputs of one output of one job, and the facet that names them (or `all`)."""

    inputs: frozenset[int]
    basis: str


class Feeds:
    """Tells, for the jobs asked about, which of their inputs feed which output."""

    def __init__(self, view: View, at: int | None = None) -> None:
        self.view = view
        self._around = Neighbourhood(view, at)
        self._columns = ColumnGraph(view, at)
        self._known: dict[int, dict[int, Feed]] = {}

    def of_jobs(self, jobs: Iterable[int]) -> dict[int, dict[int, Feed]]:
        """For each job: its outputs, each with what feeds it. Datasets are what names stand for."""
        wanted = set(jobs)
        missing = wanted - self._known.keys()
        if missing:
            self._load(missing)
        return {job: self._known[job] for job in wanted}

    def _load(self, jobs: set[int]) -> None:
        sides: dict[int, tuple[set[int], set[int]]] = {job: (set(), set()) for job in jobs}
        for job, dataset, direction in self._around.of_jobs(jobs):
            sides[job][direction].add(dataset)
        outputs = {dataset for side in sides.values() for dataset in side[OUTPUT]}
        members = self._columns.members(outputs)
        said = self._said(jobs, members)
        for job in jobs:
            inputs = frozenset(sides[job][INPUT])
            self._known[job] = {
                output: _feed(said.get((job, output), ()), inputs) for output in sides[job][OUTPUT]
            }

    def _said(
        self, jobs: set[int], members: dict[int, int]
    ) -> dict[tuple[int, int], list[tuple[frozenset[int], bool]]]:
        sql = "SELECT job, whole FROM fold WHERE whole IN ({in})"
        shown = {job: job for job in jobs} | dict(within(self.view.connection, sql, jobs))
        latest = {
            key: number for key, number in self._columns.latest(members).items() if key[1] in shown
        }
        bodies = self.view.bodies(latest.values())
        read = {
            key: known.read("columnLineage", bodies[number], known.ColumnLineage)
            for key, number in latest.items()
            if number in bodies
        }
        named = {key: known.sources(facet) for key, facet in read.items() if facet is not None}
        roots = self._columns.resolve({name for names in named.values() for name in names})
        found: dict[tuple[int, int], list[tuple[frozenset[int], bool]]] = defaultdict(list)
        for (dataset, job), names in named.items():
            facet = read[dataset, job]
            sources = frozenset(roots[name] for name in names if name in roots)
            if facet is not None:
                found[shown[job], members[dataset]].append((sources, facet.explicit))
        return found


def _feed(said: Iterable[tuple[frozenset[int], bool]], inputs: frozenset[int]) -> Feed:
    plain: frozenset[int] = frozenset()
    exact = [sources for sources, explicit in said if explicit]
    if exact:
        return Feed(frozenset().union(*exact), "lineage")
    for sources, _ in said:
        plain |= sources
    return Feed(plain, "columnLineage") if plain else Feed(inputs, "all")
