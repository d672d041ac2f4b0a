"""Debezium's own transforms."""

from __future__ import annotations

import re

from headwater.connect.transforms.record import IDENTITY, Column, FieldNode, Record, changed

from .base import Back, FieldStep, TopicName, TransformStep, UnknownColumnsError
from .fields import generated
from .routers import LogicalRouter, TopicRouter

_TEMPORAL = ("timestamp", "time", "date")


class ExtractNewRecordState(TransformStep):
    """Puts the row after the change in the place of the change event."""

    reshapes = True
    loses = True

    def setup(self) -> None:
        """Read which of the event's other fields are kept, and under which names."""
        prefix = self.options.get("add.fields.prefix", "__")
        self.added: dict[str, str] = {}
        for item in self.names("add.fields"):
            path, _, alias = item.partition(":")
            name = alias or path.strip().replace(".", "_")
            self.added[f"{prefix}{name.strip()}"] = path.strip()
        modes = (
            self.get("delete.handling.mode").lower(),
            self.get("delete.tombstone.handling.mode").lower(),
        )
        if any(mode.startswith("rewrite") for mode in modes):
            self.added["__deleted"] = ""
        # A row is whole in `after`: what is lost is the event around it, not a column.
        self.loses = False
        self.routes = bool(self.get("route.by.field"))

    def route(self, name: TopicName) -> TopicName | None:
        """The row may name its topic."""
        return TopicName("", ".+", open=True) if self.routes else name

    def forward(self, record: Record) -> Record:
        """The row with the kept fields; a value that is no change event passes."""
        value = record.value
        after = value.get("after") if value else None
        if value is None or after is None:
            return record
        extra = [self._extra(value, name, path) for name, path in self.added.items()]
        return record.with_half("value", FieldNode("", "struct", (*after.fields, *extra)))

    def _extra(self, value: FieldNode, name: str, path: str) -> FieldNode:
        here: FieldNode | None = value if path else None
        for part in path.split("."):
            here = here.get(part) if here else None
        # A field without a path is one of the event, else one of its source.
        if here is None and path and "." not in path and (source := value.get("source")):
            here = source.get(path)
        if here is None:
            return generated(name)
        return FieldNode(name, here.type, here.fields, here.origins)

    def back(self, column: Column) -> Back:
        """A column of the row was one of `after`."""
        if column.half == "key":
            return column, IDENTITY
        if column.path[:1] == ("__deleted",):
            return None
        if column.path and column.path[0] in self.added:
            path = self.added[column.path[0]]
            return (Column("value", tuple(path.split("."))), IDENTITY) if path else None
        return Column("value", ("after", *column.path)), IDENTITY


class HeaderToValue(FieldStep):
    """Adds fields from headers."""

    def setup(self) -> None:
        """Read the names of the new fields."""
        self.half = "value"
        self.added = [name.split(".")[0] for name in self.names("fields")]

    def reshape(self, node: FieldNode) -> FieldNode:
        """Add what is not there yet."""
        have = {field.name for field in node.fields}
        new = [generated(name) for name in self.added if name not in have]
        return node.having(*node.fields, *new)

    def undo(self, column: Column) -> Back:
        """What was added came from nowhere."""
        return None if column.path and column.path[0] in self.added else (column, IDENTITY)


class TimezoneConverter(FieldStep):
    """Moves times to another zone."""

    def setup(self) -> None:
        """It works on values."""
        self.half = "value"

    def reshape(self, node: FieldNode) -> FieldNode:
        """Every time below is another value."""
        if node.fields:
            return node.having(*(self.reshape(field) for field in node.fields))
        return node.touched(changed("TimezoneConverter")) if node.type in _TEMPORAL else node


class ByLogicalTableRouter(LogicalRouter):
    """Routes many tables into one topic, with a key field that names the table."""

    reshapes = True
    named = "__dbz__physicalTableIdentifier"

    def setup(self) -> None:
        """Read the name of that field."""
        super().setup()
        unique = self.get("key.enforce.uniqueness", default="true").lower() != "false"
        self.field = self.get("key.field.name", default=self.named)
        self.field = self.field if unique else ""

    def forward(self, record: Record) -> Record:
        """The key with the table's name in it."""
        if record.key is None or not record.key.is_record or not self.field:
            return record
        return record.with_half("key", record.key.having(*record.key.fields, generated(self.field)))

    def back(self, column: Column) -> Back:
        """The table's name came from no column."""
        added = column.half == "key" and column.path[:1] == (self.field,)
        return None if added else (column, IDENTITY)


class ToLogicalTopicRouter(ByLogicalTableRouter):
    """The same for any source."""

    named = "__dbz__sourceIdentifier"


class EventRouter(TopicRouter):
    """Sends each row of an outbox table to the topic that the row names."""

    reshapes = True
    loses = True

    def setup(self) -> None:
        """Read where the row keeps its payload, its key and further fields."""
        self.payload = self.get("table.field.event.payload", default="payload")
        self.key = self.get("table.field.event.key", default="aggregateid")
        self.envelope: dict[str, str] = {}
        for item in self.names("table.fields.additional.placement"):
            field, _, place = item.partition(":")
            where, _, alias = place.partition(":")
            if where.strip() == "envelope":
                self.envelope[alias.strip() or field.strip()] = field.strip()

    def route(self, name: TopicName) -> TopicName | None:
        """The replacement's fixed part, open where records fill it; one name where they do not."""
        shape = self.options.get("route.topic.replacement", "outbox.event.${routedByValue}")
        parts = re.split(r"\$\{\w+\}|\$\d+", shape)
        if len(parts) == 1:
            return TopicName(shape)
        return TopicName(parts[0], ".+".join(map(re.escape, parts)), open=True)

    def forward(self, record: Record) -> Record:
        """The payload is text to us."""
        return Record()

    def back(self, column: Column) -> Back:
        """Everything in the value was in the payload, unless placed beside it."""
        how = changed("EventRouter")
        if column.half == "key":
            return Column("value", ("after", self.key)), IDENTITY
        if column.path and column.path[0] in self.envelope:
            return Column("value", ("after", self.envelope[column.path[0]])), IDENTITY
        return Column("value", ("after", self.payload)), how


class Document(TransformStep):
    """Reads a document out of text: its fields are not known."""

    reshapes = True
    loses = True

    def forward(self, record: Record) -> Record:
        """The value may hold anything."""
        return record.with_half("value", None)

    def back(self, column: Column) -> Back:
        """The value's fields were text before."""
        if column.half == "value":
            raise UnknownColumnsError(self.kind)
        return column, IDENTITY


class DocumentRouter(EventRouter):
    """The outbox of a document store."""

    def back(self, column: Column) -> Back:
        """Its row is a document."""
        raise UnknownColumnsError(self.kind)


_DEBEZIUM = "io.debezium.transforms."
_MONGODB = "io.debezium.connector.mongodb.transforms."
STEPS: dict[str, type[TransformStep]] = {
    f"{_DEBEZIUM}ExtractNewRecordState": ExtractNewRecordState,
    f"{_DEBEZIUM}UnwrapFromEnvelope": ExtractNewRecordState,
    f"{_DEBEZIUM}HeaderToValue": HeaderToValue,
    f"{_DEBEZIUM}TimezoneConverter": TimezoneConverter,
    f"{_DEBEZIUM}ByLogicalTableRouter": ByLogicalTableRouter,
    f"{_DEBEZIUM}ToLogicalTopicRouter": ToLogicalTopicRouter,
    f"{_DEBEZIUM}outbox.EventRouter": EventRouter,
    f"{_MONGODB}outbox.MongoEventRouter": DocumentRouter,
    f"{_MONGODB}ExtractNewDocumentState": Document,
    **{
        f"{_DEBEZIUM}{name}": TransformStep
        for name in (
            "ExtractChangedRecordState", "partitions.PartitionRouting", "EnforceRecordSize",
            "tracing.ActivateTracingSpan", "SchemaChangeEventFilter", "Filter",
            "openlineage.OpenLineage",
        )
    },
}  # fmt: skip
