"""One run, its facets, and the runs before it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from headwater.server.api.v1.present import Presenter, identifier, when
from headwater.server.http import HttpError, Request
from headwater.server.store.entities import INPUT, to_run, unslot
from headwater.server.store.view import RUNS

if TYPE_CHECKING:
    from headwater.server.store.entities import Job, Run
    from headwater.server.store.view import View

__all__ = ["of_job", "run", "run_facets", "the_run", "to_uuid", "upstream_runs"]


_MAKER = (
    "SELECT v.run, v.uuid FROM dataset_version v WHERE v.dataset = ? AND v.time <= ?"
    " AND v.run IS NOT NULL AND v.run <> ?{} ORDER BY v.time DESC LIMIT 1"
)
_WHOLES = (
    " AND NOT EXISTS (SELECT 1 FROM run r JOIN fold f ON f.job = r.job"
    " WHERE r.id = v.run AND f.whole IS NOT NULL)"
)


def of_job(view: View, found: Job, limit: int, offset: int) -> list[Run]:
    """Some of a job's runs, the newest first."""
    sql = RUNS + " WHERE r.job = ? ORDER BY r.created DESC, r.id DESC LIMIT ? OFFSET ?"
    runs = [to_run(row) for row in view.all(sql, (found.id, limit, offset))]
    return [run for run in runs if not run.state.static]


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
                until = found.state.life.end or found.state.life.last
                asked = (dataset_id, until, found.id)
                # A run of a mere part is named only where no other made it.
                rows = view.all(_MAKER.format(_WHOLES), asked) or view.all(_MAKER.format(""), asked)
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
