"""Delta: its tables and their versions, its log, and the commands it makes of Spark's."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.columns.scope import Relation, Scope
from headwater.spark.columns.source import Source
from headwater.spark.columns.value import FILTER, merge
from headwater.spark.jvm import attempt, class_name, hidden, kind, option
from headwater.spark.plan.row_level import merge_clauses
from headwater.spark.plan.writes import Write, changed, fields, row_level
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores.formats import TableFormat

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.lineage.model import Dataset
    from headwater.spark.jvm import JvmSession
    from headwater.spark.plan.operators import ColumnReader
    from headwater.spark.plan.tree import Node

_CLAUSES = ("matchedClauses", "notMatchedClauses", "notMatchedBySourceClauses")
_ROW_LEVEL = {"MergeIntoCommand": "MERGE", "UpdateCommand": "UPDATE", "DeleteCommand": "DELETE"}
_EVIDENCE = "delta table"


def _change_rows(session: JvmSession, plan: Any) -> Write:
    statement = _ROW_LEVEL[kind(plan)]
    target = plan.target()
    if statement != "MERGE":
        return row_level(session, plan, statement, target, (target,))
    write = row_level(session, plan, statement, target, (target, plan.source()))
    evolved = option(attempt(plan, "migratedSchema"))
    if evolved is None:
        return write
    made = msgspec.json.decode(evolved.json())["fields"]
    added = tuple(item for item in made if item["name"] not in write.names)
    names = write.names + tuple(item["name"] for item in added)
    return write._replace(names=names, added=tuple(sorted(added, key=itemgetter("name"))))


def _clone(session: JvmSession, plan: Any) -> Write:
    """A clone, or what remains of another command that was reported already."""
    query = option(plan.query())
    if query is None or kind(query) != "CloneTableCommand":
        return Write("create_table")
    output = catalogs.read_table(session, plan.table(), "catalog table")
    source = hidden(query.sourceTable(), "sourceTable")
    if source is None or not FORMAT.owns(class_name(source)):
        return Write("clone_table", outputs=changed((output,), "CREATE") if output else ())
    frame = source.toDf(session.spark._jsparkSession)  # noqa: SLF001
    read = frame.queryExecution().analyzed()
    names = tuple(item["name"] for item in fields(read))
    return Write("clone_table", read, changed((output,), "CREATE") if output else (), names)


def _restore(session: JvmSession, plan: Any) -> Write:
    output = FORMAT.dataset(session, plan.sourceTable())
    return Write("restore_table", outputs=changed((output,), "OVERWRITE") if output else ())


def _merge(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    target, source = children
    scope = Scope({**target.env, **source.env}, outer)
    clauses = [clause for field in _CLAUSES for clause in node.nodes(field)]
    written, rows = merge_clauses(
        self,
        scope,
        source,
        node.node("condition"),
        [(clause.node("condition"), _assignments(clause)) for clause in clauses],
    )
    known = _target_columns(node)
    env = {
        attribute: merge(written[name]) if name in written else target.env[attribute]
        for attribute, name in known
    }
    for place, name in enumerate(sorted(written.keys() - {name for _, name in known})):
        env[-1 - place] = merge(written[name])
    return Relation(env, rows)


def _assignments(clause: Node) -> list[tuple[str, str, Node]]:
    """Delta gives every column of the target an action of its own."""
    actions = clause.nodes("actions")
    named = [(action.text("targetColNameParts")[1:-1], action.children[0]) for action in actions]
    return [(name, name, value) for name, value in named]


def _update(
    self: ColumnReader, node: Node, children: list[Relation], outer: Scope | None
) -> Relation:
    (target,) = children
    scope = Scope(target.env, outer)
    made = Relation(dict(target.env), target.rows)
    expressions = node.nodes("updateExpressions")
    for (attribute, _), item in zip(_target_columns(node), expressions, strict=False):
        made.env[attribute] = self.expressions.value(item, scope)
    condition = node.node("condition")
    return made.with_rows(FILTER, [self.expressions.value(condition, scope)]) if condition else made


def _target_columns(node: Node) -> list[tuple[int, str]]:
    """The target's columns in order: the number of each, and its name."""
    leaf = node.children[0]
    while leaf.children:
        leaf = leaf.children[0]
    return [(out.id, out.name) for out in leaf.nodes("output")]


class Delta(TableFormat):
    """Delta Lake."""

    name = "delta"
    classes = ("org.apache.spark.sql.delta.", "io.delta.")
    data_files = "parquet"
    metadata_columns = frozenset({"_change_type", "_commit_version", "_commit_timestamp"})
    log_folders = ("_delta_log",)
    log_scans = ("DeltaLog",)
    # Some of its scans do not count their rows, and not every one is of the table itself.
    counts_rows_of_scans = False
    equivalents = {  # noqa: RUF012
        "DeltaDynamicPartitionOverwriteCommand": "OverwritePartitionsDynamic",
        "TruncateDeltaTableCommand": "TruncateTable",
        "DeleteCommand": "DeleteFromTable",
    }
    commands = {  # noqa: RUF012
        **dict.fromkeys(_ROW_LEVEL, _change_rows),
        "CreateDeltaTableCommand": _clone,
        "RestoreTableCommand": _restore,
    }
    operators = {"MergeIntoCommand": _merge, "UpdateCommand": _update}  # noqa: RUF012

    def table(
        self,
        session: JvmSession,
        table: Any,
        catalog: str,
        identifier: list[str],
        options: Mapping[str, str],
    ) -> Source | None:
        """The source behind a `DeltaTableV2`."""
        return Source.of(self.dataset(session, table))

    def dataset(self, session: JvmSession, table: Any) -> Dataset | None:
        """The dataset of a `DeltaTableV2`."""
        held = option(attempt(table, "catalogTable"))
        if held is not None:
            return catalogs.read_table(session, held, _EVIDENCE)
        path = attempt(table, "path")
        return self.at_path(session, path.toString(), _EVIDENCE) if path is not None else None

    def relation(self, session: JvmSession, relation: Any, catalog_table: Any) -> Source | None:
        """The source behind a relation of Delta's; a read of its own log has no dataset."""
        location = attempt(relation, "location")
        if location is not None and kind(location) == "DeltaLogFileIndex":
            return Source(())
        found: Dataset | None = None
        if catalog_table is not None:
            found = catalogs.read_table(session, catalog_table, "catalog table")
        if found is None:
            index = location if location is not None else relation.deltaLog()
            path = attempt(index, "path", "dataPath")
            found = self.at_path(session, path.toString(), _EVIDENCE) if path is not None else None
        if found is None:
            return None
        return Source((msgspec.structs.replace(found, version=_version(location)),))

    def sink(self, session: JvmSession, sink: Any, options: Mapping[str, str]) -> Dataset | None:
        """The table that a `DeltaSink` writes to."""
        path = attempt(sink, "path")
        return self.at_path(session, str(path), "streaming sink") if path else None

    def overwrites_part(self, options: Mapping[str, str], *, dynamic: bool) -> bool:
        """By a filter, or the partitions that are written."""
        return dynamic or any(key.lower() == "replacewhere" for key in options)

    def generated_columns(
        self, table: Any, names: tuple[str, ...], written: list[dict[str, Any]]
    ) -> tuple[dict[str, Any], ...]:
        """The generated and identity columns that the query leaves out."""
        if len(names) <= len(written):
            return ()
        given = {item["name"] for item in written}
        # A table's schema does not show how a column is generated, that of its snapshot does.
        made = msgspec.json.decode(table.initialSnapshot().metadata().schema().json())["fields"]
        return tuple(i for i in made if i["name"] not in given and _generated(i["metadata"]))


FORMAT = Delta()


def _generated(metadata: dict[str, Any]) -> bool:
    return any(key.startswith(("delta.generation", "delta.identity")) for key in metadata)


def _version(location: Any) -> str:
    """The version of a time-travel query, also of one by time; empty for the newest."""
    if location is None or attempt(location, "isTimeTravelQuery") is not True:
        return ""
    version = option(attempt(location, "versionToUse"))
    return str(version) if version is not None else ""
