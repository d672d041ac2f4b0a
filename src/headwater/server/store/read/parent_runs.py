"""The run that a run names as its parent, the job of that run, and which jobs name a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeVar

from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.repairs import runs_of_its_own, to_run_uuid
from headwater.server.store.database import within
from headwater.server.store.write.session import SHARES_RUNS

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.server.store.entities import Job, RunState
    from headwater.server.store.view import View

__all__ = ["ParentRun", "jobs_naming", "parent_runs"]

K = TypeVar("K")
Name = tuple[str, str]
_OWNERS = (
    "SELECT r.uuid, r.job, n.name, j.name FROM run r JOIN job j ON j.id = r.job"
    " JOIN namespace n ON n.id = j.namespace WHERE r.uuid IN ({in})"
)


_TASKS = (
    "SELECT n.name, j.name FROM fold f JOIN job j ON j.id = f.job"
    " JOIN namespace n ON n.id = j.namespace WHERE f.whole = ? ORDER BY j.id LIMIT ?"
)
_NAMING = (
    "WITH k (space, name) AS ({in}) SELECT j.updated, j.id FROM k JOIN named_parent p"
    " ON p.namespace = k.space AND p.name = k.name JOIN job j ON j.id = p.job WHERE j.hidden = 0"
)


class ParentRun(NamedTuple):
    """A run by its UUID, and the id of its job."""

    uuid: bytes
    job: int


def parent_runs(view: View, runs: Mapping[K, RunState]) -> dict[K, ParentRun]:
    """The parent that each run names, where it is known.

    Of jobs that report under one id, only the first has the run of that id. The parent is then the run
    of the job that is named beside it; where that job has none, the run of the id.
    """
    ids = {key: to_run_uuid(run.parent) for key, run in runs.items() if run.parent}
    jobs = _jobs(view, {key: runs[key] for key in ids})
    asked = {key: [run.bytes] for key, run in ids.items()}
    for key, job in jobs.items():
        asked[key] += [own.bytes for own in runs_of_its_own(ids[key], *job)]
    rows = within(view.connection, _OWNERS, {uuid for some in asked.values() for uuid in some})
    owners = {bytes(row[0]): (ParentRun(bytes(row[0]), row[1]), (row[2], row[3])) for row in rows}
    found = {}
    for key, some in asked.items():
        there = [owners[uuid] for uuid in some if uuid in owners]
        # Of those of other jobs, the run of the id itself alone may be meant.
        fallback = owners.get(some[0])
        run = next((one for one in there if one[1] == jobs.get(key)), fallback)
        if run is not None:
            found[key] = run[0]
    return found


def _jobs(view: View, runs: Mapping[K, RunState]) -> dict[K, Name]:
    """The job that each run names as its parent; nothing in a store where each run has its own id."""
    if not runs or not view.all("SELECT 1 FROM setting WHERE name = ?", (SHARES_RUNS,)):
        return {}
    held = {key: run.facets["parent"][0] for key, run in runs.items() if "parent" in run.facets}
    bodies = view.bodies(held.values())
    found = {}
    for key, number in held.items():
        parent = known.read(bodies.get(number, b"{}"), known.ParentFacet)
        if parent and parent.job and parent.job.name:
            found[key] = (parent.job.namespace or "", parent.job.name)
    return found


def jobs_naming(view: View, job: Job, limit: int) -> list[Job]:
    """The jobs that ever named a job, or a task of it, as their parent: those that changed last."""
    names = [(job.space, job.name), *view.all(_TASKS, (job.id, limit))]
    rows = set(within(view.connection, _NAMING, names))
    newest = sorted(rows, reverse=True)[:limit]
    return list(view.jobs(number for _, number in newest).values())
