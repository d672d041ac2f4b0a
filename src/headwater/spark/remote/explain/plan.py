"""Plans in an explain text, parsed into the nodes that the column rules read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.spark.columns.scope import is_metadata
from headwater.spark.remote.explain.expressions import ExpressionParser
from headwater.spark.remote.explain.layout import (
    PlanTextNode,
    TextNode,
    UnclearText,
    bracketed,
    close,
    split,
)
from headwater.spark.remote.explain.rules import settle_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.plan.tree import Node

    Leaf = Callable[[PlanTextNode, list[str]], dict[str, Any]]

_PLAIN = re.compile(r"^[\w$.-]*$")
_CONSTANT = ("LocalRelation", "OneRowRelation", "CommandResult", "EmptyRelation")
_LISTED = {"Sort": "order", "Deduplicate": "keys", "DeduplicateWithinWatermark": "keys"}
_PYTHON = re.compile(r"^(?:\w*MapIn|FlatMap|TransformWithState)")
_LISTS = {"Project": "projectList", "Aggregate": "aggregateExpressions"}
_OWN = ("Expand", "CTERelationRef", "UnionLoopRef", "LocalRelation", "Range", "CommandResult",
        "OneRowRelation", "EmptyRelation")  # fmt: skip
_FIRST = ("Filter", "Sort", "Distinct", "Deduplicate", "DeduplicateWithinWatermark", "Union",
          "Intersect", "Except", "View", "SubqueryAlias", "GlobalLimit", "LocalLimit", "Offset",
          "Tail", "Sample", "Repartition", "RepartitionByExpression", "RebalancePartitions",
          "EventTimeWatermark", "ResolvedHint", "CollectMetrics", "CTERelationDef")  # fmt: skip


class PlanParser:
    """Builds the tree of one plan, from its leaves up.

    `leaf` is asked for the types of a leaf's columns by name; columns that it does not name are
    metadata of rows and files.
    """

    def __init__(
        self, leaf: Leaf, literals: dict[str, str], functions: dict[str, set[int]]
    ) -> None:
        self.expressions = ExpressionParser(literals, functions)
        self.leaves: list[tuple[PlanTextNode, Node]] = []
        self.nodes = 0
        self._ranges: list[TextNode] = []
        self._leaf = leaf
        self._odd: dict[str, str] = {}

    def plan(self, text_node: PlanTextNode) -> TextNode:
        """The tree of a plan."""
        made = self.build(text_node)
        missing = list(self.expressions.missing.items())
        if len(missing) <= len(self._ranges) and all(name == "id" for _, name in missing):
            # A range does not show its column: an attribute that no other node defines is one of them.
            for (number, name), leaf in zip(missing, self._ranges, strict=False):
                leaf.data["output"] = [self.expressions.define_attribute(f"{name}#{number}L")]
        return made

    def build(self, text_node: PlanTextNode) -> TextNode:
        """The node of a plan and of all below it."""
        children = [self.build(below) for below in text_node.below]
        inside = [self.build(one) for one in text_node.inside]
        self.nodes += 1
        text_node.text = self._plain_names(text_node.text)
        if text_node.kind == "LateralJoin":
            return self._lateral(text_node, children, inside)
        self.expressions.inside = list(inside)
        made = self._node(text_node, children)
        if self.expressions.inside:
            raise UnclearText("a subquery's place is not shown")
        self._note_names()
        return made

    def _plain_names(self, text: str) -> str:
        """A text in which attributes with odd names have plain ones."""
        for odd, plain in self._odd.items():
            if odd in text:
                text = text.replace(odd, plain)
        return text

    def _note_names(self) -> None:
        for number, name in list(self.expressions.names.items()):
            if not _PLAIN.match(name) and f"{name}#{number}" not in self._odd:
                plain = f"odd{number}"
                self._odd[f"{name}#{number}"] = f"{plain}#{number}"
                self.expressions.names[number] = plain

    def _node(self, text_node: PlanTextNode, children: list[TextNode]) -> TextNode:
        kind, rest = text_node.kind, text_node.rest
        if not children and not text_node.below:
            return self._bottom(text_node)
        if kind == "Project":
            return _made(kind, children, {"projectList": self._named(split(rest)[0])})
        if kind in _LISTED:
            return _made(kind, children, {_LISTED[kind]: self._list(split(rest)[0])})
        if kind == "Filter":
            return _made(kind, children, {"condition": self.expressions.parse_value(rest)})
        if kind == "Aggregate":
            return self._aggregate(rest, children)
        if kind == "Join":
            return self._join(rest, children)
        if kind == "Window":
            return _made(kind, children, {"windowExpressions": self._named(split(rest)[0])})
        if kind == "Generate":
            parts = split(rest)
            outputs = self._outputs(parts[-1])
            generator = self.expressions.parse_value(parts[0])
            return _made(kind, children, {"generator": generator, "generatorOutput": outputs})
        if kind == "Expand":
            return self._expand(rest, children)
        if kind == "CTERelationDef":
            return _made(kind, children, {"id": int(split(rest)[0])})
        if _PYTHON.match(kind):
            return self._python(kind, rest, children)
        if kind in ("ArrowEvalPython", "BatchEvalPython", "MergeRows"):
            raise UnclearText(f"{kind} does not show what it does")
        return _made(kind, children, {})

    def _list(self, text: str) -> list[Node]:
        inner = bracketed(text)
        if inner is None:
            raise UnclearText("a list is not clear")
        return self.expressions.parse_list(inner)

    def _named(self, text: str) -> list[Node]:
        """A list of columns: one without a name is a constant that was cut in two."""
        found = self._list(text)
        if any(one.id < 0 for one in found):
            raise UnclearText("a list of columns is not clear")
        return found

    def _outputs(self, text: str, separator: str = ", ") -> list[Node]:
        inner = bracketed(text)
        if inner is None:
            raise UnclearText("a list of columns is not clear")
        return (
            [self.expressions.define_attribute(part) for part in split(inner, separator)]
            if inner
            else []
        )

    def _aggregate(self, rest: str, children: list[TextNode]) -> TextNode:
        parts = split(rest)
        groups = self._list(parts[0]) if len(parts) > 1 else []
        items = self._named(parts[1] if len(parts) > 1 else parts[0])
        settle_groups(items, groups)
        data = {"groupingExpressions": groups, "aggregateExpressions": items}
        return _made("Aggregate", children, data)

    def _join(self, rest: str, children: list[TextNode]) -> TextNode:
        parts = [p for p in split(rest) if not re.match(r"^(?:left|right)Hint=", p)]
        if len(parts) > 2:
            raise UnclearText("a join's condition is not clear")
        data: dict[str, Any] = {"joinType": parts[0]}
        if len(parts) == 2:
            data["condition"] = self.expressions.parse_value(parts[1])
        return _made("Join", children, data)

    def _lateral(
        self, text_node: PlanTextNode, children: list[TextNode], inside: list[TextNode]
    ) -> TextNode:
        if len(inside) != 1:
            raise UnclearText("a lateral join's query is not shown")
        parts = split(text_node.rest)
        data: dict[str, Any] = {"right": _made("LateralSubquery", [], {"plan": inside[0]})}
        if len(parts) > 2:
            self.expressions.inside = []
            data["condition"] = self.expressions.parse_value(parts[2])
        return _made("LateralJoin", children, data)

    def _expand(self, rest: str, children: list[TextNode]) -> TextNode:
        parts = split(rest)
        lines = bracketed(parts[0])
        if lines is None or len(parts) != 2:
            raise UnclearText("an Expand is not clear")
        projections = [self._list(line) for line in split(lines)]
        outputs = self._outputs(parts[1])
        if any(len(line) != len(outputs) for line in projections):
            raise UnclearText("an Expand is not clear")
        return _made("Expand", children, {"projections": projections, "output": outputs})

    def _python(self, kind: str, rest: str, children: list[TextNode]) -> TextNode:
        """A function over rows: lists of groups before it, its columns after it."""
        parts = split(rest)
        place = next((n for n, part in enumerate(parts) if re.search(r"\)#\d+$", part)), -1)
        after = [part for part in parts[place + 1 :] if bracketed(part) is not None]
        if place < 0 or not after:
            raise UnclearText(f"{kind} does not show its columns")
        data: dict[str, Any] = {"output": self._outputs(after[0])}
        before = parts[:place]
        if before and before[0].isdigit():
            data["leftGroupingLen"], data["rightGroupingLen"] = int(before[0]), int(before[1])
        elif before and bracketed(before[0]) is not None:
            data["groupingAttributes"] = self._list(before[0])
        return _made(kind, children, data)

    def _bottom(self, text_node: PlanTextNode) -> TextNode:
        kind, rest = text_node.kind, text_node.rest
        if kind in ("CTERelationRef", "UnionLoopRef"):
            parts = split(rest)
            outputs = self._outputs(next(p for p in parts if bracketed(p) is not None))
            name = "cteId" if kind == "CTERelationRef" else "loopId"
            return _made(kind, [], {name: int(parts[0]), "output": outputs})
        if kind == "Range":
            self._ranges.append(_made(kind, [], {"output": []}))
            return self._ranges[-1]
        if kind in _CONSTANT:
            listed = [p for p in split(rest) if bracketed(p) is not None]
            shown = bool(listed) and "#" in listed[0]
            return _made(kind, [], {"output": self._outputs(listed[0]) if shown else []})
        text, separator = _columns(text_node)
        columns = self._outputs(text, separator)
        types = self._leaf(text_node, [column.name for column in columns])
        for column in columns:
            if column.name in types:
                known = types[column.name] or self.expressions.types.get(column.id)
                column.data["dataType"] = self.expressions.types[column.id] = known
            else:
                column.data["metadata"] = {"__metadata_col": True}
        made = _made(kind, [], {"output": columns})
        self.leaves.append((text_node, made))
        return made


def _columns(text_node: PlanTextNode) -> tuple[str, str]:
    """The list of a leaf's columns, and what separates them."""
    rest = text_node.rest
    if text_node.kind == "HiveTableRelation":
        raise UnclearText("the columns of a Hive table are not clear")
    at = -1
    while (at := rest.find("[", at + 1)) >= 0:
        end = close(rest, at)
        if re.search(r"#\d+L?(?:-T\d+ms)?\]$", rest[at : end + 1]):
            text = rest[at : end + 1]
            separator = "," if text_node.kind == "Relation" and ", " not in text else ", "
            return text, separator
        at = end
    raise UnclearText(f"{text_node.kind}: its columns are not shown")


def _made(kind: str, children: list[TextNode], data: dict[str, Any]) -> TextNode:
    return TextNode({"class": kind, "num-children": len(children), **data}, list(children))


def output_columns(node: Node) -> list[Node]:
    """The attributes and aliases that a plan's columns are."""
    kind = node.kind
    if kind in _LISTS:
        return node.nodes(_LISTS[kind])
    if kind == "WithCTE":
        return output_columns(node.children[-1])
    if kind == "Join":
        left = output_columns(node.children[0])
        if node.text("joinType") in ("LeftSemi", "LeftAnti"):
            return left
        return [*left, *output_columns(node.children[1])]
    if kind == "LateralJoin":
        right = node.node("right")
        plan = right.node("plan") if right is not None else None
        return [
            *output_columns(node.children[0]),
            *(output_columns(plan) if plan is not None else []),
        ]
    if kind == "Window":
        return [*output_columns(node.children[0]), *node.nodes("windowExpressions")]
    if kind == "Generate":
        return [*output_columns(node.children[0]), *node.nodes("generatorOutput")]
    if kind in _FIRST and node.children:
        return output_columns(node.children[0])
    if kind in _OWN or not node.children or node.nodes("output"):
        return [out for out in node.nodes("output") if not is_metadata(out)]
    raise UnclearText(f"{kind}: its columns are not shown")
