"""What an event changes: datasets, jobs, runs, edges, columns and versions."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headwater.lineage.lifecycle import RunHistory
from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.events import EventType
from headwater.lineage.openlineage.facets import ABOUT, DELETED_FACET
from headwater.lineage.openlineage.repairs import runs_of_its_own
from headwater.server.store.deciding_run import ALWAYS, deciding_key
from headwater.server.store.entities import (
    DELETED,
    INPUT,
    MERGED,
    OUTPUT,
    Io,
    Job,
    Run,
    RunState,
    slot,
)
from headwater.server.store.planned_ends import end_facets, is_stream, run_ending
from headwater.server.store.write import job_edges, set_by_hand, shared_symlinks
from headwater.server.store.write.datasets import DatasetProjection, Numbers, hold
from headwater.server.store.write.incoming.prepared import AHEAD, NEITHER, EventPart, producer_of
from headwater.server.store.write.schemas import SchemaProjection
from headwater.server.store.write.task_jobs import PART_OF, TaskJobs

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.lineage.lifecycle import State
    from headwater.server.store.entities import Dataset
    from headwater.server.store.write.incoming.prepared import PreparedEvent
    from headwater.server.store.write.session import WriteSession

__all__ = ["JOB", "Projection"]

JOB = 1
Key = tuple[str, str]
NAMELESS = "unknown"
"""What OpenLineage's Spark listener calls an application at its start while it does not know its name."""
_JOB_UNDERSTOOD = {"jobType", "sourceCodeLocation"}


class Projection:
    """Applies events to the working set, one after the other."""

    def __init__(self, session: WriteSession) -> None:
        self.session = session
        self.changes: list[dict[str, Any]] = []
        self.datasets = DatasetProjection(session, self.changes)
        self.schemas = SchemaProjection(session, self.changes)
        self.task_jobs = TaskJobs(session, self.changes)
        self.shared_runs = 0
        """Events under the id of another job's run."""

    def apply(self, item: PreparedEvent, at: int) -> tuple[int | None, int | None]:
        """Take in one event that arrived `at` a moment; answers the ids of its job and run."""
        if item.time > at + AHEAD:
            item = msgspec.structs.replace(item, time=at)
        found = self._apply(item)
        if self.session.contested:
            shared_symlinks.settle(self.session)
        if self.session.merged:
            self.schemas.merge()
        return found

    def _apply(self, item: PreparedEvent) -> tuple[int | None, int | None]:
        time = item.time
        if item.job is None:
            part = item.datasets[0][1]
            dataset = self.datasets.apply(part, NEITHER, time, None)
            before = dataset.state.facets.get("schema", [0])[0]
            self.schemas.claim(
                dataset, part, NEITHER, time, None, None, None,
                streaming=False, producer=producer_of(item) if part.schema else "",
            )  # fmt: skip
            after = dataset.state.facets.get("schema", [0])[0]
            if before != after or dataset.version is None:
                self.datasets.version(dataset, None, time)
            return None, None
        job, new = self._job(item.job.key, time)
        first = None
        if item.run is not None:
            run = self.session.runs.get(item.run.key)
            if run is None or run.job != job.id:
                first, run = run, self.other_run(job, item.run.key, run)
        else:
            run = self._declaration(job, item) if item.datasets else None
        self._job_facets(job, run, item.job, time)
        if new and not job.hidden:
            self.task_jobs.announce("job", job)
        if run is not None:
            self._observe(job, run, item, item.job.pattern)
            if first is not None:
                self._end_nameless(first, run, time)
        elif job.version is None:
            job_edges.version(self.session, job, None, time)
        return job.id, run.id if run and not run.state.static else None

    def _job(self, key: tuple[str, str], time: int) -> tuple[Job, bool]:
        """The job of this name, and whether it is new."""
        job = self.session.jobs.get(key)
        new = job is None
        if job is None:
            job = self.session.new_job(key, time)
        if time > job.updated:
            job.updated = time
        elif time < job.created:
            job.created = time
        self.session.dirty["job"][job.id] = job
        deleted = job.hidden == DELETED
        if deleted:
            self.session.revive(job, time)
        if new or deleted:
            self.task_jobs.job_changed(job)
        return job, new

    def other_run(self, job: Job, uuid: bytes, held: Run | None) -> Run:
        """The run of a job under an id that no run has, or that of another job.

        A job that has a run of its own goes on with it when retention has deleted the other job's.
        """
        session = self.session
        if held is not None:
            self.shared_runs += 1
            session.share_runs()
        elif not session.shares_runs:
            return session.new_run(uuid, job.id, RunState(RunHistory()))
        taken, found = uuid, held
        for own in runs_of_its_own(UUID(bytes=uuid), job.space, job.name):
            session.load_runs([own.bytes])
            found = session.runs.get(own.bytes)
            if found is None and held is not None:
                taken = own.bytes
            if found is None or found.job == job.id:
                break
        return found or session.new_run(taken, job.id, RunState(RunHistory()))

    def _end_nameless(self, first: Run, run: Run, time: int) -> None:
        """End the run of a job that had no name yet with that of the job that it turned out to be."""
        for nameless, named in ((first, run), (run, first)):
            job, other = self.session.job_of(nameless.job), self.session.job_of(named.job)
            if job.name != NAMELESS or job.space != other.space:
                continue
            life, ended = nameless.state.life, named.state.life.ended
            if ended is not None and life.ended is None:
                before = life.state, life.end
                life.ended, life.last = ended, max(life.last or 0, ended[0])
                self.session.touch(nameless)
                self.session.dirty["job"][job.id] = job
                self.decide(job, nameless)
                self.settle(job, nameless, time, *before)

    def _declaration(self, job: Job, item: PreparedEvent) -> Run:
        run = self.session.new_run(item.hash[:16], job.id, RunState(RunHistory(), static=True))
        run.state.life.observe(EventType.COMPLETE, item.time)
        return run

    def _observe(
        self, job: Job, run: Run, item: PreparedEvent, pattern: tuple[int | None, bool] | None
    ) -> None:
        time, life = item.time, run.state.life
        state_before, end_before = (None if run.fresh else life.state), life.end
        self.session.touch(run)
        if not run.state.static:
            life.observe(item.type, time)
            if pattern is not None:
                life.declare(pattern[0], time)
            assert item.run is not None
            self._run_facets(job, run, item.run.numbers or [], time)
            if self.decide(job, run) and life.state == state_before:
                self._announce_run(job, run)
        grew = self._io(job, run, item, snapshot=pattern is not None and pattern[1])
        self.settle(job, run, time, state_before, end_before, grew=grew)

    def decide(self, job: Job, run: Run) -> bool:
        """Let the job's state follow a change of a run; True if that run decides about it from now on.

        The same run decides in whatever order the events came.
        """
        state, before, newest = job.state, job.latest, job.state.latest_uuid
        if run.id == before and state.decided == (ALWAYS, run.state.life.first, newest):
            life = run.state.life
            goes_on = state.latest_time == life.first and life.end is None
            if goes_on and newest == run.uuid and not is_stream(job):
                return False
        alone = self._newest(job, run)
        key, held = deciding_key(job, run), state.decided
        if job.latest is None or (alone and held is not None and key >= held):
            job.latest, state.decided = run.id, key
        elif run.id == before and self._ended_last(job, run):
            state.decided = key
        elif (
            not alone
            or held is None
            or run.id == job.latest
            or (held[2] == newest != state.latest_uuid)  # it decided because it was the newest
        ):
            self._decide_anew(job, run)
        return job.latest == run.id != before

    def _newest(self, job: Job, run: Run) -> bool:
        """Note which run of a job began last; False if that changed for another than this one."""
        state, key = job.state, (run.state.life.first or 0, run.uuid)
        began = state.latest_time, state.latest_uuid
        if key >= began:
            state.latest_time, state.latest_uuid = key
        elif run.uuid == state.latest_uuid:
            last = self.session.latest_of(job) or run
            state.latest_time, state.latest_uuid = last.state.life.first or 0, last.uuid
        return state.latest_uuid in (began[1], run.uuid)

    def _decide_anew(self, job: Job, run: Run | None) -> None:
        """Ask all runs of a job that may decide, starting from one that changed.

        Another one that decides from now on is announced: no event of its own says so.
        """
        found, before = run, job.latest
        if run is None or not self._ended_last(job, run):
            runs = self.session.deciding_runs(job, run)
            found = max(runs, key=lambda one: deciding_key(job, one), default=run)
        if found is not None:
            job.latest, job.state.decided = found.id, deciding_key(job, found)
            if job.latest != before and (run is None or found.id != run.id):
                self._announce_run(job, found)

    def _ended_last(self, job: Job, run: Run) -> bool:
        """Whether a batch is the newest, and no other run can have reported since its end."""
        newest, end = run.uuid == job.state.latest_uuid, run.state.life.end
        return newest and not is_stream(job) and end is not None and end >= job.updated

    def settle(
        self,
        job: Job,
        run: Run,
        time: int,
        state_before: State | None,
        end_before: int | None,
        *,
        grew: bool = False,
    ) -> None:
        """Let the edges, the job's version and those who watch follow a change of a run."""
        life, moved = run.state.life, False
        self.schemas.settle(job, run)
        if grew or run.fresh or job.state.deletions or life.end != end_before:
            moved = job_edges.link(self.session, job, run, end_before)
        if moved or job.version is None:
            job_edges.version(self.session, job, run, time)
        run.state.version = job.version
        if moved:
            self.task_jobs.announce("edges", self.task_jobs.parent(job))
        if life.state != state_before and not run.state.static:
            self._announce_run(job, run)

    def _announce_run(self, job: Job, run: Run) -> None:
        if job.hidden != MERGED:
            self.changes.append({"change": "run", "run": run.uuid, "state": run.state.life.state,
                                 "decides": job.latest == run.id, **self._planned(job, run),
                                 "namespace": job.space, "name": job.name})  # fmt: skip

    def _planned(self, job: Job, run: Run) -> dict[str, str]:
        """How somebody ended a stream on purpose; the application of one has to be asked about."""
        if not is_stream(job):
            return {}
        how = run_ending(self.session.body(number) for number in end_facets(run.state)).planned
        return {"planned": how.value} if how else {}

    def _io(self, job: Job, run: Run, item: PreparedEvent, *, snapshot: bool) -> bool:
        time, io, changed = item.time, run.state.io, False
        named: set[int] = set()
        claimed: set[int] = set()
        streaming = item.job is not None and item.job.streaming
        of_batch = not streaming and not run.state.static
        stated = item.job.stated if item.job is not None else {}
        datasets: Iterable[tuple[int, EventPart]] = item.datasets
        if stated or self._names_unlisted(item):
            # Asked only after the listed ones were taken in, with the symlinks that they declare.
            datasets = chain(datasets, self._unlisted(item, stated))
        for direction, part in datasets:
            column_facet = stated.get(part.key) if direction == OUTPUT else None
            dataset = self.datasets.apply(part, direction, time, job, column_facet)
            key = slot(dataset.id, direction)
            named.add(key)
            held = io.get(key)
            if held is None:
                held = io[key] = Io(time)
                changed = True
                if run.state.snapshot is not None and time < run.state.snapshot:
                    held.until = run.state.snapshot
            elif time < held.since:
                held.since = time
                changed = True
            # Of a dataset that an event names twice, the first schema counts.
            if (part.schema or part.origins or part.change) and key not in claimed:
                claimed.add(key)
                if of_batch and dataset.root == dataset.id and not (part.origins or part.change):
                    self.schemas.of_batch(dataset, part.schema, direction, time, job, held)
                else:
                    self.schemas.claim(
                        dataset, part, direction, time, job, run, held, streaming=streaming
                    )
            if held.version is None:
                held.version = self._version(dataset, run if direction == OUTPUT else None, time)
            if part.io_numbers:
                hold(held.facets, part.io_numbers, time)
        if named and snapshot and time >= (run.state.snapshot or 0):
            changed = _only(run, named, time) or changed
        return changed

    def _version(self, dataset: Dataset, run: Run | None, time: int) -> int:
        """The version of a dataset that a run writes, or the one that it reads."""
        if run is None and dataset.version is not None:
            return dataset.version
        return self.datasets.version(dataset, run, time)

    def _names_unlisted(self, item: PreparedEvent) -> bool:
        """Whether the columns of an output come from a dataset that is no input, which is seldom."""
        inputs: set[Key] = set()
        for side, part in item.datasets:  # most producers list the inputs first
            if side == INPUT:
                inputs.add(part.key)
            elif part.columns and not self.session.sources_of(part.columns) <= inputs:
                return True
        return False

    def _unlisted(
        self, item: PreparedEvent, stated: dict[Key, int]
    ) -> Iterator[tuple[int, EventPart]]:
        """Datasets that only column lineage names, as further inputs and outputs.

        That a column comes from the dataset that is written does not make it an input, unless an
        explicit `lineage` facet says so. Nor does another name of a dataset that is listed.
        """
        session = self.session
        inputs = {part.key for side, part in item.datasets if side == INPUT}
        outputs = {part.key for side, part in item.datasets if side == OUTPUT}
        explicit: set[Key] = set().union(*map(session.sources_of, set(stated.values())))
        named: set[Key] = set()
        for side, part in item.datasets:
            if part.columns and side == OUTPUT:
                sources = session.sources_of(part.columns)
                if not sources <= inputs:
                    (explicit if part.explicit else named).update(sources)
        explicit -= inputs
        named -= inputs | outputs
        fresh = sorted(explicit | named)
        beside = sorted(stated.keys() - outputs)
        if not fresh and not beside:
            return
        session.load_datasets([*fresh, *beside])
        written = {session.datasets[key].root for key in outputs}
        read = {session.datasets[key].root for key in inputs}
        for key in fresh:
            root = session.root_of(key)
            if root in read or (root in written and key not in explicit):
                continue
            if root is not None:
                read.add(root)
            yield INPUT, EventPart("", key, [], [], numbers=[])
        for key in beside:
            yield OUTPUT, EventPart("", key, [], [], numbers=[])

    def _job_facets(self, job: Job, run: Run | None, part: EventPart, time: int) -> None:
        session = self.session
        kept = numbers = part.numbers or []
        if part.names_parent:
            kept = [
                pair
                for pair in numbers
                if pair[0] != PART_OF or self.task_jobs.is_newest(job, pair[1], time)
            ]
        for name, number in hold(job.state.facets, kept, time):
            session.rows["facet_change"].append((JOB, job.id, name, time, number))
            if name == PART_OF and job.state.facets[name][0] == number:
                self.task_jobs.declare(job, number)
            if name in set_by_hand.DESCRIBES:
                job.state.description = set_by_hand.description(session, job.state.facets)
            if name == ABOUT:
                self.task_jobs.announce("job", job)
            if name == DELETED_FACET and number and job_edges.delete(session, job, time):
                job_edges.version(session, job, None, time)
                self.task_jobs.announce("edges", self.task_jobs.parent(job))
            if not number or name not in _JOB_UNDERSTOOD or job.state.facets[name][0] != number:
                continue
            body = session.body(number)
            if name == "jobType":
                read = known.read(body, known.JobTypeFacet)
                if read and read.processingType:
                    was, job.kind = is_stream(job), read.processingType.upper()
                    if was != is_stream(job) and job.latest is not None:
                        self._decide_anew(job, None)
            elif name == "sourceCodeLocation":
                where = known.read(body, known.SourceCodeLocationFacet)
                job.state.location = where.url if where else None
        if run is not None and not run.state.job_facets:
            run.state.job_facets = dict(numbers)

    def _run_facets(self, job: Job, run: Run, numbers: Numbers, time: int) -> None:
        for name, number in hold(run.state.facets, numbers, time):
            if not number or name not in ("parent", "nominalTime"):
                continue
            body = self.session.body(number)
            if name == "parent":
                parent = known.read(body, known.ParentFacet)
                run.state.parent = parent.run.runId if parent and parent.run else None
                self.session.name_parent(job, parent)
            else:
                nominal = known.read(body, known.NominalTimeFacet)
                run.state.nominal = nominal.period if nominal else (None, None)


def _only(run: Run, named: set[int], time: int) -> bool:
    """Note that a run uses these datasets and no others from a moment on; True if that is new."""
    changed = False
    run.state.snapshot = time
    for key, held in run.state.io.items():
        if key not in named and held.until is None:
            held.until, changed = time, True
        elif key in named and held.until is not None:
            held.until, changed = None, True
    return changed
