"""What was recorded in a period: runs that used datasets, facets of jobs, schemas of datasets."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, NamedTuple

from headwater.insight import RunUse
from headwater.lineage.graph import NodeKind
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT, slot, to_run

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from headwater.server.store.entities import Node, Run
    from headwater.server.store.view import View

__all__ = ["FacetVersion", "PeriodRecords"]

JOB = NodeKind.JOB.value
AGES = 2**62


class FacetVersion(NamedTuple):
    """A facet, since when it held, and until when where another one followed."""

    facet: int
    since: int
    until: int | None


class PeriodRecords:
    """The records of the time from `since` to `until`, in microseconds."""

    def __init__(self, view: View, since: int, until: int, limit: int) -> None:
        self.view = view
        self.since = since
        self.until = until
        self.found: dict[int, Run] = {}
        self._limit = limit

    def runs(
        self, uses: Collection[tuple[Node, Node]], *, writing: bool
    ) -> tuple[dict[Node, list[RunUse]], bool]:
        """The runs of jobs that wrote, or read, these datasets in the period, the newest first.

        A run of a task job is its parent's. Also whether there are more than are given.
        """
        members = self.view.column_graph().members({root for _, (_, root) in uses})
        names: dict[int, list[int]] = defaultdict(list)
        for member, root in members.items():
            names[root].append(slot(member, OUTPUT if writing else INPUT))
        slots: dict[int, set[int]] = defaultdict(set)
        for (_, job), (_, root) in uses:
            slots[job].update(names[root])
        sql = "SELECT job, whole FROM fold WHERE whole IN ({in})"
        parents: dict[int, int] = dict(within(self.view.connection, sql, list(slots)))
        runs, cut = self._in_period([*slots, *parents])
        found: dict[Node, list[RunUse]] = defaultdict(list)
        for run in runs:
            job = parents.get(run.job, run.job)
            used = self._used(run, slots[job])
            if used is not None:
                self.found[run.id] = run
                found[JOB, job].append(used)
        return dict(found), cut

    def _in_period(self, jobs: Iterable[int]) -> tuple[list[Run], bool]:
        """The newest runs with datasets that were there in the period, and whether there are more."""
        rows = []
        for there, params in (
            ("r.ended >= ? AND r.created <= ?", (self.since, self.until)),
            ("r.ended IS NULL AND r.created <= ?", (self.until,)),
        ):
            sql = (
                "SELECT r.id, r.uuid, r.job, r.state, r.created FROM run r WHERE r.linked = 1"  # noqa: S608
                f" AND {there} AND r.job IN ({{in}}) ORDER BY r.created DESC, r.id DESC"
                f" LIMIT {self._limit + 1}"
            )
            rows += within(self.view.connection, sql, jobs, params)
        rows.sort(key=lambda row: (-row[4], -row[0]))
        kept = [to_run(row[:4]) for row in rows[: self._limit]]
        return [run for run in kept if not run.state.static], len(rows) > self._limit

    def _used(self, run: Run, slots: set[int]) -> RunUse | None:
        """When a run used one of these datasets in the period."""
        life = run.state.life
        uses = [
            (use.since, use.until if use.until is not None else life.end)
            for key, use in run.state.io.items()
            if key in slots
        ]
        uses = [
            (since, until)
            for since, until in uses
            if since <= self.until and (until is None or until >= self.since)
        ]
        if not uses:
            return None
        ends = [until for _, until in uses]
        last = None if None in ends else max(end for end in ends if end is not None)
        return RunUse(run.id, min(since for since, _ in uses), last)

    def facets(
        self, kind: int, entities: Collection[int], names: Collection[str]
    ) -> dict[tuple[int, str], list[FacetVersion]]:
        """What these facets of datasets (kind 0) or jobs (1) were in the period, the oldest first."""
        marks = ", ".join("?" * len(names))
        sql = (
            "SELECT entity, name, time, facet FROM facet_change WHERE kind = ? AND time <= ?"  # noqa: S608
            f" AND name IN ({marks}) AND entity IN ({{in}}) ORDER BY entity, name, time"
        )
        found: dict[tuple[int, str], list[FacetVersion]] = defaultdict(list)
        rows = within(self.view.connection, sql, list(entities), (kind, self.until, *names))
        for entity, name, time, number in rows:
            versions = found[entity, name]
            if versions and versions[-1].facet == number:
                continue
            if versions:
                versions[-1] = versions[-1]._replace(until=time)
            versions.append(FacetVersion(number, time, None))
        kept = {
            key: [one for one in versions if one.facet and (one.until or AGES) > self.since]
            for key, versions in found.items()
        }
        return {key: versions for key, versions in kept.items() if versions}
