"""The stored graph as the `Graph` of `headwater.lineage`, and how its jobs stand."""

from __future__ import annotations

import itertools
from statistics import median
from typing import TYPE_CHECKING

from headwater.insight.freshness import Standing
from headwater.lineage.graph import Direction, Node, NodeKind
from headwater.lineage.lifecycle import State
from headwater.server.store.entities import OUTPUT, to_run
from headwater.server.store.neighbourhood import Neighbourhood
from headwater.server.store.view import RUNS

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["StoredGraph", "dataset_node", "job_node"]

RECENT = 8
ENOUGH = 4


def dataset_node(dataset: Dataset) -> Node:
    """A dataset as a node."""
    return Node(NodeKind.DATASET, dataset.space, dataset.name)


def job_node(job: Job) -> Node:
    """A job as a node."""
    return Node(NodeKind.JOB, job.space, job.name)


class StoredGraph:
    """Datasets and jobs of a store, now or at a moment in the past."""

    def __init__(self, view: View, at: int | None = None) -> None:
        self.view = view
        self._around = Neighbourhood(view, at)
        self._jobs: dict[Node, Job] = {}
        self._datasets: dict[Node, Dataset] = {}

    def resolve(self, node: Node) -> Node:
        """The node that stands for `node` once symlinks and aliases are followed, and parts."""
        if node.kind is NodeKind.JOB:
            job = self._job(node)
            return node if job is None else job_node(job)
        found = self._dataset(node)
        return node if found is None else dataset_node(found)._replace(column=node.column)

    def next(
        self, nodes: Collection[Node], direction: Direction
    ) -> Mapping[Node, Collection[Node]]:
        """The neighbours of each node, one step away in one direction."""
        upstream = direction is Direction.UPSTREAM
        found: dict[Node, set[Node]] = {node: set() for node in nodes}
        jobs = {job.id: node for node in nodes if (job := self._job(node)) is not None}
        owned = {d.root: node for node in nodes if (d := self._dataset(node)) is not None}
        edges = self._around.of_jobs(jobs)
        datasets = self._named({e[1] for e in edges})
        for number, dataset, way in edges:
            if (way == OUTPUT) != upstream and dataset in datasets:
                found[jobs[number]].add(datasets[dataset])
        edges = self._around.of_datasets(owned)
        named = self.view.jobs({e[0] for e in edges})
        for job in named.values():
            self._jobs[job_node(job)] = job
        for number, dataset, way in edges:
            if (way == OUTPUT) == upstream and number in named:
                found[owned[dataset]].add(job_node(named[number]))
        return found

    def _named(self, ids: Iterable[int]) -> dict[int, Node]:
        found = self.view.datasets(ids)
        for dataset in found.values():
            self._datasets[dataset_node(dataset)] = dataset
        return {number: dataset_node(dataset) for number, dataset in found.items()}

    def _job(self, node: Node) -> Job | None:
        if node.kind is not NodeKind.JOB:
            return None
        if node not in self._jobs:
            found = self.view.shown(node.namespace, node.name)
            if found is None:
                return None
            self._jobs[node] = found
        return self._jobs[node]

    def _dataset(self, node: Node) -> Dataset | None:
        if node.kind is NodeKind.JOB:
            return None
        key = node._replace(kind=NodeKind.DATASET, column="")
        if key not in self._datasets:
            found = self.view.dataset(node.namespace, node.name)
            if found is None:
                return None
            self._datasets[key] = self.view.datasets([found.root]).get(found.root, found)
        return self._datasets[key]

    def standings(self, nodes: Collection[Node]) -> dict[Node, Standing]:
        """How jobs stand, judged by the last runs of each."""
        found = {}
        for node in nodes:
            job = self._job(node)
            if job is not None:
                found[node] = self._standing(job)
        return found

    def _standing(self, job: Job) -> Standing:
        sql = RUNS + " WHERE r.job = ? ORDER BY r.created DESC, r.id DESC LIMIT ?"
        runs = [to_run(row) for row in self.view.all(sql, (job.id, RECENT))]
        lives = [run.state.life for run in runs if not run.state.static]
        if not lives:
            return Standing(State.NEW)
        state = lives[0].state
        since = lives[0].end if state.finished else lives[0].started or lives[0].first
        if state in (State.FAILED, State.ABORTED):
            # Trouble lasts since the first of the runs that went wrong one after the other.
            wrong = itertools.takewhile(lambda x: x.state in (State.FAILED, State.ABORTED), lives)
            since = min(life.end or 0 for life in wrong)
        wrote = [x.end if x.state is State.COMPLETED else x.last for x in lives
                 if x.state in (State.COMPLETED, State.RUNNING)]  # fmt: skip
        last = max((moment for moment in wrote if moment is not None), default=None)
        starts = sorted((x.first for x in lives if x.first is not None), reverse=True)
        gaps = [a - b for a, b in itertools.pairwise(starts)]
        usual = int(median(gaps)) if len(starts) >= ENOUGH else None
        streaming = job.kind.upper() in ("STREAMING", "STREAM")
        return Standing(state, since, last, usual or None, streaming)
