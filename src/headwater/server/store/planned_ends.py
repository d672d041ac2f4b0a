"""How somebody ended a run on purpose, as far as its producer reports it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.insight import JobProblem
from headwater.lineage.lifecycle import State
from headwater.lineage.openlineage import facets as known

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.store.entities import Job, RunState

__all__ = ["end_facets", "is_stream", "planned_end"]

FACETS = ("headwater_connect", "headwater_end")
CONNECTOR_ENDS = {"PAUSED": JobProblem.PAUSED, "STOPPED": JobProblem.STOPPED}
STOPS = ("stopped", "interrupted", "signal SIGTERM")
"""Reasons of `headwater_end` for which a stream ends because somebody wants it to."""


def end_facets(run: RunState) -> list[int]:
    """The facets that say how a run ended, by number; none of a run that can only have gone wrong."""
    if run.life.state not in (State.COMPLETED, State.ABORTED):
        return []
    return [held[0] for name in FACETS if (held := run.facets.get(name)) and held[0]]


def planned_end(bodies: Iterable[bytes]) -> JobProblem | None:
    """How these facets say that somebody paused or stopped a run, if they do."""
    found = None
    for body in bodies:
        read = known.read(body, known.EndFacet) or known.EndFacet()
        if read.state in CONNECTOR_ENDS:
            found = CONNECTOR_ENDS[read.state]
        elif read.reason in STOPS and not read.inferred:
            found = JobProblem.STOPPED
    return found


def is_stream(job: Job) -> bool:
    """Whether a job reports that it has no end of its own."""
    return job.kind.upper() in ("STREAMING", "STREAM")
