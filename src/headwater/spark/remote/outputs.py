"""The columns that a plan gives, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from headwater.spark.remote.layout import Unclear
from headwater.spark.scope import is_metadata

if TYPE_CHECKING:
    from headwater.spark.tree import Node

_LISTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_OWN = ("Expand", "CTERelationRef", "UnionLoopRef", "LocalRelation", "Range", "CommandResult",
        "OneRowRelation", "EmptyRelation")  # fmt: skip
_FIRST = ("Filter", "Sort", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Union",
          "Intersect", "Except", "View", "SubqueryAlias", "GlobalLimit", "LocalLimit", "Offset",
          "Tail", "Sample", "Repartition", "RepartitionByExpression", "RebalancePartitions",
          "EventTimeWatermark", "ResolvedHint", "CollectMetrics", "CTERelationDef")  # fmt: skip


def outputs(node: Node) -> list[Node]:
    """The attributes and aliases that a plan's columns are."""
    kind = node.kind
    if kind in _LISTS:
        return node.nodes(_LISTS[kind])
    if kind == "WithCTE":
        return outputs(node.children[-1])
    if kind == "Join":
        left = outputs(node.children[0])
        if node.text("joinType") in ("LeftSemi", "LeftAnti"):
            return left
        return [*left, *outputs(node.children[1])]
    if kind == "LateralJoin":
        right = node.node("right")
        plan = right.node("plan") if right is not None else None
        return [*outputs(node.children[0]), *(outputs(plan) if plan is not None else [])]
    if kind == "Window":
        return [*outputs(node.children[0]), *node.nodes("windowExpressions")]
    if kind == "Generate":
        return [*outputs(node.children[0]), *node.nodes("generatorOutput")]
    if kind in _FIRST and node.children:
        return outputs(node.children[0])
    if kind in _OWN or not node.children or node.nodes("output"):
        return [out for out in node.nodes("output") if not is_metadata(out)]
    raise Unclear(f"{kind}: its columns are not shown")
