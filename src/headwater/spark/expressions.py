# ruff: noqa: ARG001  (rules share one shape, whether or not they need all of it)
"""Expressions: what each makes of the columns below it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark import records
from headwater.spark.functions import AGGREGATES, KEPT, MASKS, PLAIN, RANKS, TRANSPARENT, WRITE_SIDE
from headwater.spark.types import keeps, type_of
from headwater.spark.value import (
    AGGREGATE,
    ARRAY,
    CONDITIONAL,
    IDENTITY,
    MAP,
    MASK,
    MASK_AGGREGATE,
    SORT,
    STRUCT,
    TRANSFORM,
    WINDOW,
    Bits,
    Value,
    add,
    apply,
    indirect,
    merge,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.spark.scope import Relation, Scope
    from headwater.spark.tree import Node

    Rule = Callable[["Expressions", Node, Scope], Value]

RULES: dict[str, Rule] = {}
_GROUPED_AGGREGATES = {202, 252}


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
        waiting = [node]
        while waiting:
            one = waiting.pop()
            if one.kind in ("AttributeReference", "OuterReference", "NamedLambdaVariable"):
                add(found, self.value(one, scope).all())
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


@rule(*KEPT)
def _kept(self: Expressions, node: Node, scope: Scope) -> Value:
    first = self.value(node.children[0], scope).through(TRANSFORM)
    rest: Bits = {}
    for other in node.children[1:]:
        if other.kind != "LambdaFunction":
            add(rest, apply(self.value(other, scope).all(), TRANSFORM))
    add(first.bits, rest)
    return first


@rule("Cast", "UpCast", "AnsiCast", "TryCast")
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
    told = [value for value in values if value.all()]
    if len(told) == 1 and told[0].encoded:
        return told[0]  # a prefix of constant bytes, as Confluent's format has it
    return merge([value.through(TRANSFORM) for value in values])


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
