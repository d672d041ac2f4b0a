"""Keeps a job's edges, with their intervals, true to its runs."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from headwater.lineage.events import canonical
from headwater.server.store.edges import Interval, Span, intervals, splice
from headwater.server.store.entities import INPUT, OUTPUT, unslot

if TYPE_CHECKING:
    from headwater.server.store.entities import Job, Run
    from headwater.server.store.session import Session

__all__ = ["link", "version"]


def link(session: Session, job: Job, run: Run, *, ended: bool) -> bool:
    """Bring the edges up to date after a run's datasets or end changed; True if the set moved."""
    state, io = job.state, run.state.io
    if not io:
        return False
    end = run.state.life.end
    held = all(
        slot in state.open
        and state.open[slot] <= (item.since if end is None else min(item.since, end))
        and item.until is None
        for slot, item in io.items()
    )
    if held and not ended and end is None:
        return False
    in_order = end is not None and (state.last_end is None or end >= state.last_end)
    if held and in_order and len(io) == len(state.open):
        state.last_end = end
        return False
    return _relink(session, job, run)


def _relink(session: Session, job: Job, run: Run) -> bool:
    life = run.state.life
    low = min([life.first or 0, *(item.since for item in run.state.io.values())])
    runs = session.runs_of(job, low)
    spans = [
        Span(r.uuid, r.state.life.end, slot, item.since, item.until)
        for r in runs
        for slot, item in r.state.io.items()
    ]
    new = intervals(spans)
    before = dict(job.state.open)
    if job.fresh:
        session.edges.pop(job.id, None)
        final = new
    else:
        old = _stored(session, job, low)
        final = {slot: splice(old.get(slot, []), new.get(slot, []), low) for slot in {*old, *new}}
    job.state.open = {
        slot: found[-1][0] for slot, found in final.items() if found and found[-1][1] is None
    }
    ends = [r.state.life.end for r in runs]
    job.state.last_end = max((e for e in ends if e is not None), default=None)
    session.edges.setdefault(job.id, []).extend(
        (job.id, *unslot(slot), since, until)
        for slot, found in final.items()
        for since, until in found
    )
    return set(before) != set(job.state.open)


def _stored(session: Session, job: Job, low: int) -> dict[int, list[Interval]]:
    """Take the rows that reach `low` out of the table and of what is still unwritten."""
    found: dict[int, list[Interval]] = defaultdict(list)
    where = " FROM edge WHERE job = ? AND (until IS NULL OR until >= ?)"
    columns = "SELECT dataset, direction, since, until"
    for dataset, direction, since, until in session.connection.all(columns + where, (job.id, low)):
        found[dataset * 2 + direction].append((since, until))
    session.connection.run("DELETE" + where, (job.id, low))
    kept = []
    for row in session.edges.pop(job.id, ()):
        if row[4] is None or row[4] >= low:
            found[row[1] * 2 + row[2]].append((row[3], row[4]))
        else:
            kept.append(row)
    session.edges[job.id] = kept
    return found


def version(session: Session, job: Job, run: Run | None, time: int) -> None:
    """Note a new version of the job: its datasets, or where its code lives, have changed."""
    slots = [unslot(slot) for slot in job.state.open]
    names: dict[int, list[tuple[str, str]]] = {}
    for side in (INPUT, OUTPUT):
        ids = [dataset for dataset, direction in slots if direction == side]
        names[side] = sorted((d.space, d.name) for d in session.datasets_of(ids))
    what = [job.space, job.name, names[INPUT], names[OUTPUT], job.state.location]
    uuid = hashlib.sha256(canonical(what)).digest()[:16]
    number = session.number("job_version")
    state = msgspec.msgpack.encode((names[INPUT], names[OUTPUT], job.state.location))
    row = (number, job.id, uuid, time, run.id if run else None, state)
    session.rows["job_version"].append(row)
    job.version = number
