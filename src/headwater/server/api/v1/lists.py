"""Namespaces, sources, datasets, jobs and tags: one at a time and in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.lifecycle import State
from headwater.server.api.v1.present import Presenter, when
from headwater.server.api.v1.runs import of_job
from headwater.server.http import HttpError, Request
from headwater.server.store.entities import STATUSES, to_dataset, to_job
from headwater.server.store.view import DATASETS, JOBS

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = [
    "any_dataset",
    "any_job",
    "dataset",
    "datasets",
    "job",
    "job_runs",
    "jobs",
    "namespace",
    "namespaces",
    "source",
    "sources",
    "tag",
    "tags",
    "the_dataset",
    "the_job",
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
    """The job in the path, or the one that it is a part of."""
    namespace_id(view, request)
    name = request.path["job"]
    found = view.shown(request.path["namespace"], name)
    if found is None:
        raise HttpError(404, f"Job '{name}' not found.")
    return found


def job(view: View, request: Request) -> dict[str, Any]:
    """One job."""
    found = the_job(view, request)
    answer = Presenter(view).jobs([found])[0]
    latest = of_job(view, found, 10, 0)
    answer["latestRuns"] = list(Presenter(view).runs(latest, {found.id: found}).values())
    return answer


def job_runs(view: View, request: Request) -> dict[str, Any]:
    """A job's runs, the newest first; of a part its own, for whoever has to end them."""
    the_job(view, request)
    found = view.job(request.path["namespace"], request.path["job"])
    assert found is not None
    runs = of_job(view, found, *page(request))
    ((total,),) = view.all("SELECT count(*) FROM run WHERE job = ?", (found.id,))
    described = Presenter(view).runs(runs, {found.id: found})
    return {"runs": [described[r.id] for r in runs], "totalCount": total}


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
