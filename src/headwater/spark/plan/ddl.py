"""Commands that change a table as a whole: create, drop, truncate, alter, rename."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.model import Change, Dataset, LifecycleChange
from headwater.lineage.naming import DatasetName
from headwater.spark.columns.types import struct_schema
from headwater.spark.jvm import attempt, kind, option
from headwater.spark.plan import leaves
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import formats, relations
from headwater.spark.stores.catalog import (
    BY_NAME,
    at_location,
    described,
    identifier_of,
    loaded,
    looked_up,
    named,
    with_schema,
)

if TYPE_CHECKING:
    from headwater.spark.columns.source import Source
    from headwater.spark.jvm import JvmSession

_V2: dict[str, tuple[str, Change]] = {
    "DropTable": ("drop_table", "DROP"),
    "TruncateTable": ("truncate_table", "TRUNCATE"),
    "TruncatePartition": ("truncate_partition", "TRUNCATE"),
    "CreateTable": ("create_table", "CREATE"),
    "ReplaceTable": ("replace_table", "OVERWRITE"),
    "DropView": ("drop_view", "DROP"),
}
_V2_ALTER = (
    "AddColumns", "DropColumns", "RenameColumn", "AlterColumn", "AlterColumns", "ReplaceColumns",
    "SetTableProperties", "UnsetTableProperties", "SetTableLocation", "AddPartitions",
    "DropPartitions", "RenamePartitions", "AlterTableClusterBy", "AlterTableAddConstraint",
    "AlterTableDropConstraint",
)  # fmt: skip
_V1: dict[str, tuple[str, Change]] = {
    "DropTableCommand": ("drop_table", "DROP"),
    "TruncateTableCommand": ("truncate_table", "TRUNCATE"),
}


def read_change(session: JvmSession, plan: Any, node: str) -> tuple[str, Dataset | None] | None:
    """The operation and the dataset it changes, or None when the plan is no such command."""
    name = formats.equivalent(node)
    if name in _V2:
        operation, change = _V2[name]
        return operation, _changed(_v2(session, plan, change), change)
    if name in _V2_ALTER:
        return "alter_table", _changed(_v2(session, plan, "ALTER"), "ALTER")
    if name == "RenameTable":
        return "rename_table", _renamed_v2(session, plan)
    if name == "AlterTableRenameCommand":
        return "rename_table", _renamed_v1(session, plan)
    if name in ("CreateDataSourceTableCommand", "CreateTableCommand"):
        return "create_table", _changed(_created(session, plan.table()), "CREATE")
    if name in _V1:
        operation, change = _V1[name]
        return operation, _changed(_v1(session, plan, change), change)
    if name.startswith("AlterTable") and name.endswith("Command"):
        return "alter_table", _changed(_v1(session, plan, "ALTER"), "ALTER")
    return None


def operation_of(node: str) -> str:
    """The operation of a command that changes a table as a whole, before it is analyzed."""
    name = formats.equivalent(node)
    if name in _V2_ALTER:
        return "alter_table"
    return "rename_table" if name == "RenameTable" else _V2.get(name, ("", ""))[0]


def _changed(given: Dataset | None, change: Change) -> Dataset | None:
    return given and msgspec.structs.replace(given, change=LifecycleChange(change))


def _v2(session: JvmSession, plan: Any, change: Change) -> Dataset | None:
    child = attempt(plan, "child", "table", "name")
    if isinstance(child, str) or child is None:
        return None
    resolved = kind(child)
    if resolved == "ResolvedIdentifier":
        found = identifier_of(child.identifier())
        made = named(session, child.catalog(), found, gone=change == "DROP")
        return _with_columns(plan, made and at_location(plan, made))
    if resolved in ("ResolvedTable", "ResolvedPersistentView"):
        table = attempt(child, "table")
        if table is not None:
            source = relations.table(
                session, table, child.catalog(), identifier_of(child.identifier()), {}
            )
            known = source.datasets[0] if source is not None and source.datasets else None
            if known is None or change != "ALTER":
                return known
            # The plan has the table as it was before.
            return with_schema(session, known, loaded(child.catalog(), child.identifier()))
    if resolved in ("ResolvedV1TableIdentifier", "ResolvedV1Identifier"):
        return None
    found_source: list[Source] = list(leaves.read_leaves(session, child).values())
    datasets = [dataset for source in found_source for dataset in source.datasets]
    return datasets[0] if datasets else None


def _with_columns(plan: Any, made: Dataset | None) -> Dataset | None:
    schema = attempt(plan, "tableSchema")
    if made is None or schema is None or made.schema_source is not None:
        return made
    return msgspec.structs.replace(made, schema=struct_schema(msgspec.json.decode(schema.json())))


def _created(session: JvmSession, table: Any) -> Dataset | None:
    identifier = table.identifier()
    database = option(identifier.database()) or "default"
    made = looked_up(session, database, identifier.table())
    made = made or catalogs.read_table(session, table, "catalog table")
    if made is None:
        return None
    schema = struct_schema(msgspec.json.decode(table.schema().json()))
    return msgspec.structs.replace(made, schema=schema)


def _v1(session: JvmSession, plan: Any, change: Change) -> Dataset | None:
    identifier = attempt(plan, "tableName", "table", "tableIdent", "tableIdentifier", "tableId")
    if identifier is None or kind(identifier) != "TableIdentifier":
        return None
    database = option(identifier.database()) or "default"
    table = None if change == "DROP" else described(session, database, identifier.table())
    found = None if table is None else catalogs.read_table(session, table, "catalog table")
    if found is not None:
        return with_schema(session, found, table) if change == "ALTER" else found
    logical = _logical(session, database, identifier.table())
    return Dataset(*logical, type="TABLE") if logical else None


def _renamed_v1(session: JvmSession, plan: Any) -> Dataset | None:
    old, new = plan.oldName(), plan.newName()
    database = option(old.database()) or "default"
    made = looked_up(session, option(new.database()) or database, new.table())
    if made is None:
        logical = _logical(session, option(new.database()) or database, new.table())
        made = Dataset(*logical, type="TABLE", placed=False) if logical else None
    before = _logical(session, database, old.table())
    return made and msgspec.structs.replace(made, change=LifecycleChange("RENAME", before))


def _renamed_v2(session: JvmSession, plan: Any) -> Dataset | None:
    child = plan.child()
    catalog, old = child.catalog(), identifier_of(child.identifier())
    # The new name may or may not repeat the catalog.
    new = [str(part) for part in str(plan.newName().mkString("\x01")).split("\x01")]
    if len(new) > len(old) and new[0] == catalog.name():
        new = new[1:]
    new = new if len(new) > 1 else [*old[:-1], *new]
    made = named(session, catalog, new)
    if made is not None and any(one.source == BY_NAME for one in made.evidence):
        # Not renamed yet: it may go on to lie where it does.
        made = msgspec.structs.replace(made, placed=False)
    before = named(session, catalog, old, gone=True)
    previous = DatasetName(*before.id) if before else None
    return made and msgspec.structs.replace(made, change=LifecycleChange("RENAME", previous))


def _logical(session: JvmSession, database: str, name: str) -> DatasetName | None:
    return catalogs.logical_name(session, catalogs.metastore(session), database, name)
