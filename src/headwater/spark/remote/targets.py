"""The target of a command: a table by name, files, a topic, or a table of a database."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from headwater.lineage.model import Change, Dataset, LifecycleChange
from headwater.lineage.naming import DatasetName
from headwater.spark.plan.writes import OVERWRITE_MODE, is_dynamic
from headwater.spark.remote import tables
from headwater.spark.stores import files, formats, jdbc
from headwater.spark.stores.catalog import SESSION
from headwater.spark.stores.relations import QUIET_SOURCES

if TYPE_CHECKING:
    from typing import Any

    from headwater.spark.remote.server_client import RemoteSession

FILES = ("parquet", "orc", "csv", "json", "text", "avro", "xml")
_FS = "insert_into_hadoop_fs_relation_command"
_SAVE = "save_into_data_source_command"
_V2 = {
    "MODE_CREATE": ("create_table_as_select", "CREATE"),
    "MODE_REPLACE": ("replace_table_as_select", "OVERWRITE"),
    "MODE_CREATE_OR_REPLACE": ("replace_table_as_select", "OVERWRITE"),
    "MODE_APPEND": ("append", ""),
    "MODE_OVERWRITE": ("overwrite_by_expression", "OVERWRITE"),
    "MODE_OVERWRITE_PARTITIONS": ("overwrite_partitions_dynamic", "OVERWRITE"),
}


class Target(NamedTuple):
    """What a command writes; a table's place may be known only when the command is done.

    `parts` is a table's full name, `previous` the name it had. `fixed` are datasets that are known
    without asking. `options` belong to Kafka. `position` when columns meet by their place. `partial` when
    an overwrite leaves rows of others.
    """

    operation: str
    parts: tuple[str, ...] = ()
    fixed: tuple[Dataset, ...] = ()
    options: dict[str, str] | None = None
    change: Change | str = ""
    position: bool = False
    row_level: str = ""
    kind: str = "table"
    previous: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    foreach: bool = False
    partial: bool = False

    def datasets(self, session: RemoteSession) -> tuple[Dataset, ...]:
        """The datasets as they are now; none when their location is not known."""
        found = self.fixed
        if self.parts:
            parts = list(self.parts)
            if self.kind == "table":
                made = tables.existing(session, parts)
            else:
                made = tables.by_name(session, parts, "VIEW" if self.kind == "view" else "TABLE")
            found = (made,) if made is not None else ()
        if not self.change:
            return found
        before = tables.gone(session, list(self.previous)) if self.previous else None
        previous = DatasetName(*before.id) if before is not None else None
        change = LifecycleChange(self.change, previous, self.partial)  # type: ignore[arg-type]
        return tuple(msgspec.structs.replace(one, change=change) for one in found)

    @property
    def stands_for(self) -> tuple[Dataset, ...]:
        """What gives a job its name as long as the place of the table is not known."""
        return (tables.planned(list(self.parts)),) if self.parts else ()


def of_v2(session: RemoteSession, write: Any) -> Target:
    """The target of `writeTo(...)`."""
    operation, change = _V2.get(type(write).Mode.Name(write.mode), ("append", ""))
    parts = tuple(tables.full(session, write.table_name))
    if operation == "overwrite_partitions_dynamic":
        partial = tables.is_partitioned(session, parts)
    else:
        by_filter = operation == "overwrite_by_expression"
        partial = by_filter and not _is_true(write.overwrite_condition)
    return Target(operation, parts, change=change, partial=partial)


def _is_true(condition: Any) -> bool:
    """Whether the condition of an overwrite is that of every row."""
    return bool(condition.literal.boolean)


def of_v1(session: RemoteSession, write: Any) -> Target:
    """The target of `write`: a table, or whatever a format makes of path and options."""
    mode = type(write).SaveMode.Name(write.mode).removeprefix("SAVE_MODE_")
    if write.WhichOneof("save_type") == "table":
        method = type(write.table).TableSaveMethod.Name(write.table.save_method)
        parts = tuple(tables.full(session, write.table.table_name))
        if method.endswith("INSERT_INTO"):
            return _inserted(session, parts, mode, dict(write.options))
        return _saved(session, parts, mode)
    format_name = (
        write.source or session.setting("spark.sql.sources.default") or "parquet"
    ).lower()
    options = dict(write.options)
    path = write.path or {key.lower(): value for key, value in options.items()}.get("path", "")
    divided = bool(write.partitioning_columns)
    return of_format(session, format_name, path, options, mode, divided=divided)


def of_format(
    session: RemoteSession,
    format_name: str,
    path: str,
    options: dict[str, str],
    mode: str,
    *,
    stream: str = "",
    divided: bool = False,
) -> Target:
    """The target of a format's writer; `stream` is the operation of a streaming one.

    `divided` when it writes partitions.
    """
    change = "OVERWRITE" if mode == "OVERWRITE" else ""
    dynamic = bool(change) and is_dynamic(options, session.setting(OVERWRITE_MODE))
    if format_name == "kafka":
        return Target(stream or _SAVE, options=options)
    if format_name == "jdbc":
        made = jdbc.written(session, options)  # type: ignore[arg-type]
        return Target(stream or _SAVE, fixed=(made,) if made else (), change=change)
    table_format = formats.by_name(format_name)
    if table_format is not None:
        partial = bool(change) and table_format.overwrites_part(
            options, dynamic=dynamic and divided
        )
        by_expression = "overwrite_by_expression" if change else "append"
        operation = stream or (by_expression if table_format.saves_by_name else _SAVE)
        if table_format.saves_by_name and "/" not in path:
            parts = tuple(tables.full(session, path))
            return Target(operation, parts, change=change, partial=partial)
        made = table_format.at_path(session, path, "output path") if path else None
        return Target(operation, fixed=(made,) if made else (), change=change, partial=partial)
    if format_name in FILES:
        fixed, part = files.output(path, format_name)
        partial = part or (dynamic and divided)
        return Target(stream or _FS, fixed=fixed, change=change, partial=partial)
    if format_name not in QUIET_SOURCES:
        session.problem(f"{format_name}: a writer whose dataset is not known")
    return Target(stream or _SAVE)


def _inserted(
    session: RemoteSession, parts: tuple[str, ...], mode: str, options: dict[str, str]
) -> Target:
    over = mode == "OVERWRITE"
    change = "OVERWRITE" if over else ""
    divided = over and tables.is_partitioned(session, parts)
    dynamic = divided and is_dynamic(options, session.setting(OVERWRITE_MODE))
    if parts[0] == SESSION:
        found = session.server.table(list(parts))
        hive = found is not None and found.provider.lower() == "hive"
        partial = dynamic or (divided and hive)
        return Target(_FS, parts, change=change, position=True, partial=partial)
    operation = "overwrite_partitions_dynamic" if dynamic else "overwrite_by_expression"
    done = operation if over else "append"
    return Target(done, parts, change=change, position=True, partial=dynamic)


def _saved(session: RemoteSession, parts: tuple[str, ...], mode: str) -> Target:
    if mode == "APPEND":
        v2 = parts[0] != SESSION and session.server.table(list(parts)) is not None
        return Target("append" if v2 else "create_table_as_select", parts)
    over = mode == "OVERWRITE"
    replaced = over and parts[0] != SESSION
    operation = "replace_table_as_select" if replaced else "create_table_as_select"
    return Target(operation, parts, change="OVERWRITE" if over else "CREATE")
