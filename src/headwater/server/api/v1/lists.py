"""Namespaces, sources, datasets, jobs, runs, versions, tags: one at a time and in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headwater.lineage.lifecycle import State
from headwater.server.api.v1.present import Presenter, identifier, when
from headwater.server.http import HttpError, Request
from headwater.server.store.entities import INPUT, STATUSES, to_dataset, to_job, to_run, unslot
from headwater.server.store.view import DATASETS, JOBS, RUNS

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset, Job, Run
    from headwater.server.store.view import View

__all__ = [
    "any_dataset",
    "any_job",
    "dataset",
    "dataset_version",
    "dataset_versions",
    "datasets",
    "job",
    "job_runs",
    "job_version",
    "job_versions",
    "jobs",
    "namespace",
    "namespaces",
    "run",
    "run_facets",
    "source",
    "sources",
    "tag",
    "tags",
    "to_uuid",
    "upstream_runs",
]

NAMESPACE = "SELECT id, name, owner, description, created, updated, hidden FROM namespace"
SOURCE = "SELECT name, kind, url, description, created, updated FROM source"


def page(request: Request) -> tuple[int, int]:
    """Limit and offset as Marquez has them."""
    return request.integer("limit", 100, 0), request.integer("offset", 0, 0, 2**31)


def _namespace(row: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "name": row[1],
        "createdAt": when(row[4]),
        "updatedAt": when(row[5]),
        "ownerName": row[2] or "anonymous",
        "description": row[3],
        "isHidden": bool(row[6]),
    }


def namespaces(view: View, request: Request) -> dict[str, Any]:
    """Every namespace, by name."""
    rows = view.all(NAMESPACE + " WHERE hidden = 0 ORDER BY name LIMIT ? OFFSET ?", page(request))
    ((total,),) = view.all("SELECT count(*) FROM namespace WHERE hidden = 0")
    return {"namespaces": [_namespace(row) for row in rows], "totalCount": total}


def namespace(view: View, request: Request) -> dict[str, Any]:
    """One namespace."""
    name = request.path["namespace"]
    rows = view.all(NAMESPACE + " WHERE name = ?", (name,))
    if not rows:
        raise HttpError(404, f"Namespace '{name}' not found.")
    return _namespace(rows[0])


def namespace_id(view: View, request: Request) -> int:
    """The id of the namespace in the path."""
    name = request.path["namespace"]
    rows = view.all("SELECT id FROM namespace WHERE name = ? AND hidden = 0", (name,))
    if not rows:
        raise HttpError(404, f"Namespace '{name}' not found.")
    return int(rows[0][0])


def _source(row: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "type": row[1],
        "name": row[0],
        "createdAt": when(row[4]),
        "updatedAt": when(row[5]),
        "connectionUrl": row[2],
        "description": row[3],
    }


def sources(view: View, request: Request) -> dict[str, Any]:
    """Every source, by name."""
    rows = view.all(SOURCE + " ORDER BY name LIMIT ? OFFSET ?", page(request))
    ((total,),) = view.all("SELECT count(*) FROM source")
    return {"sources": [_source(row) for row in rows], "totalCount": total}


def source(view: View, request: Request) -> dict[str, Any]:
    """One source."""
    name = request.path["source"]
    rows = view.all(SOURCE + " WHERE name = ?", (name,))
    if not rows:
        raise HttpError(404, f"Source '{name}' not found.")
    return _source(rows[0])


def datasets(view: View, request: Request) -> dict[str, Any]:
    """The datasets of a namespace, by name."""
    number = namespace_id(view, request)
    sql = DATASETS + " WHERE d.namespace = ? AND d.hidden = 0 ORDER BY d.name LIMIT ? OFFSET ?"
    rows = view.all(sql, (number, *page(request)))
    sql = "SELECT count(*) FROM dataset WHERE namespace = ? AND hidden = 0"
    ((total,),) = view.all(sql, (number,))
    return {
        "totalCount": total,
        "datasets": Presenter(view).datasets([to_dataset(r) for r in rows]),
    }


def the_dataset(view: View, request: Request) -> Dataset:
    """The dataset in the path."""
    namespace_id(view, request)
    name = request.path["dataset"]
    found = view.dataset(request.path["namespace"], name)
    if found is None or found.hidden:
        raise HttpError(404, f"Dataset '{name}' not found.")
    return found


def dataset(view: View, request: Request) -> dict[str, Any]:
    """One dataset."""
    return Presenter(view).datasets([the_dataset(view, request)])[0]


def any_dataset(view: View, request: Request) -> dict[str, Any]:
    """One dataset, even if it is hidden."""
    found = view.dataset(request.path["namespace"], request.path["dataset"])
    if found is None:
        raise HttpError(404, f"Dataset '{request.path['dataset']}' not found.")
    return Presenter(view).datasets([found])[0]


def any_job(view: View, request: Request) -> dict[str, Any]:
    """One job, even if it is hidden."""
    found = view.job(request.path["namespace"], request.path["job"])
    if found is None:
        raise HttpError(404, f"Job '{request.path['job']}' not found.")
    return Presenter(view).jobs([found])[0]


VERSION = "SELECT id, uuid, run, time, facet FROM dataset_version WHERE dataset = ?"


def _versions(view: View, found: Dataset, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    presenter = Presenter(view)
    base = presenter.datasets([found])[0]
    runs = view.runs(row[2] for row in rows if row[2] is not None)
    owners = view.jobs(run.job for run in runs.values())
    described = presenter.runs(runs.values(), owners)
    bodies = view.bodies(row[4] for row in rows if row[4])
    keys = ("id", "type", "name", "physicalName", "namespace", "sourceName", "tags", "description")
    answers = []
    for _, uuid, run_id, time, facet in rows:
        facets = dict(base["facets"])
        if facet in bodies:
            facets["schema"] = msgspec.Raw(bodies[facet])
        answers.append(
            {
                **{key: base[key] for key in keys},
                "createdAt": when(time),
                "version": str(UUID(bytes=bytes(uuid))),
                "fields": presenter.fields([facet or 0], bodies),
                "lifecycleState": base["lastLifecycleState"],
                "currentSchemaVersion": str(UUID(int=facet)) if facet else None,
                "createdByRun": described.get(run_id),
                "facets": facets,
            }
        )
    return answers


def dataset_versions(view: View, request: Request) -> dict[str, Any]:
    """A dataset's versions, the newest first."""
    found = the_dataset(view, request)
    sql = VERSION + " ORDER BY time DESC, id DESC LIMIT ? OFFSET ?"
    rows = view.all(sql, (found.id, *page(request)))
    sql = "SELECT count(*) FROM dataset_version WHERE dataset = ?"
    ((total,),) = view.all(sql, (found.id,))
    return {"versions": _versions(view, found, rows), "totalCount": total}


def dataset_version(view: View, request: Request) -> dict[str, Any]:
    """One version of a dataset."""
    found = the_dataset(view, request)
    version = request.path["version"]
    rows = view.all(VERSION + " AND uuid = ?", (found.id, to_uuid(version).bytes))
    if not rows:
        raise HttpError(404, f"Dataset version '{version}' not found.")
    return _versions(view, found, rows[:1])[0]


def jobs(view: View, request: Request) -> dict[str, Any]:
    """The jobs of a namespace by name, or all jobs with the most recently active first."""
    limit, offset = page(request)
    where, params = " WHERE j.hidden = 0", []
    if "namespace" in request.path:
        where += " AND j.namespace = ?"
        params.append(namespace_id(view, request))
    states = [s for s in request.query.get("lastRunStates", "").upper().split(",") if s]
    if states:
        if not set(states) <= set(State.__members__):
            raise HttpError(400, "lastRunStates: not one of " + ", ".join(State.__members__))
        marks = ",".join("?" * len(states))
        where += f" AND j.latest IN (SELECT id FROM run WHERE status IN ({marks}))"  # noqa: S608
        params += [STATUSES.index(State(state)) for state in states]
    order = " ORDER BY j.name" if "namespace" in request.path else " ORDER BY j.updated DESC, j.id"
    rows = view.all(JOBS + where + order + " LIMIT ? OFFSET ?", (*params, limit, offset))
    ((total,),) = view.all("SELECT count(*) FROM job j" + where, params)  # noqa: S608
    return {"totalCount": total, "jobs": Presenter(view).jobs([to_job(row) for row in rows])}


def the_job(view: View, request: Request) -> Job:
    """The job in the path."""
    namespace_id(view, request)
    name = request.path["job"]
    found = view.job(request.path["namespace"], name)
    if found is None or found.hidden:
        raise HttpError(404, f"Job '{name}' not found.")
    return found


def job(view: View, request: Request) -> dict[str, Any]:
    """One job."""
    found = the_job(view, request)
    answer = Presenter(view).jobs([found])[0]
    latest = _runs(view, found, 10, 0)
    answer["latestRuns"] = list(Presenter(view).runs(latest, {found.id: found}).values())
    return answer


def _runs(view: View, found: Job, limit: int, offset: int) -> list[Run]:
    sql = RUNS + " WHERE r.job = ? ORDER BY r.created DESC, r.id DESC LIMIT ? OFFSET ?"
    runs = [to_run(row) for row in view.all(sql, (found.id, limit, offset))]
    return [run for run in runs if not run.state.static]


def job_runs(view: View, request: Request) -> dict[str, Any]:
    """A job's runs, the newest first."""
    found = the_job(view, request)
    runs = _runs(view, found, *page(request))
    ((total,),) = view.all("SELECT count(*) FROM run WHERE job = ?", (found.id,))
    described = Presenter(view).runs(runs, {found.id: found})
    return {"runs": [described[r.id] for r in runs], "totalCount": total}


JOB_VERSION = "SELECT id, uuid, time, run, state FROM job_version WHERE job = ?"


def _job_versions(view: View, found: Job, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    runs = view.runs(row[3] for row in rows if row[3] is not None)
    described = Presenter(view).runs(runs.values(), {found.id: found})
    answers = []
    for _, uuid, time, run_id, state in rows:
        inputs, outputs, location = msgspec.msgpack.decode(bytes(state))
        version = str(UUID(bytes=bytes(uuid)))
        answers.append(
            {
                "id": {**identifier(found.space, found.name), "version": version},
                "name": found.name,
                "createdAt": when(time),
                "version": version,
                "namespace": found.space,
                "location": location,
                "inputs": [identifier(*name) for name in inputs],
                "outputs": [identifier(*name) for name in outputs],
                "latestRun": described.get(run_id),
            }
        )
    return answers


def job_versions(view: View, request: Request) -> dict[str, Any]:
    """A job's versions, the newest first."""
    found = the_job(view, request)
    sql = JOB_VERSION + " ORDER BY time DESC, id DESC LIMIT ? OFFSET ?"
    rows = view.all(sql, (found.id, *page(request)))
    ((total,),) = view.all("SELECT count(*) FROM job_version WHERE job = ?", (found.id,))
    return {"versions": _job_versions(view, found, rows), "totalCount": total}


def job_version(view: View, request: Request) -> dict[str, Any]:
    """One version of a job."""
    found = the_job(view, request)
    version = request.path["version"]
    sql = JOB_VERSION + " AND uuid = ? ORDER BY id DESC"
    rows = view.all(sql, (found.id, to_uuid(version).bytes))
    if not rows:
        raise HttpError(404, f"Job version '{version}' not found.")
    return _job_versions(view, found, rows[:1])[0]


def to_uuid(text: str) -> UUID:
    """A UUID from the path; anything else is not found."""
    try:
        return UUID(text)
    except ValueError:
        raise HttpError(404, f"'{text[:64]}' is not a UUID.") from None


def the_run(view: View, text: str) -> Run:
    """The run in the path."""
    found = view.run(to_uuid(text))
    if found is None or found.state.static:
        raise HttpError(404, f"Run '{text}' not found.")
    return found


def run(view: View, request: Request) -> dict[str, Any]:
    """One run."""
    found = the_run(view, request.path["id"])
    return Presenter(view).runs([found], view.jobs([found.job]))[found.id]


def run_facets(view: View, request: Request) -> dict[str, Any]:
    """A run's own facets, or those its job had in it."""
    found = the_run(view, request.path["id"])
    kind = request.query.get("type", "run")
    if kind not in ("run", "job"):
        raise HttpError(400, "type: not one of run, job")
    numbers = found.state.job_facets
    if kind == "run":
        numbers = {name: held[0] for name, held in found.state.facets.items()}
    bodies = view.facets(numbers.values())
    facets = {name: bodies[number] for name, number in numbers.items() if number in bodies}
    return {"runId": str(UUID(bytes=found.uuid)), "facets": facets}


def upstream_runs(view: View, request: Request) -> dict[str, Any]:
    """The runs that made what a run read, and those before them."""
    depth = request.integer("depth", 10, 0, 50)
    first = the_run(view, request.query.get("runId", ""))
    seen, frontier, answers = {first.id}, [first], []
    for _ in range(depth + 1):
        following: list[Run] = []
        for found in frontier:
            owner = view.jobs([found.job]).get(found.job)
            inputs = []
            for slot, io in found.state.io.items():
                dataset_id, direction = unslot(slot)
                if direction != INPUT:
                    continue
                named = view.datasets([dataset_id])[dataset_id]
                sql = (
                    "SELECT run, uuid FROM dataset_version WHERE dataset = ? AND time <= ?"
                    " AND run IS NOT NULL AND run <> ? ORDER BY time DESC LIMIT 1"
                )
                until = found.state.life.end or found.state.life.last
                rows = view.all(sql, (dataset_id, until, found.id))
                maker = view.runs([rows[0][0]]).get(rows[0][0]) if rows else None
                inputs.append(
                    {
                        **identifier(named.space, named.name),
                        "version": str(UUID(bytes=bytes(rows[0][1]))) if rows
                        else view.versions("dataset", [io.version]).get(io.version or 0),
                        "producedByRunId": str(UUID(bytes=maker.uuid)) if maker else None,
                    }
                )  # fmt: skip
                if maker is not None and maker.id not in seen and len(seen) < 1_000:
                    seen.add(maker.id)
                    following.append(maker)
            versions = view.versions("job", [found.state.version])
            life = found.state.life
            answers.append(
                {
                    "job": {
                        "namespace": owner.space if owner else None,
                        "name": owner.name if owner else None,
                        "version": versions.get(found.state.version or 0),
                    },
                    "run": {
                        "id": str(UUID(bytes=found.uuid)),
                        "start": when(life.started),
                        "end": when(life.end),
                        "status": life.state.value,
                    },
                    "inputs": inputs,
                }
            )
        frontier = following
        if not frontier:
            break
    return {"runs": answers}


def tag(view: View, request: Request) -> dict[str, Any]:
    """One tag."""
    rows = view.all("SELECT name, description FROM tag WHERE name = ?", (request.path["name"],))
    return {"name": rows[0][0], "description": rows[0][1]}


def tags(view: View, request: Request) -> dict[str, Any]:
    """Every tag, by name."""
    rows = view.all(
        "SELECT name, description FROM tag ORDER BY name LIMIT ? OFFSET ?", page(request)
    )
    return {"tags": [{"name": name, "description": text} for name, text in rows]}
