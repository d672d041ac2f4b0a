"""Records as bytes or text: the columns that are decoded from them and encoded into them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.lineage.schema import SchemaError, read_avro
from headwater.spark.columns.expressions import Expressions, rule
from headwater.spark.columns.types import from_field, type_of
from headwater.spark.columns.value import IDENTITY, STRUCT, TRANSFORM, Path, Value, apply

if TYPE_CHECKING:
    from headwater.spark.columns.scope import Scope
    from headwater.spark.columns.source import Source
    from headwater.spark.plan.tree import Node

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


@rule("JsonToStructs", "XmlToStructs", "AvroDataToCatalyst", "ProtobufDataToCatalyst", "FromAvro",
      "FromProtobuf")  # fmt: skip
def _decode(self: Expressions, node: Node, scope: Scope) -> Value:
    value = self.value(node.children[0], scope)
    if node.kind in ("AvroDataToCatalyst", "FromAvro"):
        schema = node.get("jsonFormatSchema")
        if isinstance(schema, int) and schema < len(node.children):
            schema = node.children[schema].get("value")
        return decode(value, avro_type(schema))
    return decode(value, node.get("schema"))


@rule("StructsToJson", "CatalystDataToAvro", "CatalystDataToProtobuf", "ToAvro", "ToProtobuf")
def _encode(self: Expressions, node: Node, scope: Scope) -> Value:
    made = encode(self.value(node.children[0], scope))
    made.typed = type_of(node.children[0])
    return made


@rule("GetJsonObject", "VariantGet")
def _at_path(self: Expressions, node: Node, scope: Scope) -> Value:
    text, path = node.children[:2]
    if path.kind != "Literal":
        return Value(apply(self.below(node, scope), TRANSFORM))
    return at_path(self.value(text, scope), path.get("value"))


@rule("Substring", "Decode", "Encode", "StringDecode", "UnBase64", "ParseJson", "TryParseJson")
def _bytes(self: Expressions, node: Node, scope: Scope) -> Value:
    first = node.children[0]
    if first.kind == "StaticInvoke" and first.children:
        first = first.children[0]
    value = self.value(first, scope)
    if value.wire is not None or value.encoded:
        return value
    return Value(apply(self.below(node, scope), TRANSFORM))
