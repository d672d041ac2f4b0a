"""Walking the stored graph, level by level, now or at a moment in the past."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from headwater.server.store.database import within
from headwater.server.store.entities import DELETED, OUTPUT

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.view import View

__all__ = ["Found", "Neighbourhood"]

Edge = tuple[int, int, int]
"""A job, the dataset it touches (by what its name stands for), and the direction."""


def _once(edges: list[Edge]) -> list[Edge]:
    return list(dict.fromkeys(edges))


@dataclass
class Found:
    """The part of the graph around a node."""

    jobs: dict[int, int] = field(default_factory=dict)
    datasets: dict[int, int] = field(default_factory=dict)
    edges: set[Edge] = field(default_factory=set)
    cut: bool = False


class Neighbourhood:
    """Edges around datasets and jobs; `at` is a moment in microseconds, or now."""

    def __init__(self, view: View, at: int | None = None) -> None:
        self.view = view
        self._when = " AND e.until IS NULL"
        self._params: tuple[int, ...] = ()
        if at is not None:
            self._when = " AND e.since <= ? AND (e.until IS NULL OR e.until > ?)"
            self._params = (at, at)

    def of_jobs(self, jobs: Iterable[int]) -> list[Edge]:
        """The edges of these jobs and of their parts."""
        shown = " JOIN dataset d ON d.id = e.dataset WHERE d.hidden = 0" + self._when
        sql = (
            "SELECT e.job, d.root, e.direction FROM edge e" + shown + " AND e.job IN ({in})"  # noqa: S608
            " UNION ALL SELECT f.whole, d.root, e.direction FROM fold f JOIN edge e ON e.job = f.job"
            + shown + " AND f.whole IN ({in})"
        )  # fmt: skip
        return _once(within(self.view.connection, sql, jobs, self._params))

    def of_datasets(self, roots: Iterable[int]) -> list[Edge]:
        """The edges of these datasets, under any of their names; those of a part are its whole's."""
        shown = (
            " JOIN job j ON j.id = e.job LEFT JOIN fold f ON f.job = e.job"
            f" WHERE j.hidden <> {DELETED}{self._when}"
        )
        sql = (
            "SELECT coalesce(f.whole, e.job), e.dataset, e.direction FROM edge e"  # noqa: S608
            + shown + " AND e.dataset IN ({in})"
            " UNION ALL SELECT coalesce(f.whole, e.job), d.root, e.direction"
            " FROM dataset d JOIN edge e ON e.dataset = d.id"
            + shown + " AND d.root <> d.id AND d.root IN ({in})"
        )  # fmt: skip
        return _once(within(self.view.connection, sql, set(roots), self._params))

    def around(
        self,
        *,
        jobs: Iterable[int] = (),
        datasets: Iterable[int] = (),
        depth: int,
        limit: int = 2_000,
    ) -> Found:
        """Jobs within `depth` job-to-job steps in either direction, with all their datasets."""
        found = Found()
        start = list(datasets)
        found.datasets = dict.fromkeys(start, 0)
        frontier = list(jobs)
        if start:
            frontier = sorted({edge[0] for edge in self.of_datasets(start)})
        found.jobs = dict.fromkeys(frontier, 0)
        for step in range(depth + 1):
            if not frontier:
                break
            edges = self.of_jobs(frontier)
            found.edges.update(edges)
            fresh = {edge[1] for edge in edges} - found.datasets.keys()
            for dataset in sorted(fresh):
                found.datasets[dataset] = step
            if step == depth:
                break
            reached = {edge[0] for edge in self.of_datasets(fresh)}
            following = sorted(reached - found.jobs.keys())
            room = max(0, limit - len(found.jobs))
            found.cut = found.cut or len(following) > room
            frontier = following[:room]
            for job in frontier:
                found.jobs[job] = step + 1
        return found

    def sides(self, found: Found) -> tuple[dict[int, list[int]], dict[int, list[int]]]:
        """For each job found: the datasets it reads, and those it writes."""
        inputs: dict[int, list[int]] = defaultdict(list)
        outputs: dict[int, list[int]] = defaultdict(list)
        for job, dataset, direction in sorted(found.edges):
            (outputs if direction == OUTPUT else inputs)[job].append(dataset)
        return inputs, outputs
