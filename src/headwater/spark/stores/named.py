"""Tables known by catalog and name alone: not there yet, or not there any more."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.jvm import attempt, class_name, option
from headwater.spark.model import Dataset, DatasetType, Evidence, Symlink
from headwater.spark.stores import files, iceberg, tables
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from headwater.spark.jvm import World

BY_NAME = "catalog name"
"""The evidence of a table that the catalog does not know: it would lie where new ones do."""


def named(
    world: World, catalog: Any, identifier: list[str], *, kind: DatasetType = "TABLE",
    gone: bool = False,
) -> Dataset | None:  # fmt: skip
    """The dataset of a table in a catalog: where it lies if that can be told, else by its name."""
    where = catalog.name()
    if where == "spark_catalog" and not iceberg.is_iceberg(class_name(catalog)):
        return _session(world, identifier, kind, gone)
    place = None if gone or kind == "VIEW" else iceberg.planned_location(world, catalog, identifier)
    if place is not None:
        return iceberg.dataset(world, place, where, identifier)
    found = iceberg.dataset(world, ("", ""), where, identifier)  # type: ignore[arg-type]
    if not found.symlinks:
        world.problem(f"{where}.{'.'.join(identifier)}: neither its place nor its catalog is known")
        return None
    link = found.symlinks[0]
    return msgspec.structs.replace(
        found, namespace=link.namespace, name=link.name, type=kind, symlinks=(),
        placed=gone or kind == "VIEW",
    )  # fmt: skip


def _session(world: World, identifier: list[str], kind: DatasetType, gone: bool) -> Dataset | None:
    database = identifier[-2] if len(identifier) > 1 else "default"
    name = identifier[-1]
    if name.startswith("/") or "://" in name:
        # A table by its path: delta.`/lake/orders`.
        return files.one(name, database, "path as a name")
    if not gone and kind == "TABLE" and (found := looked_up(world, database, name)) is not None:
        return found
    address = tables.metastore(world)
    logical = tables.logical_name(world, address, database, name)
    if logical is None:
        return None
    place = (
        None if gone or kind == "VIEW" else name_of(tables.default_location(world, database, name))
    )
    evidence = (Evidence(BY_NAME, f"{database}.{name}"),)
    catalog = tables.session_catalog(world, address)
    if place is None:
        return Dataset(*logical, type=kind, catalog=catalog, evidence=evidence)
    return Dataset(*place, symlinks=(Symlink(*logical),), catalog=catalog, evidence=evidence)


def looked_up(world: World, database: str, name: str) -> Dataset | None:
    """A table as Spark's own catalog describes it now."""
    try:
        options = world.jvm.scala.Option
        identifier = world.jvm.org.apache.spark.sql.catalyst.TableIdentifier(
            name, options.apply(database)
        )
        session = world.spark._jsparkSession  # noqa: SLF001
        table = session.sessionState().catalog().getTableMetadata(identifier)
    except Exception:  # noqa: BLE001
        return None
    return tables.read_table(world, table, "catalog table")


def at_location(plan: Any, given: Dataset) -> Dataset:
    """A new table where the statement itself says that it is to lie."""
    spec = attempt(plan, "tableSpec")
    told = option(attempt(spec, "location")) if spec is not None else None
    place = name_of(str(told)) if told is not None and (told[:1] == "/" or ":" in told) else None
    if place is None:
        return given
    return msgspec.structs.replace(given, namespace=place.namespace, name=place.name, placed=True)
