"""MERGE, UPDATE and DELETE: what each clause writes into each column, and what decides about it."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from headwater.spark.columns.scope import Relation, Scope
from headwater.spark.columns.value import (
    CONDITIONAL,
    FILTER,
    IDENTITY,
    JOIN,
    Bits,
    Value,
    add,
    indirect,
    merge,
)
from headwater.spark.plan.operators import ColumnReader, rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.spark.plan.tree import Node

K = TypeVar("K")

_INSTRUCTIONS = ("matchedInstructions", "notMatchedInstructions", "notMatchedBySourceInstructions")
# How Spark writes in a row of changes that it takes a row away.
_DELETE = "1"
_ACTIONS = ("matchedActions", "notMatchedActions", "notMatchedBySourceActions")


@rule("MergeRows")
def _rows(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (child,) = children
    scope = Scope(child.env, outer)
    outputs = node.nodes("output")
    written: list[list[Value]] = [[] for _ in outputs]
    carried: dict[int, Value] = {}
    rows = dict(child.rows)
    for field in _INSTRUCTIONS:
        for instruction in node.nodes(field):
            condition = instruction.node("condition")
            decides = self.expressions.value(condition, scope).all() if condition else {}
            lines = [instruction.nodes(name) for name in ("output", "otherOutput")]
            lines = [line for line in lines if line and line[0].get("value") != _DELETE]
            if not lines:
                add(rows, indirect(decides, FILTER))
            for line in lines:
                for place, item in enumerate(line[: len(outputs)]):
                    value = self.expressions.value(item, scope)
                    if carries(value, outputs[place].name):
                        carried[place] = value
                    else:
                        written[place].append(under(value, decides))
    env = {
        out.id: merge(written[place]) if written[place] else carried.get(place, Value())
        for place, out in enumerate(outputs)
    }
    return Relation(env, rows)


def carries(value: Value, name: str) -> bool:
    """Whether a column of the target is handed on as it was."""
    bits = value.all()
    return bool(bits) and all(
        bit == IDENTITY and source is not None and source.target and path[:1] == (name,)
        for (source, path), bit in bits.items()
    )


def under(value: Value, decides: Bits) -> Value:
    """A value that is written only where a clause's condition holds."""
    if not decides:
        return value
    return merge([value, Value(indirect(decides, CONDITIONAL))])


def merge_clauses(
    self: ColumnReader,
    scope: Scope,
    source: Relation,
    condition: Node | None,
    clauses: Iterable[tuple[Node | None, list[tuple[K, str, Node]]]],
) -> tuple[dict[K, list[Value]], Bits]:
    """What the clauses of a MERGE write into each column, and what decides about its rows.

    A clause is its own condition and its assignments: a key for the column, its name, the value.
    """
    rows = dict(source.rows)
    if condition is not None:
        add(rows, indirect(self.expressions.value(condition, scope).all(), JOIN))
    written: dict[K, list[Value]] = {}
    for guard, assignments in clauses:
        decides = self.expressions.value(guard, scope).all() if guard else {}
        if not assignments:
            add(rows, indirect(decides, FILTER))
        for column, name, item in assignments:
            value = self.expressions.value(item, scope)
            if not carries(value, name):
                written.setdefault(column, []).append(under(value, decides))
    return written, rows


@rule("MergeIntoTable")
def _into(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    """A MERGE that Spark leaves to the table's own format: its clauses stand there as written."""
    target, source = children
    scope = Scope({**target.env, **source.env}, outer)
    actions = [action for field in _ACTIONS for action in node.nodes(field)]
    clauses = [(action.node("condition"), _assignments(action)) for action in actions]
    written, rows = merge_clauses(self, scope, source, node.node("mergeCondition"), clauses)
    env = {**target.env, **{number: merge(values) for number, values in written.items()}}
    return Relation(env, rows)


def _assignments(action: Node) -> list[tuple[int, str, Node]]:
    pairs = (assignment.children for assignment in action.nodes("assignments"))
    return [(key.id, key.name, value) for key, value in pairs]


@rule("UpdateTable")
def _update(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (target,) = children
    scope = Scope(target.env, outer)
    condition = node.node("condition")
    made = Relation(dict(target.env), target.rows)
    for assignment in node.nodes("assignments"):
        key, value = assignment.children
        made.env[key.id] = self.expressions.value(value, scope)
    return made.with_rows(FILTER, [self.expressions.value(condition, scope)]) if condition else made


@rule("DeleteFromTable")
def _delete(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (target,) = children
    condition = node.node("condition")
    scope = Scope(target.env, outer)
    if condition is None:
        return target
    return target.with_rows(FILTER, [self.expressions.value(condition, scope)])


def updated(self: ColumnReader, node: Node) -> Relation | None:
    """The rewritten UPDATE of a table that copies on write: `if(where, new, old)` a column."""
    if node.kind != "Project" or not node.children:
        return None
    # Spark 4 puts another projection around it, 3.5 does not.
    inner = node.children[0] if node.children[0].kind == "Project" else node
    items = inner.nodes("projectList")
    branches = [item.children[0] for item in items if item.kind == "Alias" and item.children]
    choices = [branch for branch in branches if branch.kind == "If"]
    if not choices:
        return None
    child = self.relation(inner.children[0])
    scope = Scope(child.env)
    env = dict(child.env)
    for item in items:
        value = item.children[0] if item.kind == "Alias" and item.children else item
        chosen = value.children[1] if value.kind == "If" else value
        env[item.id] = self.expressions.value(chosen, scope)
    condition = self.expressions.value(choices[0].children[0], scope)
    return Relation(env, child.rows).with_rows(FILTER, [condition])
