"""Runs on a time line, of a job and of a dataset, and one run with all that is known of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict
from uuid import UUID

from headwater.server.api import describe
from headwater.server.api.lookup import the_dataset, the_job, the_run
from headwater.server.api.parameters import cursor, integer, text, written
from headwater.server.api.present import MILLISECOND, Presenter, when
from headwater.server.api.types import Run as Described
from headwater.server.api.types import Uuid
from headwater.server.routing import Routes
from headwater.server.store.entities import INPUT, OUTPUT, run_uses, unslot
from headwater.server.store.read.timeline import members, runs_of_dataset, runs_of_job

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.server.http import Request
    from headwater.server.store.entities import DatasetUse, Job, Run
    from headwater.server.store.read.timeline import Cursor
    from headwater.server.store.view import View

__all__ = ["api"]

api = Routes()

LIMIT = integer(50, 1, 500)
MESSAGE = 2_000
NEEDED = ("errorMessage", "parent", "jobDependencies", "externalQuery", "processing_engine")
SIZES = {INPUT: ("inputStatistics", "dataQualityMetrics"), OUTPUT: ("outputStatistics",)}
WAYS = {"": (INPUT, OUTPUT), "input": (INPUT,), "output": (OUTPUT,)}


class RunLine(TypedDict):
    """A run in short."""

    id: Uuid
    state: str
    durationMs: int | None


class RunPage(TypedDict):
    """A page of runs, the newest first."""

    runs: list[RunLine]
    next: str | None
    truncated: bool


@api.get("/api/v2/jobs/{namespace}/{job}/runs", answer=RunPage)
def job_runs(
    view: View, namespace: str, job: str, limit: int = LIMIT, before: Cursor | None = cursor()
) -> dict[str, Any]:
    """A job's runs, the newest first: how long each took, what it moved, how it ended."""
    found = the_job(view, namespace, job)
    page = runs_of_job(view, found.id, before, limit)
    return {
        "runs": summaries(view, page.runs, {found.id: found}),
        "next": written(page.next),
        "truncated": page.next is not None,
    }


@api.get("/api/v2/datasets/{namespace}/{dataset}/runs", answer=RunPage)
def dataset_runs(
    view: View,
    namespace: str,
    dataset: str,
    direction: str = text(options=("input", "output")),
    limit: int = LIMIT,
    before: Cursor | None = cursor(),
) -> dict[str, Any]:
    """The runs that read or wrote a dataset, the newest first."""
    named = the_dataset(view, namespace, dataset)
    ids = members(view, named.root)
    page = runs_of_dataset(view, ids, before, limit, WAYS[direction])
    rows = summaries(view, page.runs, view.jobs({found.job for found in page.runs}))
    for row, found in zip(rows, page.runs, strict=True):
        touched = [unslot(key) for key in found.state.io]
        ways = {way for number, way in touched if number in ids}
        row["directions"] = sorted("output" if way == OUTPUT else "input" for way in ways)
    return {
        "runs": rows,
        "next": written(page.next),
        "truncated": page.next is not None or page.cut,
    }


@api.get("/api/v2/runs/{id}", answer=Described)
def run(view: View, request: Request) -> dict[str, Any]:
    """One run: Marquez's shape, and beside it its job, parent, dependencies and failure."""
    found = the_run(view, request.path["id"])
    jobs = view.jobs([found.job])
    shown = Presenter(view).runs([found], jobs)[found.id]
    return {**shown, **summaries(view, [found], jobs)[0]}


def summaries(view: View, runs: list[Run], jobs: Mapping[int, Job]) -> list[dict[str, Any]]:
    """Runs in short, with the sums of what they read and wrote."""
    names = {name for pair in SIZES.values() for name in pair}
    facets = describe.Facets(
        view,
        [run.state.facets for run in runs]
        + [io.facets for run in runs for io in run.state.io.values()],
        *NEEDED,
        *names,
    )
    roots = view.roots(unslot(key)[0] for run in runs for key in run.state.io)
    rows = [_run(run, jobs.get(run.job), facets, run_uses(run, roots)) for run in runs]
    others = [row["parent"] for row in rows] + [row["root"] for row in rows]
    for row in rows:
        others += [*row["dependencies"]["upstream"], *row["dependencies"]["downstream"]]
    describe.shown(view, others)
    return rows


def _run(
    found: Run, job: Job | None, facets: describe.Facets, uses: list[DatasetUse]
) -> dict[str, Any]:
    life, held = found.state.life, found.state.facets
    start, end = life.started or life.first, life.end
    failure = facets.get(held, "errorMessage")
    parent = facets.get(held, "parent")
    return {
        "id": str(UUID(bytes=found.uuid)),
        "job": {"namespace": job.space, "name": job.name} if job else None,
        "state": life.state.value,
        "inferred": life.is_inferred,
        "startedAt": when(start),
        "endedAt": when(end),
        "lastHeardAt": when(life.last),
        "durationMs": None if start is None or end is None else (end - start) // MILLISECOND,
        "read": _moved(uses, INPUT, facets),
        "written": _moved(uses, OUTPUT, facets),
        "error": _text(failure.get("message"))[:MESSAGE] or None,
        "stackTrace": _text(failure.get("stackTrace"))[: MESSAGE * 10] or None,
        "parent": describe.reference(parent),
        "root": describe.reference(parent.get("root")),
        "dependencies": _dependencies(facets.get(held, "jobDependencies")),
    }


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _dependencies(facet: dict[str, Any]) -> dict[str, list[dict[str, Any]]]:
    """The jobs that a scheduler runs before and after this one."""
    found: dict[str, list[dict[str, Any]]] = {}
    for side in ("upstream", "downstream"):
        items = facet.get(side)
        rows = [
            describe.reference(item) for item in (items if isinstance(items, list) else ())[:100]
        ]
        found[side] = [row for row in rows if row is not None]
    return found


def _moved(uses: list[DatasetUse], direction: int, facets: describe.Facets) -> dict[str, Any]:
    """Rows, bytes and files over all datasets of one side; nothing where nobody counted."""
    sums: dict[str, int | None] = {"rows": None, "bytes": None, "files": None}
    count = 0
    for use in uses:
        if use.direction != direction:
            continue
        count += 1
        for name in SIZES[direction]:
            statistics = facets.get(use.facets, name)
            if not statistics:
                continue
            for unit, keys in (
                ("rows", ("rowCount",)),
                ("bytes", ("size", "bytes")),
                ("files", ("fileCount",)),
            ):
                value = next((v for k in keys if isinstance(v := statistics.get(k), int)), None)
                if value is not None:
                    sums[unit] = (sums[unit] or 0) + value
            break
    return {"datasets": count, **sums}
