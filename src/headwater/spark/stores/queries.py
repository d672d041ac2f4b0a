"""SQL sent to a database: its tables, and where the columns of its result come from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.spark.value import AGGREGATION, IDENTITY, TRANSFORMATION, Value, add

if TYPE_CHECKING:
    from headwater.spark.sources import Source
    from headwater.spark.value import Bits

_DIALECTS = {"mssql": "tsql", "cockroachdb": "postgres", "mariadb": "mysql", "tidb": "mysql"}


class Taken:
    """A query that was taken apart."""

    def __init__(self, query: Any, tables: list[str], dialect: str) -> None:
        self.query = query
        self.tables = tables
        self.dialect = dialect

    def columns(self, sources: dict[str, Source]) -> dict[str, Value] | None:
        """The result's columns by name; None when a column's origin cannot be told surely."""
        found: dict[str, Value] = {}
        names = [column.alias_or_name for column in self.query.selects]
        if not names or "*" in names or "" in names:
            return self._all(sources) if names == ["*"] else None
        for name in names:
            value = self._column(name, sources)
            if value is None:
                return None
            found[name] = value
            found[name.lower()] = value
        return found

    def _all(self, sources: dict[str, Source]) -> dict[str, Value] | None:
        """`select * from one`: every column is the table's own."""
        from sqlglot import exp

        plain = len(self.tables) == 1 and not any(
            self.query.find(kind) for kind in (exp.Join, exp.Subquery, exp.Union, exp.CTE)
        )
        return _Same(next(iter(sources.values()))) if plain and sources else None

    def _column(self, name: str, sources: dict[str, Source]) -> Value | None:
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
        from sqlglot.lineage import lineage

        try:
            tree = lineage(name, self.query.copy(), schema={}, dialect=self.dialect)
        except (SqlglotError, ValueError, KeyError):
            return None
        bits: Bits = {}
        for node, way in _leaves(tree, IDENTITY, exp):
            if not isinstance(node.expression, exp.Table):
                if tree.expression.find(exp.Column):
                    return None
                continue
            source = sources.get(_qualified(node.expression))
            column = node.name.rpartition(".")[2].strip('"`[]')
            if source is None or column == "*":
                return None
            add(bits, {(source, (column,)): way})
        return Value(bits)


class _Same(dict[str, Value]):
    """Every name is a column of the one table there is."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def get(self, key: str, default: Any = None) -> Value:
        return Value({(self.source, (key,)): IDENTITY})


def take_apart(query: str, store: str) -> Taken | None:
    """Read a query; None without sqlglot, or when it is none that can be read."""
    try:
        import sqlglot
        from sqlglot import exp
        from sqlglot.errors import SqlglotError
    except ImportError:
        return None
    dialect = _DIALECTS.get(store, store)
    try:
        tree = sqlglot.parse_one(query, dialect=dialect)
    except ValueError:
        try:
            dialect = ""
            tree = sqlglot.parse_one(query)
        except SqlglotError:
            return None
    except SqlglotError:
        return None
    if not isinstance(tree, exp.Query):
        return None
    defined = {cte.alias_or_name for cte in tree.find_all(exp.CTE)}
    tables = [_qualified(t) for t in tree.find_all(exp.Table) if t.name not in defined]
    return Taken(tree, list(dict.fromkeys(tables)), dialect)


def _qualified(table: Any) -> str:
    return ".".join(part for part in (table.catalog, table.db, table.name) if part)


def _leaves(node: Any, way: int, exp: Any) -> list[tuple[Any, int]]:
    if not node.downstream:
        return [(node, way)]
    expression = node.expression
    inner = expression.this if isinstance(expression, exp.Alias) else expression
    if isinstance(inner, exp.Select):
        inner = None
    step = way
    if inner is not None and inner.find(exp.AggFunc):
        step = AGGREGATION
    elif inner is not None and not isinstance(inner, exp.Column) and way == IDENTITY:
        step = TRANSFORMATION
    found: list[tuple[Any, int]] = []
    for below in node.downstream:
        found += _leaves(below, step, exp)
    return found
