"""Column-to-column edges: read from facets, combined along a path."""

from __future__ import annotations

from typing import NamedTuple

from headwater.lineage.openlineage.facets import (
    ColumnInputs,
    ColumnLineageFacet,
    InputField,
    Transformation,
)

__all__ = ["WHOLE", "ColumnEdge", "combine", "from_column_lineage", "part_of", "wholes"]

WHOLE = "*"
"""The output column of an input that touches every row or column (a filter, a join key)."""

_ORDER = {"IDENTITY": 0, "TRANSFORMATION": 1, "AGGREGATION": 2}


class ColumnEdge(NamedTuple):
    """One input column of one output column."""

    namespace: str
    name: str
    field: str
    output: str
    transformations: tuple[Transformation, ...] = ()


def from_column_lineage(facet: ColumnLineageFacet) -> list[ColumnEdge]:
    """The edges of a `columnLineage` facet; inputs of the whole dataset end in `WHOLE`."""
    edges: dict[tuple[str, str, str, str], ColumnEdge] = {}
    for output, inputs in (facet.fields or {}).items():
        for item in inputs.inputFields or ():
            _add(edges, item, output, _transformations(item, inputs))
    for item in facet.dataset or ():
        _add(edges, item, WHOLE, tuple(item.transformations or ()))
    return list(edges.values())


def combine(first: Transformation, second: Transformation) -> Transformation:
    """What two steps in a row amount to: INDIRECT wins, else the stronger; masking stays."""
    masking = bool(first.masking or second.masking)
    for step in (first, second):
        if step.type == "INDIRECT":
            return Transformation("INDIRECT", step.subtype, step.description, masking)
    strongest = max((first, second), key=lambda step: _ORDER.get(step.subtype or "", 1))
    return Transformation("DIRECT", strongest.subtype, strongest.description, masking)


def wholes(column: str, *, topic: bool) -> dict[str, str]:
    """The columns that hold a column, each with the path from it down to that.

    A job that takes a Kafka record as bytes or text uses `value` or `key` as a whole.
    """
    dots = [place for place, sign in enumerate(column) if sign == "."]
    found = {column[:place]: column[place + 1 :] for place in dots}
    if topic and column != "value" and column.partition(".")[0] != "key":
        found["value"] = column
    return found


def part_of(whole: str, rest: str, *, topic: bool) -> str:
    """The column at a path in another one."""
    return rest if topic and whole == "value" else f"{whole}.{rest}"


def _transformations(item: InputField, inputs: ColumnInputs) -> tuple[Transformation, ...]:
    if item.transformations:
        return tuple(item.transformations)
    if inputs.transformationType or inputs.transformationDescription:
        kind = inputs.transformationType
        return (Transformation("DIRECT", kind, inputs.transformationDescription),)
    return ()


def _add(
    edges: dict[tuple[str, str, str, str], ColumnEdge],
    item: InputField,
    output: str,
    transformations: tuple[Transformation, ...],
) -> None:
    key = (item.namespace, item.name, item.field, output)
    before = edges.get(key)
    if before is not None:
        extra = tuple(t for t in transformations if t not in before.transformations)
        transformations = before.transformations + extra
    edges[key] = ColumnEdge(*key, transformations)
