"""The versions of datasets and of jobs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

import msgspec

from headwater.server.api.java_client_urls import to_url
from headwater.server.api.lookup import the_dataset, the_job, to_uuid
from headwater.server.api.present import Presenter, identifier, when
from headwater.server.api.types import Time, Uuid
from headwater.server.api.v1.lists import DATASET, JOB, LIMIT, OFFSET
from headwater.server.http import HttpError
from headwater.server.routing import Routes
from headwater.server.store.read.timeline import members, schemas

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset, Job, Run
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()


class Version(TypedDict):
    """One version of a dataset or of a job."""

    version: Uuid
    createdAt: Time


class Versions(TypedDict):
    """A page of versions."""

    totalCount: int
    versions: list[Version]


VERSION = "SELECT id, uuid, run, time FROM dataset_version WHERE dataset = ?"


def _schema(view: View, found: Dataset, run: Run | None, time: int) -> int:
    """The schema that was valid when a run had written its version: at its end, or now."""
    if run is not None:
        time = run.state.life.end or 2**62
    rows = schemas(view, members(view, found.root), time, 1)
    return rows[0][1] if rows else 0


def _versions(view: View, found: Dataset, rows: list[tuple[Any, ...]]) -> list[dict[str, Any]]:
    presenter = Presenter(view)
    base = presenter.datasets([found])[0]
    runs = view.runs(row[2] for row in rows if row[2] is not None)
    owners = view.jobs(run.job for run in runs.values())
    described = presenter.runs(runs.values(), owners)
    valid = [_schema(view, found, runs.get(row[2]), row[3]) for row in rows]
    bodies = view.bodies(facet for facet in valid if facet)
    keys = ("id", "type", "name", "physicalName", "namespace", "sourceName", "tags", "description")
    answers = []
    for (_, uuid, run_id, time), facet in zip(rows, valid, strict=True):
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


@api.get(DATASET + "/versions", answer=Versions)
def dataset_versions(
    view: View, namespace: str, dataset: str, limit: int = LIMIT, offset: int = OFFSET
) -> dict[str, Any]:
    """A dataset's versions, the newest first."""
    found = the_dataset(view, namespace, dataset)
    sql = VERSION + " ORDER BY time DESC, id DESC LIMIT ? OFFSET ?"
    rows = view.all(sql, (found.id, limit, offset))
    sql = "SELECT count(*) FROM dataset_version WHERE dataset = ?"
    ((total,),) = view.all(sql, (found.id,))
    return {"versions": _versions(view, found, rows), "totalCount": total}


@api.get(DATASET + "/versions/{version}", answer=Version)
def dataset_version(view: View, namespace: str, dataset: str, version: str) -> dict[str, Any]:
    """One version of a dataset."""
    found = the_dataset(view, namespace, dataset)
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
                "location": to_url(location),
                "inputs": [identifier(*name) for name in inputs],
                "outputs": [identifier(*name) for name in outputs],
                "latestRun": described.get(run_id),
            }
        )
    return answers


@api.get(JOB + "/versions", answer=Versions)
def job_versions(
    view: View, namespace: str, job: str, limit: int = LIMIT, offset: int = OFFSET
) -> dict[str, Any]:
    """A job's versions, the newest first."""
    found = the_job(view, namespace, job)
    sql = JOB_VERSION + " ORDER BY time DESC, id DESC LIMIT ? OFFSET ?"
    rows = view.all(sql, (found.id, limit, offset))
    ((total,),) = view.all("SELECT count(*) FROM job_version WHERE job = ?", (found.id,))
    return {"versions": _job_versions(view, found, rows), "totalCount": total}


@api.get(JOB + "/versions/{version}", answer=Version)
def job_version(view: View, namespace: str, job: str, version: str) -> dict[str, Any]:
    """One version of a job."""
    found = the_job(view, namespace, job)
    sql = JOB_VERSION + " AND uuid = ? ORDER BY id DESC"
    rows = view.all(sql, (found.id, to_uuid(version).bytes))
    if not rows:
        raise HttpError(404, f"Job version '{version}' not found.")
    return _job_versions(view, found, rows[:1])[0]
