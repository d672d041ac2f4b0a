"""Transforms that change which fields a value or a key has, and their names."""

from __future__ import annotations

from msgspec.structs import replace

from headwater.connect.derive.config_values import pairs
from headwater.connect.transforms.record import (
    ELEMENT,
    IDENTITY,
    Column,
    ColumnOrigin,
    FieldNode,
    Record,
)

from .base import Back, FieldStep, TransformStep, UnknownColumnsError


class ReplaceField(FieldStep):
    """Keeps, drops and renames fields."""

    def setup(self) -> None:
        """Read the lists, by their new and their old names."""
        self.include = set(self.names("include", "whitelist"))
        self.exclude = set(self.names("exclude", "blacklist"))
        self.renames = pairs(self.get("renames"), ":")
        self.loses = bool(self.include or self.exclude)

    def reshape(self, node: FieldNode) -> FieldNode:
        """Filter, then rename."""
        kept = [
            field.renamed(self.renames.get(field.name, field.name))
            for field in node.fields
            if (not self.include or field.name in self.include) and field.name not in self.exclude
        ]
        return node.having(*kept) if node.is_record else node

    def undo(self, column: Column) -> Back:
        """Undo the rename."""
        if not column.path:
            return column, IDENTITY
        names = {new: old for old, new in self.renames.items()}
        first = names.get(column.path[0], column.path[0])
        return Column(column.half, (first, *column.path[1:])), IDENTITY


class ExtractField(FieldStep):
    """Puts one field in the place of the whole."""

    loses = True

    def setup(self) -> None:
        """Read the path; since Kafka 3.x it may be nested."""
        nested = self.get("field.syntax.version").upper() == "V2"
        field = self.get("field")
        self.path = tuple(field.split(".")) if nested else (field,)

    def reshape(self, node: FieldNode) -> FieldNode:
        """Walk down to the field."""
        here: FieldNode | None = node
        for name in self.path:
            here = here.get(name) if here else None
        return here.renamed("") if here else node

    def undo(self, column: Column) -> Back:
        """Put the field's path before the column."""
        return Column(column.half, (*self.path, *column.path)), IDENTITY


class HoistField(FieldStep):
    """Wraps the whole in a record with one field."""

    def reshape(self, node: FieldNode) -> FieldNode:
        """One field, the old whole in it."""
        return FieldNode("", "struct", (node.renamed(self.get("field")),))

    def undo(self, column: Column) -> Back:
        """Take the wrapper off."""
        return Column(column.half, column.path[1:]), IDENTITY


class Flatten(FieldStep):
    """Makes one level of nested records, names joined by a delimiter."""

    def setup(self) -> None:
        """Read the delimiter."""
        self.delimiter = self.options.get("delimiter", ".")

    def reshape(self, node: FieldNode) -> FieldNode:
        """Every nested field at the top."""
        return node.having(*self._flat(node, "")) if node.is_record else node

    def _flat(self, node: FieldNode, prefix: str) -> list[FieldNode]:
        out: list[FieldNode] = []
        for field in node.fields:
            name = f"{prefix}{field.name}"
            if field.is_record and field.name != ELEMENT:
                out += self._flat(field, f"{name}{self.delimiter}")
            else:
                out.append(field.renamed(name))
        return out

    def undo(self, column: Column) -> Back:
        """Rows of tables are flat already; only a change event's own records come apart."""
        head, cut, tail = column.path[0].partition(self.delimiter) if column.path else ("", "", "")
        if cut and head in ("before", "after", "source"):
            return Column(column.half, (head, tail)), IDENTITY
        return column, IDENTITY


class InsertField(FieldStep):
    """Adds fields that no column of the store holds."""

    options_read = ("topic.field", "partition.field", "offset.field", "timestamp.field")

    def setup(self) -> None:
        """Read the names; a mark at their end makes them required or optional."""
        marked = [self.get(key) for key in (*self.options_read, "static.field")]
        self.added = [name.rstrip("!?") for name in marked if name]

    def reshape(self, node: FieldNode) -> FieldNode:
        """Add them at the end."""
        if not node.is_record:
            return node
        kept = [field for field in node.fields if field.name not in self.added]
        return node.having(*kept, *(FieldNode(name, "string") for name in self.added))

    def undo(self, column: Column) -> Back:
        """What was added came from nowhere."""
        return None if column.path and column.path[0] in self.added else (column, IDENTITY)


class HeaderFrom(FieldStep):
    """Copies or moves fields into headers."""

    def setup(self) -> None:
        """Only a move takes fields away."""
        moves = self.get("operation").lower() == "move"
        self.taken = set(self.names("fields")) if moves else set()
        self.loses = bool(self.taken)

    def reshape(self, node: FieldNode) -> FieldNode:
        """Without what was moved."""
        return node.having(*(field for field in node.fields if field.name not in self.taken))


class Drop(FieldStep):
    """Empties one half."""

    loses = True

    def reshape(self, node: FieldNode) -> FieldNode:
        """Nothing is left."""
        return FieldNode("", "struct")


class ValueToKey(TransformStep):
    """Makes the key from fields of the value."""

    reshapes = True

    def forward(self, record: Record) -> Record:
        """The key has the named fields of the value."""
        if record.value is None:
            return record.with_half("key", None)
        fields = [field for name in self.names("fields") if (field := record.value.get(name))]
        return record.with_half("key", FieldNode("", "struct", tuple(fields)))

    def back(self, column: Column) -> Back:
        """A column of the key was one of the value."""
        return (column if column.half == "value" else Column("value", column.path)), IDENTITY


class UnwrapUnion(FieldStep):
    """Puts the branch of a union in the place of the record that holds one field a branch."""

    loses = True

    def reshape(self, node: FieldNode) -> FieldNode:
        """A union of records has the fields of all of them, those of one name together."""
        inner = tuple(self.reshape(field) for field in node.fields)
        if node.type != "union":
            return node.having(*inner)
        fields: dict[str, FieldNode] = {}
        for field in (field for branch in inner for field in branch.fields):
            same = fields.get(field.name)
            fields[field.name] = _joined(same, field) if same else field
        plain = (origin for branch in inner if not branch.fields for origin in branch.origins)
        return replace(node, type="struct", fields=tuple(fields.values()), origins=tuple(plain))

    def undo(self, column: Column) -> Back:
        """Which branch a field was in is not known."""
        raise UnknownColumnsError(self.kind)


def _joined(one: FieldNode, other: FieldNode) -> FieldNode:
    if one.fields or other.fields:
        return one
    return replace(one, origins=tuple(dict.fromkeys((*one.origins, *other.origins))))


def generated(name: str, kind: str = "string", *origins: ColumnOrigin) -> FieldNode:
    """A field that a transform adds."""
    return FieldNode(name, kind, origins=origins)


_KAFKA = "org.apache.kafka.connect.transforms."
_CONFLUENT = "io.confluent.connect.transforms."
STEPS: dict[str, type[TransformStep]] = {
    **{
        f"{_KAFKA}{step.__name__}": step
        for step in (
            ReplaceField, ExtractField, HoistField, Flatten, InsertField, HeaderFrom, ValueToKey,
        )
    },
    f"{_CONFLUENT}Drop": Drop,
    **{f"{_KAFKA}{name}": TransformStep for name in ("InsertHeader", "DropHeaders", "SetSchemaMetadata")},
    f"{_CONFLUENT}TombstoneHandler": TransformStep,
    f"{_CONFLUENT}Filter": TransformStep,
}  # fmt: skip
