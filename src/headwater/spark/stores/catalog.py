"""Tables and views in catalogs: as a catalog describes them, or by catalog and name alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.model import Catalog, Dataset, Symlink
from headwater.lineage.naming import DatasetName, hive_location, hive_namespace
from headwater.spark.columns.types import struct_schema
from headwater.spark.jvm import attempt, class_name, option
from headwater.spark.model import observed
from headwater.spark.stores import files, formats
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from headwater.lineage.model import DatasetType
    from headwater.spark.jvm import JvmSession
    from headwater.spark.stores.formats import Session

SESSION = "spark_catalog"

BY_NAME = "catalog name"
"""The evidence of a table that the catalog does not know: it would lie where new ones do."""

_PARTS = re.compile(r"`((?:[^`]|``)+)`")
DESCRIBED = ("identifier.quotedString", "provider", "tableType.name", "storage.locationUri")
"""What `catalog_table` is to know of a `CatalogTable`."""
METASTORES = ("spark.hadoop.hive.metastore.uris", "hive.metastore.uris",
              "spark.hive.metastore.uris")  # fmt: skip


def metastore(session: Session) -> str:
    """The address of the Hive metastore, or nothing when the catalog lives in memory."""
    if session.setting("spark.sql.catalogImplementation") != "hive":
        return ""
    for key in METASTORES:
        if found := session.setting(key):
            return found
    return session.hadoop_setting("hive.metastore.uris")


def read_table(session: JvmSession, table: Any, evidence: str) -> Dataset | None:
    """The dataset of a `CatalogTable`: where its files lie, and its name as a symlink."""
    return catalog_table(session, *session.texts(table, *DESCRIBED), evidence=evidence)


def catalog_table(
    session: JvmSession,
    quoted: str,
    provider: str | None,
    type_name: str | None,
    located: str | None,
    *,
    evidence: str,
) -> Dataset | None:
    """The dataset of a table as Spark's own catalog describes it."""
    parts = [part.replace("``", "`") for part in _PARTS.findall(quoted)]
    # A table that a writer makes is called as the program calls it.
    database, name = parts[-2] if len(parts) > 1 else session.current_database, parts[-1]
    if located is None:
        located = default_location(session, database, name)
    address = metastore(session)
    place = name_of(located)
    if type_name == "VIEW":
        return _view(session, address, database, name, evidence)
    if place is None:
        session.problem(f"{database}.{name}: no location is known of this table")
        return None
    return session_table(
        session, place, [database, name], provider or "", type_name or "", evidence
    )


def session_table(
    session: Session,
    place: DatasetName,
    identifier: list[str],
    provider: str,
    type_name: str,
    evidence: str,
) -> Dataset:
    """A table of Spark's own catalog at its location, with its name as a symlink."""
    database, name = identifier
    address = metastore(session)
    logical = logical_name(session, address, database, name)
    table_format = formats.by_name(provider.lower())
    return Dataset(
        *place,
        type="TABLE",
        sub_type=type_name,
        symlinks=(Symlink(*logical),) if logical else (),
        catalog=session_catalog(session, address),
        storage_layer=provider.lower(),
        file_format=table_format.data_files if table_format else provider.lower(),
        evidence=observed(evidence, f"{database}.{name}"),
    )


def default_location(session: JvmSession, database: str, name: str) -> str:
    """Where Spark puts a table that has no location of its own, below its database's location."""
    try:
        return session.default_location(_quoted(database, name))
    except Exception:  # noqa: BLE001  (there may be no such database)
        return _below_warehouse(session, database, name)


def _quoted(database: str, name: str) -> str:
    return ".".join("`" + part.replace("`", "``") + "`" for part in (database, name))


def _below_warehouse(session: JvmSession, database: str, name: str) -> str:
    return hive_location(session.setting("spark.sql.warehouse.dir"), database, name)


def logical_name(session: Session, address: str, database: str, name: str) -> DatasetName | None:
    """The name a person uses, in the metastore or below the warehouse's folder."""
    if address and (namespace := hive_namespace(address)):
        return DatasetName(namespace, f"{database}.{name}")
    warehouse = name_of(session.setting("spark.sql.warehouse.dir"))
    if warehouse is None:
        return None
    return DatasetName(_joined(warehouse), f"{database}.{name}")


def _joined(place: DatasetName) -> str:
    if place.namespace == "file":
        return f"file:{place.name}"
    return f"{place.namespace}/{place.name.strip('/')}".rstrip("/")


def session_catalog(session: Session, address: str) -> Catalog:
    """Spark's own catalog."""
    warehouse = session.setting("spark.sql.warehouse.dir")
    kind = "hive" if address else "memory"
    return Catalog(kind if address else "spark", kind, SESSION, address, warehouse, "spark")


def _view(
    session: JvmSession, address: str, database: str, name: str, evidence: str
) -> Dataset | None:
    logical = logical_name(session, address, database, name)
    if logical is None:
        return None
    return Dataset(
        *logical,
        type="VIEW",
        catalog=session_catalog(session, address),
        evidence=observed(evidence, f"{database}.{name}"),
    )


def named(
    session: JvmSession, catalog: Any, identifier: list[str], *, kind: DatasetType = "TABLE",
    gone: bool = False,
) -> Dataset | None:  # fmt: skip
    """The dataset of a table in a catalog: by its location where that is known, else by its name."""
    where = catalog.name()
    table_format = formats.of_catalog(class_name(catalog), session=where == SESSION)
    if where == SESSION and table_format is None:
        return _session(session, identifier, kind, gone)
    found: Dataset | None = None
    if table_format is not None:
        if not gone and kind != "VIEW":
            if (known := table_format.existing(session, catalog, identifier)) is not None:
                return known
            place = table_format.planned_location(session, catalog, identifier)
            if place is not None:
                return table_format.in_catalog(session, where, identifier, place)
        found = table_format.in_catalog(session, where, identifier, None)
    if found is None:
        session.problem(
            f"{where}.{'.'.join(identifier)}: neither its place nor its catalog is known"
        )
        return None
    return msgspec.structs.replace(found, type=kind, placed=gone or kind == "VIEW")


def _session(
    session: JvmSession, identifier: list[str], kind: DatasetType, gone: bool
) -> Dataset | None:
    database = identifier[-2] if len(identifier) > 1 else "default"
    name = identifier[-1]
    if name.startswith("/") or "://" in name:
        # A table by its path: delta.`/lake/orders`.
        return files.one(name, database, "path as a name")
    if not gone and kind == "TABLE" and (found := looked_up(session, database, name)) is not None:
        return found
    address = metastore(session)
    logical = logical_name(session, address, database, name)
    if logical is None:
        return None
    place = None if gone or kind == "VIEW" else name_of(default_location(session, database, name))
    evidence = observed(BY_NAME, f"{database}.{name}")
    catalog = session_catalog(session, address)
    if place is None:
        return Dataset(*logical, type=kind, catalog=catalog, evidence=evidence)
    return Dataset(
        *place, type="TABLE", symlinks=(Symlink(*logical),), catalog=catalog, evidence=evidence
    )


def looked_up(session: JvmSession, database: str, name: str) -> Dataset | None:
    """A table as Spark's own catalog describes it now."""
    table = described(session, database, name)
    return None if table is None else read_table(session, table, "catalog table")


def described(session: JvmSession, database: str, name: str) -> Any:
    """The `CatalogTable` that Spark's own catalog has now under a name, or None."""
    try:
        state = session.spark._jsparkSession.sessionState()  # noqa: SLF001
        # Parsed: a class of the JVM is found by a call for each part of its name.
        identifier = state.sqlParser().parseTableIdentifier(_quoted(database, name))
        return state.catalog().getTableMetadata(identifier)
    except Exception:  # noqa: BLE001
        return None


def with_schema(session: JvmSession, given: Dataset, table: Any) -> Dataset:
    """A dataset with the columns that a table has, as its catalog describes it."""
    if table is None:
        return given
    table_format = formats.owner(class_name(table))
    found = table_format.described(session, given, table) if table_format is not None else given
    schema = attempt(table, "schema") if found is given else None
    if schema is None:
        return found
    return msgspec.structs.replace(given, schema=struct_schema(msgspec.json.decode(schema.json())))


def loaded(catalog: Any, identifier: Any) -> Any:
    """The table that a catalog of the second API has now under an `Identifier`, or None."""
    try:
        return catalog.loadTable(identifier)
    except Exception:  # noqa: BLE001
        return None


def at_location(plan: Any, given: Dataset) -> Dataset:
    """A new table at the location that the statement gives, if it gives one."""
    spec = attempt(plan, "tableSpec")
    location = option(attempt(spec, "location")) if spec is not None else None
    # A relative location lies below the warehouse, where the catalog puts it.
    if location is None or not (location[:1] == "/" or ":" in location):
        return given
    place = name_of(str(location))
    if place is None:
        return given
    return msgspec.structs.replace(given, namespace=place.namespace, name=place.name, placed=True)


def identifier_of(given: Any) -> list[str]:
    """The parts of an `Identifier`, or of an option that holds one."""
    held = option(given) if class_name(given).startswith("scala.") else given
    if held is None:
        return []
    return [*(str(part) for part in held.namespace()), str(held.name())]
