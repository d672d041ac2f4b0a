"""The facets Headwater understands, read leniently; every other facet is kept as it came."""

from __future__ import annotations

from datetime import datetime
from typing import Any, TypeVar, get_args

import msgspec

from headwater.lineage.model import Transformation
from headwater.lineage.moments import SECOND, micros
from headwater.lineage.openlineage.checks import lowered
from headwater.lineage.schema.origin import SchemaOrigin

__all__ = [
    "ColumnInputs",
    "ColumnLineageFacet",
    "DbtModelFacet",
    "EndFacet",
    "ErrorMessageFacet",
    "InputField",
    "JobTypeFacet",
    "LineageEntry",
    "LineageFacet",
    "LineageField",
    "LineageInput",
    "ParentFacet",
    "SchemaFacet",
    "SchemaField",
    "SqlFacet",
    "SymlinkIdentifier",
    "SymlinksFacet",
    "Transformation",
    "problems",
    "read",
    "sources",
]


class SchemaField(msgspec.Struct, omit_defaults=True):
    """A column, with the columns inside it."""

    name: str
    type: str | None = None
    description: str | None = None
    fields: list[SchemaField] | None = None


class SchemaFacet(msgspec.Struct):
    """`schema`: the columns of a dataset."""

    fields: list[SchemaField] | None = None


class InputField(msgspec.Struct, gc=False):
    """One input column of an output column."""

    namespace: str
    name: str
    field: str
    transformations: list[Transformation] | None = None


class ColumnInputs(msgspec.Struct, gc=False):
    """The inputs of one output column."""

    inputFields: list[InputField] | None = None  # noqa: N815
    transformationDescription: str | None = None  # noqa: N815
    transformationType: str | None = None  # noqa: N815


class ColumnLineageFacet(msgspec.Struct):
    """`columnLineage`: which input columns each output column comes from."""

    fields: dict[str, ColumnInputs] | None = None
    dataset: list[InputField] | None = None
    explicit: bool = False
    """Whether this is the explicit `lineage` facet in the shape of this one."""


class LineageInput(msgspec.Struct):
    """A source named by the explicit `lineage` facet."""

    namespace: str | None = None
    name: str | None = None
    type: str | None = None
    field: str | None = None
    transformations: list[Transformation] | None = None


class LineageField(msgspec.Struct):
    """The sources of one column in the explicit `lineage` facet."""

    inputs: list[LineageInput] | None = None


class LineageEntry(msgspec.Struct):
    """The sources of one target in the explicit `lineage` facet of a job."""

    namespace: str | None = None
    name: str | None = None
    type: str | None = None
    inputs: list[LineageInput] | None = None
    fields: dict[str, LineageField] | None = None


class LineageFacet(msgspec.Struct):
    """`lineage`: explicit sources, target by target on a job, or of one dataset."""

    entries: list[LineageEntry] | None = None
    inputs: list[LineageInput] | None = None
    fields: dict[str, LineageField] | None = None


class SymlinkIdentifier(msgspec.Struct):
    """Another name of the same dataset."""

    namespace: str
    name: str
    type: str | None = None


class SymlinksFacet(msgspec.Struct):
    """`symlinks`: the other names of a dataset."""

    identifiers: list[SymlinkIdentifier] | None = None

    def names(self) -> tuple[tuple[str, str], ...]:
        """The names that stand for this dataset wherever they are read.

        A table in the namespace of a Kafka cluster is none of them. Flink names a topic so by what one
        session calls it (`default_catalog.default_database.orders`), and the next session calls
        another topic that.
        """
        return tuple(
            (one.namespace, one.name)
            for one in self.identifiers or ()
            if not (one.type == "TABLE" and one.namespace.startswith("kafka://"))
        )


class ClusterFacet(msgspec.Struct):
    """`headwater_cluster`: which Kafka cluster a topic lives on, by id and addresses."""

    clusterId: str  # noqa: N815
    bootstrap: list[str] | None = None


class Physical(msgspec.Struct):
    """`headwater_physical`: where a dataset is stored, as a Marquez client reported it."""

    physicalName: str | None = None  # noqa: N815
    schemaLocation: str | None = None  # noqa: N815


class PartOf(msgspec.Struct):
    """`headwater_partOf`: the parent job that a task job is merged into, as a connector's task is into the connector."""

    namespace: str
    name: str


class DataSourceFacet(msgspec.Struct):
    """`dataSource`: the store a dataset lives in."""

    name: str | None = None
    uri: str | None = None


class EmissionPattern(msgspec.Struct):
    """How often, and how completely, a job reports."""

    eventTrigger: str | None = None  # noqa: N815
    eventContentMode: str | None = None  # noqa: N815
    windowDuration: float | None = None  # noqa: N815

    @property
    def interval(self) -> int | None:
        """The microseconds between two reports of a job that promises some, where that makes sense."""
        every = self.windowDuration
        if self.eventTrigger != "PERIODIC" or every is None or not 0 < every <= _LONGEST:
            return None
        return max(int(every * SECOND), SECOND)


class JobTypeFacet(msgspec.Struct):
    """`jobType`: batch, streaming or service, and which integration reports."""

    processingType: str | None = None  # noqa: N815
    integration: str | None = None
    jobType: str | None = None  # noqa: N815
    emissionPattern: EmissionPattern | None = None  # noqa: N815

    @property
    def streaming(self) -> bool:
        """Whether the job has no end of its own."""
        return (self.processingType or "").upper() in ("STREAMING", "STREAM", "SERVICE")


class SqlFacet(msgspec.Struct):
    """`sql`: the statement that a job runs."""

    query: str = ""
    dialect: str = ""


class DbtModelConfig(msgspec.Struct):
    """How dbt is configured to make a model."""

    materialized: str = ""


class DbtModelFacet(msgspec.Struct):
    """`dbt_model`: what dbt says of a model that it writes."""

    config: DbtModelConfig = msgspec.field(default_factory=DbtModelConfig)


class ErrorMessageFacet(msgspec.Struct):
    """`errorMessage`: why a run failed."""

    message: str | None = None
    programmingLanguage: str | None = None  # noqa: N815
    stackTrace: str | None = None  # noqa: N815


class _RunRef(msgspec.Struct):
    runId: str | None = None  # noqa: N815


class _JobRef(msgspec.Struct):
    namespace: str | None = None
    name: str | None = None


class _Root(msgspec.Struct):
    run: _RunRef | None = None
    job: _JobRef | None = None


class ParentFacet(msgspec.Struct):
    """`parent`: the run and job that started this one, and the root of the tree."""

    run: _RunRef | None = None
    job: _JobRef | None = None
    root: _Root | None = None


class EndFacet(msgspec.Struct):
    """What `headwater_connect` and `headwater_end` report of how a run ended."""

    state: str | None = None
    reason: str | None = None
    inferred: bool | None = None
    by: str | None = None


class NominalTimeFacet(msgspec.Struct):
    """`nominalTime`: the period a scheduled run stands for."""

    nominalStartTime: datetime | None = None  # noqa: N815
    nominalEndTime: datetime | None = None  # noqa: N815

    @property
    def period(self) -> tuple[int | None, int | None]:
        """Its start and its end in microseconds, each where it is a moment that can be shown."""
        return _moment(self.nominalStartTime), _moment(self.nominalEndTime)


def _moment(time: datetime | None) -> int | None:
    try:
        return micros(time) if time is not None and time.tzinfo else None
    except ValueError:
        return None


class LifecycleFacet(msgspec.Struct):
    """`lifecycleStateChange`: a dataset created, altered, dropped, renamed or emptied."""

    lifecycleStateChange: str | None = None  # noqa: N815
    previousIdentifier: SymlinkIdentifier | None = None  # noqa: N815


OVERWRITTEN = "headwater_overwrite"


class OverwriteFacet(msgspec.Struct):
    """`headwater_overwrite`: whether an OVERWRITE left a part of the dataset as it was."""

    partial: bool | None = None


ABOUT = "headwater_about"
"""Description and owners that people gave by hand."""
DELETED_FACET = "headwater_deleted"
"""When a job was deleted in the system that ran it."""


class DocumentationFacet(msgspec.Struct):
    """`documentation`: what a job or dataset is for."""

    description: str | None = None


class DatasetTypeFacet(msgspec.Struct):
    """`datasetType`: table, view, file, topic, stream, model."""

    datasetType: str | None = None  # noqa: N815
    subType: str | None = None  # noqa: N815


class TagEntry(msgspec.Struct):
    """One tag as a producer sets it."""

    key: str
    value: str | None = None
    field: str | None = None


class TagsFacet(msgspec.Struct):
    """`tags`: tags of a dataset (or its columns), job or run."""

    tags: list[TagEntry] | None = None


class SourceCodeLocationFacet(msgspec.Struct):
    """`sourceCodeLocation`: where the job's code lives."""

    type: str | None = None
    url: str | None = None


_KNOWN: dict[str, type[msgspec.Struct]] = {
    "schema": SchemaFacet,
    "columnLineage": ColumnLineageFacet,
    "lineage": LineageFacet,
    "symlinks": SymlinksFacet,
    "headwater_cluster": ClusterFacet,
    "headwater_schemaSource": SchemaOrigin,
    "dataSource": DataSourceFacet,
    "jobType": JobTypeFacet,
    "errorMessage": ErrorMessageFacet,
    "parent": ParentFacet,
    "nominalTime": NominalTimeFacet,
    "headwater_end": EndFacet,
    "lifecycleStateChange": LifecycleFacet,
    OVERWRITTEN: OverwriteFacet,
    "documentation": DocumentationFacet,
    "datasetType": DatasetTypeFacet,
    "tags": TagsFacet,
    "sourceCodeLocation": SourceCodeLocationFacet,
}
_KINDS: tuple[type[msgspec.Struct], ...] = (
    *_KNOWN.values(),
    PartOf,
    Physical,
    SqlFacet,
    DbtModelFacet,
)
_DECODERS: dict[type, msgspec.json.Decoder[Any]] = {
    kind: msgspec.json.Decoder(kind) for kind in _KINDS
}
_STRICT = ("schema", "columnLineage", "symlinks")

T = TypeVar("T", bound=msgspec.Struct)
_LONGEST = 10 * 365 * 24 * 3_600
"""A job that reports more seldom than this promises nothing."""


def read(raw: bytes | msgspec.Raw, kind: type[T]) -> T | None:
    """A facet as a `kind`, without what does not fit; None when nothing of it does."""
    try:
        found = _DECODERS[kind].decode(raw)
    except msgspec.ValidationError:
        return _salvage(msgspec.json.decode(raw), kind)
    except (msgspec.DecodeError, RecursionError):
        return None
    return found if isinstance(found, kind) else None


def problems(name: str, raw: bytes | msgspec.Raw) -> str | None:
    """What is wrong with a facet that the graph is built from, or None."""
    if name not in _STRICT:
        return None
    try:
        _DECODERS[_KNOWN[name]].decode(raw)
    except msgspec.ValidationError as error:
        return lowered(str(error).replace("`", ""))
    return None


def sources(facet: ColumnLineageFacet) -> set[tuple[str, str]]:
    """The datasets that a `columnLineage` facet names, by namespace and name."""
    found = {
        (i.namespace, i.name) for f in (facet.fields or {}).values() for i in f.inputFields or ()
    }
    return found.union((i.namespace, i.name) for i in facet.dataset or ())


def _salvage(value: Any, kind: type[T]) -> T | None:
    """The members of an object that fit, each by itself; None without one that must be there."""
    if not isinstance(value, dict):
        return None
    kept = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in value:
            found = _member(value[field.encode_name], field.type)
            if found is not None:
                kept[field.name] = found
    try:
        return kind(**kept)
    except TypeError:
        return None


def _member(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        pass
    options = get_args(kind) or (kind,)
    inner = next(
        (o for o in options if isinstance(o, type) and issubclass(o, msgspec.Struct)), None
    )
    if inner is not None:
        return _salvage(value, inner)
    listed = next((get_args(o) for o in options if getattr(o, "__origin__", None) is list), None)
    if listed and isinstance(value, list):
        parts = (_member(item, listed[0]) for item in value)
        return [part for part in parts if part is not None]
    return None
