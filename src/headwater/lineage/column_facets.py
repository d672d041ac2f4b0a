"""The facets that say which columns, and which datasets, a dataset comes from."""

from __future__ import annotations

import msgspec

from headwater.lineage.model import Transformation

__all__ = [
    "ColumnInputs",
    "ColumnLineage",
    "InputField",
    "Lineage",
    "LineageEntry",
    "LineageField",
    "LineageInput",
    "Transformation",
    "sources",
]


class InputField(msgspec.Struct):
    """One input column of an output column."""

    namespace: str
    name: str
    field: str
    transformations: list[Transformation] | None = None


class ColumnInputs(msgspec.Struct):
    """The inputs of one output column."""

    inputFields: list[InputField] | None = None  # noqa: N815
    transformationDescription: str | None = None  # noqa: N815
    transformationType: str | None = None  # noqa: N815


class ColumnLineage(msgspec.Struct):
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


class Lineage(msgspec.Struct):
    """`lineage`: explicit sources, target by target on a job, or of one dataset."""

    entries: list[LineageEntry] | None = None
    inputs: list[LineageInput] | None = None
    fields: dict[str, LineageField] | None = None


def sources(facet: ColumnLineage) -> set[tuple[str, str]]:
    """The datasets that a `columnLineage` facet names, by namespace and name."""
    found = {
        (i.namespace, i.name) for f in (facet.fields or {}).values() for i in f.inputFields or ()
    }
    return found.union((i.namespace, i.name) for i in facet.dataset or ())
