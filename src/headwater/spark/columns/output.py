"""Columns of an output: what they are made of, as column lineage."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.lineage.model import NULL_TEST_ONLY, ColumnLineage, ColumnSource, Transformation
from headwater.spark.columns.records import column_path
from headwater.spark.columns.value import (
    AGGREGATION,
    CONDITIONAL,
    FILTER,
    GROUP_BY,
    IDENTITY,
    JOIN,
    MASKED_AGGREGATION,
    MASKED_TRANSFORMATION,
    NULL_FILTER,
    NULL_TEST,
    SORT,
    TRANSFORMATION,
    UNKNOWN,
    WINDOW,
    Bits,
    Value,
    has_fields,
    steps,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lineage.naming import DatasetName
    from headwater.spark.columns.value import Path

# Consumers such as Marquez expect a description, if only an empty one.
_TRANSFORMATIONS = (
    (IDENTITY, Transformation("DIRECT", "IDENTITY", "", False)),
    (TRANSFORMATION, Transformation("DIRECT", "TRANSFORMATION", "", False)),
    (MASKED_TRANSFORMATION, Transformation("DIRECT", "TRANSFORMATION", "", True)),
    (AGGREGATION, Transformation("DIRECT", "AGGREGATION", "", False)),
    (MASKED_AGGREGATION, Transformation("DIRECT", "AGGREGATION", "", True)),
    (JOIN, Transformation("INDIRECT", "JOIN", "", False)),
    (GROUP_BY, Transformation("INDIRECT", "GROUP_BY", "", False)),
    (FILTER, Transformation("INDIRECT", "FILTER", "", False)),
    (NULL_FILTER, Transformation("INDIRECT", "FILTER", NULL_TEST_ONLY, False)),
    (SORT, Transformation("INDIRECT", "SORT", "", False)),
    (WINDOW, Transformation("INDIRECT", "WINDOW", "", False)),
    (CONDITIONAL, Transformation("INDIRECT", "CONDITIONAL", "", False)),
)
MAX_COLUMNS = 5000


class OutputColumn(NamedTuple):
    """One column that is written: its name, its type and what it is made of."""

    name: str
    type: Any
    value: Value


def columns_of(
    columns: list[OutputColumn], rows: Bits, target: DatasetName | None = None
) -> ColumnLineage:
    """The lineage of columns; a column of the `target` that stays what it was is left out."""
    fields: dict[str, tuple[ColumnSource, ...]] = {}
    unknown: list[str] = []
    for column in columns:
        for path, bits in flat((column.name,), column.type, column.value):
            _add(path, bits, target, fields, unknown)
            if len(fields) > MAX_COLUMNS:
                break
    return ColumnLineage(fields, _sources(rows), tuple(dict.fromkeys(unknown)))


def record(columns: list[OutputColumn], rows: Bits) -> ColumnLineage:
    """The lineage of a Kafka record: value and key, taken apart where they were put together."""
    fields: dict[str, tuple[ColumnSource, ...]] = {}
    unknown: list[str] = []
    for column in columns:
        if column.name not in ("value", "key"):
            continue
        value = column.value
        if not value.encoded:
            _add((column.name,), value.all(), None, fields, unknown)
            continue
        for name, part in value.parts.items():
            held = Value(part.bits, part.kind, part.parts) if part.kind else part
            for path, bits in flat((), _type_of(value, name), held):
                _add(column_path(column.name, (name, *path)), bits, None, fields, unknown)
    return ColumnLineage(fields, _sources(rows), tuple(dict.fromkeys(unknown)))


def _type_of(value: Value, name: str) -> Any:
    fields = value.typed.get("fields", ()) if isinstance(value.typed, dict) else ()
    return next((item["type"] for item in fields if item["name"] == name), None)


def flat(path: Path, data_type: Any, value: Value) -> Iterator[tuple[Path, Bits]]:
    """The columns inside a column, by the names a schema gives them."""
    if has_fields(data_type):
        for place, (name, inner, step) in enumerate(steps(data_type)):
            part = value.part(name, place) if value.kind or value.is_open else value
            yield from flat(path + step, inner, part)
    elif data_type is None and value.kind == "struct" and value.parts:
        for name in value.parts:
            yield from flat((*path, name), None, value.part(name))
    elif data_type is None and value.kind == "array":
        yield from flat(path, None, value.part("element"))
    else:
        yield path, value.all()


def _add(
    path: Path,
    bits: Bits,
    target: DatasetName | None,
    fields: dict[str, tuple[ColumnSource, ...]],
    unknown: list[str],
) -> None:
    name = ".".join(path)
    if UNKNOWN in bits:
        unknown.append(name)
        return
    if target is not None:
        kept = {leaf: bit for leaf, bit in bits.items() if not _carried(leaf, bit, target, path)}
        if bits and not kept:
            return
        bits = kept
    fields[name] = _sources(bits)


def _carried(leaf: Any, bit: int, target: DatasetName, path: Path) -> bool:
    source, own = leaf
    return (
        bit == IDENTITY
        and own == path
        and source is not None
        and any(dataset.id == target for dataset in source.datasets)
    )


def _sources(bits: Bits) -> tuple[ColumnSource, ...]:
    found: dict[tuple[DatasetName, str], int] = {}
    for (source, path), bit in bits.items():
        if source is None:
            continue
        for dataset in source.datasets:
            key = (dataset.id, ".".join(path))
            found[key] = found.get(key, 0) | bit
    return tuple(
        ColumnSource(name, field, tuple(step for bit, step in _TRANSFORMATIONS if bit & bits_))
        for (name, field), bits_ in sorted((key, _simplified(held)) for key, held in found.items())
    )


def _simplified(bits: int) -> int:
    """Without what another bit implies: a test for null is a transformation, and one kind of filter."""
    if bits & NULL_TEST:
        bits = bits & ~NULL_TEST | TRANSFORMATION
    return bits & ~NULL_FILTER if bits & FILTER else bits
