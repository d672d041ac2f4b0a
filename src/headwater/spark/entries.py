"""Where work begins in PySpark: entry points wrapped to say so, at next to no cost."""

from __future__ import annotations

import functools
import re
import threading
from importlib import import_module
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.emit import once
from headwater.spark.names import operation

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
    *((module, "DataFrame", _ACTIONS, "read") for module in _FRAMES),
)
_COMMAND = re.compile(
    r"^\s*(?:with\b.*?\b)?(insert\s+(?:into|overwrite)(?:\s+table)?|merge\s+into|update|delete\s+from"
    r"|(?:create|replace)(?:\s+or\s+replace)?\s+(?:external\s+)?(?:table|view)(?:\s+if\s+not\s+exists)?"
    r"|truncate\s+table|drop\s+(?:table|view)(?:\s+if\s+exists)?|alter\s+(?:table|view)"
    r"|load\s+data|cache\s+table|msck\s+repair\s+table)\s+([\w.`/:\-]+)?",
    re.IGNORECASE | re.DOTALL,
)


class Entry(NamedTuple):
    """What is known of a piece of work when it begins."""

    kind: str
    word: str
    target: str = ""
    sql: str = ""


class Inside(threading.local):
    """What the current thread is inside of: another entry, or a batch of a streaming query."""

    entry = 0
    batch = 0


INSIDE = Inside()


class Patches:
    """The wrapped entry points, while they are wrapped."""

    def __init__(self, around: Callable[[Entry, Any, Callable[[], Any]], Any]) -> None:
        self._around = around
        self._before: list[tuple[Any, str, Any]] = []
        for module, owner, methods, kind in ENTRIES:
            self._wrap(module, owner, methods, kind)

    def undo(self) -> None:
        """Put the entry points back as they were."""
        for owner, name, before in reversed(self._before):
            setattr(owner, name, before)
        self._before.clear()

    @once.quiet("wrapping PySpark's entry points")
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
    before: Any, kind: str, name: str, around: Callable[[Entry, Any, Callable[[], Any]], Any]
) -> Any:
    @functools.wraps(before)
    def call(self: Any, *args: Any, **kwargs: Any) -> Any:
        if kind == "batches":
            return _name_batches(before, self, args, kwargs)
        if INSIDE.batch or (INSIDE.entry and kind != "stop"):
            return before(self, *args, **kwargs)
        INSIDE.entry += 1
        try:
            entry = _entry(kind, name, args, kwargs) or Entry(kind, operation(name))
            return around(entry, self, lambda: before(self, *args, **kwargs))
        finally:
            INSIDE.entry -= 1

    call.__headwater__ = True  # type: ignore[attr-defined]
    return call


def _name_batches(before: Any, writer: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Give a function to `foreachBatch`, marked so that what it does is its query's."""
    function = args[0] if args else kwargs.get("func")
    if not callable(function):
        return before(writer, *args, **kwargs)
    writer._headwater_batches = getattr(function, "__name__", "")  # noqa: SLF001
    if args:
        return before(writer, _batched(function), *args[1:], **kwargs)
    return before(writer, **{**kwargs, "func": _batched(function)})


def _batched(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        INSIDE.batch += 1
        try:
            return function(*args, **kwargs)
        finally:
            INSIDE.batch -= 1

    return call


@once.quiet("reading what an entry point is given")
def _entry(kind: str, name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Entry:
    word = operation(name)
    if kind == "sql":
        text = args[0] if args else kwargs.get("sqlQuery")
        if not isinstance(text, str):
            return Entry(kind, "")
        found = _COMMAND.match(text)
        if found is None:
            return Entry(kind, "", sql=text)
        return Entry(kind, operation(found[1]), (found[2] or "").replace("`", ""), text)
    if kind in ("write", "stream"):
        keys = ("tableName", "name", "path")
        target = args[0] if args else next((kwargs[key] for key in keys if key in kwargs), "")
        return Entry(kind, word, target if isinstance(target, str) else "")
    return Entry(kind, word)
