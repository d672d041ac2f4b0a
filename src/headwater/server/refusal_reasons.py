"""Why events are refused, in words from a fixed set: what is counted may hold nothing that was sent."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headwater.lineage.openlineage.events import EventProblem

__all__ = ["refusal_reason"]

_PLACES = ("$", "eventTime", "eventType", "producer", "run", "job", "dataset", "inputs", "outputs")
_MEMBERS = ("runId", "namespace", "name", "facets", "inputFacets", "outputFacets")
_KINDS = (
    "ends too early", "not valid Unicode", "malformed", "nested deeper", "more than the limit",
    "holds a NUL", "occurs twice", "is missing", "is empty", "not an RFC 3339 time",
    "in the future", "expected", "invalid",
)  # fmt: skip
"""Parts of the messages of those who refuse: OpenLineage's reader, the store, msgspec."""


def refusal_reason(problem: EventProblem) -> str:
    """Which member of an event is wrong, and in which way."""
    place, _, below = problem.field.partition(".")
    place, member = place.split("[")[0], below.partition(".")[0]
    where = place if place in _PLACES else "event"
    if member in _MEMBERS and where != "event":
        where += f".{member}"
    kind = next((kind for kind in _KINDS if kind in problem.problem), "refused")
    return f"{where}: {kind}"
