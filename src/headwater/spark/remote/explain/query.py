"""The lineage of a query from its explain text: sources, columns, and what decides about rows."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.spark.columns.output import OutputColumn
from headwater.spark.columns.value import Value
from headwater.spark.plan.compose import Query
from headwater.spark.plan.operators import ColumnReader as Rules
from headwater.spark.remote.explain.layout import PlanTextNode, UnclearText, all_nodes
from headwater.spark.remote.explain.leaves import LeafReader
from headwater.spark.remote.explain.plan import PlanParser, output_columns

if TYPE_CHECKING:
    from headwater.spark.plan.tree import Node
    from headwater.spark.remote.client_plan import ClientPlan
    from headwater.spark.remote.server_client import RemoteSession

MAX_NODES = 2000
SECONDS = 10.0
_SHORTENED = "more fields"


class QueryReader:
    """Reads the plans of one command."""

    def __init__(
        self,
        session: RemoteSession,
        client_plan: ClientPlan,
        physical: str,
        literals: dict[str, str],
    ) -> None:
        self.session = session
        self.leaves = LeafReader(session, client_plan.reads, physical, client_plan.statements)
        self.parser = PlanParser(self.leaves.types, literals, client_plan.functions)
        self._until = time.monotonic() + SECONDS

    def query(self, text_node: PlanTextNode, columns: list[tuple[str, Any]] | None = None) -> Query:
        """The query of a plan; `columns` are its names and types where they are known."""
        self.leaves.plan = all_nodes(text_node)
        try:
            if len(self.leaves.plan) > MAX_NODES:
                raise UnclearText("the plan is too large to be read")
            return self._read(text_node, columns)
        except UnclearText as error:
            return self._unclear(text_node, str(error))
        except (RecursionError, TimeoutError):
            return self._unclear(text_node, "the plan is too large to be read")
        except Exception as error:  # noqa: BLE001
            return self._unclear(
                text_node, f"the plan's text could not be read ({type(error).__name__})"
            )

    def _read(self, text_node: PlanTextNode, columns: list[tuple[str, Any]] | None) -> Query:
        if any(_SHORTENED in node.text for node in all_nodes(text_node)):
            raise UnclearText("the plan's text is cut off")
        tree = self.parser.plan(text_node)
        rules = self.rules()
        relation = rules.relation(tree)
        return self.compose(tree, relation, rules, columns)

    def rules(self) -> Rules:
        """The rules over the leaves read so far."""
        sources = {}
        for text_node, node in self.parser.leaves:
            listed = node.nodes("output")
            if listed:
                sources[listed[0].id] = self.leaves.sources[id(text_node)]
        return Rules(sources, deadline=self._until)

    def compose(
        self, tree: Node, relation: Any, rules: Rules, columns: list[tuple[str, Any]] | None
    ) -> Query:
        """A query whose relation is known."""
        given = output_columns(tree)
        types = self.parser.expressions.types
        named = columns or [(one.name, types.get(one.id)) for one in given]
        if len(named) != len(given):
            raise UnclearText("the query's columns are not clear")
        for text in (*rules.problems, *self.parser.expressions.problems):
            self.session.problem(text)
        made = [
            OutputColumn(name, kind, relation.env.get(one.id) or Value.unknown())
            for (name, kind), one in zip(named, given, strict=True)
        ]
        sources = [rules.used.get(number, source) for number, source in rules.sources.items()]
        numbers = [one.id for one in given]
        return Query(made, numbers, relation.rows, sources, (), rules.nodes, known=True)

    def _unclear(self, text_node: PlanTextNode, why: str) -> Query:
        self.session.problem(f"{why}: its columns are not known")
        for node in all_nodes(text_node):
            if not node.below and not node.inside and id(node) not in self.leaves.sources:
                self._leaf(node)
        return Query([], [], {}, list(self.leaves.sources.values()), (), 0, known=False)

    def _leaf(self, node: PlanTextNode) -> None:
        if node.kind not in ("RelationV2", "Relation", "StreamingRelationV2", "StreamingRelation",
                             "LogicalRDD", "ExternalRDD"):  # fmt: skip
            return
        try:
            self.leaves.types(node, [])
        except Exception as error:  # noqa: BLE001
            self.session.problem(f"{node.kind}: could not be read ({type(error).__name__})")
