"""Walking a plan: children first, each node by the rule for its class."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.spark import aggregates, codecs, lambdas, structures  # noqa: F401  (their rules)
from headwater.spark.expressions import Expressions
from headwater.spark.scope import Env, Relation, Scope, is_metadata
from headwater.spark.sources import RESERVED, MappedSource
from headwater.spark.types import schema_of
from headwater.spark.value import (
    Bits,
    Value,
    add,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.spark.model import Dataset
    from headwater.spark.sources import Source
    from headwater.spark.tree import Node

    Rule = Callable[["Plans", Node, list[Relation], Scope | None], Relation]

RULES: dict[str, Rule] = {}


class Known(NamedTuple):
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


class Plans:
    """Reads plans; `sources` are what the leaves read, by the number of their first attribute.

    `known` are columns that were read before under the same numbers: those of a stream inside
    `foreachBatch`, or of a query whose result was checkpointed.
    """

    def __init__(
        self,
        sources: dict[int, Source],
        known: Mapping[int, Known] | None = None,
        deadline: float = float("inf"),
    ) -> None:
        self.sources = sources
        self.known = known or {}
        self.deadline = deadline
        self.used: dict[int, Source] = {}
        self.joined: list[Dataset] = []
        self.nodes = 0
        self.shared: dict[int, tuple[Relation, list[int]]] = {}
        self.problems: dict[str, None] = {}
        self.expressions = Expressions(self.relation)

    def relation(self, root: Node, outer: Scope | None = None) -> Relation:
        """What a plan gives; children first, left before right, without recursion."""
        waiting: list[tuple[Node, bool]] = [(root, False)]
        done: list[Relation] = []
        while waiting:
            node, ready = waiting.pop()
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
        known = RULES.get(node.kind)
        if known is not None:
            return known(self, node, children, outer)
        if not node.children:
            return self._leaf(node)
        return self._other(node, children)

    def _leaf(self, node: Node) -> Relation:
        outputs = node.nodes("output")
        source = self.sources.get(outputs[0].id) if outputs else None
        if source is not None:
            self.used[outputs[0].id] = source
            describe(source, outputs)
            return Relation({out.id: _column(source, out) for out in outputs}, {})
        if outputs and all(out.id in self.known for out in outputs):
            rows: Bits = {}
            for out in outputs:
                add(rows, self.known[out.id].rows)
                self.joined += self.known[out.id].datasets
            return Relation({out.id: self.known[out.id].value for out in outputs}, rows)
        return Relation({out.id: Value.unknown() for out in outputs}, {})

    def _other(self, node: Node, children: list[Relation]) -> Relation:
        """A node nobody told us of hands on what it has from below; what it adds is unknown."""
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
    if source.topic or len(source.datasets) != 1 or isinstance(source, MappedSource):
        return
    (one,) = source.datasets
    if one.schema is None:
        columns = [(out.name, out.get("dataType")) for out in outputs if not _hidden(source, out)]
        source.datasets = (msgspec.structs.replace(one, schema=schema_of(columns)),)


def _hidden(source: Source, attribute: Node) -> bool:
    """Whether an attribute is the format's own; Spark 3.5 forgets it of those of Iceberg."""
    return is_metadata(attribute) or any(
        attribute.name in RESERVED.get(one.storage_layer, ()) for one in source.datasets
    )


def _column(source: Source, attribute: Node) -> Value:
    if _hidden(source, attribute):
        return Value()
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
