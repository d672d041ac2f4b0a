# ruff: noqa: ARG001  (rules share one shape, whether or not they need all of it)
"""Operators of a plan: which columns each hands on, and which columns decide about its rows."""

from __future__ import annotations

import time
from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.spark.columns import aggregates, lambdas, records, structures  # noqa: F401  (their rules)
from headwater.spark.columns.expressions import Expressions
from headwater.spark.columns.generators import generated
from headwater.spark.columns.scope import Env, Relation, Scope, is_metadata
from headwater.spark.columns.source import MappedSource, MetadataSource, OpaqueSource
from headwater.spark.columns.types import schema_of
from headwater.spark.columns.value import (
    FILTER,
    GROUP_BY,
    JOIN,
    SORT,
    TRANSFORM,
    Bits,
    Value,
    add,
    apply,
    merge,
)
from headwater.spark.stores import formats

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.lineage.model import Dataset
    from headwater.spark.columns.source import Source
    from headwater.spark.plan.tree import Node

    Rule = Callable[["ColumnReader", Node, list[Relation], Scope | None], Relation]

RULES: dict[str, Rule] = {}
MAX_STEPS = 50
"""How often the step of a recursive query is read: each time, a source moves on by one column."""


class KnownColumn(NamedTuple):
    """A column that was read before: what it is made of, what decides about its rows."""

    value: Value
    rows: Bits
    datasets: tuple[Dataset, ...]


def rule(*kinds: str) -> Callable[[Rule], Rule]:
    """Register what a node of these classes makes of its children."""

    def register(function: Rule) -> Rule:
        RULES.update(dict.fromkeys(kinds, function))
        return function

    return register


@cache
def _all_rules() -> dict[str, Rule]:
    """The rules for Spark's own nodes and for those of every table format."""
    found = dict(RULES)
    for table_format in formats.table_formats():
        same = table_format.equivalents.items()
        found |= {node: RULES[spark] for node, spark in same if spark in RULES}
        found |= table_format.operators
    return found


class ColumnReader:
    """Reads plans; `sources` are what the leaves read, by the number of their first attribute.

    `known` are columns that were read before under the same numbers: those of a stream inside
    `foreachBatch`, or of a query whose result was checkpointed.
    """

    def __init__(
        self,
        sources: dict[int, Source],
        known: Mapping[int, KnownColumn] | None = None,
        deadline: float = float("inf"),
    ) -> None:
        self.sources = sources
        self.known = known or {}
        self.deadline = deadline
        self.used: dict[int, Source] = {}
        self.joined: list[Dataset] = []
        self.nodes = 0
        self.shared: dict[int, tuple[Relation, list[int]]] = {}
        self.shared_loops: dict[int, tuple[Relation, list[int]]] = {}
        self.problems: dict[str, None] = {}
        self.expressions = Expressions(self.relation)
        self._rules = _all_rules()

    def relation(self, root: Node, outer: Scope | None = None) -> Relation:
        """What a plan gives; children first, left before right, without recursion."""
        waiting: list[tuple[Node, bool]] = [(root, False)]
        done: list[Relation] = []
        while waiting:
            node, ready = waiting.pop()
            if node.kind == "UnionLoop":
                done.append(self._loop(node, outer))
                continue
            if not ready:
                waiting.append((node, True))
                if node.kind == "Project":
                    mark_window(node)
                waiting.extend((child, False) for child in reversed(node.children))
                continue
            self.nodes += 1
            if self.nodes % 64 == 0 and time.monotonic() > self.deadline:
                raise TimeoutError
            count = len(node.children)
            children = done[len(done) - count :] if count else []
            del done[len(done) - count :]
            done.append(self._node(node, children, outer))
        return done[-1]

    def _node(self, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
        known = self._rules.get(node.kind)
        if known is not None:
            return known(self, node, children, outer)
        if not node.children:
            return self._leaf(node)
        return self._other(node, children)

    def _loop(self, node: Node, outer: Scope | None) -> Relation:
        """A recursive query: what it starts from, and what its steps add until nothing is new."""
        anchor, step = node.children
        start = self.relation(anchor, outer)
        numbers = [item["id"] for item in node.get("outputAttrIds") or ()] or list(start.env)
        found = Relation(dict(zip(numbers, start.env.values(), strict=False)), start.rows)
        for _ in range(MAX_STEPS):
            self.shared_loops[node.get("id")] = (found, numbers)
            added = self.relation(step, outer)
            rows = dict(found.rows)
            add(rows, added.rows)
            env = {
                number: merge([value, more])
                for (number, value), more in zip(
                    found.env.items(), added.env.values(), strict=False
                )
            }
            same = rows == found.rows and all(
                value.all() == found.env[number].all() for number, value in env.items()
            )
            found = Relation(env, rows)
            if same:
                return found
        self.problems["a recursive query: not every source of its columns was found"] = None
        return found

    def _leaf(self, node: Node) -> Relation:
        outputs = node.nodes("output")
        source = self.sources.get(outputs[0].id) if outputs else None
        if source is not None:
            self.used[outputs[0].id] = source
            hidden = _hidden(source, outputs)
            describe(source, [out for out in outputs if out.id not in hidden])
            return Relation(
                {out.id: Value() if out.id in hidden else _column(source, out) for out in outputs},
                {},
            )
        if outputs and all(out.id in self.known for out in outputs):
            rows: Bits = {}
            for out in outputs:
                add(rows, self.known[out.id].rows)
                self.joined += self.known[out.id].datasets
            return Relation({out.id: self.known[out.id].value for out in outputs}, rows)
        return Relation({out.id: Value.unknown() for out in outputs}, {})

    def _other(self, node: Node, children: list[Relation]) -> Relation:
        """A node without a rule hands on the columns of its children; what it adds is unknown."""
        env, rows = together(children)
        for field in ("output", "outputAttrs", "resultAttrs"):
            for out in node.nodes(field):
                if out.id not in env:
                    env[out.id] = Value.unknown()
                    self.problems[f"{node.kind}: its columns are not known"] = None
        return Relation(env, rows)

    def value(self, node: Node, env: Env, outer: Scope | None) -> Value:
        return self.expressions.value(node, Scope(env, outer))

    def values(self, nodes: list[Node], env: Env, outer: Scope | None) -> list[Value]:
        return self.expressions.values(nodes, Scope(env, outer))


def describe(source: Source, outputs: list[Node]) -> None:
    """Give the datasets of a leaf the schema that the plan shows of them."""
    if source.topic or len(source.datasets) != 1:
        return
    if isinstance(source, (MappedSource, MetadataSource, OpaqueSource)):
        return  # what the plan shows are not the columns of the dataset
    (one,) = source.datasets
    if one.schema is None:
        columns = [(out.name, out.get("dataType")) for out in outputs]
        source.datasets = (msgspec.structs.replace(one, schema=schema_of(columns)),)


def _hidden(source: Source, attributes: list[Node]) -> frozenset[int]:
    """The attributes that are the format's own; Spark 3.5 does not mark those of Iceberg."""
    own = formats.metadata_columns(source.datasets)
    return frozenset(one.id for one in attributes if one.name in own or is_metadata(one))


def _column(source: Source, attribute: Node) -> Value:
    return source.column(attribute.name, attribute.get("dataType"))


def together(children: list[Relation]) -> tuple[Env, Bits]:
    env: Env = {}
    rows: Bits = {}
    for child in children:
        env.update(child.env)
        add(rows, child.rows)
    return env, rows


def has_window(node: Node, listed: str) -> bool:
    first = node.nodes(listed)[:1] if listed else []
    return any(item.name in ("window", "session_window") for item in first)


def mark_window(node: Node) -> None:
    child = node.children[0]
    if child.kind == "Filter" and has_window(node, "projectList"):
        child.data["headwater_window"] = True


@rule("Project", "Aggregate")
def _project(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    scope = Scope(child.env, outer)
    listed = "projectList" if node.kind == "Project" else "aggregateExpressions"
    # An alias may name one before it in the same list.
    env: Env = {}
    inner = Scope(env, scope)
    for item in node.nodes(listed):
        found = child.env.get(item.id) if item.kind == "AttributeReference" else None
        env[item.id] = found if found is not None else self.expressions.value(item, inner)
    made = Relation(env, child.rows)
    if node.kind == "Project":
        return made
    groups = self.expressions.values(node.nodes("groupingExpressions"), scope)
    return made.with_rows(GROUP_BY, groups) if groups else made


@rule("Filter")
def _filter(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    condition = node.node("condition")
    if condition is None or _of_window(node, condition):
        return child
    return child.with_rows(FILTER, [self.value(condition, child.env, outer)])


def _of_window(node: Node, condition: Node) -> bool:
    """Whether Spark put the filter there itself, below or above the columns of `window()`."""
    if node.get("headwater_window"):
        return True
    below = node.children[0]
    listed = {"Expand": "output", "Project": "projectList"}.get(below.kind, "")
    return condition.kind == "IsNotNull" and has_window(below, listed)


@rule("Join", "AsOfJoin")
def _join(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    env, rows = together(children)
    if node.text("joinType") in ("LeftSemi", "LeftAnti"):
        made = Relation(children[0].env, rows)
    else:
        made = Relation(env, rows)
    conditions = [
        condition
        for field in ("condition", "asOfCondition", "orderExpression")
        if (condition := node.node(field)) is not None
    ]
    return made.with_rows(JOIN, self.values(conditions, env, outer)) if conditions else made


@rule("LateralJoin")
def _lateral(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (left,) = children
    right = node.node("right")
    plan = right.node("plan") if right is not None else None
    if plan is None:
        return left
    inner = self.relation(plan, Scope(left.env, outer))
    env, rows = together([left, inner])
    condition = node.node("condition")
    made = Relation(env, rows)
    return made.with_rows(JOIN, [self.value(condition, env, outer)]) if condition else made


@rule("Window", "WindowInPandas", "ArrowWindowPython")
def _window(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    env = dict(child.env)
    for item in node.nodes("windowExpressions") or node.nodes("windowExpression"):
        env[item.id] = self.value(item, child.env, outer)
    return Relation(env, child.rows)


@rule("Sort")
def _sort(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    return child.with_rows(SORT, self.values(node.nodes("order"), child.env, outer))


@rule("Union")
def _union(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    columns = [list(child.env.items()) for child in children]
    _, rows = together(children)
    env = {
        number: merge([side[place][1] for side in columns if place < len(side)])
        for place, (number, _) in enumerate(columns[0])
    }
    return Relation(env, rows)


@rule("Intersect", "Except")
def _compared(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    env, rows = together(children)
    made = Relation(children[0].env, rows)
    return made.with_rows(FILTER, list(env.values()))


@rule("Distinct")
def _distinct(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    return child.with_rows(GROUP_BY, list(child.env.values()))


@rule("Deduplicate", "DeduplicateWithinWatermark")
def _unique(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    return child.with_rows(GROUP_BY, self.values(node.nodes("keys"), child.env, outer))


@rule("Generate")
def _generate(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    generator = node.node("generator")
    outputs = node.nodes("generatorOutput")
    env = dict(child.env)
    if generator is None:
        return Relation(env, child.rows)
    found = generated(self.expressions, generator, outputs, Scope(child.env, outer))
    for place, out in enumerate(outputs):
        env[out.id] = found[place] if place < len(found) else Value.unknown()
    return Relation(env, child.rows)


@rule("Expand")
def _expand(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    outputs = node.nodes("output")
    if not node.get("projections"):
        known = {out.id: child.env.get(out.id) or Value.unknown() for out in outputs}
        return Relation(known, child.rows)
    projections = []
    for listed in node.get("projections") or ():
        holder = type(node)({"class": "", "num-children": 0, "items": listed}, [])
        projections.append(self.values(holder.nodes("items"), child.env, outer))
    env = {
        out.id: merge([line[place] for line in projections if place < len(line)] or [Value()])
        for place, out in enumerate(outputs)
    }
    return Relation(env, child.rows)


@rule("CTERelationDef")
def _definition(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    self.shared[node.get("id")] = (child, list(child.env))
    return child


@rule("CTERelationRef", "UnionLoopRef")
def _reference(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    shared, number = self.shared, node.get("cteId")
    if node.kind == "UnionLoopRef":
        # A loop and the definition around it may have the same number.
        shared, number = self.shared_loops, node.get("loopId")
    outputs = node.nodes("output")
    found = shared.get(number) if isinstance(number, int) else None
    if found is None:
        return Relation({out.id: Value.unknown() for out in outputs}, {})
    relation, numbers = found
    env = {
        out.id: relation.env[numbers[place]] if place < len(numbers) else Value.unknown()
        for place, out in enumerate(outputs)
    }
    return Relation(env, relation.rows)


@rule("WithCTE")
def _with(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    return children[-1]


@rule("View", "SubqueryAlias", "GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample",
      "Repartition", "RepartitionByExpression", "RebalancePartitions", "EventTimeWatermark",
      "ResolvedHint", "CollectMetrics", "UpdateEventTimeWatermarkColumn", "ReturnAnswer",
      "SubqueryAliasWithColumns")  # fmt: skip
def _same(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    return children[0]


@rule("LocalRelation", "Range", "OneRowRelation", "CommandResult", "EmptyRelation")
def _constant(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    return Relation({out.id: Value() for out in node.nodes("output")}, {})


@rule("MapInPandas", "PythonMapInArrow", "MapInArrow", "FlatMapGroupsInPandas",
      "FlatMapGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow",
      "FlatMapGroupsInPandasWithState", "TransformWithStateInPandas",
      "TransformWithStateInPySpark", "ScriptTransformation")  # fmt: skip
def _python(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    """A function over whole rows: every column out may come from every column in."""
    env, rows = together(children)
    bits: Bits = {}
    for value in env.values():
        add(bits, apply(value.all(), TRANSFORM))
    outputs = node.nodes("output") or node.nodes("outAttributes") or node.nodes("outputAttrs")
    made = Relation({out.id: Value(dict(bits)) for out in outputs}, rows)
    groups: list[Value] = []
    for field in ("groupingAttributes", "groupingExprs"):
        groups += self.values(node.nodes(field), env, outer)
    for side, field in zip(children, ("leftGroupingLen", "rightGroupingLen"), strict=False):
        count = node.get(field)
        groups += list(side.env.values())[: count if isinstance(count, int) else 0]
    return made.with_rows(GROUP_BY, groups) if groups else made


@rule("ArrowEvalPython", "BatchEvalPython", "AggregateInPandas")
def _evaluated(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    env = dict(child.env)
    functions = self.values(node.nodes("udfs"), child.env, outer)
    for out, value in zip(node.nodes("resultAttrs"), functions, strict=False):
        env[out.id] = value
    return Relation(env, child.rows)
