"""An event and its parts: the envelope decoded, the facets as they were sent."""

from __future__ import annotations

from enum import Enum
from uuid import UUID

import msgspec

__all__ = ["Event", "EventDataset", "EventJob", "EventKind", "EventRun", "EventType", "Facets"]


class EventKind(str, Enum):
    """Which of OpenLineage's three events this is."""

    RUN = "RunEvent"
    JOB = "JobEvent"
    DATASET = "DatasetEvent"


class EventType(str, Enum):
    """The type of a run event."""

    START = "START"
    RUNNING = "RUNNING"
    COMPLETE = "COMPLETE"
    ABORT = "ABORT"
    FAIL = "FAIL"
    OTHER = "OTHER"

    __hash__ = str.__hash__  # that of Enum is a function in Python


Facets = dict[str, msgspec.Raw]


class EventDataset(msgspec.Struct):
    """A dataset as one event names it."""

    namespace: str
    name: str
    facets: Facets | None = None
    inputFacets: Facets | None = None  # noqa: N815
    outputFacets: Facets | None = None  # noqa: N815


class EventJob(msgspec.Struct):
    """A job as one event names it."""

    namespace: str
    name: str
    facets: Facets | None = None


class EventRun(msgspec.Struct):
    """A run as one event names it."""

    runId: UUID  # noqa: N815
    facets: Facets | None = None


class Event(msgspec.Struct):
    """One event: its envelope decoded, its facets raw, its identity known."""

    kind: EventKind
    type: EventType
    time: int
    producer: str
    run: EventRun | None
    job: EventJob | None
    dataset: EventDataset | None
    inputs: list[EventDataset]
    outputs: list[EventDataset]
    raw: bytes
    hash: bytes
    assumed: tuple[str, ...] = ()
    """Why `raw` is not quite what was sent: a reason for each assumption."""

    @property
    def datasets(self) -> list[EventDataset]:
        """Every dataset the event names."""
        return [*self.inputs, *self.outputs, *([self.dataset] if self.dataset else [])]
