"""The things the projection keeps: datasets, jobs and runs, each one row with a packed state."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.lineage.graph import NodeKind
from headwater.lineage.lifecycle import RunHistory, State

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = [
    "DELETED",
    "INPUT",
    "MERGED",
    "OUTPUT",
    "STATUSES",
    "Column",
    "Dataset",
    "DatasetState",
    "DatasetUse",
    "Io",
    "Job",
    "JobState",
    "Namespace",
    "Node",
    "Run",
    "RunInput",
    "RunState",
    "Source",
    "run_uses",
    "slot",
    "to_dataset",
    "to_job",
    "to_run",
    "unslot",
]

INPUT, OUTPUT = 0, 1
Column = tuple[int, str]
"""A column: what the name of its dataset stands for, and the column's name."""
Node = tuple[str, int]
"""A job or a dataset of the graph: its kind and its id; datasets by what their name stands for."""
DELETED, MERGED = 1, 2
"""Why something is hidden: by hand until an event names it again, or merged into its parent job."""
STATUSES = tuple(State)
_STATUS = {state: i for i, state in enumerate(State)}

Held = list[int]
"""A facet held by an entity: its id (0 once deleted), since when, and when last reported."""


def slot(dataset: int, direction: int) -> int:
    """A dataset and a direction as one number."""
    return dataset * 2 + direction


def unslot(value: int) -> tuple[int, int]:
    """The dataset and direction that `slot` joined."""
    return value >> 1, value & 1


class Io(msgspec.Struct, array_like=True, gc=False):
    """A run's use of one dataset."""

    since: int
    until: int | None = None
    version: int | None = None
    facets: dict[str, Held] = {}
    stream: Held | None = None
    """The schema that a stream claims of the dataset: facet, first and last time."""
    batch: Held | None = None
    """The schema that a batch claims of its output: facet, first and last time, and as stored."""
    ended: Held | None = None
    """When the run first reported that it creates, alters, drops or overwrites, and as stored.

    The third number is the run as stored, from which it is known whether it created or dropped.
    """


class Namespace(msgspec.Struct):
    """A namespace of jobs, datasets or both."""

    id: int
    name: str
    owner: str | None
    description: str | None
    created: int
    updated: int
    hidden: int = 0

    def row(self) -> tuple[Any, ...]:
        """The row as the table wants it."""
        return msgspec.structs.astuple(self)


class Source(msgspec.Struct):
    """A store that datasets live in."""

    id: int
    name: str
    kind: str
    url: str
    description: str | None
    created: int
    updated: int

    def row(self) -> tuple[Any, ...]:
        """The row as the table wants it."""
        return msgspec.structs.astuple(self)


class DatasetState(msgspec.Struct, array_like=True, gc=False):
    """What a dataset's row packs."""

    facets: dict[str, Held] = msgspec.field(default_factory=dict)
    lifecycle: str = ""
    modified: int | None = None
    description: str | None = None
    dropped: int | None = None
    written: int | None = None
    links: dict[int, Held] = msgspec.field(default_factory=dict)
    """The symlinks facets that events declared: facet, first and last time."""
    rivals: list[int] = msgspec.field(default_factory=list)
    """Other datasets that declare one of the same symlinks."""
    schema: list[int] | None = None
    """The resolved schema's facet, the rank that decides, the time of the latest claim, and the
    moment from which on claims have given this schema."""
    ended: int | None = None
    """When the dataset was last created, altered, dropped or overwritten."""
    claims: dict[str, Held] = msgspec.field(default_factory=dict)
    """What dataset events claim of the schema: facet, first and last time."""
    floor: int = 0
    """The moment before which the schemas stay as they were computed; retention has deleted the claims on them."""

    @property
    def gone(self) -> bool:
        """Whether the dataset was dropped and not written since."""
        return self.dropped is not None and (self.written is None or self.written <= self.dropped)


class Dataset(msgspec.Struct, gc=False):
    """A dataset under the name it was sent with."""

    id: int
    namespace: int
    space: str
    name: str
    root: int
    source: int | None
    kind: str
    created: int
    updated: int
    hidden: int
    version: int | None
    state: DatasetState

    @property
    def node(self) -> Node:
        """The node of the graph that the dataset's name stands for."""
        return NodeKind.DATASET.value, self.root

    def row(self) -> tuple[Any, ...]:
        """The row as the table wants it."""
        return (
            self.id,
            self.namespace,
            self.name,
            self.root,
            self.source,
            self.kind,
            self.created,
            self.updated,
            self.hidden,
            self.version,
            _encode(self.state),
        )


class JobState(msgspec.Struct, array_like=True, gc=False):
    """What a job's row packs: facets, the edges open now, its column maps."""

    facets: dict[str, Held] = msgspec.field(default_factory=dict)
    open: dict[int, int] = msgspec.field(default_factory=dict)
    columns: dict[int, Held] = msgspec.field(default_factory=dict)
    last_end: int | None = None
    description: str | None = None
    location: str | None = None
    parent: tuple[str, str] | None = None
    latest_time: int = 0
    latest_uuid: bytes = b""
    """The run that began last, and when."""
    claims: dict[str, Held] = msgspec.field(default_factory=dict)
    """What the job claims of schemas apart from its runs: facet, first and last time."""
    deletions: list[int] = msgspec.field(default_factory=list)
    """When it was deleted in the system that ran it, as its producer reported."""
    decided: tuple[int, int, bytes] | None = None
    """By what its `latest` run decides about its state; None as long as that was never asked."""

    @property
    def deleted(self) -> bool:
        """Whether its producer reported it as deleted, and nothing that began later."""
        return bool(self.deletions) and not self.open and self.deletions[-1] >= self.latest_time


class Job(msgspec.Struct, gc=False):
    """A job."""

    id: int
    namespace: int
    space: str
    name: str
    kind: str
    created: int
    updated: int
    hidden: int
    latest: int | None
    """The run that decides about its state."""
    version: int | None
    state: JobState
    fresh: bool = False

    @property
    def node(self) -> Node:
        """The job as a node of the graph."""
        return NodeKind.JOB.value, self.id

    def row(self) -> tuple[Any, ...]:
        """The row as the table wants it."""
        return (
            self.id,
            self.namespace,
            self.name,
            self.kind,
            self.created,
            self.updated,
            self.hidden,
            self.latest,
            self.version,
            _encode(self.state),
        )


class RunState(msgspec.Struct, array_like=True, gc=False):
    """What a run's row packs."""

    life: RunHistory
    facets: dict[str, Held] = msgspec.field(default_factory=dict)
    io: dict[int, Io] = msgspec.field(default_factory=dict)
    snapshot: int | None = None
    static: bool = False
    parent: str | None = None
    nominal: tuple[int | None, int | None] | None = None
    version: int | None = None
    args: dict[str, str] | None = None
    job_facets: dict[str, int] = msgspec.field(default_factory=dict)


class Run(msgspec.Struct, gc=False):
    """A run, or a job's declared lineage kept as one (`state.static`)."""

    id: int
    uuid: bytes
    job: int
    state: RunState
    fresh: bool = False
    indexed: tuple[Any, ...] = ()
    """What the row's indexes were last written with."""

    def row(self) -> tuple[Any, ...]:
        """The row as the table wants it: whole, or without the columns that have not changed."""
        life = self.state.life
        end = life.end
        deadline = None if self.state.static else life.deadline
        indexed = (life.first or 0, end, deadline, 1 if self.state.io else 0)
        status, last, packed = _STATUS[life.state], life.last or 0, _encode(self.state)
        if indexed == self.indexed:
            return (self.id, status, last, packed)
        self.indexed = indexed
        first, _, _, linked = indexed
        return (
            self.id, self.uuid, self.job, status, first, last, end, deadline, linked, packed,
        )  # fmt: skip


class RunInput(NamedTuple):
    """A dataset that a run read: its version then, and the run that had made it."""

    dataset: int
    version: bytes | None
    maker: Run | None


_encoder = msgspec.msgpack.Encoder()
_encode = _encoder.encode
decode_dataset = msgspec.msgpack.Decoder(DatasetState).decode
decode_job = msgspec.msgpack.Decoder(JobState).decode
decode_run = msgspec.msgpack.Decoder(RunState).decode


def to_dataset(row: tuple[Any, ...]) -> Dataset:
    """A row, its namespace's name in it, as a dataset."""
    values: Any = (*row[:-1], decode_dataset(bytes(row[-1])))
    return Dataset(*values)


def to_job(row: tuple[Any, ...]) -> Job:
    """A row, its namespace's name in it, as a job."""
    values: Any = (*row[:-1], decode_job(bytes(row[-1])))
    return Job(*values)


def to_run(row: tuple[Any, ...]) -> Run:
    """A row of id, UUID, job and state as a run."""
    return Run(row[0], bytes(row[1]), row[2], decode_run(bytes(row[3])))


class DatasetUse(NamedTuple):
    """A run's use of a dataset, by one of its names."""

    dataset: int
    direction: int
    version: int | None
    facets: dict[str, Held]


def run_uses(run: Run, roots: Mapping[int, int]) -> list[DatasetUse]:
    """The uses of a run, in the order of the first reports; `roots` maps each name to its dataset.

    Names that are not in it may not be seen. A dataset with several names goes by its own, else by the
    first; what was reported under the others is added to it.
    """
    found: dict[tuple[int, int], DatasetUse] = {}
    for key, io in run.state.io.items():
        dataset, direction = unslot(key)
        if dataset not in roots:
            continue
        place = (roots[dataset], direction)
        use = DatasetUse(dataset, direction, io.version, io.facets)
        other = found.get(place)
        if other is not None:
            first, second = (use, other) if dataset == place[0] else (other, use)
            use = first._replace(facets=second.facets | first.facets)
        found[place] = use
    return list(found.values())
