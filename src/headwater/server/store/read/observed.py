"""The stored graph with what was observed on its nodes: broken schemas, failed checks, lag, changes."""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.insight import CauseKind, ObservedChange, Signal
from headwater.lineage.lifecycle import State
from headwater.lineage.moments import SECOND
from headwater.lineage.schema import Schema, SchemaError, compatible, diff, read_facet
from headwater.server.store.database import within
from headwater.server.store.entities import OUTPUT, unslot
from headwater.server.store.read.graph import DATASET, JOB, StoredGraph
from headwater.server.store.write.intervals import merged

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from headwater.lineage.graph import Edge
    from headwater.server.store.entities import Node, Run
    from headwater.server.store.read.graph import LastRecords
    from headwater.server.store.view import View
    from headwater.server.store.write.intervals import Interval

    Lags = Callable[[Collection[bytes]], dict[bytes, "Lagging"]]
    """What is known of the runs that lag."""

__all__ = ["Lag", "Lagging", "StoredObservedGraph", "read_schema"]

CODE = ("sql", "sourceCode", "sourceCodeLocation")
"""Facets of a job that say what it does."""
ASSERTIONS = "dataQualityAssertions"
HARMLESS = ("info", "warn", "warning")
"""Severities of assertions that do not hold and are no failure."""
FIRST = 60 * SECOND
"""What is reported so soon after the first event of a job is how it was, and no change of it."""
MOST = 200
CHECKERS = 500
LAGS = 5


class Lag(NamedTuple):
    """By how many records a run is behind in one input, how many it reads a second, since when."""

    records: int
    dataset: str
    rate: float
    since: int

    def __str__(self) -> str:
        return f"{self.dataset} {self.records:,}, reading {self.rate:,.0f} a second"


class Lagging(NamedTuple):
    """The inputs in which a run is behind, the worst first, and how many it has in all."""

    lags: list[Lag]
    inputs: int

    def __str__(self) -> str:
        text = f"{sum(lag.records for lag in self.lags):,} records behind"
        if self.inputs == 1:
            return f"{text}, reading {self.lags[0].rate:,.0f} a second"
        # One rate for several topics would not show when the slowest is done.
        listed = [*map(str, self.lags[:LAGS])]
        if len(self.lags) > LAGS:
            listed.append(f"and {len(self.lags) - LAGS} more")
        return f"{text}: {'; '.join(listed)}"[:500]


def read_schema(body: bytes | None) -> Schema:
    """A stored schema facet; one that cannot be read counts as empty."""
    try:
        return read_facet(msgspec.json.decode(body)) if body else Schema()
    except SchemaError:
        return Schema()


class StoredObservedGraph(StoredGraph):
    """Jobs and datasets of a store as they are now, with what was observed on them."""

    def __init__(self, view: View, lags: Lags, records: LastRecords | None = None) -> None:
        super().__init__(view, records=records)
        self._lags = lags

    def signals(self, nodes: Collection[Node], since: int) -> dict[Node, list[Signal]]:
        """Failed checks and lag as they are now, and schema changes that break readers."""
        found: dict[Node, list[Signal]] = defaultdict(list)
        datasets = [number for kind, number in nodes if kind == DATASET]
        for root, time, old, new in self._schemas(datasets, since, 2**62):
            if not compatible(old, new):
                broken = "; ".join(map(str, diff(old, new)))
                found[DATASET, root].append(Signal(CauseKind.SCHEMA, time, broken[:500]))
        for root, signal in self.failed_checks(set(datasets)):
            found[DATASET, root].append(signal)
        for root, signal in self._deleted_writers(datasets):
            found[DATASET, root].append(signal)
        for job, signal in self._lagging([number for kind, number in nodes if kind == JOB]):
            found[JOB, job].append(signal)
        return dict(found)

    def _deleted_writers(self, roots: list[int]) -> Iterator[tuple[int, Signal]]:
        """Datasets that nobody writes any more, since the last job that did was deleted."""
        sql = (
            "SELECT d.root, e.job, e.until FROM dataset d JOIN edge e ON e.dataset = d.id"
            " AND e.direction = ? WHERE d.root IN ({in})"
        )
        last: dict[int, tuple[bool, int, int]] = {}
        for root, job, until in within(self.view.connection, sql, roots, (OUTPUT,)):
            last[root] = max(last.get(root, (False, 0, 0)), (until is None, until or 0, job))
        writers = self.view.jobs(job for written, _, job in last.values() if not written)
        for root, (written, until, number) in last.items():
            job = writers.get(number)
            if not written and job is not None and until in job.state.deletions:
                yield (
                    root,
                    Signal(CauseKind.STOPPED, until, f"{job.name}, which wrote it, was deleted"),
                )

    def changes(
        self, nodes: Collection[Node], since: int, until: int, edges: Collection[Edge[Node]]
    ) -> dict[Node, list[ObservedChange]]:
        """New schemas of datasets; new code and, along these edges, new inputs and outputs of jobs."""
        found: dict[Node, list[ObservedChange]] = defaultdict(list)
        datasets = [number for kind, number in nodes if kind == DATASET]
        jobs = [number for kind, number in nodes if kind == JOB]
        for root, time, old, new in self._schemas(datasets, since, until):
            text = "; ".join(map(str, diff(old, new)))
            found[DATASET, root].append(ObservedChange(time, f"schema: {text[:300]}"))
        known = {number: job.created + FIRST for number, job in self.view.jobs(jobs).items()}
        sql = (
            "SELECT c.entity, c.name, c.time FROM facet_change c WHERE c.kind = 1 AND c.time >= ?"
            " AND c.time <= ? AND EXISTS (SELECT 1 FROM facet_change o WHERE o.kind = 1"
            " AND o.entity = c.entity AND o.name = c.name AND o.time < c.time)"
            " AND c.entity IN ({in})"
        )
        for job, name, time in within(self.view.connection, sql, jobs, (since, until)):
            if name in CODE and time > known.get(job, 0):
                found[JOB, job].append(ObservedChange(time, f"{name} changed"))
        for job, change in self._edges(jobs, since, until, edges):
            if change.time > known.get(job, 0):
                found[JOB, job].append(change)
        return {node: sorted(some, reverse=True)[:MOST] for node, some in found.items()}

    def _edges(
        self, jobs: list[int], since: int, until: int, along: Collection[Edge[Node]]
    ) -> list[tuple[int, ObservedChange]]:
        """What jobs began and ceased to read and write; another name of a dataset is no change.

        An edge that began is listed if it is one of `along`. One that ended is in no graph of now: what a
        job ceased to read lay on the way where every input feeds every output.
        """
        sql = (
            "SELECT DISTINCT e.job FROM edge e WHERE (e.since BETWEEN ? AND ?"
            " OR e.until BETWEEN ? AND ?) AND e.job IN ({in})"
        )
        span = (since, until)
        changed = [row[0] for row in within(self.view.connection, sql, jobs, (*span, *span))]
        sql = (
            "SELECT e.job, d.root, e.direction, e.since, e.until FROM edge e"
            " JOIN dataset d ON d.id = e.dataset WHERE e.since <= ?"
            " AND (e.until IS NULL OR e.until >= ?) AND e.job IN ({in})"
        )
        held: dict[tuple[int, int, int], list[Interval]] = defaultdict(list)
        for *edge, began, ended in within(self.view.connection, sql, changed, (until, since)):
            held[edge[0], edge[1], edge[2]].append((began, ended))
        paired = self.pairs([(JOB, job) for job in changed])
        ends = {node for edge in along for node in edge}

        def listed(edge: tuple[int, int, int], *, began: bool) -> bool:
            job, data = (JOB, edge[0]), (DATASET, edge[1])
            if began:
                return ((job, data) if edge[2] == OUTPUT else (data, job)) in along
            return data in ends if edge[2] == OUTPUT else job not in paired

        moments = [
            (edge, at, "began to {}" if began else "no longer {}s")
            for edge, some in held.items()
            for interval in merged(some)
            for at, began in zip(interval, (True, False), strict=True)
            if at is not None and since <= at <= until and listed(edge, began=began)
        ][:MOST]
        names = self.view.datasets(root for (_, root, _), _, _ in moments)
        return [
            (
                job,
                ObservedChange(
                    at, f"{verb.format('write' if way == OUTPUT else 'read')} {names[root].name}"
                ),
            )
            for (job, root, way), at, verb in moments
            if root in names
        ]

    def _schemas(
        self, roots: Iterable[int], since: int, until: int
    ) -> list[tuple[int, int, Schema, Schema]]:
        """The schemas that datasets got between two moments, each with the one before."""
        roots_by_member = self.view.column_graph().members(roots)
        sql = (
            "SELECT entity, time, facet FROM facet_change WHERE kind = 0 AND name = 'schema'"
            " AND facet <> 0 AND entity IN ({in})"
        )
        rows = sorted(within(self.view.connection, sql, list(roots_by_member)))
        pairs = [
            (roots_by_member[new[0]], new[1], old[2], new[2])
            for old, new in itertools.pairwise(rows)
            if old[0] == new[0] and old[2] != new[2] and since <= new[1] <= until
        ][-MOST:]
        bodies = self.view.bodies(number for *_, old, new in pairs for number in (old, new))
        read = [
            (root, at, *(read_schema(bodies.get(n)) for n in ends)) for root, at, *ends in pairs
        ]
        return [(root, at, old, new) for root, at, old, new in read if diff(old, new)]

    def failed_checks(self, roots: set[int]) -> list[tuple[int, Signal]]:
        """The datasets with assertions that did not hold when a job last checked them.

        Each job that writes or reads a dataset may check it, and none takes back what another found.
        """
        jobs = sorted({job for job, _, _ in self.of_datasets(roots)})[:CHECKERS]
        known = self._recent
        latest = self.view.jobs(job for job in jobs if job not in known).values()
        runs = list(self.view.runs(job.latest for job in latest if job.latest).values())
        runs += [run for job in jobs for run in known.get(job, ())]
        checks = [
            (run.state.life.end or run.state.life.last or 0, run.job, unslot(key)[0], held[0])
            for run in runs
            for key, use in run.state.io.items()
            if (held := use.facets.get(ASSERTIONS))
        ]
        rooted = self.view.roots({dataset for _, _, dataset, _ in checks})
        newest: dict[tuple[int, int], tuple[int, list[int]]] = {}
        for at, job, dataset, facet in checks:
            if (root := rooted.get(dataset)) in roots and root is not None:
                last, facets = newest.get((root, job), (at, []))
                if at >= last:
                    newest[root, job] = at, [*(facets if at == last else ()), facet]
        bodies = self.view.bodies(facet for _, facets in newest.values() for facet in facets)
        failed: dict[int, tuple[int, dict[str, None]]] = {}
        for (root, _), (at, facets) in sorted(newest.items()):
            if texts := dict.fromkeys(text for one in facets for text in _failed(bodies.get(one))):
                since, others = failed.get(root, (at, {}))
                failed[root] = min(since, at), others | texts
        return [
            (root, Signal(CauseKind.QUALITY, since, ", ".join(texts)[:500]))
            for root, (since, texts) in failed.items()
        ]

    def _lagging(self, jobs: Sequence[int]) -> list[tuple[int, Signal]]:
        """Running jobs that are more than a minute of their own work behind their inputs."""
        running: dict[bytes, Run] = {
            some[0].uuid: some[0]
            for some in self.recent(jobs).values()
            if some and some[0].state.life.state is State.RUNNING
        }
        found = []
        for uuid, lagging in self._lags(list(running)).items():
            since = min(lag.since for lag in lagging.lags)
            signal = Signal(CauseKind.LAGGING, since, str(lagging))
            found.append((running[uuid].job, signal))
        return found


def _only_warns(assertion: dict[str, Any]) -> bool:
    """Whether it is of a severity, such as `warn` of dbt's tests, at which nothing fails."""
    return str(assertion.get("severity", "")).lower() in HARMLESS


def _failed(body: bytes | None) -> list[str]:
    """The assertions of a facet that did not hold, as texts."""
    value: Any = msgspec.json.decode(body) if body else None
    items = value.get("assertions") if isinstance(value, dict) else None
    return [
        f"{one.get('assertion', '')} {one.get('column') or ''}".strip()
        for one in (items if isinstance(items, list) else ())
        if isinstance(one, dict) and one.get("success") is False and not _only_warns(one)
    ]
