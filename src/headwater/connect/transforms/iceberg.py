"""The transforms that come with the Iceberg sink."""

from __future__ import annotations

from headwater.connect.transforms.record import IDENTITY, Column, FieldNode, Record

from .base import Back, FieldStep, TransformStep
from .debezium import Document
from .fields import InsertField, generated


class CopyValue(FieldStep):
    """Copies one field into another."""

    def setup(self) -> None:
        """Read which into which."""
        self.half = "value"
        self.source, self.target = self.get("source.field"), self.get("target.field")

    def reshape(self, node: FieldNode) -> FieldNode:
        """The copy stands at the end."""
        field = node.get(self.source)
        return node.having(*node.fields, field.renamed(self.target)) if field else node

    def undo(self, column: Column) -> Back:
        """The copy was the field it was made from."""
        if column.path[:1] == (self.target,):
            return Column("value", (self.source, *column.path[1:])), IDENTITY
        return column, IDENTITY


class ChangeEvent(TransformStep):
    """Puts the row in the place of a change event, with a `_cdc` record beside its fields."""

    reshapes = True

    def forward(self, record: Record) -> Record:
        """The row and what the transform adds."""
        value = record.value
        after = value.get("after") if value else None
        if value is None or after is None:
            return record.with_half("value", None)
        return record.with_half("value", after.having(*after.fields, generated("_cdc", "struct")))

    def back(self, column: Column) -> Back:
        """A column of the row was one of `after`."""
        if column.half == "key":
            return column, IDENTITY
        return None if column.path[:1] == ("_cdc",) else (
            Column("value", ("after", *column.path)), IDENTITY
        )  # fmt: skip


class KafkaMetadata(InsertField):
    """Adds the record's topic, partition, offset and time."""

    def setup(self) -> None:
        """Read how the fields are called."""
        self.half = "value"
        name = self.get("field_name", default="_kafka_metadata")
        nested = self.get("nested").lower() == "true"
        parts = ("topic", "partition", "offset", "record_timestamp")
        self.added = [name] if nested else [f"{name}_{part}" for part in parts]


STEPS: dict[str, type[TransformStep]] = {
    f"{base}{name}": step
    for base in ("io.tabular.iceberg.connect.transforms.", "org.apache.iceberg.connect.transforms.")
    for name, step in (
        ("CopyValue", CopyValue), ("DebeziumTransform", ChangeEvent),
        ("KafkaMetadataTransform", KafkaMetadata), ("MongoDebeziumTransform", Document),
        ("JsonToMapTransform", Document), ("DmsTransform", Document),
    )
}  # fmt: skip
