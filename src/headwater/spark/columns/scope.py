"""What a node of a plan gives to the node above it, and what an expression sees."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headwater.spark.columns.value import Bits, Value, add, indirect

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.spark.plan.tree import Node

Env = dict[int, Value]
_FILE_METADATA = {"file_path", "file_name", "file_size", "file_modification_time"}


class Relation(NamedTuple):
    """The columns of a node by the number of their attribute, and what decides about its rows."""

    env: Env
    rows: Bits

    def with_rows(self, kind: int, values: Iterable[Value]) -> Relation:
        """The same columns, with more columns deciding about rows."""
        rows = dict(self.rows)
        for value in values:
            add(rows, indirect(value.all(), kind))
        return Relation(self.env, rows)


class Scope(NamedTuple):
    """The columns an expression may name, and those of the queries around it."""

    env: Env
    outer: Scope | None = None

    def find(self, number: int) -> Value | None:
        """The column with that number, from the inside out."""
        scope: Scope | None = self
        while scope is not None:
            if (found := scope.env.get(number)) is not None:
                return found
            scope = scope.outer
        return None


def is_metadata(attribute: Node) -> bool:
    """Whether an attribute is about the file or row, such as `_file`, and no column of a table."""
    metadata = attribute.get("metadata")
    marked = isinstance(metadata, dict) and (
        "__metadata_col" in metadata or "__file_source_metadata_col" in metadata
    )
    return marked or _is_file_metadata(attribute)


def _is_file_metadata(attribute: Node) -> bool:
    """Whether an attribute is the `_metadata` of files: Spark 4.1 writes no mark of it into the JSON."""
    # Spark puts more underscores before it when the files have a column of that name.
    if attribute.name.lstrip("_") != "metadata" or not attribute.name.startswith("_"):
        return False
    data_type = attribute.get("dataType")
    fields = data_type.get("fields") if isinstance(data_type, dict) else None
    return {field.get("name") for field in fields or ()} >= _FILE_METADATA
