"""Column rules for what a plan's text leaves open: decided where columns are known, else unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.columns.expressions import Expressions, rule
from headwater.spark.columns.source import Source
from headwater.spark.columns.value import ARRAY, IDENTITY, Value
from headwater.spark.remote.explain.layout import UnclearText

if TYPE_CHECKING:
    from typing import Any

    from headwater.spark.columns.scope import Scope
    from headwater.spark.plan.tree import Node

_GROUPED = 202


@rule("Dot")
def _dot(self: Expressions, node: Node, scope: Scope) -> Value:
    """`a.b`: a field of a struct, or that field of every element of an array."""
    value = self.value(node.children[0], scope)
    if value.kind == ARRAY:
        return Value(kind=ARRAY, parts={"element": _part(self.element(value), node.name)})
    return _part(value, node.name)


def _part(value: Value, name: str) -> Value:
    same = (known for known in value.parts if known.lower() == name.lower())
    return value.part(next(same, name))


@rule("UncertainCast")
def _cast(self: Expressions, node: Node, scope: Scope) -> Value:
    """A cast from a type that the text does not show: it may keep a value or change it."""
    value = self.value(node.children[0], scope)
    if value.wire is not None or value.encoded:
        return value if node.get("dataType") in ("string", "binary") else Value.unknown()
    if any(bit & IDENTITY for bit in value.all().values()):
        return Value.unknown()
    return value


@rule("Opaque")
def _opaque(self: Expressions, node: Node, scope: Scope) -> Value:  # noqa: ARG001
    return Value.unknown()


class UntypedSource(Source):
    """A leaf whose types may not be known: a field of a column is a column by its path."""

    __slots__ = ()

    def column(self, name: str, data_type: Any) -> Value:
        if data_type is not None or self.topic:
            return super().column(name, data_type)
        made = Value({(self, (name,)): IDENTITY})
        made._leaf = (self, (name,))  # noqa: SLF001
        return made


def settle_groups(items: list[Node], groups: list[Node]) -> None:
    """Find out which Python functions are aggregates, which the text does not show.

    What an aggregate gives is a group's column or comes out of an aggregate function. A function
    in Python over other columns is therefore one; any other function there is not known.
    """
    known = {_signature(group) for group in groups}
    for item in items:
        _settle(item, known)


def _settle(node: Node, known: set[Any]) -> None:
    if node.kind in ("AggregateExpression", "Literal", "Opaque") or _signature(node) in known:
        return
    if node.kind in ("AttributeReference", "Dot") and not node.children:
        raise UnclearText("a column of an aggregate comes from no function that is known")
    if node.kind == "PythonUDF":
        _settle_python(node, known)
        return
    for child in node.children:
        _settle(child, known)


def _settle_python(node: Node, known: set[Any]) -> None:
    if node.get("evalType") is not None:
        return
    ungrouped, nested = _columns_below(node, known)
    if nested:
        return
    if not ungrouped:
        raise UnclearText("a function in Python over a group's columns may take one row or many")
    node.data["evalType"] = _GROUPED


def _columns_below(node: Node, known: set[Any]) -> tuple[bool, bool]:
    """Whether columns outside of the groups are used below, and whether an aggregate function is."""
    ungrouped = nested = False
    waiting = list(node.children)
    while waiting:
        one = waiting.pop()
        if _signature(one) in known:
            continue
        ungrouped = ungrouped or one.kind == "AttributeReference"
        nested = nested or one.kind == "AggregateExpression"
        waiting += one.children
    return ungrouped, nested


def _signature(node: Node) -> Any:
    if node.kind == "Alias" and node.children:
        return _signature(node.children[0])
    if node.kind == "AttributeReference":
        return node.id
    own = node.get("headwater_name") or node.get("value") or node.name
    return (node.kind, str(own), *(_signature(child) for child in node.children))
