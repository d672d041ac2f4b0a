"""Jobs, runs and datasets as lists, the map and answers to questions show them, in short."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec

from headwater.lineage.lifecycle import State
from headwater.lineage.openlineage import facets as known
from headwater.server.api.present import when
from headwater.server.store.deciding_run import decided_runs
from headwater.server.store.entities import STATUSES, to_job
from headwater.server.store.read.parent_runs import parent_runs
from headwater.server.store.view import JOBS

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.insight import JobProblem
    from headwater.server.store.entities import Dataset, Held, Job, Run
    from headwater.server.store.view import View

__all__ = [
    "OWNED",
    "Facets",
    "Nested",
    "dataset_id",
    "datasets",
    "flat",
    "job_id",
    "jobs",
    "latest_runs",
    "listed",
    "owners",
    "planned_ends",
    "reference",
    "shown",
    "states_of_deleted",
    "store_of",
]

Reference = dict[str, Any]
CATALOGS = ("iceberg", "delta", "hudi")
"""Frameworks of catalogs that say which format their tables have."""

MESSAGE = 300
OWNED = (known.ABOUT, "ownership")
"""The facets that name owners; the first that names one counts."""
OWNERS = 20


def job_id(job: Job) -> str:
    """A job's node id."""
    return f"job:{job.space}:{job.name}"


def dataset_id(dataset: Dataset) -> str:
    """A dataset's node id."""
    return f"dataset:{dataset.space}:{dataset.name}"


def reference(facet: Any) -> Reference | None:
    """A job and run that another one names, if it names one at all."""
    if not isinstance(facet, dict) or not isinstance(job := facet.get("job"), dict):
        return None
    name, space, run = job.get("name"), job.get("namespace"), facet.get("run")
    if not name or not isinstance(name, str):
        return None
    number = run.get("runId") if isinstance(run, dict) else None
    return {
        "namespace": space if isinstance(space, str) else "",
        "name": name,
        "run": number if number and isinstance(number, str) else None,
    }


def shown(view: View, references: Iterable[Reference | None]) -> None:
    """Replace references to task jobs by references to their parent jobs."""
    named = [one for one in references if one is not None]
    parent_jobs = view.parent_jobs((one["namespace"], one["name"]) for one in named)
    for one in named:
        key = one["namespace"], one["name"]
        one["namespace"], one["name"] = parent_jobs.get(key, key)


class Facets:
    """The facets of many entities, read at once and looked up one by one."""

    def __init__(self, view: View, held: Iterable[Mapping[str, Held]], *names: str) -> None:
        wanted = {h[0] for one in held for name, h in one.items() if not names or name in names}
        self._bodies = view.bodies(wanted)

    def raw(self, held: Mapping[str, Held], name: str) -> bytes | None:
        """A facet's JSON, if the entity holds it."""
        found = held.get(name)
        return self._bodies.get(found[0]) if found else None

    def get(self, held: Mapping[str, Held], name: str) -> dict[str, Any]:
        """A facet as an object; nothing when there is none, or when it is no object."""
        raw = self.raw(held, name)
        value = msgspec.json.decode(raw) if raw else None
        return value if isinstance(value, dict) else {}


def store_of(dataset: Dataset, facets: Facets) -> str:
    """What kind of store holds a dataset: iceberg, kafka, s3, postgres, and so on."""
    held = dataset.state.facets
    framework = facets.get(held, "catalog").get("framework")
    if isinstance(framework, str) and framework.lower() in CATALOGS:
        return framework.lower()
    storage = facets.get(held, "storage")
    layer, file_format = storage.get("storageLayer"), storage.get("fileFormat")
    # A layer that is no file format itself is a table format, whichever one a producer knows.
    if isinstance(layer, str) and layer and layer != file_format:
        return layer.lower()
    scheme = dataset.space.split(":", 1)[0].lower()
    return scheme if scheme != dataset.space.lower() or scheme.isalpha() else ""


def listed(facet: dict[str, Any], name: str, limit: int = 1_000) -> list[dict[str, Any]]:
    """The objects in a list of a facet; nothing where the facet has another shape."""
    value = facet.get(name)
    return (
        [one for one in value[:limit] if isinstance(one, dict)] if isinstance(value, list) else []
    )


def owners(facets: Facets, held: Mapping[str, Held]) -> list[dict[str, Any]]:
    """Who owns a job or a dataset: whom people named by hand, else whom its producer names."""
    for name in OWNED:
        if found := listed(facets.get(held, name), "owners", OWNERS):
            return [{"name": str(one.get("name")), "type": one.get("type")} for one in found]
    return []


Nested = list[dict[str, Any]]


def flat(raw: bytes | None, limit: int = 500) -> Nested:
    """A schema's columns with those inside them, by dotted name."""
    read = known.read(raw, known.SchemaFacet) if raw else None
    found: Nested = []

    def walk(fields: Iterable[known.SchemaField], prefix: str, level: int) -> None:
        for f in fields:
            if len(found) >= limit:
                return
            name = prefix + f.name
            found.append(
                {"name": name, "type": f.type, "description": f.description, "level": level}
            )
            if f.fields:
                walk(f.fields, f"{name}.", level + 1)

    walk((read.fields if read else None) or (), "", 0)
    return found


def datasets(view: View, found: Mapping[int, Dataset]) -> dict[int, dict[str, Any]]:
    """Datasets by id: what they are and which store holds them."""
    facets = Facets(view, (d.state.facets for d in found.values()), "catalog", "storage")
    return {
        number: {
            "id": dataset_id(dataset),
            "kind": "dataset",
            "namespace": dataset.space,
            "name": dataset.name,
            "store": store_of(dataset, facets),
            "type": dataset.kind.lower(),
            "updatedAt": when(dataset.updated),
        }
        for number, dataset in found.items()
    }


def latest_runs(view: View, jobs: Iterable[Job], at: int | None = None) -> dict[int, Run]:
    """Each job's run that decides about its state, or that did at a moment."""
    wanted = list(jobs)
    if at is None:
        runs = view.runs(job.latest for job in wanted if job.latest is not None)
        return {run.job: run for run in runs.values()}
    return decided_runs(view, wanted, at)


def jobs(view: View, found: list[Job], at: int | None = None) -> dict[int, dict[str, Any]]:
    """Jobs by id: what they are, how their newest run stands and since when.

    `planned` is `paused` or `stopped` where somebody ended that run on purpose, `deleted` since when
    the job is deleted in the system that ran it.
    """
    runs = latest_runs(view, found, at)
    gone = view.deleted_jobs(at)
    facets = Facets(view, (job.state.facets for job in found), "jobType")
    errors = Facets(view, (run.state.facets for run in runs.values()), "errorMessage")
    planned = view.graph().planned((job, runs[job.id]) for job in found if job.id in runs)
    answers = {}
    for job in found:
        kind = facets.get(job.state.facets, "jobType")
        run = runs.get(job.id)
        answers[job.id] = {
            "id": job_id(job),
            "kind": "job",
            "namespace": job.space,
            "name": job.name,
            "integration": _text(kind.get("integration")).lower(),
            "type": _text(kind.get("jobType")).lower(),
            "processing": job.kind.lower(),
            "updatedAt": when(job.updated),
            "deleted": when(gone.get(job.id)),
            **_run(run, at, errors, planned),
        }
    return answers


def states_of_deleted(view: View) -> dict[int, State]:
    """The jobs that are deleted in the system that ran them, with the state of their newest run."""
    gone = view.deleted_jobs()
    runs = latest_runs(view, view.jobs(gone).values())
    return {job: runs[job].state.life.state if job in runs else State.NEW for job in gone}


class PlannedEnd(NamedTuple):
    """A job whose newest run somebody ended on purpose, the state of that run, and how."""

    job: Job
    state: State
    how: JobProblem


def planned_ends(view: View) -> list[PlannedEnd]:
    """The streams, and the applications of such, that somebody paused or stopped."""
    ended = ",".join(str(STATUSES.index(state)) for state in (State.COMPLETED, State.ABORTED))
    sql = (
        f" JOIN run r ON r.id = j.latest WHERE j.hidden = 0 AND r.status IN ({ended})"
        " AND upper(j.kind) IN ('STREAMING', 'STREAM')"
    )
    gone = view.deleted_jobs()
    streams = {job.id: job for job in map(to_job, view.all(JOBS + sql)) if job.id not in gone}
    runs = latest_runs(view, streams.values())
    above = parent_runs(view, {number: run.state for number, run in runs.items()})
    parents = view.jobs({run.job for run in above.values()} - set(streams))
    jobs = streams | {
        job.id: job for job in parents.values() if job.hidden == 0 and job.id not in gone
    }
    runs |= latest_runs(view, [job for job in jobs.values() if job.id not in runs])
    pairs = [(job, runs[job.id]) for job in jobs.values() if job.id in runs]
    planned = view.graph().planned(pairs, jobs.keys())
    return [
        PlannedEnd(jobs[run.job], run.state.life.state, planned[run.id])
        for run in runs.values()
        if run.id in planned
    ]


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _run(
    run: Run | None, at: int | None, errors: Facets, planned: Mapping[int, JobProblem]
) -> dict[str, Any]:
    if run is None:
        return {
            "state": State.NEW.value,
            "planned": None,
            "inferred": False,
            "run": None,
            "since": None,
            "error": None,
        }
    life = run.state.life
    end = life.end if at is None or (life.end is not None and life.end <= at) else None
    state = life.state if at is None or end is not None else State.RUNNING
    error = errors.get(run.state.facets, "errorMessage").get("message") if end else None
    how = planned.get(run.id) if end is not None else None
    return {
        "state": state.value,
        "planned": how.value if how else None,
        "inferred": end is not None and life.is_inferred,
        "run": str(UUID(bytes=run.uuid)),
        "since": when(end if end is not None else life.started or life.first),
        "error": _text(error)[:MESSAGE] or None,
    }
