"""Spark's types as its JSON writes them: fields of a schema, and casts that lose nothing."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.lineage.schema import Field, Schema
from headwater.lineage.schema.model import ELEMENT, container

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.spark.plan.tree import Node

_INTEGERS = ("byte", "short", "integer", "long")
_DIGITS = {"byte": 3, "short": 5, "integer": 10, "long": 20}
_DECIMAL = re.compile(r"^decimal\((\d+),\s*(-?\d+)\)$")
_TEXT = re.compile(r"^(?:string|binary|varchar\(\d+\)|char\(\d+\))")
_DEEPEST = 32


def schema_of(columns: Iterable[tuple[str, Any]]) -> Schema:
    """The schema of columns given by name and type."""
    return Schema(tuple(field(name, kind) for name, kind in columns))


def struct_schema(data_type: Any) -> Schema:
    """The schema of a struct type."""
    fields = data_type.get("fields", ()) if isinstance(data_type, dict) else ()
    return Schema(tuple(_member(item) for item in fields))


def field(name: str, data_type: Any, nullable: bool | None = None, depth: int = 0) -> Field:
    """One column as a field, with the fields inside it."""
    if not isinstance(data_type, dict) or depth > _DEEPEST:
        kind = data_type if isinstance(data_type, str) else ""
        return Field(name, kind, nullable=nullable)
    kind = data_type.get("type", "")
    if kind == "struct":
        inner = tuple(_member(item, depth + 1) for item in data_type.get("fields", ()))
        return Field(name, "struct", fields=inner, nullable=nullable)
    if kind == "array":
        element = field(ELEMENT, data_type.get("elementType"), depth=depth + 1)
        return container(name, "array", (element,), nullable=nullable)
    if kind == "map":
        key = field("key", data_type.get("keyType"), depth=depth + 1)
        value = field("value", data_type.get("valueType"), depth=depth + 1)
        return container(name, "map", (key, value), nullable=nullable)
    if kind == "udt":
        return field(name, data_type.get("sqlType"), nullable, depth + 1)
    return Field(name, str(kind), nullable=nullable)


def _member(item: dict[str, Any], depth: int = 0) -> Field:
    return field(item["name"], item["type"], item.get("nullable"), depth)


def from_field(given: Field) -> Any:
    """A field of a registry's schema as a type of Spark's, as far as names are concerned."""
    if given.fields and given.type == "array":
        return {"type": "array", "elementType": from_field(given.fields[0])}
    if given.fields and given.type == "map":
        key, value = given.fields[0], given.fields[-1]
        return {"type": "map", "keyType": from_field(key), "valueType": from_field(value)}
    if given.fields:
        fields = [{"name": inner.name, "type": from_field(inner)} for inner in given.fields]
        return {"type": "struct", "fields": fields}
    return given.type


def type_of(node: Node) -> Any:
    """The type of an expression where its JSON has it, else None."""
    kind = node.kind
    if kind in ("Alias", "KnownNullable", "KnownNotNull", "AssertNotNull") and node.children:
        return type_of(node.children[0])
    if kind == "GetStructField" and node.children:
        outer = type_of(node.children[0])
        fields = outer.get("fields", ()) if isinstance(outer, dict) else ()
        ordinal = node.get("ordinal")
        if isinstance(ordinal, int) and ordinal < len(fields):
            return fields[ordinal]["type"]
        return None
    if kind == "JsonToStructs":
        return node.get("schema")
    if kind == "CreateNamedStruct":
        pairs = zip(node.children[::2], node.children[1::2], strict=True)
        fields = [{"name": str(n.get("value")), "type": type_of(v)} for n, v in pairs]
        return {"type": "struct", "fields": fields}
    return node.get("dataType")


def keeps(before: Any, after: Any) -> bool:
    """Whether a cast from one type to another leaves every value what it was."""
    if before is None or after is None:
        return False
    if before == after:
        return True
    if isinstance(before, dict) and isinstance(after, dict):
        return _keeps_inside(before, after)
    if not isinstance(before, str) or not isinstance(after, str):
        return False
    if _TEXT.match(before) and _TEXT.match(after):
        return True
    if before in _INTEGERS:
        if after in _INTEGERS:
            return _INTEGERS.index(before) <= _INTEGERS.index(after)
        if match := _DECIMAL.match(after):
            return int(match[1]) - int(match[2]) >= _DIGITS[before]
        return after == "double" and before != "long"
    if before == "float":
        return after == "double"
    old, new = _DECIMAL.match(before), _DECIMAL.match(after)
    if old and new:
        scale, wider = int(old[2]), int(new[2])
        return wider >= scale and int(new[1]) - wider >= int(old[1]) - scale
    return before == "timestamp_ntz" and after == "timestamp"


def _keeps_inside(before: dict[str, Any], after: dict[str, Any]) -> bool:
    kind = before.get("type")
    if kind != after.get("type"):
        return False
    if kind == "array":
        return keeps(before["elementType"], after["elementType"])
    if kind == "map":
        same = keeps(before["keyType"], after["keyType"])
        return same and keeps(before["valueType"], after["valueType"])
    if kind == "struct":
        old, new = before.get("fields", ()), after.get("fields", ())
        return len(old) == len(new) and all(
            keeps(one["type"], other["type"]) for one, other in zip(old, new, strict=True)
        )
    return False
