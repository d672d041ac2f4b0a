"""Records written as bytes or text, and read from them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark import records
from headwater.spark.expressions import Expressions, rule
from headwater.spark.types import type_of
from headwater.spark.value import TRANSFORM, Value, apply

if TYPE_CHECKING:
    from headwater.spark.scope import Scope
    from headwater.spark.tree import Node


@rule("JsonToStructs", "XmlToStructs", "AvroDataToCatalyst", "ProtobufDataToCatalyst", "FromAvro",
      "FromProtobuf")  # fmt: skip
def _decode(self: Expressions, node: Node, scope: Scope) -> Value:
    value = self.value(node.children[0], scope)
    if node.kind in ("AvroDataToCatalyst", "FromAvro"):
        told = node.get("jsonFormatSchema")
        if isinstance(told, int) and told < len(node.children):
            told = node.children[told].get("value")
        return records.decode(value, records.avro_type(told))
    return records.decode(value, node.get("schema"))


@rule("StructsToJson", "CatalystDataToAvro", "CatalystDataToProtobuf", "ToAvro", "ToProtobuf")
def _encode(self: Expressions, node: Node, scope: Scope) -> Value:
    made = records.encode(self.value(node.children[0], scope))
    made.typed = type_of(node.children[0])
    return made


@rule("GetJsonObject", "VariantGet")
def _at_path(self: Expressions, node: Node, scope: Scope) -> Value:
    value = self.value(node.children[0], scope)
    return records.at_path(value, node.children[1].get("value"))


@rule("Substring", "Decode", "Encode", "StringDecode", "UnBase64", "ParseJson", "TryParseJson")
def _bytes(self: Expressions, node: Node, scope: Scope) -> Value:
    first = node.children[0]
    if first.kind == "StaticInvoke" and first.children:
        first = first.children[0]
    value = self.value(first, scope)
    if value.wire is not None or value.encoded:
        return value
    return Value(apply(self.below(node, scope), TRANSFORM))
