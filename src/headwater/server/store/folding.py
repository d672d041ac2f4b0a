"""Which jobs are shown only as a part of another, as the tasks that report beside their connector.

A job says so by `headwater_partOf`. It is folded into the job it names as long as that one is there
and not deleted; so nothing goes out of sight with no other job to show it.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from headwater.lineage import facets as known
from headwater.lineage.events import Limits
from headwater.server.store.entities import DELETED, FOLDED
from headwater.server.store.parts import safe

if TYPE_CHECKING:
    from headwater.server.store.entities import Job
    from headwater.server.store.loading import Key
    from headwater.server.store.session import Session

__all__ = ["PART_OF", "Folding", "Folds"]

PART_OF = "headwater_partOf"
LONGEST = Limits().name
STEPS = 8
"""How many parts of parts are followed; who stands further off, or in a ring, is not folded."""

_SAID = (
    "SELECT n.name, j.name, f.namespace, f.name FROM fold f JOIN job j ON j.id = f.job"
    " JOIN namespace n ON n.id = j.namespace"
)


def _fits(said: known.PartOf) -> bool:
    """Whether a job of that name can be: what is longer is not even kept."""
    return max(len(said.namespace), len(said.name)) <= LONGEST


class Folds:
    """What every part says it is a part of, and the other way round."""

    def __init__(self) -> None:
        self.loaded = False
        self.said: dict[Key, Key] = {}
        self.parts: dict[Key, set[Key]] = defaultdict(set)

    def put(self, part: Key, whole: Key | None) -> None:
        """Note what a part says, or that it no longer says anything."""
        before = self.said.pop(part, None)
        if before is not None:
            self.parts[before].discard(part)
            if not self.parts[before]:
                del self.parts[before]
        if whole is not None:
            self.said[part] = whole
            self.parts[whole].add(part)


class Folding:
    """Keeps the jobs of the working set folded as they say, whichever is heard of first."""

    def __init__(self, session: Session, changes: list[dict[str, Any]]) -> None:
        self._session = session
        self._changes = changes

    @property
    def _folds(self) -> Folds:
        folds = self._session.folds
        if not folds.loaded:
            folds.loaded = True
            for space, name, *whole in self._session.connection.all(_SAID):
                folds.put((space, name), (whole[0], whole[1]))
        return folds

    def newest(self, job: Job, number: int, time: int) -> bool:
        """Whether this facet stands: of two of one moment the same one, whichever came last."""
        held = job.state.facets.get(PART_OF)
        if held is None or held[2] != time or held[0] == number:
            return True
        said, before = (self._session.body(n) if n else b"" for n in (number, held[0]))
        return said > before

    def said(self, job: Job, number: int) -> None:
        """A job says by a facet what it is a part of, or that it is one no longer."""
        body = self._session.body(number) if number else b"{}"
        read = known.read(PART_OF, body, known.PartOf)
        whole = safe(read.namespace, read.name) if read and _fits(read) else None
        key, folds = (job.space, job.name), self._folds
        if folds.said.get(key) == whole:
            return
        folds.put(key, whole)
        if whole is None:
            self._session.dirty["fold"].pop(job.id, None)
            self._session.connection.run("DELETE FROM fold WHERE job = ?", (job.id,))
        self._settle({key})

    def met(self, job: Job) -> None:
        """A job is new, was deleted, or is heard of again: those that name it follow."""
        key, folds = (job.space, job.name), self._folds
        if key in folds.said or key in folds.parts:
            self._settle({key})

    def anew(self) -> None:
        """Settle everything again, after rows were changed past the working set."""
        self._settle(set(self._folds.said))

    def whole(self, job: Job) -> Job:
        """The job that a job is shown as: itself, if it is not folded."""
        if job.hidden != FOLDED:
            return job
        key = (job.space, job.name)
        self._load({key})
        return self._whole(key) or job

    def members(self, job: Job) -> list[Job]:
        """The jobs that are folded into this one."""
        near = self._near({(job.space, job.name)})
        found = [self._session.jobs[key] for key in sorted(near) if key in self._session.jobs]
        return [one for one in found if one is not job and self.whole(one) is job]

    def _near(self, keys: set[Key]) -> set[Key]:
        """These, and whoever says to be a part of them."""
        folds, seen, frontier = self._folds, set(keys), set(keys)
        for _ in range(STEPS):
            frontier = {part for key in frontier for part in folds.parts.get(key, ())} - seen
            seen |= frontier
        self._load(seen)
        return seen

    def _load(self, keys: set[Key]) -> None:
        """Bring these jobs in, and those they name."""
        folds, wanted, frontier = self._folds, set(keys), keys
        for _ in range(STEPS):
            frontier = {folds.said[key] for key in frontier if key in folds.said} - wanted
            wanted |= frontier
        self._session.load_jobs(wanted)

    def _whole(self, key: Key) -> Job | None:
        """The job at the end of what a part says; None where it leads nowhere, or in a ring."""
        folds, jobs = self._folds, self._session.jobs
        passed, found = [key], None
        while (named := folds.said.get(passed[-1])) is not None:
            if named in passed or len(passed) > STEPS:
                return None
            job = jobs.get(named)
            if job is None or job.hidden == DELETED:
                break
            passed.append(named)
            found = job
        return found

    def _settle(self, keys: set[Key]) -> None:
        session, folds = self._session, self._folds
        for key in sorted(self._near(keys)):
            job = session.jobs.get(key)
            if job is None:
                continue
            whole = self._whole(key) if job.hidden != DELETED else None
            if key in folds.said:
                row = (job.id, *folds.said[key], whole.id if whole else None)
                session.dirty["fold"][job.id] = row
            if job.hidden == DELETED:
                continue
            before, job.hidden = job.hidden, FOLDED if whole else 0
            if job.hidden != before:
                session.dirty["job"][job.id] = job
            if whole is not None and (key in keys or not before):
                self.tell("edges", whole)
            elif before and whole is None:
                self.tell("job", job)

    def tell(self, change: str, job: Job) -> None:
        """Let those who watch know."""
        self._changes.append({"change": change, "namespace": job.space, "name": job.name})
