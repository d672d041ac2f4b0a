"""PySpark's entry points: the methods in which work begins, wrapped to report each call."""

from __future__ import annotations

import contextlib
import functools
import re
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.emit import internal_errors
from headwater.spark.job_names import of_function, operation
from headwater.spark.stores.paths import TYPED

if TYPE_CHECKING:
    from collections.abc import Callable

_WRITERS = (
    "save",
    "saveAsTable",
    "insertInto",
    "json",
    "parquet",
    "text",
    "csv",
    "xml",
    "orc",
    "jdbc",
)
_WRITERS_V2 = ("create", "replace", "createOrReplace", "append", "overwrite", "overwritePartitions")
_ACTIONS = ("collect", "count", "show", "toPandas", "take", "head", "tail", "foreach",
            "foreachPartition", "toArrow", "toLocalIterator", "checkpoint", "isEmpty")  # fmt: skip
_READERS = ("load", "parquet", "orc", "csv", "json", "text", "xml")
_RDD_WRITERS = ("saveAsTextFile", "saveAsPickleFile", "saveAsSequenceFile", "saveAsHadoopFile",
                "saveAsNewAPIHadoopFile", "saveAsHadoopDataset",
                "saveAsNewAPIHadoopDataset")  # fmt: skip
_FRAMES = "pyspark.sql.classic.dataframe", "pyspark.sql.dataframe"
ENTRIES: tuple[tuple[str, str, tuple[str, ...], str], ...] = (
    ("pyspark.sql.readwriter", "DataFrameWriter", _WRITERS, "write"),
    ("pyspark.sql.readwriter", "DataFrameWriterV2", _WRITERS_V2, "write"),
    ("pyspark.sql.merge", "MergeIntoWriter", ("merge",), "write"),
    ("pyspark.sql.session", "SparkSession", ("sql",), "sql"),
    ("pyspark.sql.session", "SparkSession", ("newSession",), "session"),
    ("pyspark.sql.streaming.readwriter", "DataStreamWriter", ("start", "toTable"), "stream"),
    ("pyspark.sql.streaming.readwriter", "DataStreamWriter", ("foreachBatch",), "batches"),
    ("pyspark.sql.streaming.query", "StreamingQuery", ("stop",), "stop"),
    ("pyspark.core.context", "SparkContext", ("stop",), "close"),
    ("pyspark.context", "SparkContext", ("stop",), "close"),
    ("pyspark.sql.readwriter", "DataFrameReader", _READERS, "paths"),
    ("pyspark.core.rdd", "RDD", _RDD_WRITERS, "rdd"),
    ("pyspark.rdd", "RDD", _RDD_WRITERS, "rdd"),
    *((module, "DataFrame", _ACTIONS, "read") for module in _FRAMES),
    *((module, "DataFrame", ("writeTo", "mergeInto"), "writer") for module in _FRAMES),
)
_COMMAND = (
    r"(insert\s+(?:into|overwrite)(?:\s+table)?|merge(?:\s+with\s+schema\s+evolution)?\s+into"
    r"|update|delete\s+from"
    r"|(?:create|replace)(?:\s+or\s+replace)?\s+(?:external\s+)?(?:table|view)(?:\s+if\s+not\s+exists)?"
    r"|truncate\s+table|drop\s+(?:table|view)(?:\s+if\s+exists)?|alter\s+(?:table|view)"
    r"|load\s+data|cache\s+table|msck\s+repair\s+table)\s+([\w.`/:\-]+)?"
)
_FLAGS = re.IGNORECASE | re.DOTALL
SQL_COMMAND = re.compile(rf"^(?:with\b.*?\b)?{_COMMAND}", _FLAGS)
SQL_QUERY = re.compile(r"^[\s(]*(?:select|values|table|show|describe|desc|explain)\b", _FLAGS)
"""Statements that write nothing; one that begins with WITH or FROM may."""
_COMMANDS = re.compile(rf"\b{_COMMAND}", _FLAGS)
_MULTI_INSERT = re.compile(
    r"^\s*(?:with\b(?:(?!\b(?:insert|select)\b).)*?\b)?from\b.*?\binsert\s+(?:into|overwrite)\b",
    _FLAGS,
)
_MAY_BE_MULTI_INSERT = re.compile(r"^(?:with|from)\b", _FLAGS)
_TEXTS = re.compile(
    r"--[^\n]*|/\*.*?\*/|'[^'\\]*(?:\\.[^'\\]*)*'|\"[^\"\\]*(?:\\.[^\"\\]*)*\"", re.DOTALL
)
"""Comments and literals, which may hold anything."""
_QUOTED = re.compile(r"`[^`]*`")
_SCRIPT = re.compile(r"^begin\b", _FLAGS)
_DYNAMIC = re.compile(r"\b(?:execute\s+immediate|identifier\s*\(|call\b)", _FLAGS)
"""What gives a script a target that is not in its text."""
_EVOLUTION = re.compile(r"\s+with\s+schema\s+evolution", _FLAGS)
_SQL_PATH = re.compile(r"\b\w+\.`([^`]*/[^`]*)`")
_PATH_KEYS = "mapreduce.output.fileoutputformat.outputdir", "mapred.output.dir"


class EntryPoint(NamedTuple):
    """What is known of a call of an entry point before it runs."""

    kind: str
    operation: str
    target: str = ""
    sql: str = ""
    other_targets: tuple[str, ...] = ()
    script: bool = False

    @property
    def targets(self) -> tuple[str, ...]:
        """Everything that the call's arguments name as targets; nothing when it may write elsewhere."""
        return (self.target, *self.other_targets) if self.target else self.other_targets


class MicroBatch:
    """One call of the function given to `foreachBatch`, by the frame it was given."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._session: str | None = None

    @property
    def session(self) -> str:
        """The id of the session of the query, which the frame belongs to."""
        if self._session is None:
            frame = getattr(self._frame, "_jdf", None)
            self._session = "" if frame is None else str(frame.sparkSession().sessionUUID())
            self._frame = None
        return self._session


class CallDepth(threading.local):
    """Whether the current thread is inside an entry point, or a micro-batch of `foreachBatch`."""

    entry = 0
    micro_batch: MicroBatch | None = None


DEPTH = CallDepth()
_IN_MICRO_BATCH = ("write", "sql", "stop")
"""Calls inside a micro-batch that count: what it writes is its query's, whichever session writes."""


class WrappedMethods:
    """The wrapped entry points, while they are wrapped."""

    def __init__(self, around: Callable[[EntryPoint, Any, Callable[[], Any]], Any]) -> None:
        self._around = around
        self._before: list[tuple[Any, str, Any]] = []
        for module, owner, methods, kind in ENTRIES:
            self._wrap(module, owner, methods, kind)

    def restore(self) -> None:
        """Put the entry points back as they were."""
        for owner, name, before in reversed(self._before):
            setattr(owner, name, before)
        self._before.clear()

    @internal_errors.log_and_ignore("wrapping PySpark's entry points")
    def _wrap(self, module: str, owner: str, methods: tuple[str, ...], kind: str) -> None:
        try:
            found = getattr(import_module(module), owner)
        except (ImportError, AttributeError):
            return
        for name in methods:
            before = found.__dict__.get(name)
            if before is None or hasattr(before, "__headwater__"):
                continue
            wrapped = _wrapped(before, kind, name, self._around)
            self._before.append((found, name, before))
            setattr(found, name, wrapped)


def _wrapped(
    before: Any, kind: str, name: str, around: Callable[[EntryPoint, Any, Callable[[], Any]], Any]
) -> Any:
    @functools.wraps(before)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kind == "paths":
            _remember_paths(args, kwargs)
            return before(self, *args, **kwargs)
        if kind == "writer":
            return _with_target(before(self, *args, **kwargs), args, kwargs)
        if kind == "batches":
            return _mark_foreach_batch(before, self, args, kwargs)
        if DEPTH.entry and kind != "stop":
            return before(self, *args, **kwargs)
        if DEPTH.micro_batch is not None and kind not in _IN_MICRO_BATCH:
            return before(self, *args, **kwargs)
        DEPTH.entry += 1
        try:
            entry = _entry(kind, name, args, kwargs) or EntryPoint(kind, operation(name))
            if kind == "write" and not entry.target:
                entry = entry._replace(target=getattr(self, "_headwater_target", ""))
            return around(entry, self, lambda: before(self, *args, **kwargs))
        finally:
            DEPTH.entry -= 1

    call.__headwater__ = True  # type: ignore[attr-defined]
    return call


@internal_errors.log_and_ignore("reading the paths that a reader is given")
def _remember_paths(args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    for given in (*args, kwargs.get("path"), kwargs.get("paths")):
        for path in given if isinstance(given, list | tuple) else (given,):
            if isinstance(path, str):
                TYPED.add(path)


def _with_target(writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A writer that knows its table, which is not given to the method that writes."""
    table = args[0] if args else kwargs.get("table")
    if isinstance(table, str):
        with contextlib.suppress(AttributeError):
            writer._headwater_target = table  # noqa: SLF001
    return writer


def _mark_foreach_batch(
    before: Any, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:
    """Call `foreachBatch` with a function that is marked: what it runs belongs to its query."""
    function = args[0] if args else kwargs.get("func")
    if not callable(function):
        return before(writer, *args, **kwargs)
    writer._headwater_foreach_batch = of_function(function)  # noqa: SLF001
    if args:
        return before(writer, _marked(function), *args[1:], **kwargs)
    return before(writer, **{**kwargs, "func": _marked(function)})


def _marked(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        DEPTH.micro_batch = MicroBatch(args[0] if args else None)
        try:
            return function(*args, **kwargs)
        finally:
            DEPTH.micro_batch = None

    return call


@internal_errors.log_and_ignore("reading what an entry point is given")
def _entry(kind: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> EntryPoint:
    done = operation(name)
    if kind == "sql":
        text = args[0] if args else kwargs.get("sqlQuery")
        return statement(text) if isinstance(text, str) else EntryPoint(kind, "")
    if kind == "rdd" and name.endswith("Dataset"):
        conf = args[0] if args else kwargs.get("conf")
        given = conf if isinstance(conf, dict) else {}
        return EntryPoint(
            kind, done, str(next((given[key] for key in _PATH_KEYS if key in given), ""))
        )
    if kind in ("write", "stream", "rdd"):
        keys = ("tableName", "name", "path")
        target = args[0] if args else next((kwargs[key] for key in keys if key in kwargs), "")
        return EntryPoint(kind, done, target if isinstance(target, str) else "")
    return EntryPoint(kind, done)


def statement(sql: str) -> EntryPoint:
    """What is known from the text of a statement before it runs."""
    text = without_comments(sql)
    for path in _SQL_PATH.findall(text):
        TYPED.add(path)
    if is_script(text):
        # A statement inside a script may take its target from a variable.
        return EntryPoint(
            "sql", "", "", sql, () if _DYNAMIC.search(text) else _targets(text), script=True
        )
    if is_multi_insert(text):
        return EntryPoint("sql", "multi_insert", "", sql, _targets(text))
    found = SQL_COMMAND.match(text)
    if found is None:
        return EntryPoint("sql", "", sql=sql)
    return EntryPoint("sql", operation(_EVOLUTION.sub("", found[1])), _plain(found[2]), sql)


def is_script(text: str) -> bool:
    """Whether a statement without leading comments is a script of several: `BEGIN … END`."""
    return bool(_SCRIPT.match(text))


def is_multi_insert(text: str) -> bool:
    """Whether a statement without leading comments is `[WITH …] FROM … INSERT …`, of one or several."""
    return bool(_MAY_BE_MULTI_INSERT.match(text) and _MULTI_INSERT.match(_outside_brackets(text)))


def _outside_brackets(text: str) -> str:
    """What is left of a statement without texts, quoted names and everything in brackets."""
    kept, depth = [], 0
    for char in _QUOTED.sub(" x ", _TEXTS.sub(" x ", text)):
        if char == "(":
            depth += 1
        elif char == ")":
            depth = max(0, depth - 1)
        elif not depth:
            kept.append(char)
    return "".join(kept)


def without_comments(sql: str) -> str:
    """A statement without the comments before it."""
    text = sql.lstrip()
    while text[:2] in ("--", "/*"):
        end = "\n" if text.startswith("--") else "*/"
        text = text[2:].partition(end)[2].lstrip()
    return text


def _targets(text: str) -> tuple[str, ...]:
    found = (_plain(one[1]) for one in _COMMANDS.findall(_TEXTS.sub(" '' ", text)))
    return tuple(dict.fromkeys(name for name in found if name and name.lower() != "directory"))


def _plain(name: str | None) -> str:
    return (name or "").replace("`", "")
