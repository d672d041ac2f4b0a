"""The versions of datasets and of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

import msgspec

from headwater.server.api.v1.lists import page, the_dataset, the_job
from headwater.server.api.v1.present import Presenter, identifier, when
from headwater.server.api.v1.runs import to_uuid
from headwater.server.http import HttpError, Request

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["dataset_version", "dataset_versions", "job_version", "job_versions"]

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
