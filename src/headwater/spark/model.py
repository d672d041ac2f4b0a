"""What a plan's lineage is: plain values that the listeners turn into events."""

from __future__ import annotations

from typing import Any, Literal

import msgspec

from headwater.lineage.facets import Transformation
from headwater.lineage.naming import DatasetName
from headwater.lineage.schema import Schema

__all__ = [
    "Catalog",
    "ColumnLineage",
    "ColumnSource",
    "Dataset",
    "Evidence",
    "LifecycleChange",
    "PlanLineage",
    "Symlink",
    "Transformation",
]

DatasetType = Literal["TABLE", "VIEW", "FILE", "TOPIC", "STREAM", ""]
Change = Literal["ALTER", "CREATE", "DROP", "OVERWRITE", "RENAME", "TRUNCATE"]


class Evidence(msgspec.Struct, frozen=True):
    """Which node of the plan said so, and whether it was seen or worked out."""

    source: str
    detail: str = ""
    observed: bool = True


class Symlink(msgspec.Struct, frozen=True):
    """Another name of the same dataset."""

    namespace: str
    name: str
    type: str = "TABLE"


class Catalog(msgspec.Struct, frozen=True):
    """The catalog that keeps a table, as OpenLineage's catalog facet has it."""

    framework: str
    type: str
    name: str
    metadata_uri: str = ""
    warehouse_uri: str = ""
    source: str = "spark"


class LifecycleChange(msgspec.Struct, frozen=True):
    """What happens to a dataset itself; `previous` is its name before a RENAME."""

    change: Change
    previous: DatasetName | None = None


class Dataset(msgspec.Struct, frozen=True):
    """A dataset that a plan reads or writes.

    `version` is the snapshot that was asked for by id, time, branch or tag; `sub_type` the format
    or kind of table; `bootstrap` and `cluster_id` belong to topics; `source` is the store's own
    address without credentials; `placed` is false while nobody can tell where a table will lie.
    """

    namespace: str
    name: str
    type: DatasetType = "TABLE"
    sub_type: str = ""
    schema: Schema | None = None
    symlinks: tuple[Symlink, ...] = ()
    catalog: Catalog | None = None
    source: str = ""
    storage_layer: str = ""
    file_format: str = ""
    version: str = ""
    bootstrap: tuple[str, ...] = ()
    cluster_id: str = ""
    change: LifecycleChange | None = None
    evidence: tuple[Evidence, ...] = ()
    placed: bool = True

    @property
    def id(self) -> DatasetName:
        """Namespace and name, by which columns point at it."""
        return DatasetName(self.namespace, self.name)


class ColumnSource(msgspec.Struct, frozen=True):
    """One input column, and how it enters."""

    dataset: DatasetName
    field: str
    transformations: tuple[Transformation, ...]


class ColumnLineage(msgspec.Struct, frozen=True):
    """Where the columns of one output come from.

    `fields` has every output column whose sources are known, an empty tuple for one that has none
    (a literal, a row count). `dataset` are the inputs that decide about rows: joins, filters,
    groups, sorting. `unknown` are output columns nobody can tell the sources of; what is in it is
    not in `fields`. Nothing here is a guess.
    """

    fields: dict[str, tuple[ColumnSource, ...]] = {}
    dataset: tuple[ColumnSource, ...] = ()
    unknown: tuple[str, ...] = ()


class PlanLineage(msgspec.Struct, frozen=True):
    """The lineage of one query.

    `columns` is by output; an output that is not in it has unknown columns. `operation` is a word
    for the job's name such as `append`, `merge_into` or `create_table_as_select`. `problems` are
    sentences for a log or a facet, one for each thing that could not be told. `frontier` is what
    the query's result columns are made of: hand it on, it is nobody else's business.
    """

    inputs: tuple[Dataset, ...] = ()
    outputs: tuple[Dataset, ...] = ()
    columns: dict[DatasetName, ColumnLineage] = {}
    sql: str = ""
    operation: str = ""
    problems: tuple[str, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    nodes: int = 0
    seconds: float = 0.0
    frontier: Any = None
