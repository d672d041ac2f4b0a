"""SQL commands: what each does to which table, by its statement and its analysed plan."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.spark.driver import wrapped_methods
from headwater.spark.plan.multi_insert import OPERATION
from headwater.spark.plan.writes import MAX_INSERTS, OVERWRITE_MODE, is_dynamic
from headwater.spark.remote import tables
from headwater.spark.remote.explain.layout import (
    PlanTextNode,
    UnclearText,
    bracketed,
    close,
    relation_name,
    split,
)
from headwater.spark.remote.targets import Target
from headwater.spark.stores import files
from headwater.spark.stores.catalog import SESSION

if TYPE_CHECKING:
    from headwater.spark.remote.server_client import RemoteSession

_NAME = r"((?:`[^`]+`|[\w-]+)(?:\.(?:`[^`]+`|[\w-]+))*)"
_COMMENTS = re.compile(r"^(?:\s+|--[^\n]*\n|/\*.*?\*/)+", re.DOTALL)
_WRITES = re.compile(
    r"^(?:with\b.*?\binsert|insert|merge|update|delete|create\s+(?:or\s+replace\s+)?(?:\w+\s+)*?"
    r"(?:table|view)|replace\s+table)\b",
    re.IGNORECASE | re.DOTALL,
)
_ROW_CHANGES = re.compile(
    r"^(?:with\b.*?\binsert|insert|merge|update|delete)\b", re.IGNORECASE | re.DOTALL
)
_READS = re.compile(
    r"^\(*\s*(?:select|with|values|from|table|show|describe|desc|explain)\b", re.IGNORECASE
)
_CREATED = re.compile(
    rf"^(?:create|replace)\s+(?:or\s+replace\s+)?(?:\w+\s+)*?(?:table|view)\s+"
    rf"(?:if\s+not\s+exists\s+)?{_NAME}",
    re.IGNORECASE,
)
_CHANGES = (
    (
        re.compile(rf"^alter\s+table\s+{_NAME}\s+rename\s+to\s+{_NAME}\s*$", re.IGNORECASE),
        "rename_table",
    ),
    (re.compile(rf"^alter\s+table\s+{_NAME}\s", re.IGNORECASE), "alter_table"),
    (re.compile(rf"^truncate\s+table\s+{_NAME}", re.IGNORECASE), "truncate_table"),
    (re.compile(rf"^drop\s+table\s+(?:if\s+exists\s+)?{_NAME}", re.IGNORECASE), "drop_table"),
    (re.compile(rf"^drop\s+view\s+(?:if\s+exists\s+)?{_NAME}", re.IGNORECASE), "drop_view"),
)
_CHANGE = {"rename_table": "RENAME", "alter_table": "ALTER", "truncate_table": "TRUNCATE",
           "drop_table": "DROP", "drop_view": "DROP"}  # fmt: skip
_V2 = {
    "AppendData": ("append", ""),
    "OverwriteByExpression": ("overwrite_by_expression", "OVERWRITE"),
    "OverwritePartitionsDynamic": ("overwrite_partitions_dynamic", "OVERWRITE"),
}
_ROWS = {"MERGE": "merge_into_table", "UPDATE": "update_table", "DELETE": "delete_from_table"}
_TABLE = re.compile(r"(?:^|, )(`[^`]+`(?:\.`[^`]+`)*)")
_MODE = re.compile(r", (Append|Overwrite|ErrorIfExists|Ignore)(?:, |$)")


def bare(statement: str) -> str:
    """A statement without the comments before it."""
    return _COMMENTS.sub("", statement)


def writes(statement: str) -> bool:
    """Whether a statement is a command whose plan shows what it writes."""
    text = bare(statement)
    return bool(_WRITES.match(text)) or wrapped_methods.is_multi_insert(text)


def reads(statement: str) -> bool:
    """Whether a statement only asks, so that no name means something else after it."""
    return bool(_READS.match(bare(statement))) and not writes(statement)


def changes_rows(statement: str) -> bool:
    """Whether a statement changes rows of tables, and what no name means."""
    text = bare(statement)
    return bool(_ROW_CHANGES.match(text)) or wrapped_methods.is_multi_insert(text)


def is_script(statement: str) -> bool:
    """Whether a statement is a script of several."""
    return wrapped_methods.is_script(bare(statement))


def multi_insert(session: RemoteSession, statement: str) -> list[Target]:
    """The tables that a multi-insert names; none where the statement is no such thing."""
    text = bare(statement)
    if not wrapped_methods.is_multi_insert(text):
        return []
    named = wrapped_methods.statement(text).targets[:MAX_INSERTS]
    return [Target(OPERATION, tuple(tables.full(session, name))) for name in named]


def script_targets(statement: str) -> tuple[str, ...]:
    """The targets that the text of a script names, unless it may write elsewhere too."""
    return wrapped_methods.statement(bare(statement)).targets[:MAX_INSERTS]


def script_problem(statement: str) -> str:
    """What is not known of a script, and which targets its text names."""
    named = ", ".join(script_targets(statement))
    unknown = "a script runs on the server: what its statements read and write is not known"
    return f"{unknown}; its text names {named}" if named else unknown


def changes(statement: str) -> bool:
    """Whether a statement changes a table as a whole."""
    text = bare(statement)
    return any(pattern.match(text.rstrip().rstrip(";")) for pattern, _ in _CHANGES)


def changed(session: RemoteSession, statement: str) -> Target | None:
    """The table that a statement changes as a whole, or None when it does no such thing."""
    text = bare(statement).rstrip().rstrip(";")
    for pattern, operation in _CHANGES:
        match = pattern.match(text)
        if match is None:
            continue
        parts = tuple(tables.full(session, match[1]))
        change = _CHANGE[operation]
        if operation == "rename_table":
            return Target(operation, _renamed(parts, match[2]), change=change, previous=parts)
        kind = "gone" if change == "DROP" else "table"
        if operation == "drop_view":
            kind = "view"
        return Target(operation, parts, change=change, kind=kind)
    return None


def _renamed(before: tuple[str, ...], name: str) -> tuple[str, ...]:
    after = name.replace("`", "").split(".")
    if len(after) == len(before) and after[0] == before[0]:
        return tuple(after)
    return (*before[: len(before) - len(after)], *after)


def read_all(
    session: RemoteSession, root: PlanTextNode, statement: str
) -> list[tuple[Target, PlanTextNode | None]]:
    """Each command of an analysed plan; a multi-insert is a union of several."""
    if root.kind != "Union":
        return [read(session, root, statement)]
    return [read(session, child, statement) for child in root.below[:MAX_INSERTS]]


def read(
    session: RemoteSession, root: PlanTextNode, statement: str
) -> tuple[Target, PlanTextNode | None]:
    """The target of a command's analysed plan, and the query that it writes."""
    kind, rest = root.kind, root.rest
    verb = bare(statement).split(None, 1)[0].upper()
    if kind in ("CreateTableAsSelect", "ReplaceTableAsSelect"):
        replace = kind.startswith("Replace")
        operation = "replace_table_as_select" if replace else "create_table_as_select"
        change = "OVERWRITE" if replace else "CREATE"
        return Target(operation, _created(session, statement), change=change), root.inside[-1]
    if kind in _V2:
        operation, change = _V2[kind]
        if verb == "MERGE" and operation == "append":
            operation = "merge_into_table"
        parts, names, condition = _relation(rest)
        partial = tables.is_partitioned(session, parts)
        if kind != "OverwritePartitionsDynamic":
            partial = kind == "OverwriteByExpression" and condition != "true"
        target = Target(operation, parts, change=change, names=names, partial=partial)
        return target, root.below[-1]
    if kind in ("ReplaceData", "WriteDelta") and verb in _ROWS:
        parts, names, _ = _relation(rest)
        return Target(_ROWS[verb], parts, row_level=verb, names=names), root.below[-1]
    if kind in ("InsertIntoHadoopFsRelationCommand", "InsertIntoHiveTable"):
        return _inserted(session, kind, rest), root.below[-1]
    if kind == "InsertIntoDataSourceDirCommand":
        return _folder(rest), _only(root)
    if kind == "CreateViewCommand":
        return _view(rest), _only(root)
    if kind in ("CreateDataSourceTableAsSelectCommand", "CreateHiveTableAsSelectCommand"):
        over = " Overwrite" in rest
        change = "OVERWRITE" if over else "CREATE"
        return Target("create_table_as_select", _ticked(rest), change=change), _only(root)
    if kind in ("CreateTable", "CreateDataSourceTableCommand", "CreateTableCommand"):
        return Target("create_table", _created(session, statement), change="CREATE"), None
    if kind == "ReplaceTable":
        return Target("replace_table", _created(session, statement), change="OVERWRITE"), None
    raise UnclearText(f"{kind}: a command whose table is not known")


def _created(session: RemoteSession, statement: str) -> tuple[str, ...]:
    match = _CREATED.match(bare(statement))
    if match is None:
        raise UnclearText("which table is made is not clear")
    return tuple(tables.full(session, match[1]))


def _relation(rest: str) -> tuple[tuple[str, ...], tuple[str, ...], str]:
    """Name, columns and what follows in `RelationV2[a#1, b#2] lab.shop.orders, (a#1 = 2), false`."""
    at = rest.index("[")
    end = close(rest, at)
    names = tuple(part.rpartition("#")[0] for part in split(rest[at + 1 : end]))
    named, *more = split(rest[end + 1 :].strip())
    name = relation_name(named)
    if " " in name or "/" in name:
        raise UnclearText("which table is written is not clear")
    return tuple(name.split(".")), names, more[0] if more else ""


def _ticked(rest: str) -> tuple[str, ...]:
    match = _TABLE.search(rest)
    if match is None:
        return ()
    parts = match[1].strip("`").split("`.`")
    return tuple(parts if len(parts) > 2 else [SESSION, *parts])


def _inserted(session: RemoteSession, kind: str, rest: str) -> Target:
    parts, arguments = _ticked(rest), split(rest)
    # Before the first flag stand the values of partitions, if any are given.
    flag = next((at for at, one in enumerate(arguments) if one in ("true", "false")), 0)
    named = bool(flag) and arguments[flag - 1].startswith("[")
    if kind == "InsertIntoHiveTable":
        # `table, serde, [day=Some(x)], overwrite, if not exists, [names], …`
        over = arguments[flag] == "true"
        names = _listed(arguments[flag + 2] if len(arguments) > flag + 2 else "")
        change = "OVERWRITE" if over else ""
        partial = over and named
        return Target("insert_into_hive_table", parts, change=change, names=names, partial=partial)
    # `path, [day=x], if not exists, [day#1], format, [options], mode, table, …, [names]`
    mode = _MODE.search(rest)
    over = mode is not None and mode[1] == "Overwrite"
    divided = len(arguments) > flag + 1 and arguments[flag + 1].startswith("[")
    dynamic = divided and is_dynamic({}, session.setting(OVERWRITE_MODE))
    fixed, part = files.Output()
    if not parts and len(arguments) > 2:
        fixed, part = files.output(arguments[0], arguments[2].lower())
    return Target(
        "insert_into_hadoop_fs_relation_command",
        parts,
        fixed=fixed,
        change="OVERWRITE" if over else "",
        names=_listed(arguments[-1]),
        partial=over and (part or named or dynamic),
    )


def _listed(text: str) -> tuple[str, ...]:
    listed = bracketed(text)
    return tuple(split(listed)) if listed else ()


def _folder(rest: str) -> Target:
    match = re.match(r"^Storage\((?:.*, )?Location: ([^,)]+).*?\), (\w+)", rest)
    if match is None:
        raise UnclearText("which folder is written is not clear")
    fixed, partial = files.output(match[1], match[2].lower())
    return Target("insert_into_dir", fixed=fixed, change="OVERWRITE", partial=partial)


def _view(rest: str) -> Target:
    match = re.search(r", (true|false), (true|false), (PersistedView|\w*TempView)\b", rest)
    if match is None:
        raise UnclearText("a view's kind is not clear")
    if match[3] != "PersistedView":
        return Target("create_temp_view")
    change = "OVERWRITE" if match[2] == "true" else "CREATE"
    return Target("create_view", _ticked(rest), change=change, kind="view")


def _only(root: PlanTextNode) -> PlanTextNode:
    found = [*root.inside, *root.below]
    if len(found) != 1:
        raise UnclearText("which query is written is not clear")
    return found[0]
