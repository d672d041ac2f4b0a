"""SQL queries that a job sends to a database: the tables they read, and what each column is made of.

Needs sqlglot, which is imported at the first query: without it nothing is known of a query.
"""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

__all__ = ["AGGREGATION", "IDENTITY", "TRANSFORMATION", "QueryColumn", "SqlQuery", "parse"]

MAX_LENGTH = 50_000
IDENTITY, TRANSFORMATION, AGGREGATION = "IDENTITY", "TRANSFORMATION", "AGGREGATION"
_ORDER = (IDENTITY, TRANSFORMATION, AGGREGATION)

# Stores whose key in headwater.lineage.naming is not the name of their dialect in sqlglot.
_DIALECTS = {
    "mssql": "tsql", "synapse": "tsql", "mariadb": "mysql", "tidb": "mysql", "unity": "databricks",
    "cockroachdb": "postgres", "yugabytedb": "postgres", "greenplum": "postgres",
}  # fmt: skip
# How a store spells a name that is not quoted; the others keep it as it is written.
_UPPER_CASE = frozenset(
    {"oracle", "snowflake", "db2", "derby", "hsqldb", "exasol", "firebird", "sap"}
)
_LOWER_CASE = frozenset({"postgres", "redshift", "greenplum", "cockroachdb", "yugabytedb"})
_DEFAULT_SCHEMAS = {"mssql": "dbo", "synapse": "dbo", "snowflake": "PUBLIC"}


class QueryColumn(NamedTuple):
    """One column of a result: `(table, column, how)` for every table column that it is made of."""

    sources: tuple[tuple[str, str, str], ...] = ()

    @property
    def as_it_is(self) -> bool:
        """Whether the column is one table column, unchanged."""
        return len(self.sources) == 1 and self.sources[0][2] == IDENTITY


class SqlQuery(NamedTuple):
    """A query: its tables as written, its columns by name, None where they are not known for sure.

    With `whole` the rows are those of the one table, with all its columns under their own names.
    """

    tables: list[str]
    columns: dict[str, QueryColumn] | None
    whole: bool = False


def parse(text: str, store: str = "") -> SqlQuery | None:
    """Read a query in the dialect of a store; None when it cannot be read."""
    if len(text) > MAX_LENGTH:
        return None
    try:
        import sqlglot
        from sqlglot import errors, exp
    except ImportError:
        return None
    # sqlglot would write the query, with whatever literals it has, into the log.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    dialect = _dialect(store)
    try:
        tree = sqlglot.parse_one(text.strip().rstrip(";"), dialect=dialect)
        if not isinstance(tree, exp.Query):
            return None
        _fold_case(tree, store)
        found = _tables(tree)
    except (errors.SqlglotError, RecursionError, ValueError):
        return None
    named = {
        id(table): _qualified(table, store)
        for table in found
        if table.name and not (table.name.lower() == "dual" and not table.db)
    }
    tables = list(dict.fromkeys(named.values()))
    flat = isinstance(tree, exp.Select) and not tree.find(
        exp.CTE, exp.Subquery, exp.SetOperation, exp.Lateral
    )
    if flat and len(named) == 1 and all(item.is_star for item in tree.expressions):
        return SqlQuery(tables, None, whole=True)
    read = _flat_columns if flat else _nested_columns
    try:
        columns = read(tree, tables, store, dialect)
    except (errors.SqlglotError, RecursionError, ValueError, KeyError):
        columns = None
    return SqlQuery(tables, columns)


def _dialect(store: str) -> str | None:
    from sqlglot.dialects.dialect import Dialect

    name = _DIALECTS.get(store, store)
    return name if name and Dialect.get(name) is not None else None


def _fold_case(tree: Any, store: str) -> None:
    from sqlglot import exp

    if store not in _UPPER_CASE and store not in _LOWER_CASE:
        return
    for name in tree.find_all(exp.Identifier):
        if not name.quoted:
            name.set("this", name.name.upper() if store in _UPPER_CASE else name.name.lower())


def _tables(tree: Any) -> list[Any]:
    """The tables that are read, in the order of the text.

    The name of a common table expression stands for that expression where it is in scope, and for a
    table elsewhere: `WITH orders AS (SELECT * FROM orders) SELECT * FROM orders` reads the table
    `orders`.
    """
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    read = {
        id(source)
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, exp.Table)
    }
    return [table for table in tree.find_all(exp.Table, bfs=False) if id(table) in read]


def _qualified(table: Any, store: str) -> str:
    parts = [part.name for part in table.parts if part.name]
    if table.catalog and not table.db and store in _DEFAULT_SCHEMAS:  # database..table
        parts.insert(-1, _DEFAULT_SCHEMAS[store])
    return ".".join(f'"{part}"' if "." in part else part for part in parts)


def _how(expression: Any) -> str:
    from sqlglot import exp

    inner = expression.unalias()
    if isinstance(inner, exp.Column):
        return IDENTITY
    return AGGREGATION if inner.find(exp.AggFunc) else TRANSFORMATION


def _flat_columns(
    tree: Any, tables: list[str], store: str, _dialect: str | None
) -> dict[str, QueryColumn] | None:
    """The columns of a query without inner queries: names are resolved as they are written."""
    from sqlglot import exp

    aliases = {t.alias_or_name.lower(): _qualified(t, store) for t in tree.find_all(exp.Table)}
    only = tables[0] if len(tables) == 1 else ""
    found: dict[str, QueryColumn] = {}
    for item in tree.expressions:
        if item.is_star or not item.alias_or_name:
            return None
        sources = []
        for column in item.find_all(exp.Column):
            table = aliases.get(column.table.lower(), "") if column.table else only
            if not table:
                return None
            sources.append((table, column.name, _how(item)))
        found[item.alias_or_name] = QueryColumn(tuple(dict.fromkeys(sources)))
    return found


def _nested_columns(
    tree: Any, tables: list[str], store: str, dialect: str | None
) -> dict[str, QueryColumn] | None:
    """The columns of a query with inner queries, followed down by sqlglot."""
    from sqlglot import exp
    from sqlglot.lineage import lineage
    from sqlglot.optimizer import build_scope, qualify

    names = [column.alias_or_name for column in tree.selects]
    if not names or "*" in names or "" in names:
        return None
    # Qualifying writes names in the dialect's own case: here they get back the one in the text.
    spelled = {name.name.lower(): name.name for name in tree.find_all(exp.Identifier)}
    known = {table.lower(): table for table in tables}
    qualified = qualify.qualify(
        tree.copy(), dialect=dialect, validate_qualify_columns=False, identify=False
    )
    scope = build_scope(qualified)
    found: dict[str, QueryColumn] = {}
    for name, item in zip(names, qualified.selects, strict=True):
        node = lineage(item.alias_or_name, qualified, schema={}, dialect=dialect, scope=scope)
        sources = []
        for leaf, how in _leaves(node, IDENTITY):
            if not isinstance(leaf.expression, exp.Table):
                if node.expression.find(exp.Column):
                    return None
                continue
            table = known.get(_qualified(leaf.expression, store).lower())
            column = leaf.name.rpartition(".")[2].strip('"`[]')
            if table is None or column == "*":
                return None
            sources.append((table, spelled.get(column.lower(), column), how))
        found[name] = QueryColumn(tuple(dict.fromkeys(sources)))
    return found


def _leaves(node: Any, above: str) -> list[tuple[Any, str]]:
    """The ends of a column's way down, each with the strongest step on that way."""
    from sqlglot import exp

    if not node.downstream:
        return [(node, above)]
    expression = node.expression
    step = IDENTITY if isinstance(expression.unalias(), exp.Query) else _how(expression)
    step = max(step, above, key=_ORDER.index)
    return [leaf for below in node.downstream for leaf in _leaves(below, step)]
