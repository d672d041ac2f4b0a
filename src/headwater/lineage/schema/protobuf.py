"""Protobuf schemas: the messages of .proto text as fields."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .model import ELEMENT, Budget, Field, Schema, SchemaError, bounded, container, shown, unique
from .proto_parser import ProtoField, ProtoFile, ProtoMessage, parse

if TYPE_CHECKING:
    from collections.abc import Mapping

_TYPES = {
    "double": "double",
    "float": "float",
    "int32": "int",
    "sint32": "int",
    "sfixed32": "int",
    "uint32": "long",
    "fixed32": "long",
    "int64": "long",
    "sint64": "long",
    "sfixed64": "long",
    "uint64": "long",
    "fixed64": "long",
    "bool": "boolean",
    "string": "string",
    "bytes": "bytes",
}
_KNOWN = {
    "google.protobuf.Timestamp": "timestamp",
    "google.protobuf.Duration": "interval",
    "google.protobuf.Struct": "json",
    "google.protobuf.Value": "json",
    "google.protobuf.ListValue": "json",
    "google.protobuf.Any": "bytes",
    "google.protobuf.Empty": "struct",
    "google.protobuf.FieldMask": "string",
    "google.protobuf.DoubleValue": "double",
    "google.protobuf.FloatValue": "float",
    "google.protobuf.Int32Value": "int",
    "google.protobuf.UInt32Value": "long",
    "google.protobuf.Int64Value": "long",
    "google.protobuf.UInt64Value": "long",
    "google.protobuf.BoolValue": "boolean",
    "google.protobuf.StringValue": "string",
    "google.protobuf.BytesValue": "bytes",
    "google.type.Date": "date",
    "google.type.TimeOfDay": "time",
    "confluent.type.Decimal": "decimal",
}
_MOST_FILES = 200


@bounded
def read_protobuf(
    schema: str, references: Mapping[str, str] | None = None, message: str | None = None
) -> Schema:
    """Read .proto text; `references` are imported files by the path that imports them.

    Without a `message` the first one of the text is read, which is what registries mean by the
    schema of a record.
    """
    main = parse(schema)
    if not main.messages:
        raise SchemaError("schema: the .proto text defines no message")
    reader = _ProtobufReader(main, references or {})
    chosen = next(iter(main.messages))
    if message:
        chosen = reader.find(message, main.package)
    if chosen not in reader.messages:
        raise SchemaError(f"schema: no message is called {message!r}")
    fields = reader.fields(reader.messages[chosen], ())
    return Schema(fields, description=reader.messages[chosen].description)


class _ProtobufReader:
    def __init__(self, main: ProtoFile, references: Mapping[str, str]) -> None:
        self.messages: dict[str, ProtoMessage] = {}
        self.enums: set[str] = set()
        self.syntax: dict[str, str] = {}
        self.open: set[str] = set()
        self.budget = Budget()
        waiting, seen = [main], set[str]()
        while waiting:
            file = waiting.pop()
            self.messages |= file.messages
            self.syntax |= dict.fromkeys(file.messages, file.syntax)
            self.enums |= file.enums
            for path in file.imports:
                if path in references and path not in seen and len(seen) < _MOST_FILES:
                    seen.add(path)
                    waiting.append(parse(references[path]))

    def find(self, name: str, scope: str) -> str:
        """Resolve a type name from the inside out, as protoc does."""
        if name.startswith("."):
            return name[1:]
        while scope:
            full = f"{scope}.{name}"
            if full in self.messages or full in self.enums:
                return full
            scope = scope.rpartition(".")[0]
        return name

    def fields(self, message: ProtoMessage, path: tuple[str, ...]) -> tuple[Field, ...]:
        self.open.add(message.full)
        found = unique([self._field(field, message, path) for field in message.fields])
        self.open.discard(message.full)
        return found

    def _field(self, field: ProtoField, message: ProtoMessage, path: tuple[str, ...]) -> Field:
        here = (*path, field.name)
        if field.key:
            key = Field("key", _TYPES.get(field.key, "string"))
            value = self._typed("value", field.type, message, (*here, "value"))
            made = container(field.name, "map", (key, value))
        elif field.label == "repeated":
            item = self._typed(ELEMENT, field.type, message, (*here, ELEMENT))
            made = container(field.name, "array", (item,))
        else:
            made = self._typed(field.name, field.type, message, here)
        return Field(
            field.name,
            made.type,
            field.description,
            made.fields,
            self._nullable(field, message),
            default=field.default,
        )

    def _nullable(self, field: ProtoField, message: ProtoMessage) -> bool | None:
        if field.key or field.label in ("repeated", "required"):
            return False
        if field.label in ("optional", "oneof"):
            return True
        full = self.find(field.type, message.full)
        # Editions have no labels: presence is tracked for every field.
        edition = self.syntax.get(message.full, "").isdigit()
        if edition or full in self.messages or full in _KNOWN:
            return True
        return False if field.type in _TYPES or full in self.enums else None

    def _typed(self, name: str, kind: str, message: ProtoMessage, path: tuple[str, ...]) -> Field:
        self.budget.take(path)
        if kind in _TYPES:
            return Field(name, _TYPES[kind])
        full = self.find(kind, message.full)
        if full in self.enums:
            return Field(name, "enum")
        if full in _KNOWN:
            return Field(name, _KNOWN[full])
        if full in self.open:
            return Field(name, "struct")
        if full in self.messages:
            return Field(name, "struct", fields=self.fields(self.messages[full], path))
        if not kind.replace(".", "").replace("_", "").isalnum():
            raise SchemaError(f"{shown(path)}: {kind[:60]!r} is not a type")
        # An import that was not handed over: the field is there, its inside is unknown.
        return Field(name, kind.lstrip("."))
