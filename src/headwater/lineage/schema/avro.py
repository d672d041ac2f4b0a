"""Avro schemas, as a registry hands them out."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from . import logical
from .model import (
    ELEMENT,
    Budget,
    Field,
    Schema,
    SchemaError,
    bounded,
    container,
    decode_json,
    shown,
    string,
    unique,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

Path = tuple[str, ...]

_PRIMITIVES = frozenset({"null", "boolean", "int", "long", "float", "double", "bytes", "string"})
_NAMED = frozenset({"record", "error", "enum", "fixed"})


@bounded
def read_avro(schema: object, references: Mapping[str, object] | None = None) -> Schema:
    """Read an Avro schema from JSON text or decoded JSON.

    `references` are schemas that this one names without defining them, in the order in which they
    build on one another. A record inside itself is a `struct` without fields.
    """
    reader = _AvroReader()
    for text in (references or {}).values():
        reader.define(_root(text), "")
    field = reader.field("", _root(schema), "", ())
    return Schema(field.fields, field.type, field.description)


def _root(schema: object) -> Any:
    if isinstance(schema, str) and schema.strip() in _PRIMITIVES:
        return schema.strip()
    return decode_json(schema)


class _AvroReader:
    def __init__(self) -> None:
        self.named: dict[str, tuple[dict[str, Any], str]] = {}
        self.open: set[str] = set()
        self.budget = Budget()

    def define(self, schema: object, space: str, depth: int = 0) -> None:
        """Note every named type in the schema, so that it can be used before it is met."""
        if depth > 3 * self.budget.depth:
            raise SchemaError(f"schema: types are nested deeper than {self.budget.depth} levels")
        if isinstance(schema, list):
            for branch in schema:
                self.define(branch, space, depth + 1)
        if not isinstance(schema, dict):
            return
        if schema.get("type") in _NAMED:
            full, space = _full(schema, space)
            self.named.setdefault(full, (schema, space))
        inner = schema.get("fields")
        for field in inner if isinstance(inner, list) else ():
            if isinstance(field, dict):
                self.define(field.get("type"), space, depth + 1)
        for key in ("items", "values", "type"):
            self.define(schema.get(key), space, depth + 1)

    def field(self, name: str, schema: object, space: str, path: Path) -> Field:
        self.budget.take(path)
        if isinstance(schema, list):
            return self._union(name, schema, space, path)
        if isinstance(schema, str):
            return self._reference(name, schema, space, path)
        if not isinstance(schema, dict):
            raise SchemaError(f"{shown(path)}: an Avro type is a name, an object or a list")
        kind = schema.get("type")
        if isinstance(kind, (dict, list)):
            return self.field(name, kind, space, path)
        if kind in ("record", "error"):
            return self._record(name, schema, space, path)
        if kind in ("enum", "fixed"):
            full, space = _full(schema, space)
            self.named.setdefault(full, (schema, space))
        if kind == "array":
            item = self.field(ELEMENT, schema.get("items"), space, (*path, ELEMENT))
            return container(name, "array", (item,), nullable=False)
        if kind == "map":
            value = self.field("value", schema.get("values"), space, (*path, "value"))
            return container(name, "map", (Field("key", "string"), value), nullable=False)
        return self._primitive(name, schema, space, path)

    def _primitive(self, name: str, schema: dict[str, Any], space: str, path: Path) -> Field:
        kind = schema.get("type")
        given = schema.get("logicalType")
        if given == "decimal":
            found = logical.decimal(schema.get("precision"), schema.get("scale"))
        else:
            found = logical.AVRO.get(given, "") if isinstance(given, str) else ""
            found = found or logical.named(
                schema.get("connect.name"), schema.get("connect.parameters")
            )
        if kind == "fixed":
            found = found or f"fixed({schema.get('size', 0)})"
        if found or kind == "enum":
            return Field(name, found or "enum", string(schema.get("doc")), nullable=False)
        return self._reference(name, kind, space, path)

    def _record(self, name: str, schema: dict[str, Any], space: str, path: Path) -> Field:
        full, space = _full(schema, space)
        self.named.setdefault(full, (schema, space))
        text = string(schema.get("doc"))
        if full in self.open:
            return Field(name, "struct", text, nullable=False)
        raw = schema.get("fields")
        if not isinstance(raw, list):
            raise SchemaError(f"{shown(path)}: the record {full!r} has no list of fields")
        self.open.add(full)
        fields = unique([self._member(member, space, path) for member in raw])
        self.open.discard(full)
        return Field(name, "struct", text, fields, nullable=False)

    def _member(self, member: object, space: str, path: Path) -> Field:
        if not isinstance(member, dict) or not isinstance(member.get("name"), str):
            raise SchemaError(f"{shown(path)}: a field of a record is an object with a name")
        name = member["name"]
        if "type" not in member:
            raise SchemaError(f"{shown((*path, name))}: the field has no type")
        kind = {**member, "name": name} if _inline(member) else member["type"]
        field = self.field(name, kind, space, (*path, name))
        return msgspec.structs.replace(
            field,
            description=string(member.get("doc")) or field.description,
            default="default" in member,
            aliases=tuple(_strings(member.get("aliases"))),
        )

    def _union(self, name: str, branches: list[object], space: str, path: Path) -> Field:
        rest = [branch for branch in branches if branch not in ("null", {"type": "null"})]
        if not branches or not rest:
            return Field(name, "null", nullable=True)
        nullable = len(rest) < len(branches)
        if len(rest) == 1:
            field = self.field(name, rest[0], space, path)
            return msgspec.structs.replace(field, nullable=nullable or bool(field.nullable))
        children = [
            self.field(label, branch, space, (*path, label))
            for label, branch in zip(_labels(rest), rest, strict=True)
        ]
        if any(child.fields or child.type == "struct" for child in children):
            return Field(name, "union", fields=unique(children), nullable=nullable)
        kinds = ",".join(child.type for child in children)
        return Field(name, f"union<{kinds}>", nullable=nullable)

    def _reference(self, name: str, kind: object, space: str, path: Path) -> Field:
        if not isinstance(kind, str):
            raise SchemaError(f"{shown(path)}: the type is missing")
        if kind in _PRIMITIVES:
            return Field(name, kind, nullable=kind == "null")
        for full in (kind, f"{space}.{kind}"):
            if full in self.named:
                schema, inner = self.named[full]
                return self.field(name, schema, inner, path)
        raise SchemaError(f"{shown(path)}: the type {kind[:100]!r} is not defined")


def _inline(member: dict[str, Any]) -> bool:
    """Some producers write `logicalType` beside the field's type instead of inside it."""
    return isinstance(member["type"], str) and "logicalType" in member


def _full(schema: dict[str, Any], space: str) -> tuple[str, str]:
    name, own = string(schema.get("name")), schema.get("namespace")
    if "." in name:
        return name, name.rpartition(".")[0]
    space = own if isinstance(own, str) else space
    return (f"{space}.{name}" if space else name), space


def _labels(branches: list[object]) -> Iterable[str]:
    for branch in branches:
        kind = branch if not isinstance(branch, dict) else branch.get("name") or branch.get("type")
        yield kind.rpartition(".")[2] if isinstance(kind, str) else "union"


def _strings(value: object) -> list[str]:
    return [item for item in value if isinstance(item, str)] if isinstance(value, list) else []
