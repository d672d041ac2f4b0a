"""The transforms of kafka-connect-transform-common, which many plug-ins and clouds bring along."""

from __future__ import annotations

import re

from headwater.connect.derive.java_regex import PatternError, pattern
from headwater.connect.transforms.record import IDENTITY, Column, FieldNode, changed

from .base import Back, FieldStep, TopicName, TransformStep, UnknownColumnsError
from .field_values import MaskField
from .fields import Drop, InsertField
from .routers import ANY, RowRouter, TopicRouter

_MOST_MATCHES = 100


def spell(text: str, old: str, new: str) -> str:
    """The words of a name in another spelling, as `LOWER_HYPHEN` to `UPPER_CAMEL`."""
    cut = {"HYPHEN": "-", "UNDERSCORE": "_"}.get(old.rpartition("_")[2], r"(?<!^)(?=[A-Z])")
    words = [word.lower() for word in re.split(cut, text)]
    if new.endswith("CAMEL"):
        joined = "".join(word.capitalize() for word in words)
        return joined[:1].lower() + joined[1:] if new.startswith("LOWER") else joined
    joined = ("-" if new.endswith("HYPHEN") else "_").join(words)
    return joined.upper() if new.startswith("UPPER") else joined


class ChangeTopicCase(TopicRouter):
    """Spells the words of a topic's name in another way."""

    def route(self, name: TopicName) -> TopicName | None:
        """Cut at the marks or capitals of the one spelling, join by the other."""
        if not name.exact:
            return TopicName("", ANY, open=True)
        return TopicName(spell(name.text, self.get("from").upper(), self.get("to").upper()))


class LowerCaseTopic(TopicRouter):
    """Writes a topic's name in lower case."""

    def route(self, name: TopicName) -> TopicName | None:
        """The same letters, small."""
        return TopicName(name.text.lower()) if name.exact else TopicName("", ANY, open=True)


class ChangeCase(FieldStep):
    """Spells the names of all fields in another way."""

    def setup(self) -> None:
        """Read both spellings."""
        self.old, self.new = self.get("from").upper(), self.get("to").upper()

    def reshape(self, node: FieldNode) -> FieldNode:
        """Every field under its new name."""
        if not node.is_record:
            return node
        return node.having(*(f.renamed(spell(f.name, self.old, self.new)) for f in node.fields))

    def undo(self, column: Column) -> Back:
        """The first name in the spelling before."""
        if not column.path:
            return column, IDENTITY
        first = spell(column.path[0], self.new, self.old)
        return Column(column.half, (first, *column.path[1:])), IDENTITY


class PatternRename(FieldStep):
    """Renames the fields that an expression matches."""

    def setup(self) -> None:
        """Compile the expression, which ignores case unless its flags say otherwise."""
        flags = self.get("field.pattern.flags", default="CASE_INSENSITIVE").upper()
        self.expression = pattern(
            self.get("field.pattern"), ignore_case="CASE_INSENSITIVE" in flags
        )

    def reshape(self, node: FieldNode) -> FieldNode:
        """Every field under its new name."""
        return node.having(*(field.renamed(self._renamed(field.name)) for field in node.fields))

    def _renamed(self, name: str) -> str:
        made, rest = "", name
        try:
            for _ in range(_MOST_MATCHES):
                found = self.expression.find(rest)
                if found is None or found.start == found.end:
                    break
                replacement = self.options.get("field.replacement", "")
                made += rest[: found.start] + self.expression.expand(found, replacement)
                rest = rest[found.end :]
                if self.expression.text.startswith("^"):
                    break
        except PatternError:  # Connect would fail here too: nothing is renamed
            return name
        return made + rest

    def undo(self, column: Column) -> Back:
        """A name does not show which one it was."""
        raise UnknownColumnsError(self.kind)


class BytesToString(MaskField):
    """Reads bytes as text."""

    how = staticmethod(changed)
    becomes = "string"

    def setup(self) -> None:
        """Read which fields."""
        self.fields = dict.fromkeys(self.names("fields"), self.becomes)


class ToLong(BytesToString):
    """Makes whole numbers of fields."""

    becomes = "long"


class ToJson(FieldStep):
    """Puts the JSON text of the whole in its place."""

    def reshape(self, node: FieldNode) -> FieldNode:
        """One text made of every field."""
        return node.touched(changed(self.kind), "string")

    def undo(self, column: Column) -> Back:
        """The text was no single column."""
        return None


class DerivedField(FieldStep):
    """Adds or replaces a field by one made of another."""

    source, target = "input.field", "output.field"
    path: tuple[str, ...]

    def setup(self) -> None:
        """Read which of which."""
        self.how = changed(self.kind)
        self.path = (self.get(self.source),)
        self.name = self.get(self.target)

    def reshape(self, node: FieldNode) -> FieldNode:
        """The new field at the end; one of the same name goes."""
        here: FieldNode | None = node
        for part in self.path:
            here = here.get(part) if here else None
        if here is None:
            return node
        kept = (field for field in node.fields if field.name != self.name)
        return node.having(*kept, here.touched(self.how).renamed(self.name))

    def undo(self, column: Column) -> Back:
        """The new field was the one it is made of."""
        if column.path[:1] != (self.name,):
            return column, IDENTITY
        return Column(column.half, (*self.path, *column.path[1:])), self.how


class PatternMapString(DerivedField):
    """Replaces parts of a text, in the same field or in another."""

    source, target = "src.field.name", "dest.field.name"


class ExtractNestedField(DerivedField):
    """Copies a field of a record inside to the top."""

    def setup(self) -> None:
        """Read the path and the new name."""
        self.how = IDENTITY
        self.path = (self.get("input.outer.field.name"), self.get("input.inner.field.name"))
        self.name = self.get("output.field.name")


class AddedFields(InsertField):
    """Adds fields that hold the topic's name or the time."""

    def setup(self) -> None:
        """Read their names."""
        self.added = self.names("field", "fields")


class HeaderToField(InsertField):
    """Adds fields from headers: `header:TYPE` or `header:TYPE:field`."""

    def setup(self) -> None:
        """Read their names."""
        mappings = [item.split(":") for item in self.names("header.mappings")]
        self.added = [parts[2] if len(parts) > 2 else parts[0] for parts in mappings]


_COMMON = "com.github.jcustenborder.kafka.connect.transform.common."
STEPS: dict[str, type[TransformStep]] = {
    **{
        f"{_COMMON}{step.__name__}": step
        for step in (
            ChangeTopicCase, LowerCaseTopic, ChangeCase, PatternRename, BytesToString, ToLong,
            PatternMapString, ExtractNestedField, HeaderToField,
        )
    },
    f"{_COMMON}ToJSON": ToJson,
    f"{_COMMON}ExtractXPath": DerivedField,
    f"{_COMMON}TopicNameToField": AddedFields,
    f"{_COMMON}TimestampNowField": AddedFields,
    f"{_COMMON}SchemaNameToTopic": RowRouter,
    f"{_COMMON}SetNull": Drop,
    **{
        f"{_COMMON}{name}": TransformStep
        for name in (
            "AdjustPrecisionAndScale", "SetMaximumPrecision", "NormalizeSchema", "Debug",
            "ExtractTimestamp", "TimestampNow", "PatternFilter",
        )
    },
}  # fmt: skip
