"""Iceberg: tables in every kind of catalog, their snapshots, branches and tags, and their commands."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec
import pyspark

from headwater.lineage.model import Catalog, Dataset, Symlink
from headwater.lineage.naming import (
    DatasetName,
    NamingError,
    hive_location,
    hive_namespace,
    parse_jdbc,
    redact,
)
from headwater.lineage.schema import iceberg_table
from headwater.spark.columns.source import MetadataSource, Source
from headwater.spark.columns.types import struct_schema
from headwater.spark.jvm import attempt, hidden
from headwater.spark.model import observed
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores.formats import TableFormat
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.spark.jvm import JvmSession
    from headwater.spark.stores.formats import Session

    Setting = Callable[[str], str]

_IMPLEMENTATIONS = (
    ("hadoop", "HadoopCatalog"),
    ("rest", "RESTCatalog"),
    ("jdbc", "JdbcCatalog"),
    ("hive", "HiveCatalog"),
    ("glue", "GlueCatalog"),
    ("nessie", "NessieCatalog"),
)
_CONVERTER = "org.apache.iceberg.spark.SparkSchemaUtil"
_NUMBER = re.compile(r"\d+")
_VERSION = re.compile(r"VERSION AS OF '?([^']+)'?")
_SELECTOR = re.compile(r"^(?:branch_(?P<branch>.+)|tag_(?P<tag>.+)|snapshot_id_(?P<id>\d+))$")
_ALTERS = (
    "AddPartitionField", "DropPartitionField", "ReplacePartitionField",
    "SetWriteDistributionAndOrdering", "SetIdentifierFields", "DropIdentifierFields",
    "CreateOrReplaceBranch", "CreateOrReplaceTag", "DropBranch", "DropTag",
)  # fmt: skip


class Iceberg(TableFormat):
    """Apache Iceberg."""

    name = "iceberg"
    classes = ("org.apache.iceberg.",)
    metadata_columns = frozenset(
        {
            "_file",
            "_pos",
            "_deleted",
            "_spec_id",
            "_partition",
            "_row_id",
            "_last_updated_sequence_number",
        }
    )
    metadata_tables = frozenset(
        {
            "entries",
            "files",
            "data_files",
            "delete_files",
            "history",
            "metadata_log_entries",
            "snapshots",
            "refs",
            "manifests",
            "partitions",
            "all_data_files",
            "all_delete_files",
            "all_files",
            "all_manifests",
            "all_entries",
            "position_deletes",
        }
    )
    version_options = ("versionasof", "snapshot-id", "branch", "tag")
    time_options = ("timestampasof", "as-of-timestamp")
    saves_by_name = True
    keeps_catalogs = True
    # Vendors derive their catalogs from Iceberg's, under class names of their own.
    any_catalog = True
    equivalents = {  # noqa: RUF012
        "CreateIcebergView": "CreateV2View",
        **dict.fromkeys(_ALTERS, "SetTableProperties"),
    }

    def table(
        self,
        session: JvmSession,
        table: Any,
        catalog: str,
        identifier: list[str],
        options: Mapping[str, str],
    ) -> Source | None:
        """The source behind a `SparkTable`."""
        held = table.table()
        # A table of metadata has the table that it is about.
        location, about = session.texts(held, "location", "table.location")
        place = name_of(location) if location else None
        if place is None:
            return None
        if about is not None:
            identifier = _about(identifier)
            version = self.version(table, identifier, options)
            return MetadataSource((self._dataset(session, place, catalog, identifier, version),))
        version = self.version(table, identifier, options)
        found = self._dataset(session, place, catalog, identifier, version)
        # What is read by snapshot, branch or tag may have a schema of its own.
        return Source.of(found if version else with_current_schema(session, found, held))

    def at_path(self, session: Session, path: str, evidence: str) -> Dataset | None:
        """The table at exactly this path."""
        place = name_of(path)
        return self._dataset(session, place, "", []) if place is not None else None

    def partition(self, session: JvmSession, partition: Any) -> Dataset | None:
        """The table of an input partition, which carries it to the executors."""
        table = hidden(partition, "tableBroadcast").value()
        place = name_of(table.location())
        catalog, *identifier = table.name().split(".")
        if attempt(table, "type") is not None:
            identifier = _about(identifier)
        return self._dataset(session, place, catalog, identifier) if place is not None else None

    def in_catalog(
        self,
        session: Session,
        catalog: str,
        identifier: list[str],
        place: DatasetName | None,
        version: str = "",
    ) -> Dataset | None:
        """The table at its location with its name as a symlink, or by that name alone."""
        if place is not None:
            return self._dataset(session, place, catalog, identifier, version)
        logical = self._logical(session, catalog, identifier)
        if logical is None:
            return None
        return self._dataset(session, logical, catalog, identifier, version, linked=False)

    def described(self, session: JvmSession, given: Dataset, table: Any) -> Dataset:
        """A dataset with the schema that a `SparkTable` has now."""
        return with_current_schema(session, given, table.table())

    def existing(self, session: JvmSession, catalog: Any, identifier: list[str]) -> Dataset | None:
        """The table that a catalog has now under a name, with its schema."""
        table = _loaded(session, catalog, identifier)
        place = name_of(table.location()) if table is not None else None
        if place is None:
            return None
        found = self._dataset(session, place, catalog.name(), identifier)
        return with_current_schema(session, found, table)

    def planned_location(
        self, session: JvmSession, catalog: Any, identifier: list[str]
    ) -> DatasetName | None:
        """Where a table that does not exist yet will lie, as far as its catalog can say."""
        kind, setting = _settings(session, catalog.name())
        if warehouse := setting("warehouse"):
            # Without a type and an implementation Iceberg's catalog is Hive's.
            if len(identifier) == 2 and (kind or setting("catalog-impl") or "hive") == "hive":
                return name_of(hive_location(warehouse, *identifier))
            return name_of("/".join([warehouse.rstrip("/"), *identifier]))
        return None

    def is_selector(self, part: str) -> bool:
        """Whether a part of a name is a branch, a tag or a snapshot."""
        return _SELECTOR.match(part) is not None

    def selected_version(self, identifier: list[str]) -> str:
        """The branch, tag or snapshot that follows the name of a table."""
        for part in identifier[1:]:
            if match := _SELECTOR.match(part):
                return match["branch"] or match["tag"] or match["id"]
        return ""

    def version(self, table: Any, identifier: list[str], options: Mapping[str, str]) -> str:
        """The snapshot that a query reads by id, time, branch or tag; empty for the newest."""
        travel = options.get("headwater.time-travel", "")
        if match := _VERSION.search(travel):
            return match[1]
        if travel:
            found = attempt(table, "snapshotId")
            return str(found) if found is not None else travel
        given = {key.lower(): value for key, value in options.items()}
        for key in (*self.version_options, *self.time_options):
            if found := given.get(key):
                return found
        if selected := self.selected_version(identifier):
            return selected
        branch = attempt(table, "branch")
        if isinstance(branch, str) and branch != "main":
            return branch
        # Spark 3.5 and 4.0 do not keep the version of a query, but the table does. Later ones keep it,
        # and their tables also hold the snapshot that a plain read happened to start from.
        snapshot = attempt(table, "snapshotId") if pyspark.__version__ < "4.1" else None
        return str(snapshot) if isinstance(snapshot, int) else ""

    def _dataset(
        self,
        session: Session,
        place: DatasetName,
        catalog: str,
        identifier: list[str],
        version: str = "",
        *,
        linked: bool = True,
    ) -> Dataset:
        logical = self._logical(session, catalog, identifier) if linked else None
        return Dataset(
            *place,
            type="TABLE",
            sub_type=self.name,
            symlinks=(Symlink(*logical),) if logical else (),
            catalog=_catalog(session, catalog) if catalog else None,
            storage_layer=self.name,
            version=version,
            evidence=observed("iceberg table", ".".join([catalog, *identifier]).strip(".")),
        )

    def _logical(self, session: Session, catalog: str, identifier: list[str]) -> DatasetName | None:
        """The name of a table in its catalog, in the namespace of that catalog's store."""
        names = [part for part in identifier if not self.is_selector(part)]
        return _logical(session, catalog, ".".join(names)) if catalog and names else None


FORMAT = Iceberg()


def _about(identifier: list[str]) -> list[str]:
    """The table in the name of its metadata: `db.orders.files`, or `path/orders#files`."""
    *before, last = identifier or [""]
    place, mark, _ = last.rpartition("#")
    return [*before, place] if mark else before


def with_current_schema(session: JvmSession, given: Dataset, table: Any) -> Dataset:
    """A dataset with the schema that its catalog has for this `Table`, and which one it is."""
    try:
        # Asked as one object: another program may alter the table between two calls.
        schema = table.schema()
        uuid, listed = session.texts(table, "uuid", "schemas.keySet")
        current = int(schema.schemaId())
        highest = max(int(number) for number in _NUMBER.findall(listed))
        shown = session.static(_CONVERTER, "convert", schema).json()
    except Exception:  # noqa: BLE001  (a table of another kind, such as one of metadata)
        return given
    return msgspec.structs.replace(
        given,
        schema=struct_schema(msgspec.json.decode(shown)),
        schema_source=iceberg_table(uuid, current, highest),
    )


def _loaded(session: JvmSession, catalog: Any, identifier: list[str]) -> Any:
    """The table that a catalog has now under a name, or None."""
    try:
        namespace = session.spark.sparkContext._gateway.new_array(  # type: ignore[union-attr]  # noqa: SLF001
            session.jvm.java.lang.String, len(identifier) - 1
        )
        for place, part in enumerate(identifier[:-1]):
            namespace[place] = part
        known = session.jvm.org.apache.spark.sql.connector.catalog.Identifier.of(
            namespace, identifier[-1]
        )
        return catalog.loadTable(known).table()
    except Exception:  # noqa: BLE001
        return None


def _settings(session: Session, catalog: str) -> tuple[str, Setting]:
    def setting(key: str) -> str:
        return session.setting(f"spark.sql.catalog.{catalog}.{key}")

    kind = setting("type")
    if not kind:
        implementation = setting("catalog-impl")
        kind = next((k for k, name in _IMPLEMENTATIONS if implementation.endswith(name)), "")
    return kind or ("hive" if setting("uri").startswith("thrift") else ""), setting


def _logical(session: Session, catalog: str, name: str) -> DatasetName | None:
    kind, setting = _settings(session, catalog)
    uri, warehouse = setting("uri"), setting("warehouse")
    if kind == "rest" and uri:
        return DatasetName(redact(uri).rstrip("/"), name)
    if kind in ("hive", ""):
        address = uri or catalogs.metastore(session)
        namespace = hive_namespace(address) if address else ""
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


def _glue(setting: Setting, name: str) -> DatasetName | None:
    """AWS's name needs an account and a region; without both there is no name to give."""
    region = setting("client.region") or setting("glue.region")
    account = setting("glue.id")
    if not region or not account:
        return None
    database, _, table = name.rpartition(".")
    return DatasetName(f"arn:aws:glue:{region}:{account}", f"table/{database}/{table}")


def _catalog(session: Session, name: str) -> Catalog:
    kind, setting = _settings(session, name)
    uri = setting("uri")
    if uri.startswith("jdbc:"):
        try:
            uri = parse_jdbc(uri).namespace
        except NamingError:
            uri = ""
    if kind == "hive" and not uri:
        uri = catalogs.metastore(session)
    return Catalog(
        "iceberg", kind or "custom", name, redact(uri), redact(setting("warehouse")), "spark"
    )
