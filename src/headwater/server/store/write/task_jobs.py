"""Merging task jobs into their parent job: what the page shows as one job.

A task that reports beside its connector names that connector's job in `headwater_partOf`. The task
job is shown as its parent job as long as the parent exists and is not deleted; so nothing goes out
of sight with no other job to show it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.events import Limits
from headwater.server.store.entities import DELETED, MERGED
from headwater.server.store.write.incoming.name_limits import too_long
from headwater.server.store.write.incoming.prepared import safe

if TYPE_CHECKING:
    from headwater.server.store.entities import Job
    from headwater.server.store.write.session import Key, WriteSession

__all__ = ["PART_OF", "ParentJobs", "TaskJobs"]

PART_OF = "headwater_partOf"
LONGEST = Limits().name
STEPS = 8
"""How many parents of parents are followed; a task job further off, or in a ring, is not merged."""

_DECLARED = (
    "SELECT n.name, j.name, f.namespace, f.name FROM fold f JOIN job j ON j.id = f.job"
    " JOIN namespace n ON n.id = j.namespace"
)


def _fits(declared: known.PartOf) -> bool:
    """Whether a job of that name can exist: longer names are not stored."""
    return not (too_long(declared.namespace, LONGEST) or too_long(declared.name, LONGEST))


class ParentJobs:
    """The parent job that each task job names, and the task jobs of each parent."""

    def __init__(self) -> None:
        self.loaded = False
        self.parent_of: dict[Key, Key] = {}
        self.tasks_of: dict[Key, set[Key]] = defaultdict(set)

    def put(self, task: Key, parent: Key | None) -> None:
        """Note the parent a task job names, or that it names none any more."""
        before = self.parent_of.pop(task, None)
        if before is not None:
            self.tasks_of[before].discard(task)
            if not self.tasks_of[before]:
                del self.tasks_of[before]
        if parent is not None:
            self.parent_of[task] = parent
            self.tasks_of[parent].add(task)


class TaskJobs:
    """Keeps the task jobs of the working set merged, whichever of task and parent reports first."""

    def __init__(self, session: WriteSession, changes: list[dict[str, Any]]) -> None:
        self._session = session
        self._changes = changes

    @property
    def _parents(self) -> ParentJobs:
        parents = self._session.parent_jobs
        if not parents.loaded:
            parents.loaded = True
            for space, name, *parent in self._session.connection.all(_DECLARED):
                parents.put((space, name), (parent[0], parent[1]))
        return parents

    def is_newest(self, job: Job, number: int, time: int) -> bool:
        """Whether this facet stands: of two of one moment the same one, whichever came last."""
        held = job.state.facets.get(PART_OF)
        if held is None or held[2] != time or held[0] == number:
            return True
        declared, before = (self._session.body(n) if n else b"" for n in (number, held[0]))
        return declared > before

    def declare(self, job: Job, number: int) -> None:
        """Take in the facet by which a job names its parent, or names none any more."""
        body = self._session.body(number) if number else b"{}"
        read = known.read(body, known.PartOf)
        parent = safe(read.namespace, read.name) if read and _fits(read) else None
        key, parents = (job.space, job.name), self._parents
        if parents.parent_of.get(key) == parent:
            return
        parents.put(key, parent)
        if parent is None:
            self._session.dirty["fold"].pop(job.id, None)
            self._session.connection.run("DELETE FROM fold WHERE job = ?", (job.id,))
        self._settle({key})

    def job_changed(self, job: Job) -> None:
        """Merge or show the task jobs of a job that is new, was deleted, or reports again."""
        key, parents = (job.space, job.name), self._parents
        if key in parents.parent_of or key in parents.tasks_of:
            self._settle({key})

    def settle_all(self) -> None:
        """Settle everything again, after rows were changed past the working set."""
        self._settle(set(self._parents.parent_of))

    def parent(self, job: Job) -> Job:
        """The job that a job is shown as: itself, if it is no task job."""
        if job.hidden != MERGED:
            return job
        key = (job.space, job.name)
        self._load({key})
        return self._parent(key) or job

    def tasks(self, job: Job) -> list[Job]:
        """The task jobs that are merged into this one."""
        near = self._near({(job.space, job.name)})
        found = [self._session.jobs[key] for key in sorted(near) if key in self._session.jobs]
        return [one for one in found if one is not job and self.parent(one) is job]

    def _near(self, keys: set[Key]) -> set[Key]:
        """These, and the task jobs that name them as parent, directly or not."""
        parents, seen, frontier = self._parents, set(keys), set(keys)
        for _ in range(STEPS):
            frontier = {task for key in frontier for task in parents.tasks_of.get(key, ())} - seen
            seen |= frontier
        self._load(seen)
        return seen

    def _load(self, keys: set[Key]) -> None:
        """Load these jobs and the parents they name."""
        parents, wanted, frontier = self._parents, set(keys), keys
        for _ in range(STEPS):
            frontier = {
                parents.parent_of[key] for key in frontier if key in parents.parent_of
            } - wanted
            wanted |= frontier
        self._session.load_jobs(wanted)

    def _parent(self, key: Key) -> Job | None:
        """The topmost parent of a task job; None where it does not exist, or in a ring."""
        parents, jobs = self._parents, self._session.jobs
        passed, found = [key], None
        while (named := parents.parent_of.get(passed[-1])) is not None:
            if named in passed or len(passed) > STEPS:
                return None
            job = jobs.get(named)
            if job is None or job.hidden == DELETED:
                break
            passed.append(named)
            found = job
        return found

    def _settle(self, keys: set[Key]) -> None:
        session, parents = self._session, self._parents
        for key in sorted(self._near(keys)):
            job = session.jobs.get(key)
            if job is None:
                continue
            parent = self._parent(key) if job.hidden != DELETED else None
            if key in parents.parent_of:
                row = (job.id, *parents.parent_of[key], parent.id if parent else None)
                session.dirty["fold"][job.id] = row
            if job.hidden == DELETED:
                continue
            before, job.hidden = job.hidden, MERGED if parent else 0
            if job.hidden != before:
                session.dirty["job"][job.id] = job
            if parent is not None and (key in keys or not before):
                self.announce("edges", parent)
            elif before and parent is None:
                self.announce("job", job)

    def announce(self, change: str, job: Job) -> None:
        """Note a change for the live stream."""
        self._changes.append({"change": change, "namespace": job.space, "name": job.name})
