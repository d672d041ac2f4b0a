"""OpenLineage's SchemaDatasetFacet, in and out."""

from __future__ import annotations

from typing import Any

import msgspec

from .model import Budget, Field, Schema, SchemaError, bounded, shown, string, unique


@bounded
def read_facet(facet: object) -> Schema:
    """Read a schema facet leniently: a field may lack its type, and a repeated field counts once."""
    raw = facet.get("fields") if isinstance(facet, dict) else facet
    if raw is None:
        return Schema()
    return Schema(_fields(raw, (), Budget()))


def read_fields(body: bytes) -> tuple[Field, ...]:
    """The fields of an encoded schema facet; none where it cannot be read."""
    try:
        return read_facet(msgspec.json.decode(body)).fields
    except (SchemaError, msgspec.DecodeError):
        return ()


def replace_fields(body: bytes, fields: tuple[Field, ...]) -> dict[str, Any]:
    """An encoded schema facet with other fields, by the same producer."""
    facet = msgspec.json.decode(body)
    about = {key: facet[key] for key in ("_producer", "_schemaURL") if key in facet}
    return {**about, "fields": write_fields(Schema(fields))}


def write_fields(schema: Schema) -> list[dict[str, Any]]:
    """The `fields` of a schema facet, nested; a value that is no record is the field `value`."""
    fields = (
        schema.fields if schema.is_record else (Field("value", schema.type, fields=schema.fields),)
    )
    return [_written(field) for field in fields]


def _fields(raw: object, path: tuple[str, ...], budget: Budget) -> tuple[Field, ...]:
    if not isinstance(raw, list):
        raise SchemaError(f"{shown(path)}: fields is not a list")
    return unique([_field(item, path, budget) for item in raw])


def _field(item: object, path: tuple[str, ...], budget: Budget) -> Field:
    if isinstance(item, str):
        item = {"name": item}
    if not isinstance(item, dict) or not isinstance(item.get("name"), str):
        raise SchemaError(f"{shown(path)}: a field of the schema facet has no name")
    here = (*path, item["name"])
    budget.take(here)
    inner = item.get("fields")
    return Field(
        item["name"],
        string(item.get("type")),
        string(item.get("description")),
        _fields(inner, here, budget) if inner else (),
    )


def _written(field: Field) -> dict[str, Any]:
    out: dict[str, Any] = {"name": field.name}
    if field.type:
        out["type"] = field.type
    if field.description:
        out["description"] = field.description
    if field.fields:
        out["fields"] = [_written(inner) for inner in field.fields]
    return out
