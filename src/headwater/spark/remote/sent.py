"""What a client sends to its server, noted on its way: what it begins, and how that ends."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.emit.ends import ENDS
from headwater.spark.remote import hooks, statements
from headwater.spark.remote.messages import copied, statement_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.remote.application import RemoteApplication

POOL = 200
_WRITES = ("write_operation", "write_operation_v2", "merge_into_table_command", "sql_command")
_CATALOG = ("set_", "drop_", "create_")
_NOWHERE = (
    None,
    "catalog",
    "local_relation",
    "cached_local_relation",
    "chunked_cached_local_relation",
)
_ROWS = ("insert", "merge", "update", "delete")


class Calls:
    """Stands around the client's calls; whatever fails here, the call is made."""

    def __init__(self, application: RemoteApplication) -> None:
        self._app = application

    def command(self, command: Any, call: Callable[[], Any]) -> Any:
        """A command on its way to the server."""
        kind = None if self._app.over else self._kind(command)
        if kind is None:
            return call()
        if kind in _WRITES:
            return self._act(kind, getattr(command, kind), call)
        if kind == "write_stream_operation_start":
            return self._stream(command.write_stream_operation_start, call)
        self._note(kind, command)
        return call()

    @staticmethod
    @once.quiet("reading a command")
    def _kind(command: Any) -> str | None:
        return str(command.WhichOneof("command_type")) if command is not None else None

    @once.quiet("reading a command")
    def _note(self, kind: str, command: Any) -> None:
        """Commands that write nothing but matter to what others mean."""
        if kind == "create_dataframe_view":
            self._app.names_change()
            self._keep(command.create_dataframe_view.input)
        elif kind == "register_function":
            self._keep(command.register_function)
        elif kind == "streaming_query_command" and command.streaming_query_command.stop:
            run = str(command.streaming_query_command.query_id.run_id)
            self._app.worker.post(self._app.queries.stopping, run)

    def _keep(self, message: Any) -> None:
        self._app.pool = [*self._app.pool, copied(message)][-POOL:]

    def _act(self, kind: str, message: Any, call: Callable[[], Any]) -> Any:
        action = self._began(kind, message)
        try:
            result = call()
        except BaseException as error:
            if action is not None:
                self._app.actions.returned(action, error)
            raise
        if action is not None:
            self._app.actions.returned(action, None)
        return result

    @once.quiet("noting a command")
    def _began(self, kind: str, message: Any) -> Any:
        ENDS.alive()
        if kind == "sql_command":
            sql = statement_of(message)
            rows = statements.bare(sql)[:7].lower().startswith(_ROWS)
            if not rows and not statements.reads(sql):
                self._app.names_change()
            if not statements.writes(sql) and not statements.changes(sql):
                return None
        return self._app.actions.began(kind, copied(message))

    def read(self, plan: Any, call: Callable[[], Any]) -> Any:
        """A plan whose rows the program asks for."""
        action = None if self._app.over else self._reading(plan)
        if action is None:
            return call()
        try:
            result = call()
        except BaseException as error:
            self._app.actions.returned(action, error)
            raise
        if inspect.isgenerator(result):
            return self._through(result, action)
        self._app.actions.returned(action, None)
        return result

    def _through(self, rows: Any, action: Any) -> Any:
        """Rows that come one by one: the read is over when nobody wants more."""
        try:
            yield from rows
        except Exception as error:
            self._app.actions.returned(action, error)
            raise
        finally:
            if action.ending is None:
                self._app.actions.returned(action, None)

    @once.quiet("noting a read")
    def _reading(self, plan: Any) -> Any:
        ENDS.alive()
        root = plan.root
        kind = root.WhichOneof("rel_type")
        if kind == "catalog" and str(root.catalog.WhichOneof("cat_type")).startswith(_CATALOG):
            self._app.names_change()
        while kind in ("show_string", "html_string"):
            root = getattr(root, kind).input
            kind = root.WhichOneof("rel_type")
        word = hooks.action() if self._app.actions.reads else ""
        if not word or kind in _NOWHERE:
            return None
        return self._app.actions.began("read", copied(root), word)

    def _stream(self, start: Any, call: Callable[[], Any]) -> Any:
        ENDS.alive()
        try:
            result = call()
        except Exception as error:
            self._app.worker.post(self._app.queries.refused, start, error)
            raise
        self._started(start, result)
        return result

    @once.quiet("noting a streaming query")
    def _started(self, start: Any, result: Any) -> None:
        from pyspark.sql.connect.streaming.query import StreamingQuery

        told = result[1]["write_stream_operation_start_result"]
        handle = StreamingQuery(self._app.spark, told.query_id.id, told.query_id.run_id, told.name)
        self._app.ask(self._app.queries.begin, start, told, hooks.batches() or "", handle)
