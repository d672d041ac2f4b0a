"""Structs, arrays and maps: what is put together and taken apart."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.columns.expressions import Expressions, rule
from headwater.spark.columns.types import type_of
from headwater.spark.columns.value import (
    ARRAY,
    IDENTITY,
    MAP,
    STRUCT,
    TRANSFORM,
    Value,
    apply,
    merge,
)

if TYPE_CHECKING:
    from headwater.spark.columns.scope import Scope
    from headwater.spark.plan.tree import Node


@rule("CreateNamedStruct")
def _struct(self: Expressions, node: Node, scope: Scope) -> Value:
    parts: dict[str, Value] = {}
    for name, value in zip(node.children[::2], node.children[1::2], strict=True):
        parts[str(name.get("value"))] = self.value(value, scope)
    return Value(kind=STRUCT, parts=parts)


@rule("GetStructField")
def _field(self: Expressions, node: Node, scope: Scope) -> Value:
    ordinal = node.get("ordinal")
    name = node.name
    if not name:
        outer = type_of(node.children[0])
        fields = outer.get("fields", ()) if isinstance(outer, dict) else ()
        if isinstance(ordinal, int) and ordinal < len(fields):
            name = fields[ordinal]["name"]
    value = self.value(node.children[0], scope)
    return value.part(name, ordinal if isinstance(ordinal, int) else -1)


@rule("GetArrayStructFields")
def _fields(self: Expressions, node: Node, scope: Scope) -> Value:
    field = node.get("field")
    name = field.get("name", "") if isinstance(field, dict) else ""
    element = self.element(self.value(node.children[0], scope))
    return Value(kind=ARRAY, parts={"element": element.part(name, node.get("ordinal") or 0)})


@rule("UpdateFields")
def _update(self: Expressions, node: Node, scope: Scope) -> Value:
    base = self.value(node.children[0], scope)
    parts = dict(base.parts)
    withs = iter(node.children[1:])
    for operation in node.get("fieldOps") or ():
        if isinstance(operation, dict) and "DropField" in operation.get("product-class", ""):
            parts.pop(operation.get("name", ""), None)
        elif (made := next(withs, None)) is not None:
            parts[made.name] = self.value(made.children[0] if made.children else made, scope)
    return Value(base.bits, STRUCT, parts)


@rule("CreateArray")
def _array(self: Expressions, node: Node, scope: Scope) -> Value:
    if not node.children:
        return Value()
    values = [value.through(TRANSFORM) for value in self.values(node.children, scope)]
    return Value(kind=ARRAY, parts={"element": merge(values)})


@rule("CreateMap")
def _map(self: Expressions, node: Node, scope: Scope) -> Value:
    if not node.children:
        return Value()
    values = [value.through(TRANSFORM) for value in self.values(node.children, scope)]
    return Value(kind=MAP, parts={"key": merge(values[::2]), "value": merge(values[1::2])})


@rule("GetArrayItem", "GetMapValue", "ElementAt", "TryElementAt")
def _item(self: Expressions, node: Node, scope: Scope) -> Value:
    # A replacement that Spark puts below the function reads the same.
    if len(node.children) < 2:
        return self.value(node.children[0], scope)
    outer, place = self.values(node.children[:2], scope)
    name = "value" if outer.kind == MAP else "element"
    found = outer.part(name) if outer.kind in (ARRAY, MAP) else Value(outer.all())
    # A pivot's places are the plan's own, and its aggregate was counted already.
    made = found if _pivoted(found) else found.through(TRANSFORM)
    extra = apply(place.all(), TRANSFORM)
    return merge([made, Value(extra)]) if extra else made


def _pivoted(value: Value) -> bool:
    return bool(value.bits) and not any(bit & IDENTITY for bit in value.bits.values())


@rule("MapKeys", "MapValues")
def _half(self: Expressions, node: Node, scope: Scope) -> Value:
    value = self.value(node.children[0], scope)
    if value.kind != MAP:
        return Value(apply(value.all(), TRANSFORM))
    part = value.part("key" if node.kind == "MapKeys" else "value").through(TRANSFORM)
    return Value(kind=ARRAY, parts={"element": part})


@rule("MapFromArrays")
def _from_arrays(self: Expressions, node: Node, scope: Scope) -> Value:
    keys, values = (self.element(value) for value in self.values(node.children[:2], scope))
    parts = {"key": keys.through(TRANSFORM), "value": values.through(TRANSFORM)}
    return Value(kind=MAP, parts=parts)


@rule("ArraysZip")
def _zip(self: Expressions, node: Node, scope: Scope) -> Value:
    names = [name.get("value") or name.name for name in node.nodes("names")]
    count = len(node.children) - len(names) if len(node.children) > len(names) else len(names)
    values = [self.element(v).through(TRANSFORM) for v in self.values(node.children[:count], scope)]
    parts = {str(name): value for name, value in zip(names, values, strict=False)}
    if len(parts) != len(values):
        return Value(apply(self.below(node, scope), TRANSFORM))
    return Value(kind=ARRAY, parts={"element": Value(kind=STRUCT, parts=parts)})


@rule("Flatten")
def _flatten(self: Expressions, node: Node, scope: Scope) -> Value:
    return self.element(self.value(node.children[0], scope)).through(TRANSFORM)


@rule("Concat")
def _concat(self: Expressions, node: Node, scope: Scope) -> Value:
    values = self.values(node.children, scope)
    variable = [value for value in values if value.all()]
    if len(variable) == 1 and variable[0].encoded:
        return variable[0]  # a prefix of constant bytes, as Confluent's format has it
    return merge([value.through(TRANSFORM) for value in values])
