"""Which of a job's runs decides about its state: runs may overlap, and two producers may report one job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.lifecycle import BEATS_KEPT, State
from headwater.server.store.planned_ends import is_stream

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.lifecycle import RunHistory
    from headwater.server.store.entities import Job, Run
    from headwater.server.store.view import View

__all__ = ["ALWAYS", "DecidingKey", "decided_at", "decided_runs", "deciding_key", "latest_news"]

DecidingKey = tuple[int, int, bytes]
"""The run with the highest one decides: a time, when the run began, its UUID."""
ALWAYS = 2**62
"""The time of the newest run of a batch as long as it goes on."""
OVERLAPPING = 8
"""Runs of a job that may be under way at once at a moment in the past."""
DECLARED = 1_000
"""How far back a run is looked for among the declarations of a job."""
_BEGUN = (
    "SELECT id, created, ended FROM run WHERE job = ? AND created <= ?"
    " ORDER BY created DESC, id DESC LIMIT ?"
)


def deciding_key(job: Job, run: Run) -> DecidingKey:
    """What orders the runs of a job: that with the highest key decides.

    Of a stream, the run that reported last decides. Of any other job, the run that began
    last does, unless it has ended and an earlier one has reported since that it runs.
    """
    return _key(run, run.state.life, is_stream(job), run.uuid == job.state.latest_uuid)


def _key(run: Run, life: RunHistory, streaming: bool, newest: bool) -> DecidingKey:
    if streaming:
        time = latest_news(life)
    elif newest:
        time = ALWAYS if life.end is None else life.end
    else:
        time = max(life.beats, default=0) if life.end is None else 0
    return time, life.first or 0, run.uuid


def latest_news(life: RunHistory) -> int:
    """When a run last reported; never later than its last event.

    An ABORT only says that the run is no more. A person, the agent or a watchdog sends it, often when
    the next run is under way: then the run counts as of its last report.
    """
    if life.ended is None:
        return life.last or 0
    end = life.ended[0]
    if life.state is not State.ABORTED:
        return end
    return max([life.first or 0, *(at for at in (life.started or 0, *life.beats) if at <= end)])


def decided_at(job: Job, runs: Iterable[Run], at: int) -> Run | None:
    """Which of these runs of a job decided at a moment in the past."""
    lives = [(run, _until(run.state.life, at)) for run in runs if not run.state.static]
    if not lives:
        return None
    newest, _ = max(lives, key=lambda one: (one[1].first or 0, one[0].uuid))
    streaming = is_stream(job)
    return max(lives, key=lambda one: _key(one[0], one[1], streaming, one[0] is newest))[0]


def _until(life: RunHistory, at: int) -> RunHistory:
    """The life of a run as it was at a moment.

    Only the last reports are known: where all of them came later, there was one just then.
    """
    beats = [beat for beat in life.beats if beat <= at]
    if not beats and len(life.beats) == BEATS_KEPT:
        beats = [at]
    alive = [life.first or 0, *(began for began in (life.started,) if began and began <= at)]
    return msgspec.structs.replace(
        life,
        last=max(alive + beats) if (life.last or 0) > at else life.last,
        ended=life.ended if life.ended is not None and life.ended[0] <= at else None,
        inferred=life.inferred if life.inferred is not None and life.inferred[1] <= at else None,
        beats=beats,
    )


def decided_runs(view: View, jobs: Iterable[Job], at: int) -> dict[int, Run]:
    """The run of each job that decided about its state at a moment."""
    wanted = list(jobs)
    overlapping: dict[int, set[int]] = {}
    for job in wanted:
        rows = _begun(view, job.id, at)
        # Those that ended before the newest began have no say.
        some = {number for number, _, ended in rows if ended is None or ended >= rows[0][1]}
        overlapping[job.id] = some | {row[0] for row in rows[:1]}
    runs = view.runs(number for some in overlapping.values() for number in some)
    found = (
        decided_at(job, (runs[n] for n in overlapping[job.id] if n in runs), at) for job in wanted
    )
    return {run.job: run for run in found if run is not None}


def _begun(view: View, job: int, at: int) -> list[tuple[Any, ...]]:
    """The last runs of a job that had begun at a moment (id, begin, end), without declarations."""
    found: list[tuple[Any, ...]] = []
    for limit in (OVERLAPPING, DECLARED):
        rows = view.all(_BEGUN, (job, at, limit))
        # A declaration is kept as a run that ended when it began.
        at_once = view.runs(number for number, began, ended in rows if began == ended)
        found = [row for row in rows if row[0] not in at_once or not at_once[row[0]].state.static]
        if found or len(rows) < limit:
            break
    return found[:OVERLAPPING]
