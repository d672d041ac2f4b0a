"""Which inputs of a job feed which of its outputs, and by which facet.

An explicit `lineage` facet counts first, then `columnLineage`. An output that neither
describes is fed by all inputs; an input that would then feed none, since no `columnLineage` names
it, feeds every output but those with an explicit facet.
"""

from __future__ import annotations

from collections import defaultdict
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

from headwater.lineage.openlineage import facets as known
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.view import View

__all__ = ["OutputSources", "PairedSources"]

Key = tuple[str, str]
NONE: frozenset[int] = frozenset()


class PairedSources(NamedTuple):
    """The inputs of one output of one job, and the facet that pairs them (or `all`).

    `unpaired` are those among them that no facet pairs with any output: walks go on through them
    lest an input be lost, but there is no evidence for the pair.
    """

    inputs: frozenset[int]
    basis: str
    unpaired: frozenset[int] = NONE


class StatedSources(NamedTuple):
    """What one facet states of an output: its sources, and whether it is the explicit one."""

    sources: frozenset[int]
    explicit: bool


@lru_cache(maxsize=8_192)
def _named(body: bytes) -> tuple[frozenset[Key], bool] | None:
    read = known.read(body, known.ColumnLineageFacet)
    return (frozenset(known.sources(read)), read.explicit) if read else None


class OutputSources:
    """Finds, for the jobs asked about, which of their inputs feed which output."""

    def __init__(self, view: View, at: int | None = None, since: int | None = None) -> None:
        self.view = view
        self._around = view.graph(at, since)
        self.columns = view.column_graph(at, since)
        self._tasks: dict[int, list[int]] = {}
        self._inputs: dict[int, frozenset[int]] = {}
        self._known: dict[int, dict[int, PairedSources]] = {}

    def of_jobs(self, jobs: Iterable[int]) -> dict[int, dict[int, PairedSources]]:
        """For each job: its outputs, each with what feeds it. Datasets are what names stand for."""
        wanted = set(jobs)
        missing = wanted - self._known.keys()
        if missing:
            self._load(missing)
        return {job: self._known[job] for job in wanted}

    def partial(self, jobs: Iterable[int]) -> dict[int, dict[int, PairedSources]]:
        """The same of those jobs in which some input does not feed some output."""
        return {
            job: outputs
            for job, outputs in self.of_jobs(jobs).items()
            if any(not self._inputs[job] <= sources.inputs for sources in outputs.values())
        }

    def assumed(self, jobs: Iterable[int]) -> set[int]:
        """Those of these jobs where only the lists of inputs and outputs pair several with several."""
        return {
            job
            for job, outputs in self.of_jobs(jobs).items()
            if len(self._inputs[job]) > 1
            and len(outputs) > 1
            and any(sources.basis == "all" or sources.unpaired for sources in outputs.values())
        }

    def with_tasks(self, jobs: Iterable[int]) -> dict[int, int]:
        """These jobs and their task jobs, each with the job it is shown as."""
        wanted = set(jobs)
        missing = wanted - self._tasks.keys()
        self._tasks |= {job: [job] for job in missing}
        sql = "SELECT job, whole FROM fold WHERE whole IN ({in})"
        for task, job in within(self.view.connection, sql, missing):
            self._tasks[job].append(task)
        return {task: job for job in wanted for task in self._tasks[job]}

    def _load(self, jobs: set[int]) -> None:
        sides: dict[int, tuple[set[int], set[int]]] = {job: (set(), set()) for job in jobs}
        for job, dataset, direction in self._around.of_jobs(jobs):
            sides[job][direction].add(dataset)
        outputs = {dataset for side in sides.values() for dataset in side[OUTPUT]}
        stated = self._stated(jobs, self.columns.members(outputs))
        for job in jobs:
            self._inputs[job] = frozenset(sides[job][INPUT])
            of_job = {output: stated.get((job, output), []) for output in sides[job][OUTPUT]}
            self._known[job] = _paired(of_job, self._inputs[job])

    def _stated(
        self, jobs: set[int], members: dict[int, int]
    ) -> dict[tuple[int, int], list[StatedSources]]:
        shown = self.with_tasks(jobs)
        held = [one for one in self.columns.held(members) if one[1] in shown]
        bodies = self.view.bodies(number for _, _, number in held)
        named = [
            (dataset, job, read)
            for dataset, job, number in held
            if number in bodies and (read := _named(bodies[number])) is not None
        ]
        roots = self.columns.resolve({name for *_, (names, _) in named for name in names})
        found: dict[tuple[int, int], list[StatedSources]] = defaultdict(list)
        for dataset, job, (names, explicit) in named:
            sources = frozenset(roots[name] for name in names if name in roots)
            found[shown[job], members[dataset]].append(StatedSources(sources, explicit))
        return found


def _paired(
    stated: dict[int, list[StatedSources]], inputs: frozenset[int]
) -> dict[int, PairedSources]:
    found: dict[int, PairedSources] = {}
    for output, statements in stated.items():
        exact = [one.sources for one in statements if one.explicit]
        plain = NONE.union(*(one.sources for one in statements))
        if exact:
            found[output] = PairedSources(NONE.union(*exact), "lineage")
        else:
            found[output] = (
                PairedSources(plain, "columnLineage") if plain else PairedSources(inputs, "all")
            )
    unpaired = inputs.difference(*(s.inputs for s in found.values()))
    return {
        output: PairedSources(s.inputs | unpaired, s.basis, unpaired)
        if s.basis == "columnLineage"
        else s
        for output, s in found.items()
    }
