"""One plan's lineage put together: sources, columns, outputs."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.lineage.schema import Schema, topic_schema
from headwater.spark.columns import output
from headwater.spark.columns.output import OutputColumn
from headwater.spark.columns.types import schema_of, struct_schema
from headwater.spark.columns.value import Value
from headwater.spark.jvm import numbers
from headwater.spark.model import PlanLineage, each_once
from headwater.spark.plan import row_level
from headwater.spark.plan.leaves import read_leaves
from headwater.spark.plan.operators import ColumnReader, KnownColumn
from headwater.spark.plan.tree import read_tree
from headwater.spark.stores import formats, kafka

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.model import Dataset
    from headwater.spark.columns.scope import Relation
    from headwater.spark.columns.source import Source
    from headwater.spark.jvm import JvmSession
    from headwater.spark.plan.tree import Node, Tree
    from headwater.spark.plan.writes import Write

MAX_NODES = 2000
MAX_CELLS = 60_000
MAX_NODES_WITHOUT_TIME = 64


class Query(NamedTuple):
    """A query that was read: its columns in order, and what was read for it."""

    columns: list[OutputColumn]
    numbers: list[int]
    rows: dict[Any, int]
    sources: list[Source]
    joined: tuple[Dataset, ...]
    nodes: int
    known: bool


class Composer:
    """Puts the lineage of one query together within a bound of size and time."""

    def __init__(
        self, session: JvmSession, seconds: float, known: Mapping[int, KnownColumn]
    ) -> None:
        self.session = session
        self.known = known
        self.deadline = time.monotonic() + seconds
        self.max_nodes = MAX_NODES if seconds > 0 else MAX_NODES_WITHOUT_TIME

    def query(self, plan: Any, write: Write) -> Query:
        """Read a query's leaves, then its columns if it is not too large."""
        shown = plan if write.target is None else write.target
        if shown is None:
            return Query([], [], {}, [], (), 0, known=False)
        schema, attributes = self.session.texts(shown, "schema.json", "output.toString")
        outputs = msgspec.json.decode(schema)["fields"] + list(write.added)
        names = [item["name"] for item in outputs]
        parts = write.parts or (plan,)
        try:
            read = self._read(plan, write, len(names))
            if read is None:
                return self._leaves_only(parts, "too large to be read")
            tree, found = read
            order = numbers(attributes, names[: len(names) - len(write.added)])
            order += [-1 - place for place in range(len(write.added) if order else 0)]
            if write.target is not None and order and order[0] in found:
                found[order[0]].target = True
            plans = ColumnReader(found, self.known, self.deadline)
            relation = None
            if write.row_level == "UPDATE":
                relation = row_level.updated(plans, tree)
            if relation is None:
                relation = plans.relation(tree)
        except RecursionError:
            return self._leaves_only(parts, "nested too deeply")
        except TimeoutError:
            return self._leaves_only(parts, "not read in time")
        for text in plans.problems:
            self.session.problem(text)
        made = _columns(outputs, order, relation)
        joined = tuple({dataset.id: dataset for dataset in plans.joined}.values())
        sources = [plans.used.get(number, source) for number, source in found.items()]
        return Query(made, order, relation.rows, sources, joined, plans.nodes, known=True)

    def _read(self, plan: Any, write: Write, width: int) -> tuple[Node, dict[int, Source]] | None:
        tree = self._tree(plan, width)
        if tree is None:
            return None
        if not write.parts:
            return tree.root, read_leaves(self.session, plan, self.known, tree)
        # What a command keeps to itself stands below it from here on, as Spark's own would.
        found: dict[int, Source] = {}
        for part in write.parts:
            below = self._tree(part, width)
            if below is None:
                return None
            found |= read_leaves(self.session, part, self.known, below)
            tree.root.children.append(below.root)
        return tree.root, found

    def _tree(self, plan: Any, width: int) -> Tree | None:
        """A plan's tree, or None when it is too large; wide ones may have fewer nodes."""
        return read_tree(
            self.session, plan, min(self.max_nodes, max(50, MAX_CELLS // max(width, 1)))
        )

    def _leaves_only(self, parts: tuple[Any, ...], why: str) -> Query:
        self.session.problem(f"the plan is {why}: its columns are not known")
        found: dict[int, Source] = {}
        for part in parts:
            found |= read_leaves(self.session, part, self.known)
        return Query([], [], {}, list(found.values()), (), 0, known=False)

    def compose(self, query: Query, write: Write) -> PlanLineage:
        """Inputs, outputs and columns of a query that writes, or that only reads."""
        outputs = write.outputs
        if write.options is not None:
            outputs = self._topics(query, write.options)
        elif query.known:
            outputs = _tables(query, write)
        inputs = _inputs(query, write, outputs)
        return PlanLineage(
            inputs=inputs,
            outputs=outputs,
            operation=write.operation,
            problems=tuple(self.session.problems),
            nodes=query.nodes,
            frontier=_frontier(query, inputs),
            evolves=write.evolves,
        )

    def _topics(self, query: Query, options: Mapping[str, str]) -> tuple[Dataset, ...]:
        given = {key.lower(): value for key, value in options.items()}
        names = [given["topic"]] if given.get("topic") else self._routed(query)
        bootstrap = given.get("kafka.bootstrap.servers", "")
        schema = _record_schema(query)
        lineage = output.record(query.columns, query.rows) if query.known else None
        return tuple(
            msgspec.structs.replace(made, schema=schema, columns=lineage)
            for name in names
            if (made := kafka.topic(self.session, bootstrap, name, given)) is not None
        )

    def _routed(self, query: Query) -> list[str]:
        """Topics that a column names: constants, or a choice between constants."""
        chosen = next((c.value.literal for c in query.columns if c.name == "topic"), None)
        if isinstance(chosen, str):
            return [chosen]
        if isinstance(chosen, tuple):
            return list(chosen)
        self.session.problem("each record names its own topic: the topics are not known")
        return []


def _columns(
    outputs: list[dict[str, Any]], order: list[int], relation: Relation
) -> list[OutputColumn]:
    found = list(relation.env.values())
    made: list[OutputColumn] = []
    for place, item in enumerate(outputs):
        value: Value | None = None
        if order:
            value = relation.env.get(order[place])
        elif len(found) == len(outputs):
            value = found[place]
        made.append(OutputColumn(item["name"], item["type"], value or Value.unknown()))
    return made


def _tables(query: Query, write: Write) -> tuple[Dataset, ...]:
    written = query.columns
    target = None
    if write.row_level:
        by_name: dict[str, OutputColumn] = {}
        for column in written:
            by_name.setdefault(column.name, column)
        written = [by_name[name] for name in write.names if name in by_name]
        target = write.outputs[0].id if write.outputs else None
        if write.row_level == "DELETE":
            written = []
    elif write.names and len(write.names) == len(written):
        named = zip(write.names, written, strict=True)
        written = [OutputColumn(name, column.type, column.value) for name, column in named]
    if write.outputs:
        hidden = formats.metadata_columns(write.outputs[:1])
        written = [column for column in written if column.name not in hidden]
    lineage = output.columns_of(written, query.rows, target)
    schema = schema_of((column.name, column.type) for column in written) if written else None
    return tuple(
        msgspec.structs.replace(one, schema=one.schema or schema, columns=lineage)
        for one in write.outputs
    )


def _inputs(query: Query, write: Write, outputs: tuple[Dataset, ...]) -> tuple[Dataset, ...]:
    used = {
        source.dataset
        for one in outputs
        if one.columns is not None
        for sources in (*one.columns.fields.values(), one.columns.dataset)
        for source in sources
    }
    own = write.outputs[0].id if write.row_level and write.outputs else None
    read = (dataset for source in query.sources for dataset in _described(source))
    # The table a command changes is read too, but it counts only where it matters.
    counted = (one for one in read if not (query.known and one.id == own and one.id not in used))
    return tuple(each_once((*query.joined, *counted)).values())


def _described(source: Source) -> tuple[Dataset, ...]:
    if not source.topic or not source.decoded:
        return source.datasets
    schema = topic_schema(
        struct_schema(source.decoded["value"]) if "value" in source.decoded else None,
        struct_schema(source.decoded["key"]) if "key" in source.decoded else None,
    )
    return tuple(msgspec.structs.replace(dataset, schema=schema) for dataset in source.datasets)


def _record_schema(query: Query) -> Schema | None:
    sides: dict[str, Schema] = {}
    for column in query.columns:
        if column.name not in ("value", "key"):
            continue
        if column.value.encoded and isinstance(column.value.typed, dict):
            sides[column.name] = struct_schema(column.value.typed)
        elif not column.value.encoded:
            sides[column.name] = Schema(type=str(column.type))
    return topic_schema(sides.get("value"), sides.get("key")) if sides else None


def _frontier(query: Query, inputs: tuple[Dataset, ...]) -> dict[int, KnownColumn]:
    if not query.known or not query.numbers:
        return {}
    return {
        number: KnownColumn(column.value, query.rows, inputs)
        for number, column in zip(query.numbers, query.columns, strict=True)
    }
