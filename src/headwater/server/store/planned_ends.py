"""How somebody ended a run on purpose, as far as its producer reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.insight import JobProblem
from headwater.lineage.lifecycle import State
from headwater.lineage.openlineage import facets as known
from headwater.lineage.openlineage.writer import MAX_BY

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Job, RunState

__all__ = ["RunEnding", "end_facets", "is_stream", "run_ending"]

FACETS = ("headwater_connect", "headwater_end")
CONNECTOR_ENDS = {"PAUSED": JobProblem.PAUSED, "STOPPED": JobProblem.STOPPED}
STOPS = ("stopped", "interrupted", "signal SIGTERM")
"""Reasons of `headwater_end` for which a stream ends because somebody wants it to."""


def end_facets(run: RunState) -> list[int]:
    """The facets that say how a run ended, by number; none of a run that can only have gone wrong."""
    if run.life.state not in (State.COMPLETED, State.ABORTED):
        return []
    return [held[0] for name in FACETS if (held := run.facets.get(name)) and held[0]]


class RunEnding(NamedTuple):
    """How somebody ended a run: on purpose or not, and who it was, where its facets report that."""

    planned: JobProblem | None = None
    by: str = ""


def run_ending(bodies: Iterable[bytes]) -> RunEnding:
    """How these facets say that somebody ended a run, if they do."""
    found = RunEnding()
    for body in bodies:
        read = known.read(body, known.EndFacet) or known.EndFacet()
        if read.state in CONNECTOR_ENDS:
            found = RunEnding(CONNECTOR_ENDS[read.state])
        elif read.reason and not read.inferred:
            planned = found.planned or (JobProblem.STOPPED if read.reason in STOPS else None)
            found = RunEnding(planned, (read.by or "")[:MAX_BY])
    return found


def is_stream(job: Job) -> bool:
    """Whether a job reports that it has no end of its own."""
    return job.kind.upper() in ("STREAMING", "STREAM")
