"""Statements that Spark refused to analyze: the operation and the target that they name.

A job has one name, whether its statement fails or not: what the analysis would have made of the
command is found from the parsed plan and from what its target is in the catalog.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.spark.jvm import attempt, hidden, kind
from headwater.spark.model import PlanLineage
from headwater.spark.plan import leaves, multi_insert
from headwater.spark.plan.ddl import operation_of
from headwater.spark.stores.catalog import SESSION, named

if TYPE_CHECKING:
    from headwater.lineage.model import Dataset
    from headwater.spark.driver.wrapped_methods import EntryPoint
    from headwater.spark.jvm import JvmSession

_INSERTS = {
    "LogicalRelation": "insert_into_hadoop_fs_relation_command",
    "HiveTableRelation": "insert_into_hive_table",
}
"""By the class of the target that is read: the command that inserts into it."""
_OPERATIONS = {
    "AppendData": "append",
    "OverwriteByExpression": "overwrite_by_expression",
    "OverwritePartitionsDynamic": "overwrite_partitions_dynamic",
    "MergeIntoTable": "merge_into_table",
    "UpdateTable": "update_table",
    "DeleteFromTable": "delete_from_table",
    "CreateTableAsSelect": "create_table_as_select",
    "ReplaceTableAsSelect": "replace_table_as_select",
    "CreateView": "create_view",
}
_AS_SQL = {
    "insert_into": "INSERT INTO {} VALUES (1)",
    "append": "INSERT INTO {} VALUES (1)",
    "overwrite": "INSERT OVERWRITE {} VALUES (1)",
    "overwrite_partitions": "INSERT OVERWRITE {} VALUES (1)",
    "create": "CREATE TABLE {} AS SELECT 1",
    "replace": "REPLACE TABLE {} AS SELECT 1",
    "create_or_replace": "REPLACE TABLE {} AS SELECT 1",
    "save_as_table": "CREATE TABLE {} AS SELECT 1",
    "merge": "MERGE INTO {} USING x ON true WHEN MATCHED THEN DELETE",
}
_OF_MODES = {
    ("insert_into", "Overwrite"): "overwrite",
    ("save_as_table", "Append"): "append",
    ("save_as_table", "Overwrite"): "overwrite",
}
"""The methods that write as these do in a writer's mode."""
_SAVED = {
    "append": "append",
    "overwrite_by_expression": "replace_table_as_select",
    "overwrite_partitions_dynamic": "replace_table_as_select",
}
"""What `saveAsTable` does where an INSERT would do this; elsewhere it creates the table."""
_WRAPPERS = ("SubqueryAlias", "Project", "Filter")


def depends_on_mode(entry: EntryPoint) -> bool:
    """Whether what a writer's method does depends on the mode of the writer."""
    return any(entry.operation == operation for operation, _ in _OF_MODES)


def mode_of(writer: Any) -> str:
    """The mode of a DataFrameWriter, `Append`; nothing where there is none."""
    java = getattr(writer, "_jwrite", None)
    # Spark 3.5 has it under another name.
    found = java and (hidden(java, "curmode") or hidden(java, "mode"))
    return str(found.toString()) if found else ""


def as_sql(entry: EntryPoint, mode: str = "") -> str:
    """A statement that writes as a writer's method does; it is only parsed."""
    done = _OF_MODES.get((entry.operation, mode), entry.operation)
    return _AS_SQL.get(done, "").format(entry.target) if entry.target else ""


def _done_by(method: str, operation: str, *, exists: bool) -> str:
    """What a method of a writer does, whose statement does `operation` to a table that exists or not."""
    if method == "overwrite_partitions":
        return "overwrite_partitions_dynamic"
    if method != "save_as_table":
        return operation
    done = _SAVED.get(operation, "create_table_as_select")
    return done if exists or done != "append" else "create_table_as_select"


def parsed(session: JvmSession, sql: str) -> Any:
    """The plan of a statement as it is written."""
    return session.spark._jsparkSession.sessionState().sqlParser().parsePlan(sql)  # noqa: SLF001


def read_refused(session: JvmSession, plan: Any, method: str = "") -> PlanLineage:
    """The operation and the output of a parsed plan; nothing when it is no command that is known.

    `method` is that of a writer which the plan stands for.
    """
    node = kind(plan)
    if node == "UnresolvedWith":
        return read_refused(session, plan.child())
    if node == "Union":
        children = plan.children()
        parts = [read_refused(session, children.apply(at)) for at in range(children.size())]
        return (
            multi_insert.together(parts) if all(part.operation for part in parts) else PlanLineage()
        )
    operation = _OPERATIONS.get(node) or operation_of(node)
    if not operation and node != "InsertIntoStatement":
        return PlanLineage()
    dataset, relation, table = _target(session, plan)
    if node == "InsertIntoStatement":
        dynamic = session.setting("spark.sql.sources.partitionOverwriteMode").upper() == "DYNAMIC"
        # A writer's `insertInto` asks whether the table has partitions; INSERT OVERWRITE does not.
        if method and dynamic and table is not None:
            dynamic = session.texts(table, "table.partitioning") != [[]]
        operation = _insert(plan, relation, dynamic=dynamic)
    operation = _done_by(method, operation, exists=table is not None)
    return PlanLineage(outputs=(dataset,) if dataset is not None else (), operation=operation)


def _insert(plan: Any, relation: str, *, dynamic: bool) -> str:
    if relation in _INSERTS:
        return _INSERTS[relation]
    if not plan.overwrite():
        return "append"
    return "overwrite_partitions_dynamic" if dynamic else "overwrite_by_expression"


def _target(session: JvmSession, plan: Any) -> tuple[Dataset | None, str, Any]:
    """The target as a dataset, the class of the relation that reads it, and that if it is there."""
    given = attempt(plan, "table", "targetTable", "name", "child")
    while given is not None and kind(given) in _WRAPPERS:
        given = given.child()
    parts = attempt(given, "multipartIdentifier", "nameParts")
    if parts is None:
        return None, "", None
    names = str(parts.mkString("\x01")).split("\x01")
    found = _existing(session, names)
    if found is not None:
        return found[0], kind(found[1]), found[1]
    catalog, identifier = _resolved(session, names)
    relation = "LogicalRelation" if catalog.name() == SESSION else "DataSourceV2Relation"
    return named(session, catalog, identifier), relation, None


def _existing(session: JvmSession, names: list[str]) -> tuple[Dataset, Any] | None:
    """A target that is there, and the relation that reads it."""
    quoted = ".".join("`" + name.replace("`", "``") + "`" for name in names)
    try:
        # Not `session.table`: Spark would report the failed analysis of a missing table to our
        # listener, and the call that the program is in meanwhile would be taken for failed.
        analyzer = session.spark._jsparkSession.sessionState().analyzer()  # noqa: SLF001
        plan = analyzer.execute(parsed(session, f"TABLE {quoted}"))
    except Exception:  # noqa: BLE001  (there is no such catalog)
        return None
    if not plan.resolved():
        return None
    datasets = [
        one for source in leaves.read_leaves(session, plan).values() for one in source.datasets
    ]
    return (datasets[0], plan.collectLeaves().apply(0)) if len(datasets) == 1 else None


def _resolved(session: JvmSession, names: list[str]) -> tuple[Any, list[str]]:
    """The catalog of a name, and what the name is in it."""
    manager = session.spark._jsparkSession.sessionState().catalogManager()  # noqa: SLF001
    if len(names) > 1 and (names[0] == SESSION or manager.isCatalogRegistered(names[0])):
        return manager.catalog(names[0]), names[1:]
    current = [str(part) for part in manager.currentNamespace()] if len(names) == 1 else []
    return manager.currentCatalog(), [*current, *names]
