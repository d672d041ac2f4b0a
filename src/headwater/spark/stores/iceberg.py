"""Iceberg tables in every kind of catalog: where they lie, what they are called, which snapshot."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pyspark

from headwater.lineage.naming import DatasetName, NamingError, parse_jdbc, redact
from headwater.spark.jvm import attempt, class_name, option
from headwater.spark.model import Catalog, Dataset, Evidence, Symlink
from headwater.spark.stores import tables
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.spark.jvm import World

_IMPLEMENTATIONS = (
    ("hadoop", "HadoopCatalog"),
    ("rest", "RESTCatalog"),
    ("jdbc", "JdbcCatalog"),
    ("hive", "HiveCatalog"),
    ("glue", "GlueCatalog"),
    ("nessie", "NessieCatalog"),
)
_VERSION = re.compile(r"VERSION AS OF '?([^']+)'?")
_CHOOSING = ("versionasof", "snapshot-id", "branch", "tag", "timestampasof", "as-of-timestamp")
_SELECTORS = re.compile(r"^(?:branch_(?P<branch>.+)|tag_(?P<tag>.+)|snapshot_id_(?P<id>\d+))$")


def is_iceberg(name: str) -> bool:
    """Whether a class belongs to Iceberg."""
    return name.startswith("org.apache.iceberg.")


def read(
    world: World, table: Any, catalog: str, identifier: list[str], options: Mapping[str, str]
) -> Dataset | None:
    """The dataset of a `SparkTable`."""
    inner = table.table()
    place = name_of(inner.location())
    if place is None:
        return None
    return dataset(world, place, catalog, identifier, version(table, identifier, options))


def dataset(
    world: World, place: DatasetName, catalog: str, identifier: list[str], asked: str = ""
) -> Dataset:
    """An Iceberg table by its location, with its name in the catalog as a symlink."""
    names = [part for part in identifier if not _SELECTORS.match(part)]
    kind, settings = _settings(world, catalog)
    logical = _logical(world, kind, settings, ".".join(names)) if catalog and names else None
    return Dataset(
        *place,
        type="TABLE",
        sub_type="iceberg",
        symlinks=(Symlink(*logical),) if logical else (),
        catalog=_catalog(world, kind, catalog, settings) if catalog else None,
        storage_layer="iceberg",
        version=asked,
        evidence=(Evidence("iceberg table", ".".join([catalog, *identifier]).strip(".")),),
    )


def planned_location(world: World, catalog: Any, identifier: list[str]) -> DatasetName | None:
    """Where a table that is not there yet will lie, as far as its catalog tells."""
    name = catalog.name()
    _, settings = _settings(world, name)
    loaded = _loaded(world, catalog, identifier)
    if loaded is not None:
        return name_of(loaded)
    if warehouse := settings("warehouse"):
        return name_of("/".join([warehouse.rstrip("/"), *identifier]))
    return None


def _loaded(world: World, catalog: Any, identifier: list[str]) -> str | None:
    try:
        namespace = world.spark.sparkContext._gateway.new_array(  # type: ignore[union-attr]  # noqa: SLF001
            world.jvm.java.lang.String, len(identifier) - 1
        )
        for place, part in enumerate(identifier[:-1]):
            namespace[place] = part
        known = world.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(
            namespace, identifier[-1]
        )
        located: str = catalog.loadTable(known).table().location()
    except Exception:  # noqa: BLE001
        return None
    return located


def version(table: Any, identifier: list[str], options: Mapping[str, str]) -> str:
    """The snapshot that was asked for, by id, branch or tag; nothing when it is the newest."""
    told = options.get("headwater.time-travel", "")
    if match := _VERSION.search(told):
        return match[1]
    if told:
        found = attempt(table, "snapshotId")
        return str(found) if found is not None else told
    given = {key.lower(): value for key, value in options.items()}
    for key in _CHOOSING:
        if found := given.get(key):
            return found
    for part in identifier[1:]:
        if match := _SELECTORS.match(part):
            return match["branch"] or match["tag"] or match["id"]
    branch = attempt(table, "branch")
    if isinstance(branch, str) and branch != "main":
        return branch
    # Spark 3.5 and 4.0 keep no word of what was asked for; the table knows. Later ones do, and
    # their tables also hold the snapshot that a plain read happened to begin with.
    snapshot = attempt(table, "snapshotId") if pyspark.__version__ < "4.1" else None
    return str(snapshot) if isinstance(snapshot, int) else ""


def _settings(world: World, catalog: str) -> tuple[str, Any]:
    def setting(key: str) -> str:
        return world.setting(f"spark.sql.catalog.{catalog}.{key}")

    kind = setting("type")
    if not kind:
        implementation = setting("catalog-impl")
        kind = next((k for k, name in _IMPLEMENTATIONS if implementation.endswith(name)), "")
    return kind or ("hive" if setting("uri").startswith("thrift") else ""), setting


def _logical(world: World, kind: str, setting: Any, name: str) -> DatasetName | None:
    uri, warehouse = setting("uri"), setting("warehouse")
    if kind == "rest" and uri:
        return DatasetName(redact(uri).rstrip("/"), name)
    if kind in ("hive", ""):
        address = uri or tables.metastore(world)
        namespace = tables.hive_namespace(address) if address else ""
        return DatasetName(namespace, name) if namespace else None
    if kind == "glue":
        return _glue(setting, name)
    if kind == "jdbc" and uri:
        try:
            target = parse_jdbc(uri)
        except NamingError:
            return None
        database = target.parts.get("database", "")
        return DatasetName(f"{target.namespace}/{database}".rstrip("/"), name)
    if warehouse and (place := name_of(warehouse)) is not None:
        path = f"{place.namespace}/{place.name.strip('/')}".rstrip("/")
        return DatasetName(f"file:{place.name}" if place.namespace == "file" else path, name)
    return None


def _glue(setting: Any, name: str) -> DatasetName | None:
    """AWS's name needs an account and a region; without both there is no name to give."""
    region = setting("client.region") or setting("glue.region")
    account = setting("glue.id")
    if not region or not account:
        return None
    database, _, table = name.rpartition(".")
    return DatasetName(f"arn:aws:glue:{region}:{account}", f"table/{database}/{table}")


def _catalog(world: World, kind: str, name: str, setting: Any) -> Catalog:
    uri = setting("uri")
    if uri.startswith("jdbc:"):
        try:
            uri = parse_jdbc(uri).namespace
        except NamingError:
            uri = ""
    if kind == "hive" and not uri:
        uri = tables.metastore(world)
    return Catalog("iceberg", kind or "custom", name, redact(uri), redact(setting("warehouse")))


def identifier_of(given: Any) -> list[str]:
    """The parts of an `Identifier`, or of an option that holds one."""
    held = option(given) if class_name(given).startswith("scala.") else given
    if held is None:
        return []
    return [*(str(part) for part in held.namespace()), str(held.name())]
