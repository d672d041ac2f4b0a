"""The lineage of a command of the client, from its message and the server's explain text.

Nothing is run: the command itself is on its way to the server meanwhile.
"""

from __future__ import annotations

import time
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.naming import redact
from headwater.spark.columns.output import OutputColumn
from headwater.spark.columns.types import keeps, schema_of
from headwater.spark.columns.value import IDENTITY, TRANSFORM, Value
from headwater.spark.model import PlanLineage
from headwater.spark.plan import multi_insert, row_level
from headwater.spark.plan.compose import Composer, Query
from headwater.spark.plan.writes import Write
from headwater.spark.remote import statements, tables, targets
from headwater.spark.remote.client_plan import ClientPlan
from headwater.spark.remote.explain.layout import PlanTextNode, UnclearText, parse_tree, sections
from headwater.spark.remote.explain.merge import MergeReader
from headwater.spark.remote.explain.query import QueryReader
from headwater.spark.remote.messages import statement_of
from headwater.spark.remote.server_client import RemoteSession, types_of
from headwater.spark.remote.targets import Target

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from headwater.spark.remote.server_client import ConnectServer


class CommandLineage:
    """What is known of one command; its target is read again when the command is done."""

    def __init__(self, server: ConnectServer, sql: str = "") -> None:
        self.session = RemoteSession(server)
        self.sql = sql
        self.target: Target | None = None
        self.query: Query | None = None
        self.others: list[tuple[Target, Query | None]] = []
        """Further inserts of a multi-insert, each with its query."""
        self.seconds = 0.0

    @property
    def stands_for(self) -> PlanLineage:
        """Enough to give the job its name before the place of its table is known."""
        if self.target is None:
            return PlanLineage(sql=self.sql)
        operation = multi_insert.OPERATION if self.others else self.target.operation
        return PlanLineage(outputs=self.target.stands_for, operation=operation)

    def set_targets(self, given: Sequence[Target], queries: Sequence[Query | None] = ()) -> None:
        """Keep what a statement writes, each with its query where that was read."""
        pairs = list(zip_longest(given, queries))
        if pairs:
            (self.target, self.query), *self.others = pairs

    def forget_columns(self) -> None:
        """Keep the targets alone: what the queries were read as is in doubt."""
        self.query = None
        self.others = [(target, None) for target, _ in self.others]

    def lineage(self) -> PlanLineage:
        """The lineage as far as it is known now."""
        if self.target is None:
            found = PlanLineage(problems=tuple(self.session.problems))
        else:
            writes = ((self.target, self.query), *self.others)
            found = multi_insert.together([self._written(*write) for write in writes])
        return msgspec.structs.replace(found, sql=self.sql, seconds=self.seconds)

    def _written(self, target: Target, query: Query | None) -> PlanLineage:
        outputs = target.datasets(self.session)
        if query is None:
            described = self._described(target, outputs)
            problems = tuple(self.session.problems)
            return PlanLineage(outputs=described, operation=target.operation, problems=problems)
        options = target.options
        write = Write(target.operation, None, outputs, target.names, target.row_level, options)
        composer = Composer(self.session, 1.0, {})  # type: ignore[arg-type]
        return composer.compose(query, write)

    def _described(self, target: Target, outputs: tuple[Any, ...]) -> tuple[Any, ...]:
        """Outputs with the columns that the server knows of them."""
        if not target.parts or target.kind != "table":
            return outputs
        columns = self.session.server.columns(list(target.parts))
        if not columns:
            return outputs
        schema = schema_of(columns.items())
        return tuple(msgspec.structs.replace(one, schema=schema) for one in outputs)


def of_frame(
    server: ConnectServer,
    relation: Any,
    target: Any,
    definitions: Iterable[Any],
    topics: frozenset[str] = frozenset(),
) -> CommandLineage:
    """What a writer of a frame does; `target` finds out where to, given a session."""
    command = CommandLineage(server)
    command.session.topics = topics
    return _guarded(command, lambda: _frame(command, relation, target, definitions))


def of_statement(server: ConnectServer, message: Any, definitions: Iterable[Any]) -> CommandLineage:
    """What a statement does."""
    sql = statement_of(message)
    command = CommandLineage(server, sql)
    return _guarded(command, lambda: _statement(command, message, sql, definitions))


def of_merge(server: ConnectServer, message: Any, definitions: Iterable[Any]) -> CommandLineage:
    """What `mergeInto` does: its clauses are the client's own and shown by no plan."""

    def target(session: RemoteSession) -> Target:
        parts = tuple(tables.full(session, message.target_table_name))
        return Target("merge_into_table", parts, row_level="MERGE")

    found = of_frame(server, message.source_table_plan, target, definitions)
    if found.query is not None:
        found.query = found.query._replace(known=False)
    found.session.problem("the clauses of mergeInto are not shown: its columns are not known")
    return found


def of_query(server: ConnectServer, relation: Any, definitions: Iterable[Any]) -> CommandLineage:
    """What a frame reads."""
    return of_frame(server, relation, lambda _world: Target(""), definitions)


def _guarded(command: CommandLineage, read: Any) -> CommandLineage:
    start = time.monotonic()
    try:
        read()
    except UnclearText as error:
        command.session.problem(str(error))
    except Exception as error:  # noqa: BLE001
        message = redact(str(error).strip()).partition("\n")[0][:200]
        command.session.problem(f"the plan could not be read: {type(error).__name__}: {message}")
    command.seconds = time.monotonic() - start
    return command


def _frame(command: CommandLineage, relation: Any, target: Any, definitions: Iterable[Any]) -> None:
    session = command.session
    command.target = target(session)
    client_plan = ClientPlan()
    client_plan.add(relation)
    for more in definitions:
        client_plan.add(more)
    text, literals = client_plan.mask_literals(session.server.explain(relation))
    found = sections(text, query=True)
    columns = list(types_of(session.server.schema(relation)).items())
    reader = QueryReader(session, client_plan, found.physical, literals)
    query = reader.query(parse_tree(found.analysed), columns)
    command.query = _adapted(session, query, command.target)


def _statement(command: CommandLineage, message: Any, sql: str, definitions: Iterable[Any]) -> None:
    session = command.session
    change = statements.changed(session, sql)
    if change is not None:
        command.target = change
        return
    if statements.is_script(sql):
        session.problem(statements.script_problem(sql))
        return
    if not statements.writes(sql):
        return
    # What the text names, for the case that no plan can be had.
    command.set_targets(statements.multi_insert(session, sql))
    client_plan = ClientPlan()
    client_plan.add(message)
    for more in definitions:
        client_plan.add(more)
    text, literals = client_plan.mask_literals(
        session.server.explain_sql(message, statements.bare(sql))
    )
    found = sections(text, query=False)
    if not found.analysed:
        raise UnclearText("the statement could not be analysed")
    root = parse_tree(found.analysed)
    commands = statements.read_all(session, root, sql)
    command.set_targets([target for target, _ in commands])
    queries: list[Query | None] = []
    for target, text_node in commands:
        if text_node is None:
            queries.append(None)
            continue
        reader = QueryReader(session, client_plan, found.physical, literals)
        queries.append(_rows(reader, found.parsed, text_node, target) or reader.query(text_node))
    command.set_targets([target for target, _ in commands], queries)


def _rows(
    reader: QueryReader, parsed: str, text_node: PlanTextNode, target: Target
) -> Query | None:
    """MERGE and UPDATE, which Spark has rewritten before it shows them."""
    try:
        if target.row_level == "MERGE":
            return MergeReader(reader, parsed, text_node).query(list(target.names))
        if target.row_level == "UPDATE":
            tree = reader.parser.plan(text_node)
            rules = reader.rules()
            relation = row_level.updated(rules, tree)
            if relation is None:
                relation = rules.relation(tree)
            return reader.compose(tree, relation, rules, None)
    except UnclearText as error:
        reader.session.problem(f"{error}: its columns are not known")
        sources = list(reader.leaves.sources.values())
        return Query([], [], {}, sources, (), 0, known=False)
    return None


def _adapted(session: RemoteSession, query: Query, target: Target | None) -> Query:
    """A query's columns as the table takes them: by name or by place, cast where types differ."""
    if target is None or not query.known or not target.parts:
        return query
    if target.operation in ("create_table_as_select", "replace_table_as_select"):
        return query
    known = session.server.columns(list(target.parts))
    if known is None:
        return query
    if target.position and len(known) != len(query.columns):
        session.problem("how columns meet those of the table is not clear")
        return query._replace(known=False)
    wanted = list(known.items())
    by_name = {name.lower(): (name, kind) for name, kind in wanted}
    made = []
    for place, column in enumerate(query.columns):
        if target.position:
            name, kind = wanted[place]
        else:
            name, kind = by_name.get(column.name.lower(), (column.name, column.type))
        value = column.value
        if not keeps(column.type, kind):
            value = _cast(value)
        made.append(OutputColumn(name, kind, value))
    return query._replace(columns=made)


def _cast(value: Value) -> Value:
    if any(bit & IDENTITY for bit in value.all().values()):
        return value.through(TRANSFORM)
    return value


def stream_target(session: RemoteSession, start: Any) -> Target:
    """Where a streaming query writes to."""
    if start.HasField("foreach_batch"):
        session.problem("foreachBatch runs on the server: what it writes is not known")
        return Target("foreach_batch", foreach=True)
    if start.HasField("foreach_writer"):
        session.problem("foreach runs on the server: what it writes is not known")
        return Target("write_stream")
    if start.table_name:
        return Target("write_stream", tuple(tables.full(session, start.table_name)))
    word = (start.format or session.setting("spark.sql.sources.default") or "parquet").lower()
    options = dict(start.options)
    path = start.path or {key.lower(): value for key, value in options.items()}.get("path", "")
    return targets.of_format(session, word, path, options, "APPEND", stream="write_stream")
