"""What a Spark Connect client sends to its server: intercepted on that client alone.

Every command passes one method of the client, which is wrapped; whatever fails here, the call is made.
A driver with a JVM is followed by its entry points instead (`driver/wrapped_methods.py`).
"""

from __future__ import annotations

import functools
import inspect
import sys
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import PROCESS_EXIT
from headwater.spark.job_names import of_function, operation
from headwater.spark.remote import statements
from headwater.spark.remote.messages import copied, statement_of
from headwater.spark.remote.server_client import OWN

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.remote.application import ConnectApplication

    Around = Callable[[Any, Callable[[], Any]], Any]

READS = ("to_table", "to_pandas", "to_table_as_iterator")
MAX_DEFINITIONS = 200
_MAX_FRAMES = 60
_DATAFRAME_FILE = "pyspark/sql/connect/dataframe.py"
_STREAM_WRITER_FILE = "pyspark/sql/connect/streaming/readwriter.py"
_FUNCTION = "_headwater_foreach_batch"
_WRITES = ("write_operation", "write_operation_v2", "merge_into_table_command", "sql_command")
_CATALOG_CHANGES = ("set_", "drop_", "create_")
_WITHOUT_SOURCE = (
    None,
    "catalog",
    "local_relation",
    "cached_local_relation",
    "chunked_cached_local_relation",
)


class ClientHooks:
    """The wrapped methods of one client and its session, while they are wrapped."""

    def __init__(self, spark: Any, command: Around, read: Around, close: Around) -> None:
        self._undo: list[Callable[[], None]] = []
        client = spark.client
        self._wrap(client, "execute_command", command)
        for name in READS:
            if hasattr(client, name):
                self._wrap(client, name, read)
        self._wrap(spark, "stop", close)
        self._wrap_foreach_batch()

    def undo(self) -> None:
        """Put the methods back as they were."""
        for step in reversed(self._undo):
            internal_errors.log_and_ignore("unwrapping Spark Connect's client")(step)()
        self._undo.clear()

    @internal_errors.log_and_ignore("wrapping Spark Connect's client")
    def _wrap(self, owner: Any, name: str, around: Around) -> None:
        before = getattr(owner, name)

        @functools.wraps(before)
        def call(*args: Any, **kwargs: Any) -> Any:
            if OWN.depth:
                return before(*args, **kwargs)
            return around(args[0] if args else None, lambda: before(*args, **kwargs))

        setattr(owner, name, call)
        self._undo.append(lambda: delattr(owner, name))

    @internal_errors.log_and_ignore("wrapping foreachBatch")
    def _wrap_foreach_batch(self) -> None:
        """Keep the name of a function that is given to `foreachBatch`: its command has only bytes."""
        from pyspark.sql.connect.streaming.readwriter import DataStreamWriter

        before = DataStreamWriter.foreachBatch
        if hasattr(before, "__headwater__"):
            return

        @functools.wraps(before)
        def call(writer: Any, *args: Any, **kwargs: Any) -> Any:
            function = args[0] if args else kwargs.get("func")
            setattr(writer, _FUNCTION, of_function(function))
            return before(writer, *args, **kwargs)

        call.__headwater__ = True  # type: ignore[attr-defined]
        owner: Any = DataStreamWriter
        owner.foreachBatch = call
        self._undo.append(lambda: setattr(owner, "foreachBatch", before))


@internal_errors.log_and_ignore("finding the name of a function")
def foreach_batch_function() -> str:
    """The name of the function that the stream writer on this thread's stack was given."""
    frame: Any = sys._getframe(1)  # noqa: SLF001
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_filename.replace("\\", "/").endswith(_STREAM_WRITER_FILE):
            name = getattr(frame.f_locals.get("self"), _FUNCTION, "")
            if name:
                return str(name)
        frame = frame.f_back
    return ""


@internal_errors.log_and_ignore("finding the name of an action")
def dataframe_method() -> str:
    """The DataFrame method that this thread is in, in snake case: `collect`, `to_pandas`."""
    frame: Any = sys._getframe(1)  # noqa: SLF001
    method = ""
    for _ in range(_MAX_FRAMES):
        if frame is None:
            break
        if frame.f_code.co_filename.replace("\\", "/").endswith(_DATAFRAME_FILE):
            method = frame.f_code.co_name
        elif method:
            break
        frame = frame.f_back
    return operation(method.strip("_")) if method else ""


class ClientCalls:
    """Reports each call of a client: what it begins, and how that ends."""

    def __init__(self, application: ConnectApplication) -> None:
        self._app = application

    def command(self, command: Any, call: Callable[[], Any]) -> Any:
        """A command on its way to the server."""
        kind = None if self._app.over else self._kind(command)
        if kind is None:
            return call()
        if kind in _WRITES:
            return self._write(kind, getattr(command, kind), call)
        if kind == "write_stream_operation_start":
            return self._start_query(command.write_stream_operation_start, call)
        self._note(kind, command)
        return call()

    @staticmethod
    @internal_errors.log_and_ignore("reading a command")
    def _kind(command: Any) -> str | None:
        return str(command.WhichOneof("command_type")) if command is not None else None

    @internal_errors.log_and_ignore("reading a command")
    def _note(self, kind: str, command: Any) -> None:
        """Commands that write nothing but define what later ones name."""
        if kind == "create_dataframe_view":
            self._app.names_change()
            self._keep(command.create_dataframe_view.input)
        elif kind == "register_function":
            self._keep(command.register_function)
        elif kind == "streaming_query_command" and command.streaming_query_command.stop:
            run = str(command.streaming_query_command.query_id.run_id)
            self._app.worker.post(self._app.queries.stopping, run)

    def _keep(self, message: Any) -> None:
        self._app.definitions = [*self._app.definitions, copied(message)][-MAX_DEFINITIONS:]

    def _write(self, kind: str, message: Any, call: Callable[[], Any]) -> Any:
        action = self._write_started(kind, message)
        try:
            result = call()
        except BaseException as error:
            if action is not None:
                self._app.actions.call_returned(action, error)
            raise
        if action is not None:
            self._app.actions.call_returned(action, None)
        return result

    @internal_errors.log_and_ignore("following a command")
    def _write_started(self, kind: str, message: Any) -> Any:
        PROCESS_EXIT.alive()
        if kind == "sql_command":
            sql = statement_of(message)
            if not statements.changes_rows(sql) and not statements.reads(sql):
                self._app.names_change()
            if not (statements.writes(sql) or statements.changes(sql) or statements.is_script(sql)):
                return None
        return self._app.actions.call_started(kind, copied(message))

    def read(self, plan: Any, call: Callable[[], Any]) -> Any:
        """A plan whose rows the program asks for."""
        action = None if self._app.over else self._read_started(plan)
        if action is None:
            return call()
        try:
            result = call()
        except BaseException as error:
            self._app.actions.call_returned(action, error)
            raise
        if inspect.isgenerator(result):
            return self._iterate(result, action)
        self._app.actions.call_returned(action, None)
        return result

    def _iterate(self, rows: Any, action: Any) -> Any:
        """Rows that come one by one: the read ends when the program wants no more."""
        try:
            yield from rows
        except Exception as error:
            self._app.actions.call_returned(action, error)
            raise
        finally:
            if action.ending is None:
                self._app.actions.call_returned(action, None)

    @internal_errors.log_and_ignore("following a read")
    def _read_started(self, plan: Any) -> Any:
        PROCESS_EXIT.alive()
        root = plan.root
        kind = root.WhichOneof("rel_type")
        if kind == "catalog":
            change = str(root.catalog.WhichOneof("cat_type")).startswith(_CATALOG_CHANGES)
            if change:
                self._app.names_change()
        while kind in ("show_string", "html_string"):
            root = getattr(root, kind).input
            kind = root.WhichOneof("rel_type")
        method = dataframe_method() if self._app.actions.reports_reads else ""
        if not method or kind in _WITHOUT_SOURCE:
            return None
        return self._app.actions.call_started("read", copied(root), method)

    def _start_query(self, start: Any, call: Callable[[], Any]) -> Any:
        PROCESS_EXIT.alive()
        try:
            result = call()
        except Exception as error:
            function = foreach_batch_function() or ""
            self._app.worker.post(self._app.queries.start_failed, start, function, error)
            raise
        self._query_started(start, result)
        return result

    @internal_errors.log_and_ignore("following a streaming query")
    def _query_started(self, start: Any, result: Any) -> None:
        from pyspark.sql.connect.streaming.query import StreamingQuery

        started = result[1]["write_stream_operation_start_result"]
        ids = started.query_id
        handle = StreamingQuery(self._app.spark, ids.id, ids.run_id, started.name)
        function = foreach_batch_function() or ""
        self._app.ask(self._app.queries.begin, start, started, function, handle)
