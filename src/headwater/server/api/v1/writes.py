"""PUT, POST and DELETE as Marquez has them; each becomes a command in the log."""

from __future__ import annotations

import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID, uuid4

from headwater.lineage.openlineage.repairs import runs_of_its_own
from headwater.lineage.openlineage.writer import facet, head
from headwater.lineage.secrets import clean_value
from headwater.server.api.lookup import to_uuid
from headwater.server.api.parameters import moment, parse_moment
from headwater.server.api.present import PHYSICAL
from headwater.server.api.submit_command import carry_out
from headwater.server.api.types import Dataset, Job, Named, Run, Time, Uuid
from headwater.server.api.v1 import lists, runs
from headwater.server.http import Response, bad_member
from headwater.server.routing import Routes
from headwater.server.store.view import View

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.app import App
    from headwater.server.http import Request

__all__ = ["api"]

api = Routes()

PRODUCER = "https://github.com/OpenLineage/OpenLineage"
DATASET, JOB = lists.DATASET, lists.JOB
Command = dict[str, Any]


class PutNamespace(TypedDict, total=False):
    """The description of a namespace."""

    ownerName: str | None
    description: str | None


class _About(TypedDict, total=False):
    description: str | None


class PutSource(_About):
    """The description of a source."""

    type: str
    connectionUrl: str


class _OfField(TypedDict, total=False):
    type: str
    description: str | None


class PutField(_OfField):
    """The description of a column."""

    name: str


class PutDataset(TypedDict, total=False):
    """The description of a dataset."""

    type: str
    physicalName: str
    schemaLocation: str | None
    sourceName: str | None
    description: str | None
    fields: list[PutField]
    tags: list[str]


class PutJob(TypedDict, total=False):
    """The description of a job."""

    type: str
    inputs: list[Named]
    outputs: list[Named]
    location: str | None
    description: str | None


class PutTag(TypedDict, total=False):
    """The description of a tag."""

    description: str | None


class PostRun(TypedDict, total=False):
    """The description of a run before it starts."""

    id: Uuid | None
    nominalStartTime: Time | None
    nominalEndTime: Time | None
    args: dict[str, str]


async def _carried_out(
    app: App, commands: list[Command], show: Callable[[View], Any], status: int = 200
) -> Response:
    for command in commands:
        await carry_out(app, command)
    with app.store.database.reading() as connection:
        return Response(show(View(connection, app.bodies)), status)


@api.route("PUT", "/api/v1/namespaces/{namespace}", body=PutNamespace, answer=lists.Namespace)
async def put_namespace(app: App, request: Request, namespace: str) -> Response:
    """Set owner and description."""
    body = request.json()
    owner, about = _text(body, "ownerName"), _text(body, "description")
    command = {"command": "namespace", "name": namespace, "owner": owner, "description": about}
    return await _carried_out(app, [command], lambda view: lists.one_namespace(view, namespace))


@api.route("DELETE", "/api/v1/namespaces/{namespace}", role="admin", answer=lists.Namespace)
async def hide_namespace(app: App, namespace: str) -> Response:
    """Hide a namespace and what is in it."""
    command = _hide("namespace", namespace, namespace)
    return await _carried_out(app, [command], lambda view: lists.one_namespace(view, namespace))


@api.route("PUT", "/api/v1/sources/{source}", body=PutSource, answer=lists.Source)
async def put_source(app: App, request: Request, source: str) -> Response:
    """Describe a source."""
    body = request.json()
    command = {
        "command": "source",
        "name": source,
        "type": _text(body, "type", needed=True),
        "url": _text(body, "connectionUrl", needed=True),
        "description": _text(body, "description"),
    }
    return await _carried_out(app, [command], lambda view: lists.one_source(view, source))


@api.route("PUT", DATASET, body=PutDataset, answer=Dataset)
async def put_dataset(app: App, request: Request, namespace: str, dataset: str) -> Response:
    """Describe a dataset."""
    commands = _dataset(request.json(), namespace, dataset)
    return await _carried_out(
        app, commands, lambda view: lists.one_dataset(view, namespace, dataset)
    )


@api.route("DELETE", DATASET, role="admin", answer=Dataset)
async def hide_dataset(app: App, namespace: str, dataset: str) -> Response:
    """Hide a dataset."""
    command = _hide("dataset", namespace, dataset)
    return await _carried_out(
        app, [command], lambda view: lists.any_dataset(view, namespace, dataset)
    )


@api.route("PUT", JOB, body=PutJob, answer=Job)
async def put_job(app: App, request: Request, namespace: str, job: str) -> Response:
    """Describe a job."""
    command = _job(request.json(), namespace, job)
    return await _carried_out(app, [command], lambda view: lists.one_job(view, namespace, job))


@api.route("DELETE", JOB, role="admin", answer=Job)
async def hide_job(app: App, namespace: str, job: str) -> Response:
    """Hide a job."""
    command = _hide("job", namespace, job)
    return await _carried_out(app, [command], lambda view: lists.any_job(view, namespace, job))


@api.route("POST", JOB + "/runs", body=PostRun, answer=Run, status=(201,))
async def post_run(app: App, request: Request, namespace: str, job: str) -> Response:
    """Announce a run; under the id of another job's run, one of its own."""
    command = clean_value(_new_run(request.json(), namespace, job))

    def show(view: View) -> Any:
        request.path["id"] = str(_announced(view, command))
        return runs.one_run(view, request)

    return await _carried_out(app, [command], show, 201)


def _announced(view: View, command: Command) -> UUID:
    """The run that a job got by a command: the one of this id, unless that is another job's."""
    named, owner = UUID(command["run"]), view.job(command["namespace"], command["name"])
    if owner is None:
        return named
    own = runs_of_its_own(named, owner.space, owner.name)
    mine = (one for one in (named, *own) if (run := view.run(one)) and run.job == owner.id)
    return next(mine, named)


def _ends(verb: str, state: str) -> None:
    async def mark(app: App, request: Request, at: int | None = moment()) -> Response:
        run = str(to_uuid(request.path["id"]))
        when = time.time_ns() // 1000 if at is None else at
        command = {"command": "run", "run": run, "state": state, "time": when}
        return await _carried_out(app, [command], lambda view: runs.one_run(view, request))

    api.route("POST", f"{runs.RUN}/{verb}", summary=f"Mark a run: {verb}", answer=Run)(mark)


for _verb, _state in (
    ("start", "START"), ("complete", "COMPLETE"), ("fail", "FAIL"), ("abort", "ABORT"),
):  # fmt: skip
    _ends(_verb, _state)


@api.route("PUT", "/api/v1/tags/{name}", body=PutTag, answer=lists.Tag)
async def put_tag(app: App, request: Request, name: str) -> Response:
    """Describe a tag."""
    about = _text(request.json(), "description")
    command = clean_value({"command": "tag", "name": name, "description": about})
    # By the name that is kept, in which a credential is masked.
    return await _carried_out(app, [command], lambda view: lists.one_tag(view, command["name"]))


@api.route("POST", DATASET + "/tags/{tag}", answer=Dataset, status=(201,))
async def tag_dataset(app: App, namespace: str, dataset: str, tag: str) -> Response:
    """Tag a dataset."""
    return await _tag_dataset(app, namespace, dataset, "", tag, on=True)


@api.route("DELETE", DATASET + "/tags/{tag}", answer=Dataset)
async def untag_dataset(app: App, namespace: str, dataset: str, tag: str) -> Response:
    """Take a tag off a dataset."""
    return await _tag_dataset(app, namespace, dataset, "", tag, on=False)


@api.route("POST", DATASET + "/fields/{field}/tags/{tag}", answer=Dataset, status=(201,))
async def tag_column(app: App, namespace: str, dataset: str, field: str, tag: str) -> Response:
    """Tag a column."""
    return await _tag_dataset(app, namespace, dataset, field, tag, on=True)


@api.route("DELETE", DATASET + "/fields/{field}/tags/{tag}", answer=Dataset)
async def untag_column(app: App, namespace: str, dataset: str, field: str, tag: str) -> Response:
    """Take a tag off a column."""
    return await _tag_dataset(app, namespace, dataset, field, tag, on=False)


async def _tag_dataset(
    app: App, namespace: str, dataset: str, field: str, tag: str, *, on: bool
) -> Response:
    if field:
        with app.store.database.reading() as connection:
            lists.the_field(View(connection, app.bodies), namespace, dataset, field)
    command = _tagged("dataset", namespace, dataset, field, tag, on=on)
    status = 201 if on else 200
    return await _carried_out(
        app, [command], lambda view: lists.one_dataset(view, namespace, dataset), status
    )


@api.route("POST", JOB + "/tags/{tag}", answer=Job, status=(201,))
async def tag_job(app: App, namespace: str, job: str, tag: str) -> Response:
    """Tag a job."""
    command = _tagged("job", namespace, job, "", tag, on=True)
    return await _carried_out(app, [command], lambda view: lists.one_job(view, namespace, job), 201)


@api.route("DELETE", JOB + "/tags/{tag}", answer=Job)
async def untag_job(app: App, namespace: str, job: str, tag: str) -> Response:
    """Take a tag off a job."""
    command = _tagged("job", namespace, job, "", tag, on=False)
    return await _carried_out(app, [command], lambda view: lists.one_job(view, namespace, job))


def _hide(kind: str, namespace: str, name: str) -> Command:
    return {"command": "hide", "kind": kind, "name": name, "namespace": namespace}


def _tagged(kind: str, namespace: str, name: str, field: str, tag: str, *, on: bool) -> Command:
    return {
        "command": "tagged",
        "kind": kind,
        "namespace": namespace,
        "name": name,
        "field": field,
        "tag": tag,
        "on": on,
    }


def _text(body: dict[str, Any], name: str, *, needed: bool = False) -> str | None:
    value = body.get(name)
    if value is None and not needed:
        return None
    if not isinstance(value, str) or (needed and not value):
        raise bad_member(name, "must be a string")
    return value


def _tags(body: dict[str, Any]) -> list[str]:
    value = body.get("tags") or []
    if not isinstance(value, list):
        raise bad_member("tags", "must be an array")
    return [tag for tag in value if isinstance(tag, str)]


def _static(kind: str, **parts: Any) -> dict[str, Any]:
    return {**head(PRODUCER, kind, datetime.now(timezone.utc)), **parts}


def _items(body: dict[str, Any], name: str, *keys: str) -> list[dict[str, Any]]:
    items = body.get(name) or []
    if not isinstance(items, list):
        raise bad_member(name, "must be a list")
    for i, item in enumerate(items):
        for key in keys:
            if not isinstance(item, dict) or not isinstance(item.get(key), str):
                raise bad_member(f"{name}[{i}].{key}", "must be a string")
    return items


def _dataset(body: dict[str, Any], namespace: str, name: str) -> list[Command]:
    facets: dict[str, Any] = {}
    fields = _items(body, "fields", "name")
    if fields:
        kept = ("name", "type", "description")
        facets["schema"] = facet(
            PRODUCER,
            "schema",
            fields=[{k: f[k] for k in kept if f.get(k) is not None} for f in fields],
        )
    if about := _text(body, "description"):
        facets["documentation"] = facet(PRODUCER, "documentation.dataset", description=about)
    if source := _text(body, "sourceName"):
        facets["dataSource"] = facet(PRODUCER, "dataSource", name=source, uri=source)
    if kind := _text(body, "type"):
        facets["datasetType"] = facet(
            PRODUCER, "datasetType", datasetType="STREAM" if kind == "STREAM" else "TABLE"
        )
    physical = {key: _text(body, key) for key in ("physicalName", "schemaLocation")}
    if any(physical.values()):
        facets[PHYSICAL] = facet(PRODUCER, PHYSICAL, **physical)
    named = {"namespace": namespace, "name": name, "facets": facets}
    made = {"command": "event", "event": _static("DatasetEvent", dataset=named)}
    tags = [("", tag) for tag in _tags(body)]
    tags += [(field["name"], tag) for field in fields for tag in _tags(field)]
    marks = [_tagged("dataset", namespace, name, field, tag, on=True) for field, tag in tags]
    return [made, *marks]


def _job(body: dict[str, Any], namespace: str, name: str) -> Command:
    facets: dict[str, Any] = {}
    if about := _text(body, "description"):
        facets["documentation"] = facet(PRODUCER, "documentation.job", description=about)
    if kind := _text(body, "type"):
        facets["jobType"] = facet(PRODUCER, "jobType", processingType=kind, integration="MARQUEZ")
    if where := _text(body, "location"):
        facets["sourceCodeLocation"] = facet(PRODUCER, "sourceCodeLocation", type="git", url=where)
    named = {"namespace": namespace, "name": name, "facets": facets}
    sides = {
        side: [{"namespace": d["namespace"], "name": d["name"]} for d in _items(body, side, "namespace", "name")]
        for side in ("inputs", "outputs")
    }  # fmt: skip
    return {"command": "event", "event": _static("JobEvent", job=named, **sides)}


def _new_run(body: dict[str, Any], namespace: str, name: str) -> Command:
    text = _text(body, "id")
    try:
        run = UUID(text) if text else uuid4()
    except ValueError:
        raise bad_member("id", "must be a UUID") from None
    args = body.get("args")
    return {
        "command": "new_run",
        "namespace": namespace,
        "name": name,
        "run": str(run),
        "nominalStart": _moment(body, "nominalStartTime"),
        "nominalEnd": _moment(body, "nominalEndTime"),
        "args": {str(k): str(v) for k, v in args.items()} if isinstance(args, dict) else None,
    }


def _moment(body: dict[str, Any], name: str) -> int | None:
    text = _text(body, name)
    try:
        return parse_moment(text) if text else None
    except ValueError:
        raise bad_member(name, "must be a time") from None
