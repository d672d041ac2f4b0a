"""MERGE from explain text: the clauses of the parsed plan over the columns of the analysed one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.spark.columns.types import keeps
from headwater.spark.remote.explain.layout import (
    PlanTextNode,
    TextNode,
    UnclearText,
    bracketed,
    parse_tree,
    split,
)
from headwater.spark.remote.explain.plan import output_columns

if TYPE_CHECKING:
    from headwater.spark.plan.compose import Query
    from headwater.spark.plan.tree import Node
    from headwater.spark.remote.explain.query import QueryReader

_ALIAS = re.compile(r"^'?SubqueryAlias (\S+)$")
_ACTION = re.compile(r"^(update|insert|delete)(star)?action\((.*)\)$", re.DOTALL)


class MergeReader:
    """One MERGE: `parsed` is the statement's own plan, `analysed` that of Spark's rewriting."""

    def __init__(self, reader: QueryReader, parsed: str, analysed: PlanTextNode) -> None:
        self._reader = reader
        self._statement = parse_tree(parsed)
        if self._statement.kind != "'MergeIntoTable" or len(self._statement.below) != 2:
            raise UnclearText("the clauses of a MERGE are not shown")
        join = _join(analysed)
        sides = {_marked(side): side for side in join.below}
        if set(sides) != {"target", "source"}:
            raise UnclearText("the sides of a MERGE are not shown")
        made = [reader.parser.build(side) for side in join.below]
        order = [_marked(side) for side in join.below]
        self._target = made[order.index("target")]
        self._source = made[order.index("source")]
        self._aliases = [self._names(side) for side in self._statement.below]
        self._condition = join

    def query(self, names: list[str]) -> Query:
        """What is written into the columns of the target, and what decides about it."""
        expressions = self._reader.parser.expressions
        condition = split(self._condition.rest)[1]
        joined = expressions.parse_value(condition)
        expressions.unresolved = self._find
        try:
            actions = [action for one in self._lists() for action in one]
        finally:
            expressions.unresolved = None
        tree = _text(
            "MergeIntoTable",
            [self._target, self._source],
            {"mergeCondition": joined, "matchedActions": actions},
        )
        rules = self._reader.rules()
        relation = rules.relation(tree)
        given = [one for one in output_columns(self._target) if one.name in names]
        if [one.name for one in given] != names:
            raise UnclearText("the columns of a MERGE are not clear")
        columns = [(one.name, expressions.types.get(one.id)) for one in given]
        shown = _text("Project", [], {"projectList": given})
        return self._reader.compose(shown, relation, rules, columns)

    def _names(self, side: PlanTextNode) -> str:
        match = _ALIAS.match(side.text)
        if match:
            return match[1].lower()
        listed = re.match(r"^'UnresolvedRelation \[(.*?)\]", side.text)
        return listed[1].split(", ")[-1].lower() if listed else ""

    def _find(self, name: str) -> Node:
        """The column that a statement names: by its table's alias, or the only one of that name."""
        *before, column = name.replace("`", "").split(".")
        sides = [self._target, self._source]
        if before:
            sides = [
                s for s, a in zip(sides, self._aliases, strict=True) if a == before[-1].lower()
            ]
        found = [
            one
            for side in sides
            for one in output_columns(side)
            if one.name.lower() == column.lower()
        ]
        if len(found) != 1:
            raise UnclearText(f"{name}: which column it is is not clear")
        return self._reference(found[0])

    def _reference(self, one: Node) -> TextNode:
        expressions = self._reader.parser.expressions
        given = {
            "name": one.name,
            "exprId": {"id": one.id},
            "dataType": expressions.types.get(one.id),
        }
        return _text("AttributeReference", [], given)

    def _lists(self) -> list[list[TextNode]]:
        parts = split(self._statement.rest)[1:]
        listed = [inner for part in parts if (inner := bracketed(part)) is not None]
        return [[self._action(one) for one in split(inner)] for inner in listed if inner]

    def _action(self, text: str) -> TextNode:
        match = _ACTION.match(text)
        if match is None:
            raise UnclearText("a clause of a MERGE is not clear")
        expressions = self._reader.parser.expressions
        parts = split(match[3])
        data: dict[str, Any] = {}
        if parts[0] != "None":
            if not parts[0].startswith("Some("):
                raise UnclearText("a clause's condition is not clear")
            data["condition"] = expressions.parse_value(parts[0][5:-1])
        if match[2]:
            data["assignments"] = self._star()
        elif match[1] != "delete":
            assignments = [part for part in parts[1:] if part.startswith("assignment(")]
            data["assignments"] = [self._assignment(part[11:-1]) for part in assignments]
        return _text("Action", [], data)

    def _star(self) -> list[TextNode]:
        by_name = {one.name.lower(): one for one in output_columns(self._source)}
        made = []
        for key in output_columns(self._target):
            if key.name.startswith("__") or key.name.lower() not in by_name:
                continue
            made.append(
                self._assigned(self._reference(key), self._reference(by_name[key.name.lower()]))
            )
        return made

    def _assignment(self, text: str) -> TextNode:
        parts = split(text)
        if len(parts) != 2 or not parts[0].startswith("'"):
            raise UnclearText("an assignment is not clear")
        *_, column = parts[0][1:].replace("`", "").split(".")
        key = [one for one in output_columns(self._target) if one.name.lower() == column.lower()]
        if len(key) != 1:
            raise UnclearText("an assignment is not clear")
        return self._assigned(
            self._reference(key[0]), self._reader.parser.expressions.parse_value(parts[1])
        )

    def _assigned(self, key: TextNode, value: TextNode) -> TextNode:
        """An assignment with the cast that Spark adds, where the types need one."""
        wanted, given = key.get("dataType"), value.get("dataType")
        if value.kind in ("AttributeReference", "Dot", "UncertainCast"):
            if wanted is None or given is None:
                value = _text("UncertainCast", [value], {"dataType": wanted})
            elif not keeps(given, wanted):
                value = _text("Cast", [value], {"dataType": wanted})
        return _text("Assignment", [key, value], {})


def _join(text_node: PlanTextNode) -> PlanTextNode:
    while text_node.kind != "Join":
        if len(text_node.below) != 1:
            raise UnclearText("the join of a MERGE is not shown")
        text_node = text_node.below[0]
    return text_node


def _marked(side: PlanTextNode) -> str:
    match = re.search(r"true AS __row_from_(target|source)#\d+", side.text)
    return match[1] if match else ""


def _text(kind: str, children: list[TextNode], data: dict[str, Any]) -> TextNode:
    return TextNode({"class": kind, "num-children": len(children), **data}, list(children))
