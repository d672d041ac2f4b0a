"""JDBC: tables by name, and queries taken apart with sqlglot where it is installed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.naming import JdbcTarget, NamingError, parse_jdbc
from headwater.spark.model import Dataset, Evidence
from headwater.spark.sources import MappedSource, Source
from headwater.spark.stores import queries

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.spark.jvm import World


def read(world: World, options: Mapping[str, str]) -> Source | None:
    """What a reader's options name: a table, or the tables behind a query."""
    given = {key.lower(): value for key, value in options.items()}
    target = _target(world, given)
    if target is None:
        return None
    query = given.get("query") or _wrapped(given.get("dbtable", ""))
    user = given.get("user")
    if not query:
        made = table(world, target, given.get("dbtable", ""), user)
        return Source((made,)) if made is not None else None
    found = queries.take_apart(query, target.store)
    if found is None:
        world.problem("a JDBC query was not taken apart: its tables are not known")
        return MappedSource((), None)
    datasets = {
        name: made
        for name in found.tables
        if (made := table(world, target, name, user, "jdbc query")) is not None
    }
    sources = {name: Source((made,)) for name, made in datasets.items()}
    return MappedSource(tuple(datasets.values()), found.columns(sources))


def table(
    world: World, target: JdbcTarget, name: str, user: str | None, evidence: str = "jdbc options"
) -> Dataset | None:
    """One table behind a URL."""
    try:
        place = target.dataset(name, user=user)
    except NamingError as error:
        world.problem(str(error))
        return None
    return Dataset(
        *place,
        type="TABLE",
        sub_type=target.store,
        source=target.namespace,
        evidence=(Evidence(evidence, name),),
    )


def written(world: World, options: Mapping[str, str]) -> Dataset | None:
    """The table that a writer's options name."""
    given = {key.lower(): value for key, value in options.items()}
    target = _target(world, given)
    if target is None:
        return None
    return table(world, target, given.get("dbtable", ""), given.get("user"))


def _target(world: World, given: Mapping[str, str]) -> JdbcTarget | None:
    try:
        return parse_jdbc(given.get("url", ""))
    except NamingError as error:
        world.problem(str(error))
        return None


def _wrapped(name: Any) -> str:
    """The query in `(select ...) alias`, which `dbtable` may hold too."""
    text = str(name).strip()
    if not text.startswith("("):
        return ""
    end = text.rfind(")")
    return text[1:end].strip() if end > 0 else ""
