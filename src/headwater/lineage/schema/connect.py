"""Connect's own schemas: the `schema` half of JSON with schema and payload."""

from __future__ import annotations

from typing import Any

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

_TYPES = {
    "int8": "int",
    "int16": "int",
    "int32": "int",
    "int64": "long",
    "float": "float",
    "float32": "float",
    "double": "double",
    "float64": "double",
    "boolean": "boolean",
    "string": "string",
    "bytes": "bytes",
}


@bounded
def read_connect(schema: object) -> Schema:
    """Read a Connect schema, or a whole `{"schema": ..., "payload": ...}` message."""
    data = decode_json(schema)
    if isinstance(data, dict) and "schema" in data and "type" not in data:
        data = data["schema"]
    if data is None:
        return Schema((), "")
    field = _field("", data, (), Budget())
    return Schema(field.fields, field.type, field.description)


def _field(name: str, data: object, path: tuple[str, ...], budget: Budget) -> Field:
    budget.take(path)
    if not isinstance(data, dict):
        raise SchemaError(f"{shown(path)}: a Connect schema is an object with a type")
    nullable = data.get("optional") is True
    kind = data.get("type")
    if kind == "struct":
        raw = data.get("fields")
        if not isinstance(raw, list):
            raise SchemaError(f"{shown(path)}: a struct has a list of fields")
        fields = unique([_field(*_member(item, path), budget) for item in raw])
        found = Field(name, "struct", fields=fields, nullable=nullable)
    elif kind == "array":
        item = _field(ELEMENT, data.get("items"), (*path, ELEMENT), budget)
        found = container(name, "array", (item,), nullable=nullable)
    elif kind == "map":
        key = _field("key", data.get("keys"), (*path, "key"), budget)
        value = _field("value", data.get("values"), (*path, "value"), budget)
        found = container(name, "map", (key, value), nullable=nullable)
    elif isinstance(kind, str) and kind in _TYPES:
        logical_type = logical.named(data.get("name"), data.get("parameters"))
        found = Field(name, logical_type or _TYPES[kind], nullable=nullable)
    else:
        raise SchemaError(f"{shown(path)}: {str(kind)[:60]!r} is not a type of Connect")
    return Field(
        name, found.type, string(data.get("doc")), found.fields, nullable, "default" in data
    )


def _member(item: object, path: tuple[str, ...]) -> tuple[str, dict[str, Any], tuple[str, ...]]:
    if not isinstance(item, dict) or not isinstance(item.get("field"), str):
        raise SchemaError(f"{shown(path)}: a field of a struct is an object with its name in field")
    return item["field"], item, (*path, item["field"])
