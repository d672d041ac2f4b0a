"""Transforms of other vendors that people put beside Kafka's own."""

from __future__ import annotations

import re

from headwater.connect.record import IDENTITY, Column, Node, Origin, changed
from headwater.lineage.columns import combine

from .base import Back, FieldStep, Name, Step
from .contents import MaskField
from .routers import ANY, Router, RowRouter


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

    def reshape(self, node: Node) -> Node:
        """The new field comes from each of the others."""
        how = changed("ConcatFields")
        parts = (field for field in node.fields if field.name in self.parts)
        origins = (origin for field in parts for origin in field.all_origins())
        made = tuple(Origin(column, combine(was, how)) for column, was in origins)
        return node.having(*node.fields, Node(self.target, "string", origins=made))

    def undo(self, column: Column) -> Back:
        """It was no single column before."""
        return None if column.path[:1] == (self.target,) else (column, IDENTITY)


class CollectionName(Router):
    """Puts a prefix and a suffix around a name, and perhaps changes its case."""

    def route(self, name: Name) -> Name | None:
        """The names that take no look at words are known."""
        style = self.get("collection.naming.style", default="default").lower()
        text = {
            "default": name.text,
            "upper_case": name.text.upper(),
            "lower_case": name.text.lower(),
        }.get(style)
        if text is None or not name.exact:
            return Name("", ANY, open=True)
        prefix, suffix = (self.options.get(f"collection.naming.{key}", "") for key in _ENDS)
        return Name(f"{prefix}{text}{suffix}")


class ChangeTopicCase(Router):
    """Spells the words of a name in another way, as `LOWER_HYPHEN` to `UPPER_CAMEL`."""

    def route(self, name: Name) -> Name | None:
        """Cut at the marks or capitals of the one spelling, join by the other."""
        if not name.exact:
            return Name("", ANY, open=True)
        old, new = self.get("from").upper(), self.get("to").upper()
        cut = {"HYPHEN": "-", "UNDERSCORE": "_"}.get(old.rpartition("_")[2], r"(?<!^)(?=[A-Z])")
        words = [word.lower() for word in re.split(cut, name.text)]
        if new.endswith("CAMEL"):
            text = "".join(word.capitalize() for word in words)
            return Name(text[:1].lower() + text[1:] if new.startswith("LOWER") else text)
        text = ("-" if new.endswith("HYPHEN") else "_").join(words)
        return Name(text.upper() if new.startswith("UPPER") else text)


_ENDS = ("prefix", "suffix")
_AIVEN = "io.aiven.kafka.connect.transforms."
_DEBEZIUM = "io.debezium.connector."
STEPS: dict[str, type[Step]] = {
    f"{_AIVEN}Hash": Hash,
    f"{_AIVEN}CaseTransform": CaseTransform,
    f"{_AIVEN}ConcatFields": ConcatFields,
    f"{_AIVEN}ExtractTopic": RowRouter,
    f"{_AIVEN}ExtractTopicFromSchemaName": RowRouter,
    **{
        f"{_AIVEN}{name}": Step
        for name in ("ExtractTimestamp", "TombstoneHandler", "FilterByFieldValue")
    },
    f"{_DEBEZIUM}jdbc.transforms.CollectionNameTransformation": CollectionName,
    f"{_DEBEZIUM}postgresql.transforms.timescaledb.TimescaleDb": RowRouter,
    f"{_DEBEZIUM}postgresql.transforms.DecodeLogicalDecodingMessageContent": Step,
    f"{_DEBEZIUM}mysql.transforms.ReadToInsertEvent": Step,
    "com.github.jcustenborder.kafka.connect.transform.common.ChangeTopicCase": ChangeTopicCase,
}
