"""Transforms of other vendors that people put beside Kafka's own."""

from __future__ import annotations

from headwater.connect.transforms.record import (
    IDENTITY,
    Column,
    ColumnOrigin,
    FieldNode,
    Record,
    changed,
)
from headwater.lineage.columns import combine

from .base import Back, FieldStep, TopicName, TransformStep
from .field_values import MaskField
from .fields import Drop
from .routers import ANY, RowRouter, TopicRouter


class Hash(MaskField):
    """Puts a hash in the place of a field or of the whole."""

    def setup(self) -> None:
        """Read which field."""
        self.fields = {self.get("field.name"): ""}


class CaseTransform(MaskField):
    """Changes the case of what is in the fields."""

    how = staticmethod(changed)

    def setup(self) -> None:
        """Read which fields."""
        self.fields = dict.fromkeys(self.names("field.names"), "")


class ConcatFields(FieldStep):
    """Adds one field made of others."""

    def setup(self) -> None:
        """Read which of which."""
        self.target = self.get("output.field.name")
        self.parts = self.names("field.names")

    def reshape(self, node: FieldNode) -> FieldNode:
        """The new field comes from each of the others."""
        how = changed("ConcatFields")
        parts = (field for field in node.fields if field.name in self.parts)
        origins = (origin for field in parts for origin in field.all_origins())
        made = tuple(ColumnOrigin(column, combine(was, how)) for column, was in origins)
        return node.having(*node.fields, FieldNode(self.target, "string", origins=made))

    def undo(self, column: Column) -> Back:
        """It was no single column before."""
        return None if column.path[:1] == (self.target,) else (column, IDENTITY)


class CollectionName(TopicRouter):
    """Puts a prefix and a suffix around a name, and perhaps changes its case."""

    def route(self, name: TopicName) -> TopicName | None:
        """The name, where the style does not split it into words."""
        style = self.get("collection.naming.style", default="default").lower()
        text = {
            "default": name.text,
            "upper_case": name.text.upper(),
            "lower_case": name.text.lower(),
        }.get(style)
        if text is None or not name.exact:
            return TopicName("", ANY, open=True)
        prefix, suffix = (self.options.get(f"collection.naming.{key}", "") for key in _ENDS)
        return TopicName(f"{prefix}{text}{suffix}")


class KeyToValue(TransformStep):
    """Copies fields of the key, or the whole of it, into the value."""

    reshapes = True

    def setup(self) -> None:
        """Read which fields, and their names in the value; `*` is the whole key."""
        keys = self.names("key.fields") or ["*"]
        names = [name.strip() for name in self.get("value.fields", "field").split(",")]
        names += [""] * (len(keys) - len(names))
        self.copies = {
            name or ("_key" if key == "*" else key): key
            for key, name in zip(keys, names, strict=False)
        }

    def forward(self, record: Record) -> Record:
        """The value with the copies at its end."""
        value, key = record.value, record.key
        if value is None or not value.is_record:
            return record
        if key is None:
            return record.with_half("value", None)
        kept = [field for field in value.fields if field.name not in self.copies]
        for name, source in self.copies.items():
            found = key if source == "*" else key.get(source)
            if found is not None:
                kept.append(found.renamed(name))
        return record.with_half("value", value.having(*kept))

    def back(self, column: Column) -> Back:
        """A copy was a field of the key."""
        if column.half == "value" and column.path[:1] and column.path[0] in self.copies:
            source = self.copies[column.path[0]]
            rest = column.path[1:]
            return Column("key", rest if source == "*" else (source, *rest)), IDENTITY
        return column, IDENTITY


class Decompress(FieldStep):
    """Unpacks the whole."""

    def reshape(self, node: FieldNode) -> FieldNode:
        """What was packed."""
        return node.touched(changed(self.kind))

    def undo(self, column: Column) -> Back:
        """The same column, packed."""
        return column, changed(self.kind)


_ENDS = ("prefix", "suffix")
_AIVEN = "io.aiven.kafka.connect.transforms."
_DEBEZIUM = "io.debezium.connector."
STEPS: dict[str, type[TransformStep]] = {
    f"{_AIVEN}Hash": Hash,
    f"{_AIVEN}CaseTransform": CaseTransform,
    f"{_AIVEN}ConcatFields": ConcatFields,
    f"{_AIVEN}ExtractTopic": RowRouter,
    f"{_AIVEN}ExtractTopicFromSchemaName": RowRouter,
    **{
        f"{_AIVEN}{name}": TransformStep
        for name in ("ExtractTimestamp", "TombstoneHandler", "FilterByFieldValue")
    },
    f"{_DEBEZIUM}jdbc.transforms.CollectionNameTransformation": CollectionName,
    f"{_DEBEZIUM}postgresql.transforms.timescaledb.TimescaleDb": RowRouter,
    f"{_DEBEZIUM}postgresql.transforms.DecodeLogicalDecodingMessageContent": TransformStep,
    f"{_DEBEZIUM}mysql.transforms.ReadToInsertEvent": TransformStep,
    f"{_AIVEN}MakeTombstone": Drop,
    f"{_AIVEN}KeyToValue": KeyToValue,
    "com.clickhouse.kafka.connect.transforms.KeyToValue": KeyToValue,
    "com.clickhouse.kafka.connect.transforms.ExtractTopic": RowRouter,
    "io.confluent.connect.transforms.GzipDecompress": Decompress,
    **{
        f"io.lenses.connect.smt.header.{name}": TransformStep
        for name in (
            "InsertFieldTimestampHeaders", "InsertRecordTimestampHeaders",
            "InsertRollingFieldTimestampHeaders", "InsertRollingRecordTimestampHeaders",
            "InsertRollingWallclock", "InsertRollingWallclockHeaders",
            "InsertSourcePartitionOrOffsetValue", "InsertWallclock", "InsertWallclockDateTimePart",
            "InsertWallclockHeaders", "TimestampConverter",
        )
    },
}  # fmt: skip
