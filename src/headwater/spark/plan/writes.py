# ruff: noqa: ARG001  (rules share one shape, whether or not they need all of it)
"""Commands that write: where to, with which columns, and from which query."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.lineage.model import Change, Dataset, LifecycleChange
from headwater.spark.jvm import attempt, class_name, kind, option
from headwater.spark.plan import leaves
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import files, formats, jdbc, kafka, relations
from headwater.spark.stores.catalog import at_location, identifier_of, named

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from headwater.spark.jvm import JvmSession

    Reader = Callable[[JvmSession, Any], "Write"]


class Write(NamedTuple):
    """A command taken apart: its query is read on, its outputs are known.

    `names` are the target's columns where they may differ from the query's. `row_level` is MERGE,
    UPDATE or DELETE. `options` belong to a Kafka writer, whose topic may be a column. A command that
    has no columns of its own names the `target` whose columns it writes, and one that keeps the plans
    it reads to itself names these as `parts`, the target first. `added` are columns that come besides
    those of the query: rules give them the numbers -1, -2 and so on, else their sources are unknown.
    `evolves`: the command may add columns to its target.
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
    evolves: bool = False


MAX_INSERTS = 100
READERS: dict[str, Reader] = {}
_TARGET = (
    "table.table.getClass.getName", "table.schema.json", "query.schema.json",
    "table.skipSchemaResolution", "withSchemaEvolution",
)  # fmt: skip
# What asks for new columns: options of a writer, in lower case, and a setting of Iceberg's.
_MERGE_OPTIONS = ("mergeschema", "merge-schema")
_MERGE_SETTING = "spark.sql.iceberg.merge-schema"
OVERWRITE_MODE = "spark.sql.sources.partitionOverwriteMode"
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


def read_writes(session: JvmSession, plan: Any, node: str) -> list[Write]:
    """The command at the top of a plan, each of a multi-insert, or none: a query writes nothing."""
    if node != "Union":
        found = _read_write(session, plan, node)
        return [found] if found is not None else []
    writes: list[Write] = []
    children = plan.children()
    for place in range(min(children.size(), MAX_INSERTS)):
        child = children.apply(place)
        found = _read_write(session, child, kind(child))
        if found is None:
            # A union of queries. `FROM t INSERT INTO a … INSERT INTO b …` is one of commands.
            return []
        writes.append(found)
    return writes


def _read_write(session: JvmSession, plan: Any, node: str) -> Write | None:
    own = next((f.commands[node] for f in formats.table_formats() if node in f.commands), None)
    reader = own or READERS.get(formats.equivalent(node))
    return reader(session, plan) if reader is not None else None


def changed(
    given: tuple[Dataset, ...], change: Change, *, partial: bool = False
) -> tuple[Dataset, ...]:
    """Datasets to which something happens, as a whole unless `partial`."""
    done = LifecycleChange(change, partial=partial)
    return tuple(msgspec.structs.replace(d, change=done) for d in given)


def _names(session: JvmSession, plan: Any) -> tuple[str, ...]:
    return tuple(session.texts(plan, "outputColumnNames")[0] or ())


def _datasets(source: Any) -> tuple[Dataset, ...]:
    return source.datasets if source is not None else ()


@command("AppendData", "OverwriteByExpression", "OverwritePartitionsDynamic")
def _v2(session: JvmSession, plan: Any) -> Write:
    operation = {
        "AppendData": "append",
        "OverwriteByExpression": "overwrite_by_expression",
    }.get(kind(plan), "overwrite_partitions_dynamic")
    relation = plan.table()
    options = session.mapping(plan.writeOptions())
    owner, schema, written, unresolved, evolving = session.texts(plan, *_TARGET)
    if kafka.is_kafka(owner or ""):
        return Write(operation, plan.query(), options=options)
    outputs = _datasets(leaves.v2(session, relation))
    # A table that takes any schema is written by the names of the query, not by their order.
    by_query = unresolved == "true"
    evolves = evolving == "true" or (by_query and _merges_schema(session, options))
    if evolves:
        outputs = tuple(_as_it_is_now(session, relation, one) for one in outputs)
    if operation != "append":
        outputs = changed(outputs, "OVERWRITE", partial=_v2_partial(session, plan, options))
    names = _field_names(schema)
    table_format = formats.owner(owner or "")
    added: tuple[dict[str, Any], ...] = ()
    if table_format is not None:
        given = msgspec.json.decode(written or '{"fields": []}')["fields"]
        added = table_format.generated_columns(relation.table(), names, given)
    return Write(
        operation, plan.query(), outputs, () if by_query and not added else names, added=added,
        evolves=evolves,
    )  # fmt: skip


def _v2_partial(session: JvmSession, plan: Any, options: dict[str, str]) -> bool:
    """Whether an overwrite leaves rows: those that its filter or its partitions do not cover."""
    condition, partitions = session.texts(plan, "deleteExpr", "table.table.partitioning")
    if condition is not None and condition != "true":
        return True
    dynamic = condition is None or is_dynamic(options, "")
    return dynamic and partitions != []


def is_dynamic(options: Mapping[str, str], setting: str) -> bool:
    """Whether a writer replaces only the partitions that its rows are in.

    By its options, the second of which is Iceberg's, else by Spark's setting.
    """
    given = {key.lower(): value for key, value in options.items()}
    asked = (given[key] for key in ("partitionoverwritemode", "overwrite-mode") if key in given)
    return next(asked, setting).lower() == "dynamic"


def _field_names(schema: Any) -> tuple[str, ...]:
    return tuple(item["name"] for item in msgspec.json.decode(schema)["fields"]) if schema else ()


def _merges_schema(session: JvmSession, options: dict[str, str]) -> bool:
    given = {key.lower(): value for key, value in options.items()}
    asked = next((given[key] for key in _MERGE_OPTIONS if key in given), None)
    return (session.setting(_MERGE_SETTING) if asked is None else asked).lower() == "true"


def _as_it_is_now(session: JvmSession, relation: Any, given: Dataset) -> Dataset:
    """A table as its catalog has it, which the plan has as it was before the write."""
    catalog, identifier = option(relation.catalog()), option(relation.identifier())
    if given.schema_source is None or catalog is None or identifier is None:
        return given
    return catalogs.with_schema(session, given, catalogs.loaded(catalog, identifier))


@command("ReplaceData", "WriteDelta")
def _row_level(session: JvmSession, plan: Any) -> Write:
    relation = plan.originalTable()
    found = attempt(plan.table().table(), "operation")
    statement = str(found.command().toString()) if found is not None else "MERGE"
    operation = OPERATIONS.get(statement, OPERATIONS["MERGE"])
    names = tuple(item["name"] for item in fields(relation))
    return Write(operation, plan.query(), _datasets(leaves.v2(session, relation)), names, statement)


@command("MergeIntoTable", "UpdateTable", "DeleteFromTable")
def _unrewritten(session: JvmSession, plan: Any) -> Write:
    if kind(plan) == "MergeIntoTable":
        return row_level(session, plan, "MERGE", plan.targetTable())
    statement = "UPDATE" if kind(plan) == "UpdateTable" else "DELETE"
    return row_level(session, plan, statement, plan.table())


def row_level(
    session: JvmSession, plan: Any, statement: str, target: Any, parts: tuple[Any, ...] = ()
) -> Write:
    """A MERGE, UPDATE or DELETE that Spark has not rewritten: its clauses stand there as written."""
    relation = target
    while kind(relation) in ("SubqueryAlias", "Project", "Filter"):
        relation = relation.child()
    sources = leaves.read_leaves(session, relation)
    outputs = tuple(dataset for source in sources.values() for dataset in source.datasets)
    names = tuple(item["name"] for item in fields(relation))
    return Write(
        OPERATIONS[statement], plan, outputs, names, statement, target=relation, parts=parts
    )


@command("CreateTableAsSelect", "ReplaceTableAsSelect")
def _as_select(session: JvmSession, plan: Any) -> Write:
    replace = kind(plan) == "ReplaceTableAsSelect"
    resolved = plan.name()
    output = named(session, resolved.catalog(), identifier_of(resolved.identifier()))
    output = output and at_location(plan, output)
    operation = "replace_table_as_select" if replace else "create_table_as_select"
    outputs = changed((output,), "OVERWRITE" if replace else "CREATE") if output else ()
    return Write(operation, plan.query(), outputs)


@command("InsertIntoHadoopFsRelationCommand")
def _files(session: JvmSession, plan: Any) -> Write:
    table = option(plan.catalogTable())
    overwrite = str(plan.mode().toString()) == "Overwrite"
    if table is not None:
        found = catalogs.read_table(session, table, "catalog table")
        outputs, partial = files.Output((found,) if found is not None else ())
    else:
        path = str(plan.outputPath().toString())
        outputs, partial = files.output(path, files.format_of(plan.fileFormat()))
    if overwrite:
        static, dynamic = session.texts(plan, "staticPartitions.size", "dynamicPartitionOverwrite")
        partial = partial or static not in (None, "0") or dynamic == "true"
        outputs = changed(outputs, "OVERWRITE", partial=partial)
    operation = "insert_into_hadoop_fs_relation_command"
    return Write(operation, plan.query(), outputs, _names(session, plan))


@command("InsertIntoHiveTable")
def _hive(session: JvmSession, plan: Any) -> Write:
    found = catalogs.read_table(session, plan.table(), "hive table")
    outputs: tuple[Dataset, ...] = (found,) if found is not None else ()
    if plan.overwrite():
        # Hive replaces the partitions that are named or written, never those of a table besides.
        partial = not plan.partition().isEmpty()
        outputs = changed(outputs, "OVERWRITE", partial=partial)
    return Write("insert_into_hive_table", plan.query(), outputs, _names(session, plan))


@command("CreateDataSourceTableAsSelectCommand", "CreateHiveTableAsSelectCommand",
         "OptimizedCreateHiveTableAsSelectCommand", "SaveAsV1TableCommand")  # fmt: skip
def _table_as_select(session: JvmSession, plan: Any) -> Write:
    source = formats.equivalent(kind(plan)) == "CreateDataSourceTableAsSelectCommand"
    field = "table" if source else "tableDesc"
    described = (f"{field}.{path}" for path in catalogs.DESCRIBED)
    mode, names, *table = session.texts(plan, "mode", "outputColumnNames", *described)
    found = catalogs.catalog_table(session, *table, evidence="catalog table")
    outputs: tuple[Dataset, ...] = (found,) if found is not None else ()
    if mode != "Append":
        outputs = changed(outputs, "OVERWRITE" if mode == "Overwrite" else "CREATE")
    return Write("create_table_as_select", plan.query(), outputs, tuple(names or ()))


@command("SaveIntoDataSourceCommand")
def _save(session: JvmSession, plan: Any) -> Write:
    operation = "save_into_data_source_command"
    provider = class_name(plan.dataSource())
    options = session.mapping(plan.options())
    if kafka.is_kafka(provider):
        return Write(operation, plan.query(), options=options)
    found: Dataset | None = None
    table_format = formats.owner(provider)
    if provider.endswith("JdbcRelationProvider"):
        found = jdbc.written(session, options)
    elif (path := options.get("path")) and table_format is not None:
        found = table_format.at_path(session, path, "output path")
    elif not relations.is_quiet(provider.rpartition(".")[2]):
        session.problem(f"{provider}: a writer whose dataset is not known")
    outputs: tuple[Dataset, ...] = (found,) if found is not None else ()
    mode = table_format.save_mode(options) if table_format is not None else ""
    if str(plan.mode().toString()) == "Overwrite" or mode == "OVERWRITE":
        # The key is how Spark hands on what `partitionBy` names.
        dynamic = "__partition_columns" in options and is_dynamic(
            options, session.setting(OVERWRITE_MODE)
        )
        partial = table_format is not None and table_format.overwrites_part(
            options, dynamic=dynamic
        )
        outputs = changed(outputs, "OVERWRITE", partial=partial)
    # Rows that only name those to delete give the table no column.
    return Write(operation, plan.query(), outputs, row_level="DELETE" if mode == "DELETE" else "")


@command("InsertIntoDataSourceCommand")
def _insert(session: JvmSession, plan: Any) -> Write:
    relation = plan.logicalRelation()
    source = relations.relation(session, relation.relation(), option(relation.catalogTable()))
    names = tuple(item["name"] for item in fields(relation))
    return Write("insert_into_data_source_command", plan.query(), _datasets(source), names)


@command("InsertIntoDataSourceDirCommand", "InsertIntoHiveDirCommand")
def _folder(session: JvmSession, plan: Any) -> Write:
    located = option(plan.storage().locationUri())
    provider = attempt(plan, "provider")
    file_format = provider.lower() if isinstance(provider, str) else "hive"
    path = str(located.toString()) if located is not None else ""
    outputs, partial = files.output(path, file_format)
    return Write("insert_into_dir", plan.query(), changed(outputs, "OVERWRITE", partial=partial))


@command("CreateViewCommand")
def _view(session: JvmSession, plan: Any) -> Write:
    query = plan.plan()
    if not str(plan.viewType().toString()).startswith("PersistedView"):
        return Write("create_temp_view", query)
    identifier = plan.name()
    database = option(identifier.database()) or session.current_database
    logical = catalogs.logical_name(
        session, catalogs.metastore(session), database, identifier.table()
    )
    if logical is None:
        return Write("create_view", query)
    catalog = catalogs.session_catalog(session, catalogs.metastore(session))
    output = Dataset(*logical, type="VIEW", catalog=catalog)
    change: Change = "OVERWRITE" if plan.replace() else "CREATE"
    return Write("create_view", query, changed((output,), change))


@command("CreateV2View")
def _named_view(session: JvmSession, plan: Any) -> Write:
    resolved = plan.child()
    output = named(session, resolved.catalog(), identifier_of(resolved.identifier()), kind="VIEW")
    outputs = changed((output,), "CREATE") if output else ()
    return Write("create_view", plan.query(), outputs)


def fields(relation: Any) -> list[dict[str, Any]]:
    """The columns of a relation as its schema writes them."""
    found: list[dict[str, Any]] = msgspec.json.decode(relation.schema().json())["fields"]
    return found
