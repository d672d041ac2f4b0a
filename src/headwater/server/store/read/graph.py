"""The stored jobs and datasets as a `Graph`, now or at a moment in the past, and the runs as one."""

from __future__ import annotations

import itertools
from collections import defaultdict
from statistics import median
from typing import TYPE_CHECKING

from headwater.insight import JobStatus
from headwater.lineage.graph import Direction, NodeKind
from headwater.lineage.lifecycle import State
from headwater.lineage.moments import SECOND
from headwater.server.store.database import within
from headwater.server.store.entities import (
    DELETED,
    INPUT,
    OUTPUT,
    STATUSES,
    RunInput,
    to_run,
    unslot,
)
from headwater.server.store.planned_ends import RunEnding, end_facets, is_stream, run_ending
from headwater.server.store.read.deleted import deleted_by_hand
from headwater.server.store.read.parent_runs import jobs_naming

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Sequence

    from headwater.insight import JobProblem
    from headwater.lineage.graph import Pairs, Step
    from headwater.lineage.lifecycle import RunHistory
    from headwater.server.store.entities import Job, Node, Run
    from headwater.server.store.read.output_sources import OutputSources, PairedSources
    from headwater.server.store.view import View

    LastRecords = Callable[
        [Collection[bytes], Collection[tuple[str, str]]], dict[bytes, int | None]
    ]
    """When runs last wrote a record to a dataset of any of these names, by the UUIDs of the runs."""

__all__ = ["SHORTEST", "RunGraph", "StoredGraph", "failing"]

RECENT = 8
ENOUGH = 4
"""The usual interval of a job is the median over its last `RECENT` runs, if at least so many."""
SHORTEST = 30 * SECOND
"""Runs that follow each other faster are repeated by somebody, not by a schedule."""
LONGEST = 1_000
"""How many runs are searched for the first of those that failed one after the other."""
DELIVERED = (State.RUNNING, State.COMPLETED)
STREAMS = 50
"""How many jobs of an application are searched for a stream."""

Edge = tuple[int, int, int]
"""A job, the dataset it touches (by what its name stands for), and the direction."""

RunNode = tuple[int, int]

JOB, DATASET = NodeKind.JOB.value, NodeKind.DATASET.value


class StoredGraph:
    """Datasets and jobs of a store; `at` is a moment in microseconds, or now.

    With `since`, its edges are all that held at some time from then until `at`.
    """

    def __init__(
        self,
        view: View,
        at: int | None = None,
        since: int | None = None,
        deleted_in: tuple[int, int] | None = None,
        records: LastRecords | None = None,
    ) -> None:
        self.view = view
        self.at = at
        self._records = records
        self._shown_dataset, self._shown_job = "d.hidden = 0", f"j.hidden <> {DELETED}"
        if deleted_in is not None:
            # A task job that went with its parent has no name of its own.
            self._shown_dataset += f" OR {deleted_by_hand(0, 'd', deleted_in)}"
            self._shown_job += (
                f" OR {deleted_by_hand(1, 'j', deleted_in)}"  # noqa: S608
                " AND NOT EXISTS (SELECT 1 FROM fold p WHERE p.job = j.id)"
            )
        self.since = since
        self._sources: OutputSources | None = None
        self._recent: dict[int, list[Run]] = {}
        self._held: dict[tuple[str, int | None], dict[int, list[Edge]]] = defaultdict(dict)
        self._when = " AND e.until IS NULL"
        self._params: tuple[int, ...] = ()
        if at is not None:
            self._when = " AND e.since <= ? AND (e.until IS NULL OR e.until > ?)"
            self._params = (at, at if since is None else since)

    def next(self, nodes: Collection[Node], direction: Direction | None) -> Iterator[Step[Node]]:
        """The steps from these jobs to their datasets and from these datasets to their jobs."""
        jobs = [number for kind, number in nodes if kind == JOB]
        datasets = [number for kind, number in nodes if kind == DATASET]
        upstream = direction is Direction.UPSTREAM
        if jobs:
            only = None if direction is None else INPUT if upstream else OUTPUT
            for job, dataset, way in sorted(self._read_once(JOB, jobs, only), key=_dataset):
                yield (JOB, job), (DATASET, dataset), way == OUTPUT
        if datasets:
            only = None if direction is None else OUTPUT if upstream else INPUT
            for job, dataset, way in sorted(self._read_once(DATASET, datasets, only)):
                yield (DATASET, dataset), (JOB, job), way == INPUT

    def _read_once(self, kind: str, numbers: Iterable[int], direction: int | None) -> list[Edge]:
        """The edges of jobs or datasets, read once: walks for one question pass the same nodes."""
        wanted = dict.fromkeys(numbers)
        held = self._held[kind, direction]
        missing = [number for number in wanted if number not in held]
        if missing:
            held |= {number: [] for number in missing}
            end, read = (0, self.of_jobs) if kind == JOB else (1, self.of_datasets)
            for edge in read(missing, direction):
                held[edge[end]].append(edge)
        return [edge for number in wanted for edge in held[number]]

    def pairs(self, nodes: Collection[Node]) -> dict[Node, Pairs[Node]]:
        """The pairs of those of these jobs in which not every input feeds every output."""
        jobs = [number for kind, number in nodes if kind == JOB]
        if not jobs:
            return {}
        if self._sources is None:
            self._sources = self.view.output_sources(self.at, self.since)
        return {
            (JOB, job): {
                (DATASET, output): frozenset((DATASET, number) for number in sources.inputs)
                for output, sources in outputs.items()
            }
            for job, outputs in self._sources.partial(jobs).items()
        }

    def of_jobs(self, jobs: Iterable[int], direction: int | None = None) -> list[Edge]:
        """The edges of these jobs and of their task jobs."""
        shown = (
            " JOIN dataset d ON d.id = e.dataset"
            f" WHERE ({self._shown_dataset}){self._where(direction)}"
        )
        sql = (
            "SELECT e.job, d.root, e.direction FROM edge e" + shown + " AND e.job IN ({in})"  # noqa: S608
            " UNION ALL SELECT f.whole, d.root, e.direction FROM fold f JOIN edge e ON e.job = f.job"
            + shown + " AND f.whole IN ({in})"
        )  # fmt: skip
        return _once(within(self.view.connection, sql, jobs, self._params))

    def of_datasets(self, roots: Iterable[int], direction: int | None = None) -> list[Edge]:
        """The edges of these datasets, under any of their names; those of a task job are its parent's."""
        shown = (
            " JOIN job j ON j.id = e.job LEFT JOIN fold f ON f.job = e.job"
            f" WHERE ({self._shown_job}){self._where(direction)}"
        )
        sql = (
            "SELECT coalesce(f.whole, e.job), e.dataset, e.direction FROM edge e"  # noqa: S608
            + shown + " AND e.dataset IN ({in})"
            " UNION ALL SELECT coalesce(f.whole, e.job), d.root, e.direction"
            " FROM dataset d JOIN edge e ON e.dataset = d.id"
            + shown + " AND d.root <> d.id AND d.root IN ({in})"
        )  # fmt: skip
        return _once(within(self.view.connection, sql, set(roots), self._params))

    def _where(self, direction: int | None) -> str:
        return self._when if direction is None else f"{self._when} AND e.direction = {direction}"

    def statuses(self, jobs: Collection[Node]) -> dict[Node, JobStatus]:
        """How jobs stand, judged by the last runs of each."""
        found = self.view.jobs(number for _, number in jobs)
        runs = self.recent({job.id for job in found.values()})
        endings = self._endings([some[0] for some in runs.values() if some])
        return {
            key: self._status(found[key[1]], runs[found[key[1]].id], endings)
            for key in jobs
            if key[1] in found
        }

    def last_records(self, dataset: Node, jobs: Collection[Node]) -> dict[Node, int | None]:
        """When the last runs of jobs last wrote a record to a dataset, where their flow is known."""
        if self._records is None or not jobs:
            return {}
        sql = (
            "SELECT n.name, d.name FROM dataset d JOIN namespace n ON n.id = d.namespace"
            " WHERE d.id = ? OR d.root = ?"
        )
        names = self.view.all(sql, (dataset[1], dataset[1]))
        runs = self.recent(number for _, number in jobs)
        owners = {run.uuid: job for job, some in runs.items() for run in some}
        found: dict[Node, int | None] = {}
        for uuid, last in self._records(list(owners), [(row[0], row[1]) for row in names]).items():
            job = (JOB, owners[uuid])
            found[job] = max(found.get(job) or 0, last or 0) or None
        return found

    def recent(self, jobs: Iterable[int]) -> dict[int, list[Run]]:
        """The last runs of jobs: that which decides about the job, then the others from the newest on."""
        wanted = list(jobs)
        missing = [job for job in wanted if job not in self._recent]
        self._recent |= {job: [] for job in missing}
        for row in self.view.recent_runs(missing, RECENT):
            run = to_run(row)
            if not run.state.static:
                self._recent[run.job].append(run)
        self._put_deciding_first(missing)
        return {job: self._recent[job] for job in wanted}

    def _put_deciding_first(self, jobs: list[int]) -> None:
        sql = "SELECT id, latest FROM job WHERE latest IS NOT NULL AND id IN ({in})"
        overlapping = {
            job: latest
            for job, latest in within(self.view.connection, sql, jobs)
            if not self._recent[job] or self._recent[job][0].id != latest
        }
        deciding = self.view.runs(overlapping.values()) if overlapping else {}
        for job, latest in overlapping.items():
            if latest in deciding:
                others = [run for run in self._recent[job] if run.id != latest]
                self._recent[job] = [deciding[latest], *others]

    def planned(
        self, runs: Iterable[tuple[Job, Run]], streams: Collection[int] = ()
    ) -> dict[int, JobProblem]:
        """The runs of these jobs that somebody paused or stopped, by id.

        Jobs whose ids are in `streams` are known to be streams, or applications of such.
        A batch that somebody ended has not done its work, whoever that was.
        """
        pairs = list(runs)
        found = {
            run: ending.planned
            for run, ending in self._endings([run for _, run in pairs]).items()
            if ending.planned is not None
        }
        jobs = {job.id: job for job, run in pairs if run.id in found}
        endless = {
            number
            for number, job in jobs.items()
            if number in streams or is_stream(job) or self._has_stream(job)
        }
        return {
            run.id: found[run.id] for job, run in pairs if run.id in found and job.id in endless
        }

    def _endings(self, runs: list[Run]) -> dict[int, RunEnding]:
        """How somebody ended these runs, streams or not, as far as their producers report it."""
        held = {run.id: numbers for run in runs if (numbers := end_facets(run.state))}
        bodies = self.view.bodies(number for numbers in held.values() for number in numbers)
        return {
            run: run_ending(bodies[n] for n in numbers if n in bodies)
            for run, numbers in held.items()
        }

    def _status(self, job: Job, runs: list[Run], endings: dict[int, RunEnding]) -> JobStatus:
        lives = [run.state.life for run in runs]
        if not lives:
            return JobStatus(State.NEW)
        state = lives[0].state
        since = lives[0].end if state.finished else lives[0].started or lives[0].first
        ending = endings.get(runs[0].id, RunEnding())
        streaming = is_stream(job) or self._runs_streams(job, runs, ending)
        if wrong := failing(lives, streaming=streaming):
            # A problem lasts since the first of the runs that went wrong one after the other.
            since = min(life.end or 0 for life in wrong)
            if len(wrong) == len(lives) >= RECENT - 1:
                since = min(since, self._failing_since(job.id) or since)
        wrote = [_wrote(life, streaming=streaming) for life in lives]
        last = max((moment for moment in wrote if moment is not None), default=None)
        starts = sorted((x.first for x in lives if x.first is not None), reverse=True)
        # What somebody repeats between two scheduled runs does not change the schedule.
        gaps = [a - b for a, b in itertools.pairwise(starts) if a - b >= SHORTEST]
        habit = int(median(gaps)) if len(gaps) >= ENOUGH - 1 else None
        wanted = ending.planned if streaming else None
        by = ending.by if wanted or state is State.ABORTED else ""
        ends = [] if streaming else [x.end for x in lives if x.state is State.COMPLETED]
        complete = max((end for end in ends if end is not None), default=None)
        return JobStatus(state, since, last, habit, streaming, wanted, by, complete)

    def _runs_streams(self, job: Job, runs: list[Run], ending: RunEnding) -> bool:
        """Whether a job that somebody ended, or that runs again, is the application of a stream.

        Such a job is a batch by its events: asked for only where that makes a difference.
        """
        ends = [run.state.life.state for run in runs]
        again = ends[0] is State.RUNNING and not all(end in DELIVERED for end in ends)
        if not again and ending.planned is None:
            return False
        return self._has_stream(job)

    def _has_stream(self, job: Job) -> bool:
        """Whether a stream names this job as its parent."""
        return any(is_stream(one) for one in jobs_naming(self.view, job, STREAMS))

    def _failing_since(self, job: int) -> int | None:
        """When the first of a job's runs that went wrong one after the other ended, however many."""
        sql = "SELECT status, ended FROM run WHERE job = ? ORDER BY created DESC, id DESC LIMIT ?"
        rows = self.view.all(sql, (job, LONGEST))
        row = itertools.takewhile(lambda one: STATUSES[one[0] or 0] not in DELIVERED, rows)
        return min((ended for _, ended in row if ended is not None), default=None)


def failing(lives: Sequence[RunHistory], *, streaming: bool) -> list[RunHistory]:
    """The runs that went wrong one after the other, of a job's runs from the newest on.

    A stream delivers as long as it runs: one that ran again and failed is in trouble since then. A
    batch delivers once it is complete.
    """
    found: list[RunHistory] = []
    for life in lives:
        if life.state not in (State.FAILED, State.ABORTED):
            break
        found.append(life)
        if streaming and life.started is not None and life.started < (life.end or 0):
            break
    return found


def _wrote(life: RunHistory, *, streaming: bool) -> int | None:
    """When a run last wrote, as far as it reported.

    A batch that went wrong wrote nothing for sure; a stream had written until its last RUNNING event.
    """
    if life.state is State.COMPLETED:
        return life.end
    if life.state is State.RUNNING:
        return life.last
    end = life.end or 0
    return max((beat for beat in life.beats if streaming and beat <= end), default=None)


def _once(edges: list[Edge]) -> list[Edge]:
    return list(dict.fromkeys(edges))


def _dataset(edge: Edge) -> int:
    return edge[1]


class RunGraph:
    """Runs, each after what it read, and that after the run that made it.

    A run is known by its number and 0, what a run read by the number of its maker (0 if nobody knows
    it) and of the dataset.
    """

    _MAKER = (
        "SELECT v.run, v.uuid FROM dataset_version v WHERE v.dataset = ? AND v.time <= ?"
        " AND v.run IS NOT NULL AND v.run <> ?{} ORDER BY v.time DESC LIMIT 1"
    )
    _WHOLES = (
        " AND NOT EXISTS (SELECT 1 FROM run r JOIN fold f ON f.job = r.job"
        " WHERE r.id = v.run AND f.whole IS NOT NULL)"
    )

    def __init__(self, view: View) -> None:
        self.view = view
        self._runs: dict[int, Run] = {}
        self._inputs: dict[int, list[RunInput]] = {}

    def run(self, number: int) -> Run | None:
        """A run by its id."""
        if number not in self._runs:
            self._runs.update(self.view.runs([number]))
        return self._runs.get(number)

    def inputs(self, number: int) -> list[RunInput]:
        """What a run read, in the order in which it was reported."""
        if number not in self._inputs:
            run = self.run(number)
            slots = [unslot(key) for key in run.state.io] if run else []
            known = self.view.datasets(dataset for dataset, _ in slots)  # not all may be seen
            self._inputs[number] = [
                self._input(run, dataset)
                for dataset, way in slots
                if run and way == INPUT and dataset in known
            ]
        return self._inputs[number]

    def _input(self, run: Run, dataset: int) -> RunInput:
        until = run.state.life.end or run.state.life.last
        asked = (dataset, until, run.id)
        # A run of a task job is named only where no other made it.
        rows = self.view.all(self._MAKER.format(self._WHOLES), asked)
        rows = rows or self.view.all(self._MAKER.format(""), asked)
        if not rows:
            return RunInput(dataset, None, None)
        return RunInput(dataset, bytes(rows[0][1]), self.run(int(rows[0][0])))

    @staticmethod
    def node(read: RunInput) -> RunNode:
        """What a run read, as a node."""
        return (read.maker.id if read.maker is not None else 0), read.dataset

    def next(
        self, nodes: Collection[RunNode], direction: Direction | None
    ) -> Iterator[Step[RunNode]]:
        """The steps from runs to what they read and on to those that made it; only upstream is known."""
        if direction is Direction.DOWNSTREAM:
            return
        for run, dataset in nodes:
            if not dataset:
                for read in self.inputs(run):
                    yield (run, 0), self.node(read), False
            elif run:
                yield (run, dataset), (run, 0), False

    def pairs(self, nodes: Collection[RunNode]) -> dict[RunNode, Pairs[RunNode]]:
        """The pairs of those of these runs that read several datasets, as their jobs had them then."""
        found: dict[RunNode, Pairs[RunNode]] = {}
        for number, dataset in nodes:
            run = None if dataset else self.run(number)
            if run is None or len(self.inputs(number)) < 2:
                continue
            paired = self.view.output_sources(run.state.life.end).partial([run.job]).get(run.job)
            if paired is not None:
                found[number, 0] = self._pairs(run, paired)
        return found

    def _pairs(self, run: Run, paired: dict[int, PairedSources]) -> Pairs[RunNode]:
        written = [number for number, way in map(unslot, run.state.io) if way == OUTPUT]
        reads = self.inputs(run.id)
        roots = self.view.roots([*written, *(read.dataset for read in reads)])
        return {
            (run.id, output): frozenset(
                self.node(read)
                for read in reads
                if (sources := paired.get(roots.get(output, 0))) is None
                or roots.get(read.dataset) in sources.inputs
            )
            for output in written
        }
