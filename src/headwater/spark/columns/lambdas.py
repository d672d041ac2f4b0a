"""Functions over arrays and maps that take a lambda."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.columns.expressions import Expressions, rule
from headwater.spark.columns.value import (
    ARRAY,
    CONDITIONAL,
    MAP,
    TRANSFORM,
    Value,
    add,
    apply,
    indirect,
    merge,
)

if TYPE_CHECKING:
    from headwater.spark.columns.scope import Scope
    from headwater.spark.plan.tree import Node


def _call(self: Expressions, function: Node, arguments: list[Value], scope: Scope) -> Value:
    """The body of a lambda with its variables bound."""
    body = function.node("function") or function.children[0]
    names = function.nodes("arguments")
    for name, value in zip(names, [*arguments, *([Value()] * len(names))], strict=False):
        self.variables[name.id] = value
    return self.value(body, scope)


def _entries(value: Value) -> tuple[Value, Value]:
    if value.kind == MAP:
        return value.part("key"), value.part("value")
    flat = Value(value.all())
    return flat, flat


@rule("LambdaFunction")
def _bare(self: Expressions, node: Node, scope: Scope) -> Value:
    return _call(self, node, [], scope)


@rule("ArrayTransform")
def _transform(self: Expressions, node: Node, scope: Scope) -> Value:
    argument, function = node.children
    element = self.element(self.value(argument, scope))
    return Value(kind=ARRAY, parts={"element": _call(self, function, [element], scope)})


@rule("ArrayFilter", "MapFilter")
def _filter(self: Expressions, node: Node, scope: Scope) -> Value:
    argument, function = node.children
    value = self.value(argument, scope)
    bound = list(_entries(value)) if node.kind == "MapFilter" else [self.element(value)]
    made = value.through(TRANSFORM)
    add(made.bits, indirect(_call(self, function, bound, scope).all(), CONDITIONAL))
    return made


@rule("ArrayExists", "ArrayForAll")
def _test(self: Expressions, node: Node, scope: Scope) -> Value:
    argument, function = node.children[:2]
    element = self.element(self.value(argument, scope))
    return Value(apply(_call(self, function, [element], scope).all(), TRANSFORM))


@rule("ArrayAggregate")
def _fold(self: Expressions, node: Node, scope: Scope) -> Value:
    argument, zero, step, finish = node.children
    element = self.element(self.value(argument, scope))
    start = self.value(zero, scope)
    once = _call(self, step, [start, element], scope)
    folded = merge([start, once]).through(TRANSFORM)
    return _call(self, finish, [folded], scope).through(TRANSFORM)


@rule("ZipWith")
def _zip(self: Expressions, node: Node, scope: Scope) -> Value:
    left, right, function = node.children
    pair = [self.element(self.value(side, scope)) for side in (left, right)]
    return Value(kind=ARRAY, parts={"element": _call(self, function, pair, scope)})


@rule("TransformKeys", "TransformValues")
def _entry(self: Expressions, node: Node, scope: Scope) -> Value:
    argument, function = node.children
    key, value = _entries(self.value(argument, scope))
    made = _call(self, function, [key, value], scope).through(TRANSFORM)
    if node.kind == "TransformKeys":
        return Value(kind=MAP, parts={"key": made, "value": value})
    return Value(kind=MAP, parts={"key": key, "value": made})


@rule("MapZipWith")
def _map_zip(self: Expressions, node: Node, scope: Scope) -> Value:
    left, right, function = node.children
    key, first = _entries(self.value(left, scope))
    other, second = _entries(self.value(right, scope))
    made = _call(self, function, [merge([key, other]), first, second], scope)
    return Value(kind=MAP, parts={"key": merge([key, other]), "value": made.through(TRANSFORM)})
