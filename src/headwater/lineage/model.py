"""The lineage of one job, as every producer describes it before it becomes an event.

Kafka Connect, Spark and `headwater.run` fill these values; `headwater.lineage.openlineage.writer` makes an
OpenLineage event of them. All of them are immutable and can be encoded as JSON. An empty text, an
empty tuple and None mean "not known" unless a field is documented otherwise: a producer never guesses.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal, NamedTuple

import msgspec

from headwater.lineage.naming import DatasetName
from headwater.lineage.schema import Schema, SchemaOrigin

__all__ = [
    "Ancestors",
    "Catalog",
    "Change",
    "ColumnLineage",
    "ColumnSource",
    "Dataset",
    "DatasetName",
    "DatasetType",
    "Edge",
    "End",
    "Engine",
    "Evidence",
    "Failure",
    "Job",
    "JobName",
    "LifecycleChange",
    "Lineage",
    "Owner",
    "Run",
    "RunRef",
    "SourceCode",
    "Statistics",
    "Symlink",
    "Tag",
    "Transformation",
]

DatasetType = Literal["TABLE", "VIEW", "FILE", "TOPIC", "STREAM", "MODEL", ""]
Change = Literal["ALTER", "CREATE", "DROP", "OVERWRITE", "RENAME", "TRUNCATE"]


class JobName(NamedTuple):
    """What identifies a job everywhere: its namespace and its name in it."""

    namespace: str
    name: str


class Evidence(msgspec.Struct, frozen=True):
    """Where a producer knows a dataset or an edge from.

    `source` is the kind of evidence (`runtime topics`, `config key`, `iceberg table`), `detail`
    which one it was, never a value. `observed` is true for what was seen at work, and false, the
    default, for what was derived.
    """

    source: str
    detail: str = ""
    observed: bool = False


class Symlink(msgspec.Struct, frozen=True):
    """Another name of the same dataset."""

    namespace: str
    name: str
    type: str = "TABLE"


class Catalog(msgspec.Struct, frozen=True):
    """The catalog that keeps a table; `source` is the engine that uses it."""

    framework: str
    type: str
    name: str
    metadata_uri: str = ""
    warehouse_uri: str = ""
    source: str = ""


class LifecycleChange(msgspec.Struct, frozen=True):
    """What a job does to a dataset itself; `previous` is its name before a RENAME.

    `partial` is an OVERWRITE that leaves rows of others: of some partitions, or by a filter.
    """

    change: Change
    previous: DatasetName | None = None
    partial: bool = False


class Statistics(msgspec.Struct, frozen=True):
    """How much one run read from, or wrote to, one dataset."""

    rows: int | None = None
    size: int | None = None
    files: int | None = None


NULL_TEST_ONLY = "tested for null only"
"""The description of a transformation that asks whether a column is null, and nothing else of it."""


class Transformation(msgspec.Struct, frozen=True, gc=False):
    """How an input column enters an output column; None is left out of the event."""

    type: str | None = None
    subtype: str | None = None
    description: str | None = None
    masking: bool | None = None


class ColumnSource(msgspec.Struct, frozen=True):
    """One input column, and how it enters."""

    dataset: DatasetName
    field: str
    transformations: tuple[Transformation, ...] = ()


class ColumnLineage(msgspec.Struct, frozen=True):
    """Where the columns of one output come from.

    `fields` has every output column whose sources are known, with an empty tuple for one that has
    none (a literal, a row count). `dataset` are the inputs that decide about rows: joins, filters,
    groups, sorting. `unknown` are the output columns whose sources are not known; they are not in
    `fields`.
    """

    fields: dict[str, tuple[ColumnSource, ...]] = {}
    dataset: tuple[ColumnSource, ...] = ()
    unknown: tuple[str, ...] = ()


class Dataset(msgspec.Struct, frozen=True):
    """A dataset as one job reads or writes it.

    `schema_source` is the registry or catalog that was asked for the schema; None where the schema
    was worked out otherwise. `version` is the schema's version of a topic, or the snapshot of a table that was read by id,
    time, branch or tag; `sub_type` the format or kind of table. `source` is the address of the
    store without credentials, where it is not the namespace. `cluster_id` and `bootstrap` belong
    to Kafka topics, as do `groups`, the consumer groups of the reader's own that it reads in: each a name, or
    a prefix and `-*` for what Spark makes of it. `columns` is set on outputs only, None when their sources are not known at
    all. `placed` is false while the location of a table is not known: such an output is not
    written, because its next reader would name another dataset.
    """

    namespace: str
    name: str
    type: DatasetType = ""
    sub_type: str = ""
    schema: Schema | None = None
    version: str = ""
    symlinks: tuple[Symlink, ...] = ()
    catalog: Catalog | None = None
    source: str = ""
    storage_layer: str = ""
    file_format: str = ""
    cluster_id: str = ""
    bootstrap: tuple[str, ...] = ()
    groups: tuple[str, ...] = ()
    change: LifecycleChange | None = None
    evidence: tuple[Evidence, ...] = ()
    columns: ColumnLineage | None = None
    statistics: Statistics | None = None
    placed: bool = True
    schema_source: SchemaOrigin | None = None

    @property
    def id(self) -> DatasetName:
        """Namespace and name, by which edges and columns refer to it."""
        return DatasetName(self.namespace, self.name)


class Edge(msgspec.Struct, frozen=True):
    """One input that feeds one output, and how that is known.

    `columns_known` is whether the columns of this pair are known; they are in the output's
    `columns`. `named` are the columns of the input that the job names although it hands on whole
    records: those it cannot do without.
    """

    input: DatasetName
    output: DatasetName
    evidence: tuple[Evidence, ...] = ()
    columns_known: bool = False
    named: tuple[str, ...] = ()


class Lineage(msgspec.Struct, frozen=True):
    """What one job reads and writes.

    `edges` are the pairs of input and output that belong together; None means that every input may
    feed every output. `problems` are sentences for people, one for each thing that could not be
    found out.
    """

    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    edges: tuple[Edge, ...] | None = None
    sql: str = ""
    dialect: str = ""
    problems: tuple[str, ...] = ()

    @property
    def columns(self) -> dict[DatasetName, ColumnLineage]:
        """The column lineage of every output that has one."""
        return {out.id: out.columns for out in self.outputs if out.columns is not None}


class Owner(msgspec.Struct, frozen=True):
    """Who is responsible for a job; `type` is the role, such as `team`."""

    name: str
    type: str = ""


class Tag(msgspec.Struct, frozen=True):
    """A label of a job or run; `source` is who set it."""

    key: str
    value: str
    source: str = ""


class SourceCode(msgspec.Struct, frozen=True):
    """Where the code of a job lives."""

    type: str
    url: str
    repo_url: str = ""
    path: str = ""
    version: str = ""
    branch: str = ""
    tag: str = ""


class Job(msgspec.Struct, frozen=True):
    """A job: its identity and what describes it apart from its datasets.

    `processing` is BATCH, STREAMING or SERVICE. `heartbeat` is the promised number of seconds between two events of a running run. `part_of`
    is the job that this one is shown as a part of, as a connector's task is. `deleted` is when it was
    deleted in the system that ran it.
    """

    namespace: str
    name: str
    processing: str = ""
    integration: str = ""
    type: str = ""
    heartbeat: float | None = None
    documentation: str = ""
    owners: tuple[Owner, ...] = ()
    tags: tuple[Tag, ...] = ()
    source_code: SourceCode | None = None
    part_of: JobName | None = None
    deleted: datetime | None = None


class RunRef(NamedTuple):
    """A run and its job, by name."""

    namespace: str
    name: str
    run_id: str


class Ancestors(NamedTuple):
    """The run that started another one, and the root of the whole tree."""

    parent: RunRef
    root: RunRef

    def below(self, run: RunRef) -> Ancestors:
        """The ancestors of a child of `run`, which is itself a child of `parent`."""
        return Ancestors(run, self.root)


class Engine(msgspec.Struct, frozen=True):
    """What executes a run, and the version of Headwater that reports it."""

    name: str
    version: str
    adapter_version: str


class Run(msgspec.Struct, frozen=True):
    """One run of a job.

    `facets` holds the content of `headwater_*` run facets that only one producer has, by name.
    """

    id: str
    ancestors: Ancestors | None = None
    engine: Engine | None = None
    tags: tuple[Tag, ...] = ()
    facets: dict[str, dict[str, Any]] = {}


class Failure(msgspec.Struct, frozen=True):
    """Why a run failed: one line, and the stack trace below it."""

    message: str
    stack_trace: str = ""
    language: str = ""


class End(msgspec.Struct, frozen=True):
    """Why a run ended; `inferred` when its producer could not report that itself.

    `by` is the person, token or user of the operating system that ended it, where that is known.
    """

    reason: str
    inferred: bool = False
    by: str = ""
