"""Queries in configurations: the tables they read and the columns they give."""

from __future__ import annotations

import logging
from typing import Any, NamedTuple

LONGEST = 50_000
_DIALECTS = {
    "postgres": "postgres", "mysql": "mysql", "mariadb": "mysql", "mssql": "tsql",
    "synapse": "tsql", "oracle": "oracle", "redshift": "redshift", "snowflake": "snowflake",
    "bigquery": "bigquery", "clickhouse": "clickhouse", "sqlite": "sqlite", "hive": "hive",
    "trino": "trino", "teradata": "teradata", "duckdb": "duckdb", "unity": "databricks",
}  # fmt: skip

_CAPITALS = frozenset(
    {"oracle", "snowflake", "db2", "derby", "hsqldb", "exasol", "firebird", "sap"}
)
_SMALL = frozenset({"postgres", "redshift", "greenplum", "cockroachdb", "yugabytedb"})
_SCHEMAS = {"mssql": "dbo", "synapse": "dbo", "snowflake": "PUBLIC"}


class Output(NamedTuple):
    """What one output column is made of; `plain` when it is one column as it stands."""

    sources: tuple[tuple[str, str], ...]
    plain: bool


class Query(NamedTuple):
    """A parsed query: `tables` as written, `columns` by output name, None where nobody knows.

    With `whole`, its rows are those of its one table as they stand.
    """

    tables: list[str]
    columns: dict[str, Output] | None
    whole: bool = False


def parse(text: str, store: str = "") -> Query | None:
    """Read a query in a store's dialect; None when it cannot be read or sqlglot is not there."""
    if len(text) > LONGEST:
        return None
    try:
        import sqlglot
        from sqlglot import errors, exp
    except ImportError:
        return None
    # It would put the query, and whatever stands in it, into the log.
    logging.getLogger("sqlglot").setLevel(logging.CRITICAL)
    try:
        tree = sqlglot.parse_one(text.strip().rstrip(";"), dialect=_DIALECTS.get(store) or None)
        if not isinstance(tree, exp.Query):
            return None
        _fold(tree, store)
        found = _tables(tree)
    except (errors.SqlglotError, RecursionError, ValueError):
        return None
    names = {
        _qualified(table, store): None
        for table in found
        if table.name and not (table.name.lower() == "dual" and not table.db)
    }
    plain = isinstance(tree, exp.Select) and not tree.find(
        exp.CTE, exp.Subquery, exp.SetOperation, exp.Lateral
    )
    whole = plain and len(names) == 1 and all(item.is_star for item in tree.expressions)
    return Query(list(names), _columns(tree, names, store) if plain else None, whole)


def _fold(tree: Any, store: str) -> None:
    """Spell names that are not quoted as the store does."""
    from sqlglot import exp

    if store not in _CAPITALS and store not in _SMALL:
        return
    for name in tree.find_all(exp.Identifier):
        if not name.quoted:
            name.set("this", name.name.upper() if store in _CAPITALS else name.name.lower())


def _tables(tree: Any) -> list[Any]:
    """The tables that are read; a name that a WITH clause gives is none of them in its scope."""
    from sqlglot import exp
    from sqlglot.optimizer.scope import traverse_scope

    found = {
        id(source): source
        for scope in traverse_scope(tree)
        for source in scope.sources.values()
        if isinstance(source, exp.Table)
    }
    # The order of the query, which is the order people read it in.
    return [table for table in tree.find_all(exp.Table, bfs=False) if id(table) in found]


def _columns(tree: Any, tables: dict[str, None], store: str) -> dict[str, Output] | None:
    """Each output column with the table columns it is made of; only for plain queries."""
    from sqlglot import exp

    aliases = {t.alias_or_name.lower(): _qualified(t, store) for t in tree.find_all(exp.Table)}
    only = next(iter(tables)) if len(tables) == 1 else ""
    found: dict[str, Output] = {}
    for item in tree.expressions:
        if item.is_star or not item.alias_or_name:
            return None
        sources = []
        for column in item.find_all(exp.Column):
            table = aliases.get(column.table.lower(), "") if column.table else only
            if not table:
                return None
            sources.append((table, column.name))
        plain = isinstance(item.unalias(), exp.Column)
        found[item.alias_or_name] = Output(tuple(dict.fromkeys(sources)), plain)
    return found


def _qualified(table: Any, store: str) -> str:
    parts = [part.name for part in table.parts if part.name]
    if table.catalog and not table.db and store in _SCHEMAS:  # database..table
        parts.insert(-1, _SCHEMAS[store])
    return ".".join(f'"{p}"' if "." in p else p for p in parts)
