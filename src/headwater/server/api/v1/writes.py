"""PUT, POST and DELETE as Marquez has them; each becomes a command in the log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid4

from headwater.lineage.events import Problem, iso
from headwater.server.api.commands import carry_out
from headwater.server.api.v1 import lists, runs
from headwater.server.api.v1.search import moment, parse_moment
from headwater.server.http import HttpError, Request, Response
from headwater.server.store.view import View

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["routes"]

PRODUCER = "https://github.com/OpenLineage/OpenLineage"
DATASET = "/api/v1/namespaces/{namespace}/datasets/{dataset}"
JOB = "/api/v1/namespaces/{namespace}/jobs/{job}"
FACETS = "https://openlineage.io/spec/facets/"
STATES = {"start": "START", "complete": "COMPLETE", "fail": "FAIL", "abort": "ABORT"}


def routes(app: App) -> None:
    """Put the routes on the app's router."""

    def add(
        method: str, path: str, make: Any, show: Any, status: int = 200, role: str = "write"
    ) -> None:
        async def answer(request: Request) -> Response:
            made = make(request)
            for command in made if isinstance(made, list) else [made]:
                await carry_out(app, command)
            with app.store.database.reading() as connection:
                return Response(show(View(connection, app.bodies), request), status)

        app.router.add(method, path, answer, role, direct=True)

    add("PUT", "/api/v1/namespaces/{namespace}", _namespace, lists.namespace)
    add(
        "DELETE",
        "/api/v1/namespaces/{namespace}",
        _hide("namespace"),
        lists.namespace,
        role="admin",
    )
    add("PUT", "/api/v1/sources/{source}", _source, lists.source)
    add("PUT", DATASET, _dataset, lists.dataset)
    add("DELETE", DATASET, _hide("dataset"), lists.any_dataset, role="admin")
    add("PUT", JOB, _job, lists.job)
    add("DELETE", JOB, _hide("job"), lists.any_job, role="admin")
    add("POST", JOB + "/runs", _new_run, runs.run, 201)
    for verb, state in STATES.items():
        add("POST", "/api/v1/jobs/runs/{id}/" + verb, _run(state), runs.run)
    add("PUT", "/api/v1/tags/{name}", _tag, lists.tag)
    for on, method, status in ((True, "POST", 201), (False, "DELETE", 200)):
        add(method, DATASET + "/tags/{tag}", _tagged("dataset", on), lists.dataset, status)
        field = DATASET + "/fields/{field}/tags/{tag}"
        add(method, field, _tagged("dataset", on), lists.dataset, status)
        add(method, JOB + "/tags/{tag}", _tagged("job", on), lists.job, status)


def _text(body: dict[str, Any], name: str, *, needed: bool = False) -> str | None:
    value = body.get(name)
    if value is None and not needed:
        return None
    if not isinstance(value, str) or (needed and not value):
        raise HttpError(422, f"{name} must be a string", [Problem(name, "must be a string")])
    return value


def _namespace(request: Request) -> dict[str, Any]:
    body = request.json()
    owner, about = _text(body, "ownerName"), _text(body, "description")
    name = request.path["namespace"]
    return {"command": "namespace", "name": name, "owner": owner, "description": about}


def _source(request: Request) -> dict[str, Any]:
    body = request.json()
    return {
        "command": "source",
        "name": request.path["source"],
        "type": _text(body, "type", needed=True),
        "url": _text(body, "connectionUrl", needed=True),
        "description": _text(body, "description"),
    }


def _facet(file: str, /, **content: Any) -> dict[str, Any]:
    return {"_producer": PRODUCER, "_schemaURL": FACETS + file, **content}


def _static(kind: str, **parts: Any) -> dict[str, Any]:
    spec = f"https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/{kind}"
    now = iso(time.time_ns() // 1000)
    return {"eventTime": now, "producer": PRODUCER, "schemaURL": spec, **parts}


def _items(body: dict[str, Any], name: str, *keys: str) -> list[dict[str, Any]]:
    items = body.get(name) or []
    if not isinstance(items, list):
        raise HttpError(422, f"{name} must be a list", [Problem(name, "must be a list")])
    for i, item in enumerate(items):
        for key in keys:
            if not isinstance(item, dict) or not isinstance(item.get(key), str):
                field = f"{name}[{i}].{key}"
                raise HttpError(
                    422, f"{field} must be a string", [Problem(field, "must be a string")]
                )
    return items


def _dataset(request: Request) -> list[dict[str, Any]]:
    body, key = request.json(), (request.path["namespace"], request.path["dataset"])
    facets: dict[str, Any] = {}
    fields = _items(body, "fields", "name")
    if fields:
        kept = ("name", "type", "description")
        facets["schema"] = _facet(
            "1-2-0/SchemaDatasetFacet.json",
            fields=[{k: f[k] for k in kept if f.get(k) is not None} for f in fields],
        )
    if about := _text(body, "description"):
        facets["documentation"] = _facet("1-1-0/DocumentationDatasetFacet.json", description=about)
    if source := _text(body, "sourceName"):
        facets["dataSource"] = _facet("1-0-1/DatasourceDatasetFacet.json", name=source, uri=source)
    named = {"namespace": key[0], "name": key[1], "facets": facets}
    made = [{"command": "event", "event": _static("DatasetEvent", dataset=named)}]
    target = {
        "command": "tagged",
        "kind": "dataset",
        "namespace": key[0],
        "name": key[1],
        "on": True,
    }
    tags = [("", tag) for tag in body.get("tags") or () if isinstance(tag, str)]
    tags += [
        (f["name"], tag) for f in fields for tag in f.get("tags") or () if isinstance(tag, str)
    ]
    return [*made, *({**target, "field": field, "tag": tag} for field, tag in tags)]


def _job(request: Request) -> dict[str, Any]:
    body = request.json()
    facets: dict[str, Any] = {}
    if about := _text(body, "description"):
        facets["documentation"] = _facet("1-1-0/DocumentationJobFacet.json", description=about)
    if kind := _text(body, "type"):
        facets["jobType"] = _facet(
            "2-0-4/JobTypeJobFacet.json", processingType=kind, integration="MARQUEZ"
        )
    if where := _text(body, "location"):
        facets["sourceCodeLocation"] = _facet(
            "1-1-0/SourceCodeLocationJobFacet.json", type="git", url=where
        )
    named = {"namespace": request.path["namespace"], "name": request.path["job"], "facets": facets}
    sides = {
        side: [{"namespace": d["namespace"], "name": d["name"]} for d in _items(body, side, "namespace", "name")]
        for side in ("inputs", "outputs")
    }  # fmt: skip
    return {"command": "event", "event": _static("JobEvent", job=named, **sides)}


def _new_run(request: Request) -> dict[str, Any]:
    body = request.json()
    text = _text(body, "id")
    try:
        run = UUID(text) if text else uuid4()
    except ValueError:
        raise HttpError(422, "id must be a UUID", [Problem("id", "must be a UUID")]) from None
    request.path["id"] = str(run)
    args = body.get("args")
    return {
        "command": "new_run",
        "namespace": request.path["namespace"],
        "name": request.path["job"],
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
        raise HttpError(422, f"{name} must be a time", [Problem(name, "must be a time")]) from None


def _run(state: str) -> Any:
    def make(request: Request) -> dict[str, Any]:
        run = str(runs.to_uuid(request.path["id"]))
        when = moment(request, "at", time.time_ns() // 1000)
        return {"command": "run", "run": run, "state": state, "time": when}

    return make


def _hide(kind: str) -> Any:
    def make(request: Request) -> dict[str, Any]:
        command = {"command": "hide", "kind": kind, "name": request.path[kind]}
        return {**command, "namespace": request.path["namespace"]}

    return make


def _tag(request: Request) -> dict[str, Any]:
    about = _text(request.json(), "description")
    return {"command": "tag", "name": request.path["name"], "description": about}


def _tagged(kind: str, on: bool) -> Any:
    def make(request: Request) -> dict[str, Any]:
        return {
            "command": "tagged",
            "kind": kind,
            "namespace": request.path["namespace"],
            "name": request.path[kind],
            "field": request.path.get("field", ""),
            "tag": request.path["tag"],
            "on": on,
        }

    return make
