"""What is assumed of an event that breaks OpenLineage's rules in a way that Marquez forgives.

An event is mended before it is hashed, stored and projected, so that whatever reads it later finds
a UUID, a moment with a zone, a known type and facets that are objects.
"""

from __future__ import annotations

import hashlib
from datetime import datetime
from typing import TYPE_CHECKING, Any
from uuid import UUID, uuid5

import msgspec

from headwater.lineage.moments import to_rfc3339
from headwater.lineage.openlineage.envelope import EventType
from headwater.lineage.openlineage.hashing import FACET_MEMBERS

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "ISO_TIME",
    "NAMED_RUN",
    "NO_OBJECT",
    "NO_ZONE",
    "OTHER_TYPE",
    "SHARED_RUN",
    "repair",
    "run_of_its_own",
    "runs_of_its_own",
    "to_run_uuid",
]

NAMED_RUN = "run.runId: not a UUID, taken as the name of one"
ISO_TIME = "eventTime: ISO 8601 in another form than RFC 3339 has, taken as it means"
NO_ZONE = "eventTime: no time zone, taken as UTC"
OTHER_TYPE = "eventType: unknown, taken as OTHER"
NO_OBJECT = "facets: not an object, dropped"
SHARED_RUN = "run.runId: the run of another job, taken as one of its own"
STEPS = 4
_TYPES = frozenset(EventType.__members__)


def to_run_uuid(text: str) -> UUID:
    """The UUID of a run: its own, or the name-based one that Marquez makes of any other text."""
    return _uuid(text) or UUID(
        bytes=hashlib.md5(text.encode(), usedforsecurity=False).digest(), version=3
    )


def run_of_its_own(run: UUID, namespace: str, name: str) -> UUID:
    """The UUID that the run of a job gets where another job was the first to report under `run`.

    Only the first job keeps the id itself: a run has one job, and no other may end it.
    """
    return uuid5(run, f"{namespace}\n{name}")


def runs_of_its_own(run: UUID, namespace: str, name: str) -> Iterator[UUID]:
    """The UUIDs that such a run may get, in turn: the next one where yet another job has the last."""
    for _ in range(STEPS):
        run = run_of_its_own(run, namespace, name)
        yield run


def repair(event: dict[str, Any]) -> tuple[dict[str, Any], tuple[str, ...]]:
    """The event with an assumption in place of what is wrong, and a reason for each."""
    reasons: list[str] = []
    mended = dict(event)
    kind, time = event.get("eventType"), event.get("eventTime")
    if isinstance(kind, str) and kind.upper() not in _TYPES:
        mended["eventType"] = EventType.OTHER.value
        reasons.append(OTHER_TYPE)
    if isinstance(time, str):
        mended["eventTime"] = _with_zone(time, reasons)
    for key in ("run", "job", "dataset"):
        if isinstance(event.get(key), dict):
            mended[key] = _with_objects(event[key], reasons)
    for key in ("inputs", "outputs"):
        if isinstance(event.get(key), list):
            mended[key] = [
                _with_objects(item, reasons) if isinstance(item, dict) else item
                for item in event[key]
            ]
    run = mended.get("run")
    if isinstance(run, dict):
        name = run.get("runId")
        if isinstance(name, str) and name and _uuid(name) is None:
            mended["run"] = {**run, "runId": str(to_run_uuid(name))}
            reasons.append(NAMED_RUN)
    return (mended, tuple(reasons)) if reasons else (event, ())


def _uuid(text: str) -> UUID | None:
    try:
        return msgspec.convert(text, UUID)
    except msgspec.ValidationError:
        return None


def _with_zone(time: str, reasons: list[str]) -> str:
    text = to_rfc3339(time)
    try:
        zone = msgspec.convert(text, datetime).tzinfo
    except msgspec.ValidationError:
        return time
    if zone is None:
        reasons.append(NO_ZONE)
        return f"{text}Z"
    if text != time:
        reasons.append(ISO_TIME)
    return text


def _with_objects(part: dict[str, Any], reasons: list[str]) -> dict[str, Any]:
    """A run, job or dataset without the facets that are neither an object nor null."""
    mended = dict(part)
    for member in FACET_MEMBERS:
        facets = part.get(member)
        if isinstance(facets, dict):
            mended[member] = {
                name: facet
                for name, facet in facets.items()
                if facet is None or isinstance(facet, dict)
            }
            reasons += [NO_OBJECT] * (len(facets) - len(mended[member]))
    return mended
