"""A query from its explain text: sources, columns, and what decides about rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.spark.columns import Column
from headwater.spark.lineage import Query
from headwater.spark.plan import Plans as Rules
from headwater.spark.remote.layout import Drawn, Unclear, draw, every
from headwater.spark.remote.leaves import Leaves
from headwater.spark.remote.outputs import outputs
from headwater.spark.remote.plans import Plans
from headwater.spark.value import Value

if TYPE_CHECKING:
    from headwater.spark.remote.protos import Facts
    from headwater.spark.remote.world import World
    from headwater.spark.tree import Node

MOST_NODES = 2000
SECONDS = 10.0
_CUT = "more fields"


class Reader:
    """Reads the plans of one command."""

    def __init__(self, world: World, facts: Facts, physical: str, literals: dict[str, str]) -> None:
        self.world = world
        self.leaves = Leaves(world, facts.reads, physical, facts.statements)
        self.plans = Plans(self.leaves.types, literals, facts.functions)
        self._until = time.monotonic() + SECONDS

    def query(self, drawn: Drawn, columns: list[tuple[str, Any]] | None = None) -> Query:
        """The query of a drawn plan; `columns` are its names and types where they are known."""
        self.leaves.plan = every(drawn)
        try:
            if len(self.leaves.plan) > MOST_NODES:
                raise Unclear("the plan is too large to be read")
            return self._read(drawn, columns)
        except Unclear as error:
            return self._unclear(drawn, str(error))
        except (RecursionError, TimeoutError):
            return self._unclear(drawn, "the plan is too large to be read")
        except Exception as error:  # noqa: BLE001
            return self._unclear(
                drawn, f"the plan's text could not be read ({type(error).__name__})"
            )

    def _read(self, drawn: Drawn, columns: list[tuple[str, Any]] | None) -> Query:
        if any(_CUT in node.text for node in every(drawn)):
            raise Unclear("the plan's text is cut off")
        tree = self.plans.plan(drawn)
        rules = self.rules()
        relation = rules.relation(tree)
        return self.told(tree, relation, rules, columns)

    def rules(self) -> Rules:
        """The rules over the leaves read so far."""
        sources = {}
        for drawn, node in self.plans.leaves:
            listed = node.nodes("output")
            if listed:
                sources[listed[0].id] = self.leaves.sources[id(drawn)]
        return Rules(sources, deadline=self._until)

    def told(
        self, tree: Node, relation: Any, rules: Rules, columns: list[tuple[str, Any]] | None
    ) -> Query:
        """A query whose relation is known."""
        given = outputs(tree)
        types = self.plans.phrases.types
        named = columns or [(one.name, types.get(one.id)) for one in given]
        if len(named) != len(given):
            raise Unclear("the query's columns are not clear")
        for text in (*rules.problems, *self.plans.phrases.problems):
            self.world.problem(text)
        made = [
            Column(name, kind, relation.env.get(one.id) or Value.unknown())
            for (name, kind), one in zip(named, given, strict=True)
        ]
        sources = [rules.used.get(number, source) for number, source in rules.sources.items()]
        numbers = [one.id for one in given]
        return Query(made, numbers, relation.rows, sources, (), rules.nodes, known=True)

    def _unclear(self, drawn: Drawn, why: str) -> Query:
        self.world.problem(f"{why}: its columns are not known")
        for node in every(drawn):
            if not node.below and not node.inside and id(node) not in self.leaves.sources:
                self._leaf(node)
        return Query([], [], {}, list(self.leaves.sources.values()), (), 0, known=False)

    def _leaf(self, node: Drawn) -> None:
        if node.kind not in ("RelationV2", "Relation", "StreamingRelationV2", "StreamingRelation",
                             "LogicalRDD", "ExternalRDD"):  # fmt: skip
            return
        try:
            self.leaves.types(node, [])
        except Exception as error:  # noqa: BLE001
            self.world.problem(f"{node.kind}: could not be read ({type(error).__name__})")


def tree_of(text: str) -> Drawn:
    """The drawn tree of an analysed plan."""
    return draw(text)
