"""The shape of a topic's records, read from one of them where no registry knows it."""

from __future__ import annotations

import json

from headwater.lineage.schema import Field, Schema, SchemaError, read_connect


def read_record(raw: bytes | None) -> Schema | None:
    """The shape of one JSON record: its own schema when it carries one, else its members' types."""
    if not raw:
        return None
    try:
        data = json.loads(raw)
    except ValueError:
        return None
    if not isinstance(data, dict):
        return None
    if set(data) == {"schema", "payload"} and isinstance(data["schema"], dict):
        try:
            return read_connect(data)
        except SchemaError:
            return None
    return Schema(tuple(_sampled_field(name, value) for name, value in data.items()))


def _sampled_field(name: str, value: object, depth: int = 0) -> Field:
    if isinstance(value, dict) and depth < 8:
        inner = tuple(_sampled_field(k, v, depth + 1) for k, v in value.items())
        return Field(name, "struct", fields=inner)
    kinds = {bool: "boolean", int: "long", float: "double", str: "string", list: "array"}
    return Field(name, kinds.get(type(value), ""))
