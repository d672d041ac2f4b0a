"""Delta's own commands: MERGE, UPDATE and DELETE, which it makes of Spark's, and clones."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.jvm import attempt, hidden, kind, option
from headwater.spark.merge import carries, under
from headwater.spark.plan import Plans, rule
from headwater.spark.scope import Relation, Scope
from headwater.spark.stores import delta, tables
from headwater.spark.value import FILTER, JOIN, Bits, Value, add, indirect, merge
from headwater.spark.writes import Write, changed, command, fields, row_level

if TYPE_CHECKING:
    from headwater.spark.jvm import World
    from headwater.spark.tree import Node

_CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")
_WORDS = {"MergeIntoCommand": "MERGE", "UpdateCommand": "UPDATE", "DeleteCommand": "DELETE"}


@command(*_WORDS)
def _changes(world: World, plan: Any) -> Write:
    word = _WORDS[kind(plan)]
    target = plan.target()
    if word != "MERGE":
        return row_level(world, plan, word, target, (target,))
    write = row_level(world, plan, word, target, (target, plan.source()))
    evolved = option(attempt(plan, "migratedSchema"))
    if evolved is None:
        return write
    made = msgspec.json.decode(evolved.json())["fields"]
    added = tuple(item for item in made if item["name"] not in write.names)
    names = write.names + tuple(item["name"] for item in added)
    return write._replace(names=names, added=tuple(sorted(added, key=itemgetter("name"))))


@command("CreateDeltaTableCommand")
def _clone(world: World, plan: Any) -> Write:
    """A clone, or what remains of another command that was told already."""
    query = option(plan.query())
    if query is None or kind(query) != "CloneTableCommand":
        return Write("create_table")
    output = tables.read_table(world, plan.table(), "catalog table")
    source = hidden(query.sourceTable(), "sourceTable")
    if source is None or not delta.is_delta(str(source.getClass().getName())):
        return Write("clone_table", outputs=changed((output,), "CREATE") if output else ())
    frame = source.toDf(world.spark._jsparkSession)  # noqa: SLF001
    read = frame.queryExecution().analyzed()
    names = tuple(item["name"] for item in fields(read))
    return Write("clone_table", read, changed((output,), "CREATE") if output else (), names)


@rule("MergeIntoCommand")
def _merge(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    target, source = children
    scope = Scope({**target.env, **source.env}, outer)
    rows: Bits = {}
    add(rows, source.rows)
    condition = node.node("condition")
    if condition is not None:
        add(rows, indirect(self.expressions.value(condition, scope).all(), JOIN))
    written: dict[str, list[Value]] = {}
    for field in _CLAUSES:
        for clause in node.nodes(field):
            asked = clause.node("condition")
            decides = self.expressions.value(asked, scope).all() if asked else {}
            actions = clause.nodes("actions")
            if not actions:
                add(rows, indirect(decides, FILTER))
            for action in actions:
                # Delta gives every column of the target an action of its own.
                name = action.text("targetColNameParts")[1:-1]
                value = self.expressions.value(action.children[0], scope)
                if not carries(value, name):
                    written.setdefault(name, []).append(under(value, decides))
    known = _names(node)
    env = {
        attribute: merge(written[name]) if name in written else target.env[attribute]
        for attribute, name in known
    }
    for place, name in enumerate(sorted(written.keys() - {name for _, name in known})):
        env[-1 - place] = merge(written[name])
    return Relation(env, rows)


@rule("UpdateCommand")
def _update(self: Plans, node: Node, children: list[Relation], outer: Scope | None) -> Relation:
    (target,) = children
    scope = Scope(target.env, outer)
    made = Relation(dict(target.env), target.rows)
    for (attribute, _), item in zip(_names(node), node.nodes("updateExpressions"), strict=False):
        made.env[attribute] = self.expressions.value(item, scope)
    condition = node.node("condition")
    return made.with_rows(FILTER, [self.expressions.value(condition, scope)]) if condition else made


def _names(node: Node) -> list[tuple[int, str]]:
    """The target's columns in order: the number of each, and its name."""
    leaf = node.children[0]
    while leaf.children:
        leaf = leaf.children[0]
    return [(out.id, out.name) for out in leaf.nodes("output")]
