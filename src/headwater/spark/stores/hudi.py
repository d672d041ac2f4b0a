"""Hudi: its tables and their instants, its metadata columns, and its commands."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.columns.source import MappedSource, MetadataSource, Source
from headwater.spark.columns.value import Value
from headwater.spark.jvm import attempt, kind, option
from headwater.spark.plan.writes import (
    OVERWRITE_MODE,
    Write,
    changed,
    fields,
    is_dynamic,
    row_level,
)
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import relations
from headwater.spark.stores.formats import TableFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.model import Dataset
    from headwater.spark.jvm import JvmSession

_INSTANT = "as.of.instant"
_OPERATION = "hoodie.datasource.write.operation"
_ABOUT = ("TimelineRelation", "FileSystemRelation")
"""What `hudi_query_timeline` and `hudi_filesystem_view` read."""


def _insert(session: JvmSession, plan: Any) -> Write:
    relation = plan.logicalRelation()
    source = relations.relation(session, relation.relation(), option(relation.catalogTable()))
    outputs = source.datasets if source is not None else ()
    if plan.overwrite():
        (named,) = session.texts(plan, "partitionSpec.size")
        dynamic = is_dynamic({}, session.setting(OVERWRITE_MODE))
        partial = named not in (None, "0") or dynamic
        outputs = changed(outputs, "OVERWRITE", partial=partial)
    names = tuple(item["name"] for item in fields(relation))
    return Write("insert_into_hudi_table", plan.query(), outputs, names)


def _merge(session: JvmSession, plan: Any) -> Write:
    inner = plan.mergeInto()
    return row_level(session, inner, "MERGE", inner.targetTable())


def _update(session: JvmSession, plan: Any) -> Write:
    inner = plan.ut()
    return row_level(session, inner, "UPDATE", inner.table())


def _delete(session: JvmSession, plan: Any) -> Write:
    inner = attempt(plan, "dft")
    if inner is not None:
        return row_level(session, inner, "DELETE", inner.table())
    query = plan.query()
    return row_level(session, query, "DELETE", query)


class Hudi(TableFormat):
    """Apache Hudi."""

    name = "hudi"
    classes = ("org.apache.hudi.", "org.apache.spark.sql.hudi.")
    data_files = "parquet"
    metadata_columns = frozenset(
        {
            "_hoodie_commit_time",
            "_hoodie_commit_seqno",
            "_hoodie_record_key",
            "_hoodie_partition_path",
            "_hoodie_file_name",
            "_hoodie_operation",
            "_hoodie_is_deleted",
        }
    )
    log_folders = (".hoodie",)
    # Some of its scans do not count their rows, and not every one is of the table itself.
    counts_rows_of_scans = False
    version_options = (_INSTANT,)
    commands = {  # noqa: RUF012
        "InsertIntoHoodieTableCommand": _insert,
        "MergeIntoHoodieTableCommand": _merge,
        "UpdateHoodieTableCommand": _update,
        "DeleteHoodieTableCommand": _delete,
    }

    def owns(self, class_name: str) -> bool:
        """Also its classes inside Spark's packages, such as `HoodieFileGroupReaderBasedFileFormat`."""
        return super().owns(class_name) or "Hoodie" in class_name

    def equivalent(self, node: str) -> str:
        """Its commands are called as Spark's, and hold the same."""
        if node == "CreateHoodieTableAsSelectCommand":
            return "CreateDataSourceTableAsSelectCommand"
        return node if node in self.commands else node.replace("HoodieTable", "Table")

    def table(
        self,
        session: JvmSession,
        table: Any,
        catalog: str,
        identifier: list[str],
        options: Mapping[str, str],
    ) -> Source | None:
        """The source behind a `HoodieInternalV2Table`."""
        held = attempt(table, "v1Table", "catalogTable")
        return Source.of(catalogs.read_table(session, held, "catalog table"))

    def relation(self, session: JvmSession, relation: Any, catalog_table: Any) -> Source | None:
        """The source behind a relation of Hudi's: a table, at an instant, or its changes."""
        found: Dataset | None = None
        if catalog_table is not None:
            found = catalogs.read_table(session, catalog_table, "catalog table")
        if found is None:
            path = _path(relation)
            found = self.at_path(session, path, "hudi table") if path else None
        if found is None:
            return None
        if kind(relation) in _ABOUT:
            return MetadataSource((found,))
        options = session.mapping(attempt(relation, "options", "optParams"))
        found = msgspec.structs.replace(found, version=options.get(_INSTANT, ""))
        location = attempt(relation, "location")
        if "CDC" in kind(relation if location is None else location):
            # Rows before and after a change, each whole and as text.
            return MappedSource((found,), {"op": Value(), "ts_ms": Value()})
        return Source((found,))

    def sink(self, session: JvmSession, sink: Any, options: Mapping[str, str]) -> Dataset | None:
        """The table that a `HoodieStreamingSink` writes to."""
        path = options.get("path", "")
        return self.at_path(session, path, "streaming sink") if path else None

    def save_mode(self, options: Mapping[str, str]) -> str:
        """By the option for the write operation: an overwrite, or rows that only name those to delete."""
        operation = options.get(_OPERATION, "")
        if operation == "delete":
            return "DELETE"
        return "OVERWRITE" if operation.startswith("insert_overwrite") else ""

    def overwrites_part(self, options: Mapping[str, str], *, dynamic: bool) -> bool:
        """By the option for the write operation; the save mode alone replaces the table."""
        return options.get(_OPERATION, "") == "insert_overwrite"


FORMAT = Hudi()


def _path(relation: Any) -> str:
    location = attempt(relation, "location")
    if location is not None:
        first = option(location.rootPaths().headOption())
        return first.toString() if first is not None else ""
    client = attempt(relation, "metaClient")
    path = attempt(client, "getBasePath") if client is not None else None
    return str(path.toString()) if path is not None else ""
