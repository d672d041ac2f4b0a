"""The columns of a Kafka record: what is read out of its bytes, and what is written into them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.lineage.schema import SchemaError, read_avro
from headwater.spark.types import from_field
from headwater.spark.value import IDENTITY, STRUCT, TRANSFORM, Path, Value, apply

if TYPE_CHECKING:
    from headwater.spark.sources import Source

_STEP = re.compile(r"\.([^.\[\]]+)|\['([^']+)'\]|\[(\d+|\*)\]")


def column_path(side: str, path: Path) -> Path:
    """A field of a record as a column: the key's below `key`, a value's `key` below `value`."""
    if side == "key":
        return ("key", *path)
    return ("value", *path) if path[:1] == ("key",) else path


def decode(value: Value, data_type: Any) -> Value:
    """What `from_json`, `from_avro` and their like make of a column."""
    if value.encoded:
        return Value(value.bits, value.kind, value.parts)
    if value.wire is None:
        return Value(apply(value.all(), TRANSFORM))
    source, side = value.wire
    kind = data_type.get("type") if isinstance(data_type, dict) else None
    if kind in ("array", "map") or isinstance(data_type, str):
        return Value.column(source, (side,), data_type)
    return _record(source, side, data_type)


def _record(source: Source, side: str, data_type: Any) -> Value:
    fields = data_type.get("fields", ()) if isinstance(data_type, dict) else ()
    if fields:
        source.decoded.setdefault(side, data_type)
    parts = {
        item["name"]: Value.column(source, column_path(side, (item["name"],)), item["type"])
        for item in fields
    }
    return Value.record(source, side, parts)


def encode(value: Value) -> Value:
    """What `to_json`, `to_avro` and their like make of a struct; of anything else just text."""
    if value.kind != STRUCT:
        return Value(apply(value.all(), TRANSFORM))
    return Value(value.bits, STRUCT, value.parts, encoded=True)


def avro_type(text: Any) -> Any:
    """The type that an Avro schema reads into, or None when the schema cannot be read."""
    if not isinstance(text, str):
        return None
    try:
        schema = read_avro(text)
    except SchemaError:
        return None
    if not schema.is_record:
        return schema.type
    fields = [{"name": inner.name, "type": from_field(inner)} for inner in schema.fields]
    return {"type": STRUCT, "fields": fields}


def at_path(value: Value, path: Any) -> Value:
    """What `get_json_object(value, '$.a.b')` takes out of a column."""
    names = json_path(path)
    if not names:
        return Value(apply(value.all(), TRANSFORM))
    if value.encoded:
        for name in names:
            value = value.part(name)
        return value
    if value.wire is None:
        return Value(apply(value.all(), TRANSFORM))
    source, side = value.wire
    return Value({(source, column_path(side, names)): IDENTITY})


def json_path(path: Any) -> Path:
    """The names in a JSON path; places in arrays add nothing, as in the names of columns."""
    if not isinstance(path, str) or not path.startswith("$"):
        return ()
    found: list[str] = []
    at = 1
    while at < len(path):
        step = _STEP.match(path, at)
        if step is None:
            return ()
        if name := step[1] or step[2]:
            found.append(name)
        at = step.end()
    return tuple(found)
