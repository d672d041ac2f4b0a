"""A record on its way through transforms: its fields, and the columns they came from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

import msgspec

from headwater.lineage.columns import combine
from headwater.lineage.model import Transformation
from headwater.lineage.schema import Field, Schema

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.connect.derive.metadata import TopicSchema

Half = Literal["value", "key"]
IDENTITY = Transformation("DIRECT", "IDENTITY")
ELEMENT = "_element"


def changed(description: str) -> Transformation:
    """A transformation that makes another value of the same field."""
    return Transformation("DIRECT", "TRANSFORMATION", description)


def masked(description: str) -> Transformation:
    """A transformation that hides the value."""
    return Transformation("DIRECT", "TRANSFORMATION", description, True)


class Column(NamedTuple):
    """A field of a topic's record, by its half and path."""

    half: Half
    path: tuple[str, ...]

    @property
    def name(self) -> str:
        """The column's name by the rule that all producers share."""
        if not self.path:
            return self.half
        if self.half == "key":
            return ".".join(("key", *self.path))
        return ".".join(("value", *self.path) if self.path[0] == "key" else self.path)


class ColumnOrigin(NamedTuple):
    """A column that a field came from, and what happened to it on the way."""

    column: str
    how: Transformation = IDENTITY


class FieldNode(msgspec.Struct, frozen=True):
    """A field of a record; a leaf knows its origins."""

    name: str
    type: str = ""
    fields: tuple[FieldNode, ...] = ()
    origins: tuple[ColumnOrigin, ...] = ()
    description: str = ""

    @property
    def is_record(self) -> bool:
        """Whether it has fields of its own."""
        return self.type == "struct"

    def get(self, name: str) -> FieldNode | None:
        """The field of that name."""
        return next((field for field in self.fields if field.name == name), None)

    def having(self, *fields: FieldNode) -> FieldNode:
        """The same record with other fields."""
        return msgspec.structs.replace(self, fields=fields)

    def renamed(self, name: str) -> FieldNode:
        """The same field under another name."""
        return msgspec.structs.replace(self, name=name)

    def touched(self, how: Transformation, type_: str = "") -> FieldNode:
        """The same field after one more transformation."""
        return msgspec.structs.replace(
            self,
            type=type_ or self.type,
            fields=() if type_ else tuple(field.touched(how) for field in self.fields),
            origins=tuple(ColumnOrigin(c, combine(h, how)) for c, h in self.all_origins())
            if type_ or not self.fields
            else (),
        )

    def all_origins(self) -> tuple[ColumnOrigin, ...]:
        """The origins of the field and of everything in it."""
        inner = (origin for field in self.fields for origin in field.all_origins())
        return tuple(dict.fromkeys((*self.origins, *inner)))

    def leaves(self, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], FieldNode]]:
        """Every leaf below with its path; elements of arrays stand under the array's own name."""
        for field in self.fields:
            path = prefix if field.name == ELEMENT else (*prefix, field.name)
            if field.fields:
                yield from field.leaves(path)
            else:
                yield path, field


class Record(msgspec.Struct, frozen=True):
    """Value and key; None where the fields are not known any more."""

    value: FieldNode | None = None
    key: FieldNode | None = None

    def half(self, which: Half) -> FieldNode | None:
        """One of the two."""
        return self.key if which == "key" else self.value

    def with_half(self, which: Half, node: FieldNode | None) -> Record:
        """The record with one half replaced."""
        return msgspec.structs.replace(self, **{which: node})


def from_schema(schema: TopicSchema | None) -> Record:
    """The record that a topic's schemas describe."""
    if schema is None:
        return Record()
    return Record(_half(schema.value, "value"), _half(schema.key, "key"))


def to_schema(node: FieldNode) -> Schema:
    """A record's fields as a schema."""
    if not node.is_record:
        return Schema((Field(node.name or "value", node.type),))
    return Schema(tuple(_field(field) for field in node.fields))


def _half(schema: Schema | None, half: Half) -> FieldNode | None:
    if schema is None:
        return None
    if not schema.is_record and not schema.fields:
        return FieldNode("", schema.type, origins=(ColumnOrigin(half),))
    return FieldNode("", schema.type, tuple(_node(field, half, ()) for field in schema.fields))


def _node(field: Field, half: Half, prefix: tuple[str, ...]) -> FieldNode:
    path = prefix if field.name == ELEMENT else (*prefix, field.name)
    inner = tuple(_node(child, half, path) for child in field.fields)
    origins = () if inner else (ColumnOrigin(Column(half, path).name),)
    return FieldNode(field.name, field.type, inner, origins, field.description)


def _field(node: FieldNode) -> Field:
    return Field(node.name, node.type, node.description, tuple(_field(f) for f in node.fields))
