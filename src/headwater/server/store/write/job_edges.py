"""Keeps a job's edges, with their intervals, true to its runs."""

from __future__ import annotations

import hashlib
from collections import defaultdict
from typing import TYPE_CHECKING

import msgspec

from headwater.lineage.openlineage.events import canonical
from headwater.server.store.database import within
from headwater.server.store.entities import INPUT, OUTPUT, unslot
from headwater.server.store.write.intervals import Interval, RunSpan, intervals, splice

if TYPE_CHECKING:
    from headwater.server.store.entities import Io, Job, Run
    from headwater.server.store.write.session import WriteSession

__all__ = ["delete", "link", "version"]

_encode = msgspec.msgpack.Encoder().encode
FEW = 32
"""Open edges of a job that are cheaper to recompute than to compare."""
DELETIONS = 50
"""How many deletions of one job are remembered."""


def link(session: WriteSession, job: Job, run: Run, end_before: int | None) -> bool:
    """Bring the edges up to date after a run's datasets or end changed; True if the set moved."""
    state, io = job.state, run.state.io
    if not io:
        return False
    end = run.state.life.end
    ended = end != end_before
    held = _are_open(state.open, io, end)
    if held and not ended and end is None:
        return False
    in_order = end is not None and (state.last_end is None or end >= state.last_end)
    if held and in_order and len(io) == len(state.open):
        state.last_end = end
        return False
    if end is None and job.fresh and session.is_only_run(job, run) and _open(session, job, io):
        return True
    return _relink(session, job, run, end_before)


def _are_open(held: dict[int, int], io: dict[int, Io], end: int | None) -> bool:
    """Whether the edges of a run are open since before it used their datasets, or ended."""
    for key, item in io.items():
        since = held.get(key)
        if since is None or item.until is not None or since > item.since:
            return False
        if end is not None and since > end:
            return False
    return True


def _open(session: WriteSession, job: Job, io: dict[int, Io]) -> bool:
    """Open the edges of a new job's first run as they are, if that is all there is to do."""
    if job.state.open or job.state.deletions or any(one.until is not None for one in io.values()):
        return False
    job.state.open, job.state.last_end = {key: one.since for key, one in io.items()}, None
    session.edges[job.id] = [
        (job.id, *unslot(key), since, None) for key, since in job.state.open.items()
    ]
    return True


def delete(session: WriteSession, job: Job, at: int) -> bool:
    """Let the edges of a job end where its producer deleted it; True if the set moved."""
    job.state.deletions = sorted({*job.state.deletions, at})[-DELETIONS:]
    runs = session.runs_of(job, at)
    return _rewrite(session, job, at, runs, _finished(runs), None)


def _relink(session: WriteSession, job: Job, run: Run, end_before: int | None) -> bool:
    life = run.state.life
    low = min([life.first or 0, *(item.since for item in run.state.io.values())])
    runs = session.runs_of(job, low)
    finished = _finished(runs)
    touched = _touched(job, run, runs, finished, end_before)
    return _rewrite(session, job, low, runs, finished, touched)


def _finished(runs: list[Run]) -> list[tuple[int, bytes]]:
    return sorted((r.state.life.end, r.uuid) for r in runs if r.state.life.end is not None)


def _rewrite(
    session: WriteSession,
    job: Job,
    low: int,
    runs: list[Run],
    finished: list[tuple[int, bytes]],
    touched: set[int] | None,
) -> bool:
    """Recompute the edges of a job from `low` on, all or those `touched`."""
    spans = [
        RunSpan(r.uuid, r.state.life.end, slot, r.state.io[slot].since, _until(job, r, slot))
        for r in runs
        for slot in (r.state.io if touched is None else r.state.io.keys() & touched)
    ]
    new = intervals(spans, finished)
    if job.fresh and touched is None:
        session.edges.pop(job.id, None)
        final = new
    else:
        old = _stored(session, job, low, touched)
        final = {slot: splice(old.get(slot, []), new.get(slot, []), low) for slot in {*old, *new}}
    before = job.state.open
    kept = {} if touched is None else {s: at for s, at in before.items() if s not in touched}
    job.state.open = kept | {
        slot: found[-1][0] for slot, found in final.items() if found and found[-1][1] is None
    }
    job.state.last_end = finished[-1][0] if finished else None
    session.edges.setdefault(job.id, []).extend(
        (job.id, *unslot(slot), since, until)
        for slot, found in final.items()
        for since, until in found
    )
    return before.keys() != job.state.open.keys()


def _until(job: Job, run: Run, slot: int) -> int | None:
    """When a run ceased to claim an edge: it named it no more, or its job was deleted.

    A run that reports to be alive after that shows that the job is there again; its end does not.
    """
    until, life = run.state.io[slot].until, run.state.life
    if not job.state.deletions:
        return until
    alive = max([*life.beats, life.started or life.first or 0])
    deleted = next((at for at in job.state.deletions if at >= alive), None)
    found = [at for at in (until, deleted) if at is not None]
    return min(found, default=None)


def _touched(
    job: Job, run: Run, runs: list[Run], finished: list[tuple[int, bytes]], end_before: int | None
) -> set[int] | None:
    """The edges that can have moved, where that is known to be few of many; None for all of them.

    A run moves its own edges. By ending after all others it also takes the place of the one that
    ended before it. Without this, each event of a job with many live runs would rewrite the edges
    of all of them.
    """
    if len(job.state.open) <= FEW:
        return None
    slots = set(run.state.io)
    if run.state.life.end != end_before:
        if end_before is not None or not finished or finished[-1][1] != run.uuid:
            return None
        replaced = finished[-2][1] if len(finished) > 1 else None
        slots.update(slot for r in runs if r.uuid == replaced for slot in r.state.io)
    # Both directions of a dataset are read and written together.
    slots |= {slot ^ 1 for slot in slots}
    return slots if 4 * len(slots) < len(job.state.open) else None


def _stored(
    session: WriteSession, job: Job, low: int, touched: set[int] | None
) -> dict[int, list[Interval]]:
    """Take the rows that reach `low` out of the table and of what is still unwritten."""
    found: dict[int, list[Interval]] = defaultdict(list)
    where = " FROM edge WHERE job = ? AND (until IS NULL OR until >= ?)"
    columns = "SELECT dataset, direction, since, until"
    if touched is None:
        rows = session.connection.all(columns + where, (job.id, low))
        session.connection.run("DELETE" + where, (job.id, low))
    else:
        where += " AND dataset IN ({in})"
        datasets = sorted({unslot(slot)[0] for slot in touched})
        rows = within(session.connection, columns + where, datasets, (job.id, low))
        for dataset in {row[0] for row in rows}:
            sql, values = session.connection.listed("DELETE" + where, [dataset])
            session.connection.run(sql, (job.id, low, *values))
    for dataset, direction, since, until in rows:
        found[dataset * 2 + direction].append((since, until))
    kept = []
    for row in session.edges.pop(job.id, ()):
        slot = row[1] * 2 + row[2]
        if (row[4] is None or row[4] >= low) and (touched is None or slot in touched):
            found[slot].append((row[3], row[4]))
        else:
            kept.append(row)
    session.edges[job.id] = kept
    return found


def _names(session: WriteSession, job: Job, side: int) -> list[tuple[str, str]]:
    """The datasets that a job reads or writes now, by name."""
    ids = [slot >> 1 for slot in job.state.open if slot & 1 == side]
    return sorted([(one.space, one.name) for one in session.datasets_of(ids)])


def version(session: WriteSession, job: Job, run: Run | None, time: int) -> None:
    """Note a new version of the job: its datasets, or where its code lives, have changed."""
    inputs, outputs = _names(session, job, INPUT), _names(session, job, OUTPUT)
    what = [job.space, job.name, inputs, outputs, job.state.location]
    uuid = hashlib.sha256(canonical(what)).digest()[:16]
    number = session.number("job_version")
    state = _encode((inputs, outputs, job.state.location))
    row = (number, job.id, uuid, time, run.id if run else None, state)
    session.rows["job_version"].append(row)
    job.version = number
