"""The shapes of answers that several routes share; what is not named in them may still be there.

They are written down for OpenAPI and for the reader: an answer is a plain object of this shape.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypedDict

from msgspec import Meta

__all__ = [
    "Dataset",
    "Edge",
    "Error",
    "Events",
    "Field",
    "Job",
    "NameMatch",
    "Named",
    "Object",
    "Run",
    "RunState",
    "Sourced",
    "Time",
    "Uuid",
]

Object = dict[str, Any]
Time = Annotated[str, Meta(extra_json_schema={"format": "date-time"})]
Uuid = Annotated[str, Meta(extra_json_schema={"format": "uuid"})]
RunState = Literal["NEW", "RUNNING", "COMPLETED", "FAILED", "ABORTED"]


class Named(TypedDict):
    """A namespace and a name in it."""

    namespace: str
    name: str


class _Field(TypedDict, total=False):
    field: str


class NameMatch(Named, _Field):
    """A job, a dataset or a column by name, with its node id; a tag has no namespace and no node."""

    kind: str
    node: str


class Sourced(TypedDict, total=False):
    """An answer about the past: `source` is `lake` where the store no longer has that moment."""

    source: Literal["lake"]


class Edge(TypedDict):
    """Data flows from one node to another."""

    origin: str
    destination: str


class Problem(TypedDict):
    """What is wrong with one member of a request."""

    field: str
    problem: str


class _Problems(TypedDict, total=False):
    errors: list[str]
    problems: list[Problem]
    nearest: list[NameMatch]


class Error(_Problems):
    """Any answer that is not a success."""

    code: int
    message: str


class Field(TypedDict):
    """A column."""

    name: str
    type: str | None
    tags: list[str]
    description: str | None


class Dataset(TypedDict):
    """A dataset as Marquez shows it."""

    id: Named
    type: str
    name: str
    physicalName: str
    createdAt: Time
    updatedAt: Time
    namespace: str
    sourceName: str
    fields: list[Field]
    tags: list[str]
    lastModifiedAt: Time | None
    description: str | None
    currentVersion: str | None
    facets: Object
    deleted: bool


class Job(TypedDict):
    """A job as Marquez shows it."""

    id: Named
    type: str
    name: str
    simpleName: str
    parentJobName: str | None
    createdAt: Time
    updatedAt: Time
    namespace: str
    inputs: list[Named]
    outputs: list[Named]
    location: str | None
    description: str | None
    latestRun: Object | None
    facets: Object
    currentVersion: str | None
    labels: list[str]
    tags: list[str]


class Run(TypedDict):
    """A run as Marquez shows it."""

    id: Uuid
    createdAt: Time | None
    updatedAt: Time | None
    nominalStartTime: Time | None
    nominalEndTime: Time | None
    state: RunState
    startedAt: Time | None
    endedAt: Time | None
    durationMs: int | None
    args: Object
    jobVersion: Object | None
    inputDatasetVersions: list[Object]
    outputDatasetVersions: list[Object]
    facets: Object


class Events(TypedDict):
    """Events as they were sent."""

    events: list[Object]
    totalCount: int
