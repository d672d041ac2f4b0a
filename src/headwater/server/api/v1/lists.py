"""Namespaces, sources, datasets, jobs and tags: one at a time and in pages."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

from headwater.lineage.lifecycle import State
from headwater.server.api.facet_columns import field_names
from headwater.server.api.java_client_urls import to_uri
from headwater.server.api.lookup import namespace_id, the_dataset, the_job
from headwater.server.api.parameters import integer, text
from headwater.server.api.present import DATASET as TAGGED
from headwater.server.api.present import Presenter, when
from headwater.server.api.types import Dataset, Job, Object, Time
from headwater.server.http import HttpError
from headwater.server.routing import Routes
from headwater.server.store.entities import STATUSES, to_dataset, to_job, to_run
from headwater.server.store.view import DATASETS, JOBS, RUNS

if TYPE_CHECKING:
    from headwater.server.store import entities
    from headwater.server.store.view import View

__all__ = [
    "DATASET",
    "JOB",
    "LIMIT",
    "OFFSET",
    "Namespace",
    "Runs",
    "Source",
    "Tag",
    "any_dataset",
    "any_job",
    "api",
    "one_dataset",
    "one_job",
    "one_namespace",
    "one_source",
    "one_tag",
    "the_field",
]

api = Routes(blank=True)  # as Marquez takes them

DATASET = "/api/v1/namespaces/{namespace}/datasets/{dataset}"
JOB = "/api/v1/namespaces/{namespace}/jobs/{job}"
NAMESPACE = "SELECT id, name, owner, description, created, updated, hidden FROM namespace"
SOURCE = "SELECT name, kind, url, description, created, updated FROM source"
LIMIT, OFFSET = integer(100), integer(0, 0, 2**31)
STATES = text(name="lastRunStates", example="RUNNING,FAILED")


class Namespace(TypedDict):
    """A namespace as Marquez shows it."""

    name: str
    createdAt: Time
    updatedAt: Time
    ownerName: str
    description: str | None
    isHidden: bool


class Namespaces(TypedDict):
    """A page of namespaces."""

    namespaces: list[Namespace]
    totalCount: int


class Source(TypedDict):
    """A source as Marquez shows it."""

    type: str
    name: str
    createdAt: Time
    updatedAt: Time
    connectionUrl: str
    description: str | None


class Sources(TypedDict):
    """A page of sources."""

    sources: list[Source]
    totalCount: int


class Datasets(TypedDict):
    """A page of datasets."""

    totalCount: int
    datasets: list[Dataset]


class Jobs(TypedDict):
    """A page of jobs."""

    totalCount: int
    jobs: list[Job]


class _Counted(TypedDict, total=False):
    totalCount: int


class Runs(_Counted):
    """A page of runs."""

    runs: list[Object]


class Tag(TypedDict):
    """A tag and what it is for."""

    name: str
    description: str | None


class Tags(TypedDict):
    """A page of tags."""

    tags: list[Tag]


def _namespace(row: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "name": row[1],
        "createdAt": when(row[4]),
        "updatedAt": when(row[5]),
        "ownerName": row[2] or "anonymous",
        "description": row[3],
        "isHidden": bool(row[6]),
    }


@api.get("/api/v1/namespaces", answer=Namespaces)
def namespaces(view: View, limit: int = LIMIT, offset: int = OFFSET) -> dict[str, Any]:
    """Every namespace, by name."""
    sql = NAMESPACE + " WHERE hidden = 0 ORDER BY name LIMIT ? OFFSET ?"
    rows = view.all(sql, (limit, offset))
    ((total,),) = view.all("SELECT count(*) FROM namespace WHERE hidden = 0")
    return {"namespaces": [_namespace(row) for row in rows], "totalCount": total}


@api.get("/api/v1/namespaces/{namespace}", answer=Namespace)
def one_namespace(view: View, namespace: str) -> dict[str, Any]:
    """One namespace."""
    rows = view.all(NAMESPACE + " WHERE name = ?", (namespace,))
    if not rows:
        raise HttpError(404, f"Namespace '{namespace}' not found.")
    return _namespace(rows[0])


def _source(row: tuple[Any, ...]) -> dict[str, Any]:
    return {
        "type": row[1],
        "name": row[0],
        "createdAt": when(row[4]),
        "updatedAt": when(row[5]),
        "connectionUrl": to_uri(row[2]),
        "description": row[3],
    }


@api.get("/api/v1/sources", answer=Sources)
def sources(view: View, limit: int = LIMIT, offset: int = OFFSET) -> dict[str, Any]:
    """Every source, by name."""
    rows = view.all(SOURCE + " ORDER BY name LIMIT ? OFFSET ?", (limit, offset))
    ((total,),) = view.all("SELECT count(*) FROM source")
    return {"sources": [_source(row) for row in rows], "totalCount": total}


@api.get("/api/v1/sources/{source}", answer=Source)
def one_source(view: View, source: str) -> dict[str, Any]:
    """One source."""
    rows = view.all(SOURCE + " WHERE name = ?", (source,))
    if not rows:
        raise HttpError(404, f"Source '{source}' not found.")
    return _source(rows[0])


@api.get("/api/v1/namespaces/{namespace}/datasets", answer=Datasets)
def datasets(
    view: View, namespace: str, limit: int = LIMIT, offset: int = OFFSET
) -> dict[str, Any]:
    """The datasets of a namespace, by name."""
    number = namespace_id(view, namespace)
    sql = DATASETS + " WHERE d.namespace = ? AND d.hidden = 0 ORDER BY d.name LIMIT ? OFFSET ?"
    rows = view.all(sql, (number, limit, offset))
    sql = "SELECT count(*) FROM dataset WHERE namespace = ? AND hidden = 0"
    ((total,),) = view.all(sql, (number,))
    return {
        "totalCount": total,
        "datasets": Presenter(view).datasets([to_dataset(r) for r in rows]),
    }


@api.get(DATASET, answer=Dataset)
def one_dataset(view: View, namespace: str, dataset: str) -> dict[str, Any]:
    """One dataset."""
    return Presenter(view).datasets([the_dataset(view, namespace, dataset)])[0]


def the_field(view: View, namespace: str, dataset: str, field: str) -> None:
    """Make sure that a dataset has a column: in its schema, or with a tag from when it had it."""
    found = the_dataset(view, namespace, dataset)
    held = found.state.facets.get("schema")
    known = field_names(held[0], view.bodies([held[0]])) if held else set()
    known |= {name for name, _ in view.tags(TAGGED, [found.id]).get(found.id, ())}
    if field not in known:
        raise HttpError(404, f"Field '{field}' not found for dataset '{dataset}'.")


def any_dataset(view: View, namespace: str, dataset: str) -> dict[str, Any]:
    """One dataset, even if it is hidden."""
    found = view.dataset(namespace, dataset)
    if found is None:
        raise HttpError(404, f"Dataset '{dataset}' not found.")
    return Presenter(view).datasets([found])[0]


def any_job(view: View, namespace: str, job: str) -> dict[str, Any]:
    """One job, even if it is hidden."""
    found = view.job(namespace, job)
    if found is None:
        raise HttpError(404, f"Job '{job}' not found.")
    return Presenter(view).jobs([found])[0]


@api.get("/api/v1/jobs", answer=Jobs)
def jobs(
    view: View, states: str = STATES, limit: int = LIMIT, offset: int = OFFSET
) -> dict[str, Any]:
    """All jobs, the most recently active first."""
    return _jobs(view, "", [], states, limit, offset)


@api.get("/api/v1/namespaces/{namespace}/jobs", answer=Jobs)
def jobs_of_namespace(
    view: View, namespace: str, states: str = STATES, limit: int = LIMIT, offset: int = OFFSET
) -> dict[str, Any]:
    """The jobs of a namespace, the most recently active first."""
    number = namespace_id(view, namespace)
    return _jobs(view, " AND j.namespace = ?", [number], states, limit, offset)


def _jobs(
    view: View, within: str, params: list[int], asked: str, limit: int, offset: int
) -> dict[str, Any]:
    where = " WHERE j.hidden = 0" + within
    states = [state for state in asked.upper().split(",") if state]
    if states:
        if not set(states) <= set(State.__members__):
            raise HttpError(400, "lastRunStates: not one of " + ", ".join(State.__members__))
        marks = ",".join("?" * len(states))
        where += f" AND j.latest IN (SELECT id FROM run WHERE status IN ({marks}))"  # noqa: S608
        params = params + [STATUSES.index(State(state)) for state in states]
    order = " ORDER BY j.updated DESC, j.id"
    # Sorted without their states, which are large.
    page = f"SELECT j.id FROM job j{where}{order} LIMIT ? OFFSET ?"  # noqa: S608
    rows = view.all(f"{JOBS} WHERE j.id IN ({page}){order}", (*params, limit, offset))
    ((total,),) = view.all("SELECT count(*) FROM job j" + where, params)  # noqa: S608
    return {"totalCount": total, "jobs": Presenter(view).jobs([to_job(row) for row in rows])}


@api.get(JOB, answer=Job)
def one_job(view: View, namespace: str, job: str) -> dict[str, Any]:
    """One job."""
    return Presenter(view).jobs([the_job(view, namespace, job)])[0]


@api.get(JOB + "/runs", answer=Runs)
def job_runs(
    view: View, namespace: str, job: str, limit: int = LIMIT, offset: int = OFFSET
) -> dict[str, Any]:
    """A job's runs, the newest first; a task job has its own, for whoever has to end them."""
    the_job(view, namespace, job)
    found = view.job(namespace, job)
    assert found is not None
    runs = of_job(view, found, limit, offset)
    ((total,),) = view.all("SELECT count(*) FROM run WHERE job = ?", (found.id,))
    described = Presenter(view).runs(runs, {found.id: found})
    return {"runs": [described[r.id] for r in runs], "totalCount": total}


def one_tag(view: View, name: str) -> dict[str, Any]:
    """One tag."""
    rows = view.all("SELECT name, description FROM tag WHERE name = ?", (name,))
    return {"name": rows[0][0], "description": rows[0][1]}


@api.get("/api/v1/tags", answer=Tags)
def tags(view: View, limit: int = LIMIT, offset: int = OFFSET) -> dict[str, Any]:
    """Every tag, by name."""
    sql = "SELECT name, description FROM tag ORDER BY name LIMIT ? OFFSET ?"
    rows = view.all(sql, (limit, offset))
    return {"tags": [{"name": name, "description": text} for name, text in rows]}


def of_job(view: View, found: entities.Job, limit: int, offset: int) -> list[entities.Run]:
    """Some of a job's runs, the newest first."""
    sql = RUNS + " WHERE r.job = ? ORDER BY r.created DESC, r.id DESC LIMIT ? OFFSET ?"
    runs = [to_run(row) for row in view.all(sql, (found.id, limit, offset))]
    return [run for run in runs if not run.state.static]
