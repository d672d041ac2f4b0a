"""JDBC: tables by name, and queries by the tables and columns that they read."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage import sql
from headwater.lineage.model import Dataset
from headwater.lineage.naming import JdbcTarget, NamingError, parse_jdbc
from headwater.spark.columns.source import MappedSource, Source
from headwater.spark.columns.value import AGGREGATION, IDENTITY, TRANSFORMATION, Value, add
from headwater.spark.model import observed

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.spark.columns.value import Bits
    from headwater.spark.jvm import JvmSession

_HOW = {
    sql.IDENTITY: IDENTITY,
    sql.TRANSFORMATION: TRANSFORMATION,
    sql.AGGREGATION: AGGREGATION,
}


def read(session: JvmSession, options: Mapping[str, str]) -> Source | None:
    """What a reader's options name: a table, or the tables behind a query."""
    given = {key.lower(): value for key, value in options.items()}
    target = _target(session, given)
    if target is None:
        return None
    query = given.get("query") or _wrapped(given.get("dbtable", ""))
    user = given.get("user")
    if not query:
        made = table(session, target, given.get("dbtable", ""), user)
        return Source((made,)) if made is not None else None
    found = sql.parse(query, target.store)
    if found is None:
        session.problem("a JDBC query was not taken apart: its tables are not known")
        return MappedSource((), None)
    datasets = {
        name: made
        for name in found.tables
        if (made := table(session, target, name, user, "jdbc query")) is not None
    }
    sources = {name: Source((made,)) for name, made in datasets.items()}
    return MappedSource(tuple(datasets.values()), result_columns(found, sources))


class _SameColumns(dict[str, Value]):
    """The result of `select * from one`: every name is a column of that table."""

    def __init__(self, source: Source) -> None:
        super().__init__()
        self.source = source

    def get(self, key: str, default: Any = None) -> Value:
        return Value({(self.source, (key,)): IDENTITY})


def result_columns(query: sql.SqlQuery, sources: Mapping[str, Source]) -> dict[str, Value] | None:
    """The columns of a query's result by name; None when their origins are not known for sure."""
    if query.whole:
        return _SameColumns(next(iter(sources.values()))) if sources else None
    if query.columns is None:
        return None
    found: dict[str, Value] = {}
    for name, made in query.columns.items():
        bits: Bits = {}
        for table_name, column, how in made.sources:
            source = sources.get(table_name)
            if source is None:
                return None
            add(bits, {(source, (column,)): _HOW[how]})
        # Spark asks by the name in the result's schema, which the database may fold.
        found[name] = found[name.lower()] = Value(bits)
    return found


def table(
    session: JvmSession,
    target: JdbcTarget,
    name: str,
    user: str | None,
    evidence: str = "jdbc options",
) -> Dataset | None:
    """One table behind a URL."""
    try:
        place = target.dataset(name, user=user)
    except NamingError as error:
        session.problem(str(error))
        return None
    return Dataset(
        *place,
        type="TABLE",
        sub_type=target.store,
        source=target.namespace,
        evidence=observed(evidence, name),
    )


def written(session: JvmSession, options: Mapping[str, str]) -> Dataset | None:
    """The table that a writer's options name."""
    given = {key.lower(): value for key, value in options.items()}
    target = _target(session, given)
    if target is None:
        return None
    return table(session, target, given.get("dbtable", ""), given.get("user"))


def _target(session: JvmSession, given: Mapping[str, str]) -> JdbcTarget | None:
    try:
        return parse_jdbc(given.get("url", ""))
    except NamingError as error:
        session.problem(str(error))
        return None


def _wrapped(name: Any) -> str:
    """The query in `(select ...) alias`, which `dbtable` may hold too."""
    text = str(name).strip()
    if not text.startswith("("):
        return ""
    end = text.rfind(")")
    return text[1:end].strip() if end > 0 else ""
