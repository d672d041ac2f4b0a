"""Aggregates and windows: many rows in one value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.columns.expressions import Expressions, rule
from headwater.spark.columns.value import (
    AGGREGATE,
    ARRAY,
    CONDITIONAL,
    MASK_AGGREGATE,
    SORT,
    WINDOW,
    Value,
    add,
    apply,
    indirect,
)

if TYPE_CHECKING:
    from headwater.spark.columns.scope import Scope
    from headwater.spark.columns.value import Bits
    from headwater.spark.plan.tree import Node

RANKS = ("RowNumber", "Rank", "DenseRank", "PercentRank", "CumeDist", "NTile")
"""Window functions whose arguments are the window's own order."""

AGGREGATES = (
    "Max",
    "Min",
    "First",
    "Last",
    "AnyValue",
    "Mode",
    "CollectList",
    "CollectSet",
    "CollectTopK",
    "Count",
    "HyperLogLogPlusPlus",
    "MaxBy",
    "MinBy",
    "ListAgg",
    "PivotFirst",
)
"""Aggregate functions with a rule of their own."""


@rule("AggregateExpression")
def _aggregate(self: Expressions, node: Node, scope: Scope) -> Value:
    function = node.node("aggregateFunction") or node.children[0]
    value = self.value(function, scope)
    if function.kind not in AGGREGATES:
        value = value.through(AGGREGATE)
    condition = node.node("filter")
    if condition is not None:
        bits = dict(value.bits)
        add(bits, indirect(self.value(condition, scope).all(), CONDITIONAL))
        return Value(bits, value.kind, value.parts if value.kind else None)
    return value


@rule("Max", "Min", "First", "Last", "AnyValue", "Mode")
def _picked(self: Expressions, node: Node, scope: Scope) -> Value:
    return self.value(node.children[0], scope).through(AGGREGATE)


@rule("CollectList", "CollectSet", "CollectTopK")
def _collected(self: Expressions, node: Node, scope: Scope) -> Value:
    element = self.value(node.children[0], scope).through(AGGREGATE)
    return Value(kind=ARRAY, parts={"element": element})


@rule("Count", "HyperLogLogPlusPlus")
def _count(self: Expressions, node: Node, scope: Scope) -> Value:
    return Value(apply(self.below(node, scope), MASK_AGGREGATE))


@rule("MaxBy", "MinBy")
def _by(self: Expressions, node: Node, scope: Scope) -> Value:
    value = self.value(node.children[0], scope).through(AGGREGATE)
    add(value.bits, indirect(self.value(node.children[1], scope).all(), SORT))
    return value


@rule("ListAgg")
def _listed(self: Expressions, node: Node, scope: Scope) -> Value:
    """Texts joined into one; the arguments behind them are the order."""
    value = self.value(node.children[0], scope).through(AGGREGATE)
    bits = dict(value.all())
    for other in node.children[1:]:
        add(bits, indirect(self.value(other, scope).all(), SORT))
    return Value(bits)


@rule("PivotFirst")
def _pivot(self: Expressions, node: Node, scope: Scope) -> Value:
    pivot, value = self.values(node.children[:2], scope)
    element = value.through(AGGREGATE)
    add(element.bits, indirect(pivot.all(), CONDITIONAL))
    return Value(kind=ARRAY, parts={"element": element})


@rule("WindowExpression")
def _window(self: Expressions, node: Node, scope: Scope) -> Value:
    function, spec = node.children
    if function.kind in RANKS:
        bits: Bits = {}
        value = Value(bits)
    else:
        value = self.value(function, scope)
        if function.kind == "PythonUDF":
            value = value.through(AGGREGATE)
        bits = dict(value.bits)
    for part in (*spec.nodes("partitionSpec"), *spec.nodes("orderSpec")):
        add(bits, indirect(self.value(part, scope).all(), WINDOW))
    return Value(bits, value.kind, value.parts if value.kind else None)
