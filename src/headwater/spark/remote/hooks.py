"""Where a Spark Connect client hands a command to its server: wrapped, on that client alone."""

from __future__ import annotations

import functools
import sys
from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.spark.names import operation
from headwater.spark.remote.world import ASKING

if TYPE_CHECKING:
    from collections.abc import Callable

    Around = Callable[[Any, Callable[[], Any]], Any]

READS = ("to_table", "to_pandas", "to_table_as_iterator")
_FRAME = "pyspark/sql/connect/dataframe.py"
_WRITER = "pyspark/sql/connect/streaming/readwriter.py"
_DEEPEST = 60
_NAMED = "_headwater_batches"


class Hooks:
    """The wrapped methods of one client and its session, while they are wrapped."""

    def __init__(self, spark: Any, command: Around, read: Around, close: Around) -> None:
        self._undo: list[Callable[[], None]] = []
        client = spark.client
        self._wrap(client, "execute_command", command)
        for name in READS:
            if hasattr(client, name):
                self._wrap(client, name, read)
        self._wrap(spark, "stop", close)
        self._name_batches()

    def undo(self) -> None:
        """Put the methods back as they were."""
        for step in reversed(self._undo):
            once.quiet("unwrapping Spark Connect's client")(step)()
        self._undo.clear()

    @once.quiet("wrapping Spark Connect's client")
    def _wrap(self, owner: Any, name: str, around: Around) -> None:
        before = getattr(owner, name)

        @functools.wraps(before)
        def call(*args: Any, **kwargs: Any) -> Any:
            if ASKING.deep:
                return before(*args, **kwargs)
            return around(args[0] if args else None, lambda: before(*args, **kwargs))

        setattr(owner, name, call)
        self._undo.append(lambda: delattr(owner, name))

    @once.quiet("wrapping foreachBatch")
    def _name_batches(self) -> None:
        """Remember what a function is called: a command holds it only as bytes."""
        from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

        before = DataStreamWriter.foreachBatch
        if hasattr(before, "__headwater__"):
            return

        @functools.wraps(before)
        def call(writer: Any, *args: Any, **kwargs: Any) -> Any:
            function = args[0] if args else kwargs.get("func")
            setattr(writer, _NAMED, str(getattr(function, "__name__", "")))
            return before(writer, *args, **kwargs)

        call.__headwater__ = True  # type: ignore[attr-defined]
        owner: Any = DataStreamWriter
        owner.foreachBatch = call
        self._undo.append(lambda: setattr(owner, "foreachBatch", before))


@once.quiet("finding the name of a function")
def batches() -> str:
    """The name of the function that the writer on this thread's stack was given."""
    frame: Any = sys._getframe(1)  # noqa: SLF001
    for _ in range(_DEEPEST):
        if frame is None:
            break
        if frame.f_code.co_filename.replace("\\", "/").endswith(_WRITER):
            name = getattr(frame.f_locals.get("self"), _NAMED, "")
            if name:
                return str(name)
        frame = frame.f_back
    return ""


@once.quiet("finding the name of an action")
def action() -> str:
    """The frame's method that this thread is in, as a word: `collect`, `to_pandas`."""
    frame: Any = sys._getframe(1)  # noqa: SLF001
    found = ""
    for _ in range(_DEEPEST):
        if frame is None:
            break
        if frame.f_code.co_filename.replace("\\", "/").endswith(_FRAME):
            found = frame.f_code.co_name
        elif found:
            break
        frame = frame.f_back
    return operation(found.strip("_")) if found else ""
