# ruff: noqa: ARG001  (rules share one shape, whether or not they need all of it)
"""Plans: which columns each node hands on, and which columns decide about its rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.generators import generated
from headwater.spark.scope import Env, Relation, Scope
from headwater.spark.value import FILTER, GROUP_BY, JOIN, SORT, TRANSFORM, Value, add, apply, merge
from headwater.spark.walk import Known, Plans, has_window, rule, together

if TYPE_CHECKING:
    from headwater.spark.tree import Node
    from headwater.spark.value import Bits

__all__ = ["Known", "Plans", "rule"]


@rule("Project", "Aggregate")
def _project(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
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
def _filter(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
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
def _join(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
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
def _lateral(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
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
def _window(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    (child,) = children
    env = dict(child.env)
    for item in node.nodes("windowExpressions") or node.nodes("windowExpression"):
        env[item.id] = self.value(item, child.env, outer)
    return Relation(env, child.rows)


@rule("Sort")
def _sort(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    (child,) = children
    return child.with_rows(SORT, self.values(node.nodes("order"), child.env, outer))


@rule("Union")
def _union(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    columns = [list(child.env.items()) for child in children]
    _, rows = together(children)
    env = {
        number: merge([side[place][1] for side in columns if place < len(side)])
        for place, (number, _) in enumerate(columns[0])
    }
    return Relation(env, rows)


@rule("Intersect", "Except")
def _compared(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    env, rows = together(children)
    made = Relation(children[0].env, rows)
    return made.with_rows(FILTER, list(env.values()))


@rule("Distinct")
def _distinct(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    (child,) = children
    return child.with_rows(GROUP_BY, list(child.env.values()))


@rule("Deduplicate", "DeduplicateWithinWatermark")
def _unique(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    (child,) = children
    return child.with_rows(GROUP_BY, self.values(node.nodes("keys"), child.env, outer))


@rule("Generate")
def _generate(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
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
def _expand(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
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
def _definition(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    (child,) = children
    self.shared[node.get("id")] = (child, list(child.env))
    return child


@rule("CTERelationRef", "UnionLoopRef")
def _reference(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    number = node.get("cteId") if node.kind == "CTERelationRef" else node.get("loopId")
    outputs = node.nodes("output")
    found = self.shared.get(number) if isinstance(number, int) else None
    if found is None:
        # A recursive query reads itself: what it starts from is all there is to know.
        return Relation({out.id: Value() for out in outputs}, {})
    relation, numbers = found
    env = {
        out.id: relation.env[numbers[place]] if place < len(numbers) else Value.unknown()
        for place, out in enumerate(outputs)
    }
    return Relation(env, relation.rows)


@rule("WithCTE")
def _with(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    return children[-1]


@rule("View", "SubqueryAlias", "GlobalLimit", "LocalLimit", "Offset", "Tail", "Sample",
      "Repartition", "RepartitionByExpression", "RebalancePartitions", "EventTimeWatermark",
      "ResolvedHint", "CollectMetrics", "UpdateEventTimeWatermarkColumn", "ReturnAnswer",
      "SubqueryAliasWithColumns")  # fmt: skip
def _same(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    return children[0]


@rule("LocalRelation", "Range", "OneRowRelation", "CommandResult", "EmptyRelation")
def _constant(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    return Relation({out.id: Value() for out in node.nodes("output")}, {})


@rule("MapInPandas", "PythonMapInArrow", "MapInArrow", "FlatMapGroupsInPandas",
      "FlatMapGroupsInArrow", "FlatMapCoGroupsInPandas", "FlatMapCoGroupsInArrow",
      "FlatMapGroupsInPandasWithState", "TransformWithStateInPandas",
      "TransformWithStateInPySpark", "ScriptTransformation")  # fmt: skip
def _python(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
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
def _evaluated(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    (child,) = children
    env = dict(child.env)
    functions = self.values(node.nodes("udfs"), child.env, outer)
    for out, value in zip(node.nodes("resultAttrs"), functions, strict=False):
        env[out.id] = value
    return Relation(env, child.rows)
