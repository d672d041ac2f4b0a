"""The whole estate as doctor looks at it: names, who uses what, how jobs report."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from headwater.insight import ClockGap, DoubtKind, JobUse, KnownDataset, KnownJob, LiveRun
from headwater.lineage.graph import NodeKind
from headwater.lineage.lifecycle import State
from headwater.lineage.openlineage import facets as known
from headwater.lineage.schema.claims import Rank
from headwater.server.store.database import within
from headwater.server.store.entities import DELETED, OUTPUT, decode_job, decode_run, unslot
from headwater.server.store.read.external_files import external_files
from headwater.server.store.read.graph import SHORTEST
from headwater.server.store.read.observed import read_schema
from headwater.server.store.read.parent_runs import parent_runs
from headwater.server.store.read.schema_claims import schema_reports
from headwater.server.store.read.timeline import members

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

    from headwater.lineage.naming import DatasetName
    from headwater.lineage.schema.claims import Claim
    from headwater.server.store.entities import Node, RunState
    from headwater.server.store.read.external_files import ExternalFiles
    from headwater.server.store.read.schema_claims import SchemaReports
    from headwater.server.store.view import View

__all__ = ["StoredEstate"]

JOB, DATASET = NodeKind.JOB.value, NodeKind.DATASET.value
DAY = 24 * 3_600_000_000
HABIT = 14 * DAY
"""Runs that say how often a job runs."""
ENOUGH = 4
RECENT = 50_000
"""The newest records, by which clocks are judged."""
CLAIMED = 300
"""Datasets with several schemas that are read."""
FIELDS = 5
LIVE = 10_000
"""Runs of streams with several at once that are read."""
ACTIONS = ("SQL_JOB", "RDD_JOB", "COMMAND")
TEST = "TEST"


_WRITES = re.compile(
    r"\.(append_data|replace_data|overwrite_\w+|write_\w+|merge_into\w*|execute_save_into\w+"
    r"|\w*_as_select\w*|\w*insert_into_\w+)(\.|$)"
)
"""What jobs of Spark's actions are called by the plan, where that writes."""


class _Latest(NamedTuple):
    """A job with its newest run, and when that last reported."""

    job: int
    name: str
    kind: str
    run: RunState | None
    last: int | None


class StoredEstate:
    """The datasets and jobs of a store; `counted` has what was refused and assumed, by reason."""

    def __init__(
        self, view: View, now: int, counted: Mapping[DoubtKind, Mapping[str, int]]
    ) -> None:
        self._view = view
        self._now = now
        self._counted = counted

    def datasets(self) -> list[KnownDataset[Node]]:
        """Every dataset under the name that it is shown by."""
        return self._datasets

    @cached_property
    def _datasets(self) -> list[KnownDataset[Node]]:
        sql = (
            "SELECT d.id, n.name, d.name FROM dataset d JOIN namespace n ON n.id = d.namespace"
            " WHERE d.hidden = 0 AND d.root = d.id ORDER BY d.id"
        )
        return [KnownDataset((DATASET, row[0]), row[1], row[2]) for row in self._view.all(sql)]

    def uses(self) -> list[JobUse]:
        """What jobs have ever read and written, whatever became of them; task jobs as their parents."""
        return self._uses

    @cached_property
    def _uses(self) -> list[JobUse]:
        sql = (
            "SELECT coalesce(f.whole, e.job), d.root, e.direction,"  # noqa: S608
            f" max(CASE WHEN e.until IS NULL AND j.hidden <> {DELETED} THEN 1 ELSE 0 END)"
            " FROM edge e JOIN dataset d ON d.id = e.dataset JOIN job j ON j.id = e.job"
            " LEFT JOIN fold f ON f.job = e.job GROUP BY 1, 2, 3"
        )
        return [
            JobUse((JOB, job), (DATASET, root), way == OUTPUT, bool(now))
            for job, root, way, now in self._view.all(sql)
        ]

    def columns(self, nodes: Collection[Node]) -> dict[Node, frozenset[str]]:
        """The names of columns, in lower case."""
        found = self._view.datasets(number for _, number in nodes)
        held = {
            number: facet[0]
            for number, dataset in found.items()
            if (facet := dataset.state.facets.get("schema")) and facet[0]
        }
        bodies = self._view.bodies(set(held.values()))
        names = {
            facet: frozenset(field.name.lower() for field in read_schema(body).fields)
            for facet, body in bodies.items()
        }
        return {(DATASET, n): names[facet] for n, facet in held.items() if facet in names}

    def symlinks(self, nodes: Collection[Node]) -> dict[Node, frozenset[tuple[str, str]]]:
        """The symlinks that events declared under any of a dataset's names."""
        sql = "SELECT id, root FROM dataset WHERE root IN ({in})"
        roots: dict[int, int] = dict(
            within(self._view.connection, sql, [number for _, number in nodes])
        )
        datasets = self._view.datasets(roots)
        bodies = self._view.bodies({n for one in datasets.values() for n in one.state.links})
        found: dict[Node, set[tuple[str, str]]] = defaultdict(set)
        for number, dataset in datasets.items():
            for facet in dataset.state.links:
                read = known.read(bodies.get(facet, b"{}"), known.SymlinksFacet)
                found[DATASET, roots[number]].update(read.names() if read else ())
        return {node: frozenset(names) for node, names in found.items()}

    def clusters(self) -> dict[str, str]:
        """The cluster of each namespace that is known to be one."""
        return dict(self._view.all("SELECT dataset_namespace, id FROM cluster"))

    def files(self) -> dict[Node, DatasetName]:
        """The files that dbt's tables stand for, by the SQL of its jobs."""
        return self._external.files

    def likely_files(self) -> dict[Node, DatasetName]:
        """The same where only the job's other tables and files say so."""
        return self._external.likely

    def external(self) -> list[tuple[Node, str]]:
        """Where nothing says which file one of dbt's tables stands for."""
        return self._external.unknown

    @cached_property
    def _external(self) -> ExternalFiles:
        return external_files(self._view, ((one.job, one.run) for one in self._latest if one.run))

    def jobs(self) -> list[KnownJob[Node]]:
        """Every job that is shown."""
        return self._jobs

    @cached_property
    def _latest(self) -> list[_Latest]:
        """Every job that is shown, by its newest run."""
        sql = (
            "SELECT j.id, j.name, j.kind, r.state, r.updated, j.state FROM job j"
            " LEFT JOIN run r ON r.id = j.latest WHERE j.hidden = 0 ORDER BY j.id"
        )
        return [
            _Latest(
                number, name, kind, decode_run(bytes(state)) if state is not None else None, last
            )
            for number, name, kind, state, last, held in self._view.all(sql)
            if not decode_job(bytes(held)).deleted
        ]

    @cached_property
    def _jobs(self) -> list[KnownJob[Node]]:
        rows = self._latest
        parents = self._parents({one.job: one.run for one in rows if one.run is not None})
        actions = self._actions({one.run.job_facets.get("jobType", 0) for one in rows if one.run})
        usual, live = self._usual(), self._live()
        found = []
        for number, name, kind, run, last in rows:
            state = run.life.state if run is not None else State.NEW
            batch = kind.upper() not in ("STREAMING", "STREAM")
            regular = batch and state in (State.COMPLETED, State.RUNNING)
            found.append(
                KnownJob(
                    (JOB, number),
                    parent=number in parents,
                    action=run is not None
                    and run.parent is not None
                    and run.job_facets.get("jobType") in actions
                    and _WRITES.search(name) is None,
                    inferred=run.life.end if run is not None and run.life.is_inferred else None,
                    running=state is State.RUNNING,
                    began=run.life.first if run is not None else None,
                    last=last,
                    usual=usual.get(number) if regular else None,
                    live=tuple(live.get(number, ())),
                )
            )
        return found

    def _parents(self, runs: Mapping[int, RunState]) -> set[int]:
        """The jobs that task jobs are merged into, and those that others name as their parent."""
        found = {row[0] for row in self._view.all("SELECT DISTINCT whole FROM fold")}
        return found | {run.job for run in parent_runs(self._view, runs).values()}

    def _actions(self, facets: Iterable[int]) -> set[int]:
        """Which of these `jobType` facets declare one action of a Spark application (`count`, `show`) or a
        test of dbt's.
        """
        found = set()
        for number, body in self._view.bodies(facets).items():
            read = known.read(body, known.JobTypeFacet)
            if read is None or read.streaming:
                continue
            kind = (read.jobType or "").upper()
            if kind == TEST or (kind in ACTIONS and (read.integration or "").upper() == "SPARK"):
                found.add(number)
        return found

    def _usual(self) -> dict[int, int]:
        """How often jobs run, by their runs of the last two weeks."""
        sql = (
            "SELECT job, count(*), min(created), max(created) FROM run WHERE created >= ?"
            " GROUP BY job HAVING count(*) >= ?"
        )
        rows = self._view.all(sql, (self._now - HABIT, ENOUGH))
        found = {job: (last - first) // (count - 1) for job, count, first, last in rows}
        return {job: usual for job, usual in found.items() if usual >= SHORTEST}

    def _live(self) -> dict[int, list[LiveRun]]:
        """The runs that have not ended, of streams that have several."""
        sql = (
            "SELECT r.job, r.uuid, r.state FROM run r JOIN job j ON j.id = r.job"
            " WHERE r.linked = 1 AND r.ended IS NULL AND j.hidden = 0"
            " AND upper(j.kind) IN ('STREAMING', 'STREAM') AND r.job IN (SELECT o.job FROM run o"
            " WHERE o.linked = 1 AND o.ended IS NULL GROUP BY o.job HAVING count(*) > 1)"
            " ORDER BY r.job, r.created LIMIT ?"
        )
        runs = [
            (job, str(UUID(bytes=bytes(uuid))), decode_run(bytes(state)))
            for job, uuid, state in self._view.all(sql, (LIVE,))
        ]
        roots = self._view.roots({unslot(key)[0] for _, _, run in runs for key in run.io})
        found: dict[int, list[LiveRun]] = defaultdict(list)
        for job, uuid, run in runs:
            held = [unslot(key) for key, use in run.io.items() if use.until is None]
            uses = frozenset((roots.get(dataset, dataset), way) for dataset, way in held)
            found[job].append(LiveRun(uuid, run.life.first or 0, run.life.last or 0, uses))
        return found

    def disagreements(self) -> Iterator[tuple[Node, str, int]]:
        """Claims on schemas that cannot both be right."""
        sql = (
            "SELECT d.root FROM claim c JOIN dataset d ON d.id = c.dataset WHERE d.hidden = 0"
            " GROUP BY d.root HAVING count(DISTINCT c.facet) > 1 AND count(DISTINCT c.job) > 1"
            " ORDER BY max(c.last) DESC LIMIT ?"
        )
        datasets = self._view.datasets(row[0] for row in self._view.all(sql, (CLAIMED,)))
        for number, dataset in datasets.items():
            claimed = schema_reports(self._view, dataset, members(self._view, number))
            for one in claimed.findings[:1]:
                fields = ", ".join(one.fields[:FIELDS])
                sides = " and ".join(_author(side, claimed) for side in (one.one, one.other))
                yield (DATASET, number), f"{sides} disagree about {fields}", one.since

    def clocks(self) -> list[ClockGap[Node]]:
        """How late the events of the last day came, by job."""
        ((seq,),) = self._view.all("SELECT seq FROM head WHERE id = 1")
        sql = (
            "SELECT coalesce(f.whole, l.job), count(*), min(l.at - l.time), max(l.at - l.time)"
            " FROM log l LEFT JOIN fold f ON f.job = l.job WHERE l.seq > ? AND l.kind = 0"
            " AND l.at >= ? AND l.job IS NOT NULL GROUP BY 1"
        )
        rows = self._view.all(sql, (seq - RECENT, self._now - DAY))
        return [ClockGap((JOB, job), *gaps) for job, *gaps in rows]

    def counters(self) -> list[tuple[DoubtKind, str, int]]:
        """What was refused and assumed since the server started, the most frequent first."""
        return [
            (kind, reason, count)
            for kind, reasons in self._counted.items()
            for reason, count in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
        ]


def _author(claim: Claim, claimed: SchemaReports) -> str:
    if claim.rank is Rank.SOURCE:
        return claim.author
    job = claimed.jobs.get(claim.author)
    return job.name if job else "an event"
