"""An event and its parts: the envelope decoded, the facets as they were sent."""

from __future__ import annotations

from enum import Enum
from uuid import UUID

import msgspec

__all__ = ["Dataset", "Event", "EventKind", "EventType", "Facets", "Job", "Run"]


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


Facets = dict[str, msgspec.Raw]


class Dataset(msgspec.Struct):
    """A dataset as one event names it."""

    namespace: str
    name: str
    facets: Facets | None = None
    inputFacets: Facets | None = None  # noqa: N815
    outputFacets: Facets | None = None  # noqa: N815


class Job(msgspec.Struct):
    """A job as one event names it."""

    namespace: str
    name: str
    facets: Facets | None = None


class Run(msgspec.Struct):
    """A run as one event names it."""

    runId: UUID  # noqa: N815
    facets: Facets | None = None


class Event(msgspec.Struct):
    """One event: its envelope decoded, its facets raw, its identity known."""

    kind: EventKind
    type: EventType
    time: int
    producer: str
    run: Run | None
    job: Job | None
    dataset: Dataset | None
    inputs: list[Dataset]
    outputs: list[Dataset]
    raw: bytes
    hash: bytes
    assumed: tuple[str, ...] = ()
    """Why `raw` is not quite what was sent: a reason for each assumption."""

    @property
    def datasets(self) -> list[Dataset]:
        """Every dataset the event names."""
        return [*self.inputs, *self.outputs, *([self.dataset] if self.dataset else [])]
