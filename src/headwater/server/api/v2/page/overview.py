"""The overview page: what fails, what is stale, what changed, how much is going on."""

from __future__ import annotations

import itertools
import time
from typing import TYPE_CHECKING, Any, TypedDict

import msgspec

from headwater.insight import JobProblem, beside, families, reach, trouble_of
from headwater.lineage.lifecycle import State
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import iso
from headwater.server.alerts.incidents import list_incidents
from headwater.server.api import describe
from headwater.server.api.present import when
from headwater.server.api.types import Named, Object, Time
from headwater.server.api.v2.alerts import listed
from headwater.server.ingest.flow import growing_lags
from headwater.server.routing import Routes
from headwater.server.store.database import within
from headwater.server.store.entities import STATUSES, to_job
from headwater.server.store.read.deleted import left_behind
from headwater.server.store.read.parent_runs import parent_runs
from headwater.server.store.view import JOBS, uuid_text

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.app import App
    from headwater.server.ingest.flow import GrowingLag
    from headwater.server.store.entities import Job, Node
    from headwater.server.store.view import View

__all__ = ["affected", "api"]

api = Routes()

MINUTE = 60_000_000
MINUTES = 60
MEMORY = 14 * 24 * 60 * MINUTE
RECENT = 50_000
TROUBLES = 25
CANDIDATES = 100
HALTED = 5
CHANGES = 20
ALERTS = 10
REACH = 200
End = tuple[str, str, str]
"""A direction, and the namespace and name of a dataset."""


class Overview(TypedDict):
    """What goes on."""

    now: Time
    records: int
    firstEventAt: Time | None
    jobs: dict[str, int]
    datasets: int
    troubles: Object
    stale: list[Object]
    lagging: list[Object]
    halted: list[Named]
    perMinute: list[Object]
    changes: list[Object]
    alerts: Object


@api.get("/api/v2/overview", answer=Overview)
def overview(app: App, view: View) -> dict[str, Any]:
    """Counts by state, troubles with what they reach, alerts, events a minute, newest changes.

    `lagging` are running jobs whose lag has grown over their last reports. `halted` are a few of the datasets that jobs in trouble write: each can be asked why.
    """
    now = time.time_ns() // 1000
    ((seq,),) = view.all("SELECT seq FROM head WHERE id = 1")
    ((first,),) = view.all("SELECT min(time) FROM log")
    ((datasets,),) = view.all("SELECT count(*) FROM dataset WHERE hidden = 0 AND root = id")
    datasets -= len(left_behind(view, view.deleted_jobs()))
    states = _states(view)
    groups, truncated = _troubled(view)
    late = _late(view, now)
    return {
        "now": iso(now),
        "records": seq,
        "firstEventAt": when(first),
        "jobs": {"total": sum(states.values()), **states},
        "datasets": datasets,
        "troubles": {"jobs": _described(view, groups), "truncated": truncated},
        "stale": _late_jobs(view, late),
        "lagging": _lagging_jobs(view),
        "halted": _halted(view, [*itertools.chain(*groups), *(one[0] for one in late)]),
        "perMinute": _per_minute(view, seq, now),
        "changes": _changes(view),
        "alerts": _alerts(app, view),
    }


def _alerts(app: App, view: View) -> dict[str, Any]:
    """The open incidents, and how many rules look for more."""
    found = list_incidents(view.connection, limit=ALERTS + 1)
    return {
        "rules": len(app.alerts.rules.rules) if app.alerts else 0,
        "open": listed(view, found[:ALERTS]),
        "truncated": len(found) > ALERTS,
    }


def _states(view: View) -> dict[str, int]:
    """Jobs by the state of their newest run; PAUSED and STOPPED are those that somebody ended.

    Those that are deleted in the system that ran them are not counted.
    """
    sql = (
        "SELECT r.status, count(*) FROM job j LEFT JOIN run r ON r.id = j.latest"
        " WHERE j.hidden = 0 GROUP BY r.status"
    )
    found = {state.value: 0 for state in State} | {"PAUSED": 0, "STOPPED": 0}
    for status, count in view.all(sql):
        found[STATUSES[status or 0].value] += count
    for state in describe.states_of_deleted(view).values():
        found[state.value] -= 1
    for one in describe.planned_ends(view):
        found[one.state.value] -= 1
        found[one.how.name] += 1
    return found


def _by_status(view: View, states: Iterable[State], limit: int) -> list[Job]:
    """Jobs whose newest run is in one of these states, the newest trouble first."""
    numbers = ",".join(str(STATUSES.index(state)) for state in states)
    sql = (
        f" JOIN run r ON r.id = j.latest WHERE j.hidden = 0 AND r.status IN ({numbers})"
        " ORDER BY r.status, r.ended DESC LIMIT ?"
    )
    gone = view.deleted_jobs()
    rows = view.all(JOBS + sql, (limit + len(gone),))
    return [job for job in map(to_job, rows) if job.id not in gone][:limit]


def _troubled(view: View) -> tuple[list[list[Job]], bool]:
    """Jobs that failed or were aborted, and nobody wanted it so, those that broke together as one.

    Also whether there are more.
    """
    candidates = _by_status(view, (State.FAILED, State.ABORTED), CANDIDATES)
    known = view.graph().statuses([job.node for job in candidates])
    found = [job for job in candidates if known[job.node].planned is None]
    groups = _together(view, found)
    return groups[:TROUBLES], len(groups) > TROUBLES


def _described(view: View, groups: list[list[Job]]) -> list[dict[str, Any]]:
    """A row for each group of jobs that broke together, named by the one that reaches most."""
    described = describe.jobs(view, [job for some in groups for job in some])
    rows = []
    for some in groups:
        reached = [(affected(view, job), job) for job in some]
        # An application has nothing behind it by itself, its query has.
        most, first = max(reached, key=lambda one: one[0]["jobs"] + one[0]["datasets"])
        rest = [described[job.id] for job in some if job is not first]
        rows.append(
            {
                **described[first.id],
                "affected": most,
                "with": [{key: one[key] for key in ("id", "namespace", "name")} for one in rest],
            }
        )
    return rows


def _together(view: View, found: list[Job]) -> list[list[Job]]:
    """Jobs in the order given, those that broke together as one: failed ones first, parts first."""
    runs = describe.latest_runs(view, found)
    above = parent_runs(view, {number: run.state for number, run in runs.items()})
    parents = {
        job.node: (
            uuid_text(runs[job.id].uuid),
            uuid_text(above[job.id].uuid) if job.id in above else "",
        )
        for job in found
        if job.id in runs
    }
    by_node = {job.node: job for job in found}
    groups = [[by_node[node] for node in some] for some in families(parents)]
    places = {job.id: place for place, job in enumerate(found)}
    failed = {number for number, run in runs.items() if run.state.life.state is State.FAILED}
    for some in groups:
        some.sort(key=lambda job: job.id not in failed)
    return sorted(groups, key=lambda some: min(places[job.id] for job in some))


def _halted(view: View, jobs: list[Job]) -> list[dict[str, str]]:
    """What jobs in trouble write: the first few datasets that may be stale."""
    graph = view.graph()
    written: dict[Node, None] = {}
    for job in jobs:
        if len(written) >= HALTED:
            break
        written |= dict.fromkeys(beside(graph, job.node)[1])
    datasets = view.datasets(number for _, number in written)
    named = [datasets[number] for _, number in written if number in datasets]
    return [{"namespace": one.space, "name": one.name} for one in named[:HALTED]]


def affected(view: View, *jobs: Job) -> dict[str, Any]:
    """How many jobs and datasets lie downstream of a job, or of several, counted up to a bound."""
    return reach(view.graph(), *(job.node for job in jobs), limit=REACH)._asdict()


def _late(view: View, now: int) -> list[tuple[Job, int, int]]:
    """Jobs that finished in order but are overdue: how often they run, and how long they are silent."""
    sql = (
        " JOIN run r ON r.id = j.latest WHERE j.hidden = 0 AND r.status = ?"
        " AND r.ended BETWEEN ? AND ? ORDER BY r.ended LIMIT ?"
    )
    completed = STATUSES.index(State.COMPLETED)
    gone = view.deleted_jobs()
    most = CANDIDATES + len(gone)
    rows = view.all(JOBS + sql, (completed, now - MEMORY, now - MINUTE, most))
    jobs = {job.node: job for job in map(to_job, rows) if job.id not in gone}
    late: list[tuple[float, Job, int, int]] = []
    for node, status in view.graph().statuses(jobs).items():
        trouble = trouble_of(status, now)
        if trouble is None or trouble[0] is not JobProblem.LATE:
            continue
        assert status.usual is not None
        assert status.last is not None
        silent = now - status.last
        late.append((-silent / status.usual, jobs[node], status.usual, silent))
    late.sort(key=lambda one: (one[0], one[1].id))
    return [(job, usual, silent) for _, job, usual, silent in late[:TROUBLES]]


def _late_jobs(view: View, late: list[tuple[Job, int, int]]) -> list[dict[str, Any]]:
    described = describe.jobs(view, [job for job, _, _ in late])
    return [
        {
            **described[job.id],
            "affected": affected(view, job),
            "usualSeconds": usual // SECOND,
            "silentSeconds": silent // SECOND,
        }
        for job, usual, silent in late
    ]


def _lagging_jobs(view: View) -> list[dict[str, Any]]:
    """Running jobs that fall behind, each with the input in which it is furthest behind."""
    worst: dict[bytes, GrowingLag] = {}
    for one in growing_lags(view.connection):
        worst.setdefault(one.run, one)
    sql = (
        JOBS.replace("SELECT ", "SELECT r.uuid, ", 1)
        + " JOIN run r ON r.id = j.latest WHERE j.hidden = 0 AND r.status = ?"
        " AND r.uuid IN ({in})"
    )
    running = STATUSES.index(State.RUNNING)
    found = {
        bytes(uuid): to_job(tuple(row))
        for uuid, *row in within(view.connection, sql, list(worst), (running,))
    }
    shown = [(found[run], one) for run, one in worst.items() if run in found][:TROUBLES]
    described = describe.jobs(view, [job for job, _ in shown])
    return [
        {
            **described[job.id],
            "affected": affected(view, job),
            "dataset": {"namespace": one.namespace, "name": one.name},
            "lag": one.lag,
            "lagBefore": one.before,
            "since": iso(one.since),
        }
        for job, one in shown
    ]


def _per_minute(view: View, seq: int, now: int) -> list[dict[str, Any]]:
    """Events received in each of the last sixty minutes."""
    last = now // MINUTE
    sql = "SELECT at / ?, count(*) FROM log WHERE seq > ? AND at >= ? AND kind = 0 GROUP BY 1"
    since = (last - MINUTES + 1) * MINUTE
    counts = dict(view.all(sql, (MINUTE, seq - RECENT, since)))
    minutes = range(last - MINUTES + 1, last + 1)
    return [{"minute": iso(m * MINUTE), "events": int(counts.get(m, 0))} for m in minutes]


def _changes(view: View) -> list[dict[str, Any]]:
    found = _new_edges(view) + _new_schemas(view)
    found.sort(key=lambda change: str(change["time"]), reverse=True)
    return found[:CHANGES]


def _new_edges(view: View) -> list[dict[str, Any]]:
    """The latest changes of what jobs read and write; what their task jobs repeat is left out.

    Datasets have the names under which they are shown now: a table that a sink knew by its name in a
    catalog, until the first record made it, is the table at its location.
    """
    sql = (
        "SELECT v.id, v.job, v.time, v.state FROM job_version v JOIN job j ON j.id = v.job"
        " WHERE j.hidden = 0 ORDER BY v.id DESC LIMIT ?"
    )
    rows = view.all(sql, (CHANGES * 2,))
    jobs = view.jobs(row[1] for row in rows)
    versions = []
    for number, job, at, state in rows:
        sql = "SELECT state FROM job_version WHERE job = ? AND id < ? ORDER BY id DESC LIMIT 1"
        before = view.all(sql, (job, number))
        versions.append(
            (job, at, _ends(bytes(before[0][0])) if before else set(), _ends(bytes(state)))
        )
    shown = view.root_names(end[1:] for *_, old, new in versions for end in old | new)

    def rooted(ends: set[End]) -> set[End]:
        return {(end[0], *shown.get(end[1:], end[1:])) for end in ends}

    answers: list[dict[str, Any]] = []
    for job, at, old, new in versions:
        was, has = rooted(old), rooted(new)
        added, removed = sorted(has - was), sorted(was - has)
        if added or removed:
            answers.append(
                {
                    "change": "edges",
                    "time": iso(at),
                    "job": {"namespace": jobs[job].space, "name": jobs[job].name},
                    "added": [_end(end) for end in added[:10]],
                    "removed": [_end(end) for end in removed[:10]],
                    "more": max(0, len(added) - 10) + max(0, len(removed) - 10),
                }
            )
    return answers[:CHANGES]


def _ends(state: bytes) -> set[End]:
    inputs, outputs, _ = msgspec.msgpack.decode(state)
    reads = {("input", str(name[0]), str(name[1])) for name in inputs}
    return reads | {("output", str(name[0]), str(name[1])) for name in outputs}


def _end(end: End) -> dict[str, str]:
    return {"direction": end[0], "namespace": end[1], "name": end[2]}


def _new_schemas(view: View) -> list[dict[str, Any]]:
    """The latest schemas that differ from the one before; a dataset's first is none."""
    sql = (
        "SELECT entity, time, facet FROM facet_change WHERE kind = 0 AND name = 'schema'"
        " ORDER BY time DESC LIMIT ?"
    )
    rows = view.all(sql, (CHANGES * 10,))
    datasets = view.datasets(row[0] for row in rows)
    found = []
    for dataset, at, facet in rows:
        sql = (
            "SELECT facet FROM facet_change WHERE kind = 0 AND entity = ? AND name = 'schema'"
            " AND time < ? ORDER BY time DESC LIMIT 1"
        )
        before = view.all(sql, (dataset, at))
        if dataset in datasets and before and before[0][0] != facet:
            found.append((datasets[dataset], at, before[0][0], facet))
        if len(found) >= CHANGES:
            break
    bodies = view.bodies([n for one in found for n in one[2:]])
    answers = []
    for dataset, at, old, new in found:
        was, has = ({f["name"] for f in describe.flat(bodies.get(n))} for n in (old, new))
        answers.append(
            {
                "change": "schema",
                "time": iso(at),
                "dataset": {"namespace": dataset.space, "name": dataset.name},
                "added": sorted(has - was)[:10],
                "removed": sorted(was - has)[:10],
            }
        )
    return answers
