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


class Output(NamedTuple):
    """What one output column is made of; `plain` when it is one column as it stands."""

    sources: tuple[tuple[str, str], ...]
    plain: bool


class Query(NamedTuple):
    """A parsed query: `tables` as written, `columns` by output name, None where nobody knows."""

    tables: list[str]
    columns: dict[str, Output] | None


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
    except (errors.SqlglotError, RecursionError, ValueError):
        return None
    if not isinstance(tree, exp.Query):
        return None
    defined = {cte.alias_or_name.lower() for cte in tree.find_all(exp.CTE)}
    names: dict[str, None] = {}
    for table in tree.find_all(exp.Table):
        name = _qualified(table)
        if name and not (name.lower() in defined and not table.db):
            names[name] = None
    return Query(list(names), _columns(tree, names))


def _columns(tree: Any, tables: dict[str, None]) -> dict[str, Output] | None:
    """Each output column with the table columns it is made of; only for plain queries."""
    from sqlglot import exp

    if not isinstance(tree, exp.Select) or tree.find(exp.CTE, exp.Subquery, exp.SetOperation):
        return None
    aliases = {t.alias_or_name.lower(): _qualified(t) for t in tree.find_all(exp.Table)}
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


def _qualified(table: Any) -> str:
    parts = [part.name for part in table.parts if part.name]
    return ".".join(f'"{p}"' if "." in p else p for p in parts)
