"""One dataset and one job with everything their pages show."""

from __future__ import annotations

import itertools
import time
from statistics import median
from typing import TYPE_CHECKING, Any
from uuid import UUID

from headwater.lineage.lifecycle import State
from headwater.server.api.v1.lists import the_dataset, the_job
from headwater.server.api.v1.present import DATASET, Presenter, when
from headwater.server.api.v2.page import describe
from headwater.server.api.v2.page.overview import downstream
from headwater.server.store.entities import OUTPUT, slot, to_job, to_run
from headwater.server.store.neighbourhood import Neighbourhood
from headwater.server.store.view import JOBS, RUNS

if TYPE_CHECKING:
    from headwater.server.http import Request
    from headwater.server.store.entities import Dataset, Job
    from headwater.server.store.view import View

__all__ = ["dataset", "job"]

VERSIONS = 30
RUNS_READ = 60
JOBS_SHOWN = 100
QUALITY = ("dataQualityAssertions", "dataQualityMetrics")


def dataset(view: View, request: Request) -> dict[str, Any]:
    """A dataset: its columns then and now, who writes and reads it, how fresh and how large."""
    named = the_dataset(view, request)
    found = view.datasets([named.root]).get(named.root, named)
    presented = Presenter(view).datasets([found])[0]
    edges = Neighbourhood(view).of_datasets([found.id])
    sides = {
        side: sorted({e[0] for e in edges if (e[2] == OUTPUT) == (side == "producers")})
        for side in ("producers", "consumers")
    }
    jobs = view.jobs([n for numbers in sides.values() for n in numbers[:JOBS_SHOWN]])
    described = describe.jobs(view, list(jobs.values()))
    names = _names(view, found)
    runs = _writes(view, sides["producers"][:10], names["ids"])
    facets = describe.Facets(view, [found.state.facets])
    return {
        **presented,
        "store": describe.store_of(found, facets),
        "asked": {"namespace": named.space, "name": named.name},
        "columns": _columns(view, found, facets),
        "history": _history(view, names["ids"]),
        "aliases": names["shown"],
        "producers": [described[n] for n in sides["producers"] if n in described],
        "consumers": [described[n] for n in sides["consumers"] if n in described],
        "freshness": _freshness(runs, found),
        "writes": runs,
        "truncated": any(len(numbers) > JOBS_SHOWN for numbers in sides.values()),
    }


def _columns(view: View, found: Dataset, facets: describe.Facets) -> list[dict[str, Any]]:
    fields = describe.flat(facets.raw(found.state.facets, "schema"))
    tags = view.tags(DATASET, [found.id]).get(found.id, [])
    said = facets.get(found.state.facets, "tags").get("tags")
    for one in said if isinstance(said, list) else ():
        if isinstance(one, dict) and one.get("field"):
            value = one.get("value")
            label = (
                str(one.get("key")) if value in (None, "", "true") else f"{one.get('key')}={value}"
            )
            tags = [*tags, (str(one["field"]), label)]
    for f in fields:
        f["tags"] = sorted({tag for name, tag in tags if name == f["name"]})
    return fields


def _names(view: View, found: Dataset) -> dict[str, Any]:
    """The other names a dataset goes by."""
    rows = view.all("SELECT id FROM dataset WHERE root = ? ORDER BY id LIMIT 100", (found.id,))
    members = view.datasets(row[0] for row in rows)
    names = {(d.space, d.name) for d in members.values()}
    sql = "SELECT namespace, name FROM alias WHERE dataset = ? ORDER BY namespace, name"
    for member in members:
        names |= {(row[0], row[1]) for row in view.all(sql + " LIMIT 100", (member,))}
    names.discard((found.space, found.name))
    shown = [{"namespace": namespace, "name": name} for namespace, name in sorted(names)]
    return {"ids": sorted({found.id, *members}), "shown": shown[:100]}


def _history(view: View, ids: list[int]) -> list[dict[str, Any]]:
    """Each schema the dataset has had, the newest first; one seen again at once is one."""
    rows: list[tuple[int, int]] = []
    for number in ids:
        sql = (
            "SELECT time, facet FROM facet_change WHERE kind = 0 AND entity = ? AND name = 'schema'"
            " ORDER BY time DESC LIMIT ?"
        )
        rows += [(row[0], row[1]) for row in view.all(sql, (number, VERSIONS * 2))]
    rows.sort()
    kept = [row for i, row in enumerate(rows) if i == 0 or rows[i - 1][1] != row[1]]
    bodies = view.bodies(facet for _, facet in kept)
    answers: list[dict[str, Any]] = []
    for at, facet in kept:
        fields = [{"name": f["name"], "type": f["type"]} for f in describe.flat(bodies.get(facet))]
        if not answers or answers[-1]["fields"] != fields:
            answers.append({"time": when(at), "fields": fields})
    return answers[::-1][:VERSIONS]


def _writes(view: View, producers: list[int], ids: list[int]) -> list[dict[str, Any]]:
    """The latest runs that wrote the dataset, with what they said of size and quality."""
    found = []
    jobs = view.jobs(producers)
    slots = [slot(number, OUTPUT) for number in ids]
    for number in producers:
        sql = RUNS + " WHERE r.job = ? ORDER BY r.created DESC, r.id DESC LIMIT ?"
        for run in map(to_run, view.all(sql, (number, RUNS_READ))):
            uses = [run.state.io[key] for key in slots if key in run.state.io]
            if uses and not run.state.static:
                found.append((run.state.life.end or run.state.life.last or 0, run, uses[0]))
    found.sort(key=lambda item: -item[0])
    found = found[:RUNS_READ]
    facets = describe.Facets(view, (use.facets for _, _, use in found))
    answers = []
    for at, run, use in found:
        life, owner = run.state.life, jobs.get(run.job)
        size = facets.get(use.facets, "outputStatistics")
        answers.append(
            {
                "time": when(at),
                "run": str(UUID(bytes=run.uuid)),
                "job": {"namespace": owner.space, "name": owner.name} if owner else None,
                "state": life.state.value,
                "rows": size.get("rowCount"),
                "bytes": size.get("size"),
                "files": size.get("fileCount"),
                "quality": {n: q for n in QUALITY if (q := facets.get(use.facets, n))},
            }
        )
    return answers


def _freshness(writes: list[dict[str, Any]], found: Dataset) -> dict[str, Any]:
    """When the dataset was last written, how often it usually is, and what to make of that."""
    live = any(w["state"] == State.RUNNING.value for w in writes)
    done = [w["time"] for w in writes if w["state"] == State.COMPLETED.value]
    moments = sorted({_seconds(text) for text in done}, reverse=True)[:9]
    gaps = [a - b for a, b in itertools.pairwise(moments)]
    usual = int(median(gaps)) if len(gaps) >= 3 else None
    last = writes[0]["time"] if writes else when(found.updated)
    verdict = "live" if live else "unknown"
    if not live and usual:
        late = time.time() - moments[0] > 2 * usual + 60
        verdict = "late" if late else "fresh"
    return {"verdict": verdict, "lastWrittenAt": last, "usualSeconds": usual}


def _seconds(text: str) -> int:
    from headwater.server.api.v1.search import parse_moment

    return parse_moment(text) // 1_000_000


def job(view: View, request: Request) -> dict[str, Any]:
    """A job: what it is, how it stands, its family, and what lies downstream of it."""
    found = the_job(view, request)
    presented = Presenter(view).jobs([found])[0]
    del presented["latestRuns"]
    described = describe.jobs(view, [found])[found.id]
    return {
        **presented,
        **{k: v for k, v in described.items() if k not in ("id", "kind", "updatedAt")},
        "parent": _parents(view, [found]).get(found.id),
        "children": _children(view, found),
        "affected": downstream(view, [found.id]),
    }


def _parents(view: View, jobs: list[Job]) -> dict[int, describe.Reference]:
    """What the newest run of each job names as its parent, where it names one."""
    runs = describe.latest_runs(view, jobs)
    facets = describe.Facets(view, (run.state.facets for run in runs.values()), "parent")
    said = {n: describe.reference(facets.get(r.state.facets, "parent")) for n, r in runs.items()}
    found = {number: parent for number, parent in said.items() if parent is not None}
    describe.shown(view, found.values())
    return found


def _children(view: View, found: Job) -> list[dict[str, Any]]:
    """Jobs named after this one whose newest run names it as its parent."""
    sql = JOBS + " WHERE j.namespace = ? AND j.name > ? AND j.name < ? AND j.hidden = 0 LIMIT ?"
    bounds = (found.namespace, f"{found.name}.", f"{found.name}/", JOBS_SHOWN)
    near = [to_job(row) for row in view.all(sql, bounds)]
    parents = _parents(view, near)
    children = [one for one in near if parents.get(one.id, {}).get("name") == found.name]
    return list(describe.jobs(view, children).values())
