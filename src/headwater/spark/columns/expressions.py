# ruff: noqa: ARG001  (rules share one shape, whether or not they need all of it)
"""Expressions: what each makes of the columns below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.columns.types import keeps, type_of
from headwater.spark.columns.value import (
    AGGREGATE,
    ARRAY,
    CONDITIONAL,
    MASK,
    TEST_FOR_NULL,
    TRANSFORM,
    Bits,
    Value,
    add,
    apply,
    indirect,
    merge,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.spark.columns.scope import Relation, Scope
    from headwater.spark.plan.tree import Node

    Rule = Callable[["Expressions", Node, Scope], Value]

RULES: dict[str, Rule] = {}
_GROUPED_AGGREGATES = {202, 252}

# Classes of Spark's expressions that behave alike.
TRANSPARENT = (
    "Alias",
    "SortOrder",
    "KnownNullable",
    "KnownNotNull",
    "KnownNotContainsNull",
    "KnownFloatingPointNormalized",
    "NormalizeNaNAndZero",
    "AssertNotNull",
    "CheckOverflowInTableInsert",
    "TempResolvedColumn",
    "Collate",
    "Empty2Null",
    "OuterScopeAttribute",
    "UnresolvedNamedLambdaVariable",
)
"""What hands a value on as it is."""

PLAIN = ("NullIf", "NullIfZero", "ZeroIfNull", "PreciseTimestampConversion", "IfNull")
"""What Spark spells out with conditions, though a reader sees one function of a column."""

CONDITIONS = ("If", "CaseWhen")
CASTS = ("Cast", "UpCast", "AnsiCast", "TryCast")

MASKS = (
    "Md5",
    "Sha1",
    "Sha2",
    "Crc32",
    "Murmur3Hash",
    "XxHash64",
    "HiveHash",
    "CollationAwareMurmur3Hash",
    "CollationAwareXxHash64",
    "Mask",
    "AesEncrypt",
)
"""What hides a value: the column cannot be read from the result."""

KEPT = (
    "SortArray",
    "ArraySort",
    "ArrayDistinct",
    "ArrayCompact",
    "ArrayRemove",
    "Slice",
    "Shuffle",
    "Reverse",
)
"""What changes which elements there are, not what they look like inside."""

CHOICES = ("Coalesce", "Least", "Greatest", "MapConcat")
"""What gives one of its arguments, or the entries of all of them."""

WRITE_SIDE = ("varcharTypeWriteSideCheck", "charTypeWriteSideCheck", "readSidePadding")
"""What Spark calls by itself where a column has a length."""


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register what an expression of these classes makes of its children."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


class Expressions:
    """Reads expressions; `plan` reads the plans inside them."""

    def __init__(self, plan: Callable[[Node, Scope | None], Relation]) -> None:
        self.plan = plan
        self.variables: dict[int, Value] = {}

    def value(self, node: Node, scope: Scope) -> Value:
        """What an expression is made of."""
        known = RULES.get(node.kind)
        if known is not None:
            return known(self, node, scope)
        return Value(apply(self.below(node, scope), TRANSFORM))

    def below(self, node: Node, scope: Scope) -> Bits:
        """All sources below a node; without recursion, since sums and ands can be very deep."""
        found: Bits = {}
        waiting = list(node.children)
        while waiting:
            one = waiting.pop()
            if one.kind in RULES:
                add(found, self.value(one, scope).all())
            else:
                waiting.extend(one.children)
        return found

    def values(self, nodes: Iterable[Node], scope: Scope) -> list[Value]:
        return [self.value(node, scope) for node in nodes]

    def plain(self, node: Node, scope: Scope) -> Bits:
        """All columns below a node as entering directly, whatever conditions stand between."""
        found: Bits = {}
        waiting = list(node.children)
        while waiting:
            one = waiting.pop()
            # Only what stands around a condition is passed by: a field of a struct, an aggregate or a
            # query has fewer columns than all that are below it.
            if one.kind in RULES and one.kind not in (*CONDITIONS, *CASTS, *TRANSPARENT):
                add(found, self.value(one, scope).all())
            else:
                waiting.extend(one.children)
        return found

    def element(self, value: Value) -> Value:
        """An element of an array as it is."""
        if value.kind == ARRAY:
            return value.part("element")
        return Value(value.all())


@rule("AttributeReference", "NamedLambdaVariable")
def _attribute(self: Expressions, node: Node, scope: Scope) -> Value:
    found = self.variables.get(node.id) or scope.find(node.id)
    return found if found is not None else Value.unknown()


@rule("OuterReference")
def _outer(self: Expressions, node: Node, scope: Scope) -> Value:
    inner = node.node("e")
    if inner is None:
        return Value.unknown()
    return self.value(inner, scope.outer or scope)


@rule("Literal")
def _literal(self: Expressions, node: Node, scope: Scope) -> Value:
    return Value(literal=node.get("value"))


@rule(*TRANSPARENT)
def _transparent(self: Expressions, node: Node, scope: Scope) -> Value:
    return self.value(node.children[0], scope) if node.children else Value()


@rule(*PLAIN)
def _plain(self: Expressions, node: Node, scope: Scope) -> Value:
    return Value(apply(self.plain(node, scope), TRANSFORM))


@rule(*MASKS)
def _mask(self: Expressions, node: Node, scope: Scope) -> Value:
    return Value(apply(self.plain(node, scope), MASK))


@rule("IsNull", "IsNotNull")
def _null_test(self: Expressions, node: Node, scope: Scope) -> Value:
    # Of the result of a function, whether it is null may depend on any value of its columns.
    return Value(apply(self.value(node.children[0], scope).all(), TEST_FOR_NULL))


@rule(*KEPT)
def _kept(self: Expressions, node: Node, scope: Scope) -> Value:
    first = self.value(node.children[0], scope).through(TRANSFORM)
    rest: Bits = {}
    for other in node.children[1:]:
        if other.kind != "LambdaFunction":
            add(rest, apply(self.value(other, scope).all(), TRANSFORM))
    add(first.bits, rest)
    return first


@rule(*CHOICES)
def _choice(self: Expressions, node: Node, scope: Scope) -> Value:
    return merge([value.through(TRANSFORM) for value in self.values(node.children, scope)])


@rule(*CASTS)
def _cast(self: Expressions, node: Node, scope: Scope) -> Value:
    child = node.children[0]
    value = self.value(child, scope)
    target = node.get("dataType")
    if keeps(type_of(child), target):
        return value
    if value.wire is not None or value.encoded:
        return value if target in ("string", "binary") else Value(apply(value.all(), TRANSFORM))
    if not value.bits and not value.kind:
        return value
    return value.through(TRANSFORM)


@rule("StaticInvoke", "Invoke")
def _invoke(self: Expressions, node: Node, scope: Scope) -> Value:
    if node.text("functionName") in WRITE_SIDE and node.children:
        return self.value(node.children[0], scope)
    return Value(apply(self.below(node, scope), TRANSFORM))


@rule("If")
def _if(self: Expressions, node: Node, scope: Scope) -> Value:
    condition, then, otherwise = node.children
    return _chosen(self, [condition], [then, otherwise], scope)


@rule("CaseWhen")
def _case(self: Expressions, node: Node, scope: Scope) -> Value:
    pairs = len(node.children) // 2 * 2
    conditions = node.children[0:pairs:2]
    results = [*node.children[1:pairs:2], *node.children[pairs:]]
    return _chosen(self, conditions, results, scope)


def _chosen(self: Expressions, conditions: list[Node], results: list[Node], scope: Scope) -> Value:
    values = self.values(results, scope)
    literals = [value.literal for value in values]
    made = merge([value.through(TRANSFORM) for value in values])
    bits = dict(made.bits)
    for condition in conditions:
        add(bits, indirect(self.value(condition, scope).all(), CONDITIONAL))
    out = Value(bits, made.kind, made.parts if made.kind else None)
    if all(isinstance(literal, str) for literal in literals):
        out.literal = tuple(dict.fromkeys(literals))
    return out


@rule("PythonUDF", "PythonUDAF")
def _python(self: Expressions, node: Node, scope: Scope) -> Value:
    grouped = node.kind == "PythonUDAF" or node.get("evalType") in _GROUPED_AGGREGATES
    return Value(apply(self.below(node, scope), AGGREGATE if grouped else TRANSFORM))


@rule("ScalarSubquery", "LateralSubquery", "ListQuery", "Exists", "ScalarSubqueryReference")
def _subquery(self: Expressions, node: Node, scope: Scope) -> Value:
    plan = node.node("plan")
    if plan is None:
        return Value.unknown()
    relation = self.plan(plan, scope)
    bits = dict(relation.rows)
    if node.kind == "Exists":
        return Value(bits)
    columns = list(relation.env.values())
    if len(columns) == 1 and node.kind == "ScalarSubquery":
        one = columns[0]
        add(bits, one.bits)
        return Value(bits, one.kind, one.parts if one.kind else None)
    for column in columns:
        add(bits, column.all())
    return Value(bits)
