"""Tables of Spark's own catalog: Hive's and those of a data source, as views and files."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.naming import DatasetName, NamingError, build
from headwater.spark.jvm import attempt, option
from headwater.spark.model import Catalog, Dataset, Evidence, Symlink
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from headwater.spark.jvm import World

LAYERS = ("delta", "hudi")
"""Formats of tables that lie above files of another."""

METASTORES = ("spark.hadoop.hive.metastore.uris", "hive.metastore.uris",
              "spark.hive.metastore.uris")  # fmt: skip


def metastore(world: World) -> str:
    """The address of the Hive metastore, or nothing when the catalog lives in memory."""
    if world.setting("spark.sql.catalogImplementation") != "hive":
        return ""
    for key in METASTORES:
        if found := world.setting(key):
            return found
    configuration = world.spark._jsc.hadoopConfiguration()  # noqa: SLF001
    return configuration.get("hive.metastore.uris") or ""


def hive_namespace(uris: str) -> str:
    """`thrift://a:9083,thrift://b:9083` as a namespace: the first names it."""
    try:
        first = uris.split(",", 1)[0]
        host, _, port = first.rpartition("://")[2].partition(":")
        return build("hive", host=host, port=port or "9083", database="-", table="-").namespace
    except NamingError:
        return ""


def read_table(world: World, table: Any, evidence: str) -> Dataset | None:
    """The dataset of a `CatalogTable`: where its files lie, and its name as a symlink."""
    identifier = table.identifier()
    database = option(identifier.database()) or "default"
    name = identifier.table()
    provider = option(table.provider()) or ""
    type_name = attempt(table.tableType(), "name") or ""
    located = option(table.storage().locationUri())
    if located is None:
        located = default_location(world, database, name)
    address = metastore(world)
    place = name_of(located if isinstance(located, str) else located.toString())
    if type_name == "VIEW":
        return _view(world, address, database, name, evidence)
    if place is None:
        world.problem(f"{database}.{name}: no location is known of this table")
        return None
    logical = logical_name(world, address, database, name)
    return Dataset(
        *place,
        type="TABLE",
        sub_type=type_name,
        symlinks=(Symlink(*logical),) if logical else (),
        catalog=session_catalog(world, address),
        storage_layer=provider.lower(),
        file_format="parquet" if provider.lower() in LAYERS else provider.lower(),
        evidence=(Evidence(evidence, f"{database}.{name}"),),
    )


def default_location(world: World, database: str, name: str) -> str:
    """Where Spark puts a table that says nothing about it: a database may lie anywhere."""
    try:
        identifier = world.jvm.org.apache.spark.sql.catalyst.TableIdentifier(
            name, world.jvm.scala.Option.apply(database)
        )
        session = world.spark._jsparkSession  # noqa: SLF001
        return str(session.sessionState().catalog().defaultTablePath(identifier).toString())
    except Exception:  # noqa: BLE001  (there may be no such database)
        return _below_warehouse(world, database, name)


def _below_warehouse(world: World, database: str, name: str) -> str:
    warehouse = world.setting("spark.sql.warehouse.dir").rstrip("/")
    folder = "" if database == "default" else f"/{database}.db"
    return f"{warehouse}{folder}/{name}"


def logical_name(world: World, address: str, database: str, name: str) -> DatasetName | None:
    """The name a person uses, in the metastore or below the warehouse's folder."""
    if address and (namespace := hive_namespace(address)):
        return DatasetName(namespace, f"{database}.{name}")
    warehouse = name_of(world.setting("spark.sql.warehouse.dir"))
    if warehouse is None:
        return None
    return DatasetName(_joined(warehouse), f"{database}.{name}")


def _joined(place: DatasetName) -> str:
    if place.namespace == "file":
        return f"file:{place.name}"
    return f"{place.namespace}/{place.name.strip('/')}".rstrip("/")


def session_catalog(world: World, address: str) -> Catalog:
    """Spark's own catalog."""
    warehouse = world.setting("spark.sql.warehouse.dir")
    kind = "hive" if address else "memory"
    return Catalog(kind if address else "spark", kind, "spark_catalog", address, warehouse)


def _view(world: World, address: str, database: str, name: str, evidence: str) -> Dataset | None:
    logical = logical_name(world, address, database, name)
    if logical is None:
        return None
    return Dataset(
        *logical,
        type="VIEW",
        catalog=session_catalog(world, address),
        evidence=(Evidence(evidence, f"{database}.{name}"),),
    )
