"""Generators: rows out of arrays, maps, JSON text and table functions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.columns import records
from headwater.spark.columns.value import ARRAY, MAP, TRANSFORM, Value, add, apply, merge

if TYPE_CHECKING:
    from headwater.spark.columns.expressions import Expressions
    from headwater.spark.columns.scope import Scope
    from headwater.spark.plan.tree import Node


def generated(reader: Expressions, node: Node, outputs: list[Node], scope: Scope) -> list[Value]:
    """The columns that a generator makes, one for each of its outputs."""
    kind = node.kind
    if kind == "GeneratorOuter" and node.children:
        return generated(reader, node.children[0], outputs, scope)
    if kind in ("Explode", "PosExplode"):
        return _exploded(reader, node, len(outputs), scope)
    if kind == "Inline":
        element = reader.element(reader.value(node.children[0], scope)).through(TRANSFORM)
        return [element.part(out.name, place) for place, out in enumerate(outputs)]
    if kind == "Stack":
        return _stacked(reader, node, len(outputs), scope)
    if kind == "JsonTuple":
        text = reader.value(node.children[0], scope)
        names = [child.get("value") for child in node.children[1:]]
        return [records.at_path(text, f"$.{name}") for name in names[: len(outputs)]]
    bits = apply(reader.below(node, scope), TRANSFORM)
    for table in node.children:
        if (plan := table.node("plan")) is not None:
            relation = reader.plan(plan, scope)
            add(bits, relation.rows)
            for value in relation.env.values():
                add(bits, apply(value.all(), TRANSFORM))
    return [Value(dict(bits)) for _ in outputs]


def _exploded(reader: Expressions, node: Node, count: int, scope: Scope) -> list[Value]:
    value = reader.value(node.children[0], scope)
    places = [Value()] if node.kind == "PosExplode" else []
    count -= len(places)
    if value.kind == MAP:
        parts = [value.part("key"), value.part("value")]
    elif value.kind == ARRAY and count == 1:
        parts = [value.part("element")]
    else:
        parts = [Value(value.all())] * count
    return places + [part.through(TRANSFORM) for part in parts[:count]]


def _stacked(reader: Expressions, node: Node, count: int, scope: Scope) -> list[Value]:
    values = [reader.value(child, scope).through(TRANSFORM) for child in node.children[1:]]
    return [
        merge(values[place::count]) if values[place::count] else Value() for place in range(count)
    ]
