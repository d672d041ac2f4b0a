# ruff: noqa: ARG001  (rules share one shape, whether or not they need all of it)
"""Commands that write: where to, with which columns, and from which query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.spark import leaves
from headwater.spark.jvm import attempt, class_name, kind, option
from headwater.spark.model import Change, Dataset, LifecycleChange
from headwater.spark.stores import delta, files, jdbc, kafka, relations, tables
from headwater.spark.stores.iceberg import identifier_of
from headwater.spark.stores.named import at_location, named

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.jvm import World

    Reader = Callable[[World, Any], "Write"]


class Write(NamedTuple):
    """A command taken apart: its query is read on, its outputs are known.

    `names` are the target's columns where they may differ from the query's. `row_level` is MERGE,
    UPDATE or DELETE. `options` belong to a Kafka writer, whose topic may be a column. A command that
    has no columns of its own names the `target` whose columns it writes, and one that keeps the plans
    it reads to itself names these as `parts`, the target first. `added` are columns that come besides
    those of the query: rules give them the numbers -1, -2 and so on, or nobody knows what they are of.
    """

    operation: str
    query: Any = None
    outputs: tuple[Dataset, ...] = ()
    names: tuple[str, ...] = ()
    row_level: str = ""
    options: dict[str, str] | None = None
    target: Any = None
    parts: tuple[Any, ...] = ()
    added: tuple[dict[str, Any], ...] = ()


READERS: dict[str, Reader] = {}
OPERATIONS = {
    "MERGE": "merge_into_table",
    "UPDATE": "update_table",
    "DELETE": "delete_from_table",
}


def command(*kinds: str) -> Callable[[Reader], Reader]:
    """Register how commands of these classes are read."""

    def register(function: Reader) -> Reader:
        READERS.update(dict.fromkeys(kinds, function))
        return function

    return register


def read_write(world: World, plan: Any) -> Write | None:
    """The command at the top of a plan, or None when it is a query that writes nothing."""
    reader = READERS.get(kind(plan))
    return reader(world, plan) if reader is not None else None


def changed(given: tuple[Dataset, ...], change: Change) -> tuple[Dataset, ...]:
    """Datasets to which something happens as a whole."""
    return tuple(msgspec.structs.replace(d, change=LifecycleChange(change)) for d in given)


def _names(plan: Any) -> tuple[str, ...]:
    listed = attempt(plan, "outputColumnNames")
    return tuple(str(listed.mkString("\x01")).split("\x01")) if listed is not None else ()


def _datasets(source: Any) -> tuple[Dataset, ...]:
    return source.datasets if source is not None else ()


@command("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic",
         "DeltaDynamicPartitionOverwriteCommand")  # fmt: skip
def _v2(world: World, plan: Any) -> Write:
    operation = {
        "AppendData": "append",
        "OverwriteByExpression": "overwrite_by_expression",
    }.get(kind(plan), "overwrite_partitions_dynamic")
    relation = plan.table()
    options = world.mapping(plan.writeOptions())
    if kafka.is_kafka(class_name(relation.table())):
        return Write(operation, plan.query(), options=options)
    outputs = _datasets(leaves.v2(world, relation))
    if operation != "append":
        outputs = changed(outputs, "OVERWRITE")
    names = tuple(item["name"] for item in fields(relation))
    added = delta.generated(relation.table(), names, fields(plan.query()))
    return Write(operation, plan.query(), outputs, names, added=added)


@command("ReplaceData", "WriteDelta")
def _row_level(world: World, plan: Any) -> Write:
    relation = plan.originalTable()
    found = attempt(plan.table().table(), "operation")
    word = str(found.command().toString()) if found is not None else "MERGE"
    operation = OPERATIONS.get(word, OPERATIONS["MERGE"])
    names = tuple(item["name"] for item in fields(relation))
    return Write(operation, plan.query(), _datasets(leaves.v2(world, relation)), names, word)


@command("MergeIntoTable", "UpdateTable", "DeleteFromTable")
def _unrewritten(world: World, plan: Any) -> Write:
    if kind(plan) == "MergeIntoTable":
        return row_level(world, plan, "MERGE", plan.targetTable())
    word = "UPDATE" if kind(plan) == "UpdateTable" else "DELETE"
    return row_level(world, plan, word, plan.table())


def row_level(
    world: World, plan: Any, word: str, target: Any, parts: tuple[Any, ...] = ()
) -> Write:
    """A MERGE, UPDATE or DELETE that Spark has not rewritten: its clauses stand there as written."""
    relation = target
    while kind(relation) in ("SubqueryAlias", "Project", "Filter"):
        relation = relation.child()
    sources = leaves.read_leaves(world, relation)
    outputs = tuple(dataset for source in sources.values() for dataset in source.datasets)
    names = tuple(item["name"] for item in fields(relation))
    return Write(OPERATIONS[word], plan, outputs, names, word, target=relation, parts=parts)


@command("CreateTableAsSelect", "ReplaceTableAsSelect")
def _as_select(world: World, plan: Any) -> Write:
    replace = kind(plan) == "ReplaceTableAsSelect"
    resolved = plan.name()
    output = named(world, resolved.catalog(), identifier_of(resolved.identifier()))
    output = output and at_location(plan, output)
    operation = "replace_table_as_select" if replace else "create_table_as_select"
    outputs = changed((output,), "OVERWRITE" if replace else "CREATE") if output else ()
    return Write(operation, plan.query(), outputs)


@command("InsertIntoHadoopFsRelationCommand")
def _files(world: World, plan: Any) -> Write:
    table = option(plan.catalogTable())
    overwrite = str(plan.mode().toString()) == "Overwrite"
    if table is not None:
        found = tables.read_table(world, table, "catalog table")
    else:
        word = files.format_of(plan.fileFormat())
        found = files.one(plan.outputPath().toString(), word, "output path")
    outputs: tuple[Dataset, ...] = (found,) if found is not None else ()
    if overwrite:
        outputs = changed(outputs, "OVERWRITE")
    operation = "insert_into_hadoop_fs_relation_command"
    return Write(operation, plan.query(), outputs, _names(plan))


@command("InsertIntoHiveTable")
def _hive(world: World, plan: Any) -> Write:
    found = tables.read_table(world, plan.table(), "hive table")
    outputs: tuple[Dataset, ...] = (found,) if found is not None else ()
    if plan.overwrite():
        outputs = changed(outputs, "OVERWRITE")
    return Write("insert_into_hive_table", plan.query(), outputs, _names(plan))


@command("CreateDataSourceTableAsSelectCommand", "CreateHiveTableAsSelectCommand",
         "OptimizedCreateHiveTableAsSelectCommand", "SaveAsV1TableCommand",
         "CreateHoodieTableAsSelectCommand")  # fmt: skip
def _table_as_select(world: World, plan: Any) -> Write:
    table = attempt(plan, "table", "tableDesc")
    found = tables.read_table(world, table, "catalog table")
    mode = attempt(plan, "mode")
    overwrite = mode is not None and str(mode.toString()) == "Overwrite"
    append = mode is not None and str(mode.toString()) == "Append"
    outputs: tuple[Dataset, ...] = (found,) if found is not None else ()
    if not append:
        outputs = changed(outputs, "OVERWRITE" if overwrite else "CREATE")
    return Write("create_table_as_select", plan.query(), outputs, _names(plan))


@command("SaveIntoDataSourceCommand")
def _save(world: World, plan: Any) -> Write:
    operation = "save_into_data_source_command"
    provider = class_name(plan.dataSource())
    options = world.mapping(plan.options())
    if kafka.is_kafka(provider):
        return Write(operation, plan.query(), options=options)
    found: Dataset | None = None
    if provider.endswith("JdbcRelationProvider"):
        found = jdbc.written(world, options)
    elif (path := options.get("path")) and ("delta" in provider or "hudi" in provider):
        found = files.one(path, "delta" if "delta" in provider else "hudi", "output path")
    elif not relations.is_quiet(provider.rpartition(".")[2]):
        world.problem(f"{provider}: a writer whose dataset is not known")
    outputs: tuple[Dataset, ...] = (found,) if found is not None else ()
    word = options.get("hoodie.datasource.write.operation", "")
    if str(plan.mode().toString()) == "Overwrite" or word.startswith("insert_overwrite"):
        outputs = changed(outputs, "OVERWRITE")
    # Rows that only say which ones go give the table no column.
    return Write(operation, plan.query(), outputs, row_level="DELETE" if word == "delete" else "")


@command("InsertIntoDataSourceCommand")
def _insert(world: World, plan: Any) -> Write:
    relation = plan.logicalRelation()
    source = relations.relation(world, relation.relation(), option(relation.catalogTable()))
    names = tuple(item["name"] for item in fields(relation))
    return Write("insert_into_data_source_command", plan.query(), _datasets(source), names)


@command("InsertIntoDataSourceDirCommand", "InsertIntoHiveDirCommand")
def _folder(world: World, plan: Any) -> Write:
    located = option(plan.storage().locationUri())
    provider = attempt(plan, "provider")
    word = provider.lower() if isinstance(provider, str) else "hive"
    found = files.one(located.toString(), word, "output path") if located is not None else None
    outputs = changed((found,), "OVERWRITE") if found is not None else ()
    return Write("insert_into_dir", plan.query(), outputs)


@command("CreateViewCommand")
def _view(world: World, plan: Any) -> Write:
    query = plan.plan()
    if not str(plan.viewType().toString()).startswith("PersistedView"):
        return Write("create_temp_view", query)
    identifier = plan.name()
    database = option(identifier.database()) or str(world.spark.catalog.currentDatabase())
    logical = tables.logical_name(world, tables.metastore(world), database, identifier.table())
    if logical is None:
        return Write("create_view", query)
    catalog = tables.session_catalog(world, tables.metastore(world))
    output = Dataset(*logical, type="VIEW", catalog=catalog)
    word: Change = "OVERWRITE" if plan.replace() else "CREATE"
    return Write("create_view", query, changed((output,), word))


@command("CreateIcebergView", "CreateV2View")
def _named_view(world: World, plan: Any) -> Write:
    resolved = plan.child()
    output = named(world, resolved.catalog(), identifier_of(resolved.identifier()), kind="VIEW")
    outputs = changed((output,), "CREATE") if output else ()
    return Write("create_view", plan.query(), outputs)


def fields(relation: Any) -> list[dict[str, Any]]:
    """The columns of a relation as its schema writes them."""
    found: list[dict[str, Any]] = msgspec.json.decode(relation.schema().json())["fields"]
    return found
