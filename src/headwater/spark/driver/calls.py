"""What happens before and after each call of an entry point, on the caller's own thread."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import PROCESS_EXIT, of_exception
from headwater.spark.batch.action import Action
from headwater.spark.driver.wrapped_methods import DEPTH

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.driver.classic import ClassicApplication
    from headwater.spark.driver.wrapped_methods import EntryPoint


class EntryPointCalls:
    """Follows the calls of one application; nothing here waits, except for the end of Spark."""

    def __init__(self, application: ClassicApplication) -> None:
        self._app = application

    def around(self, entry: EntryPoint, owner: Any, call: Callable[[], Any]) -> Any:
        """Make the call, and report it."""
        if self._app.over:
            return call()
        if entry.kind == "stop":
            return self._around_stop(owner, call)
        if entry.kind == "close":
            return self._around_close(owner, call)
        if entry.kind == "stream":
            return self._around_start(entry, owner, call)
        if entry.kind == "session":
            made = call()
            internal_errors.log_and_ignore("listening to a new session")(self._app.listen)(made)
            return made
        PROCESS_EXIT.alive()
        action = Action(entry, time.time(), owner)
        action.micro_batch = DEPTH.micro_batch
        if not self._app.actions.call_started(action):
            return call()
        try:
            result = call()
        except BaseException as error:
            self._app.actions.call_returned(action, error)
            raise
        self._app.actions.call_returned(action, None)
        return result

    def _around_start(self, entry: EntryPoint, owner: Any, call: Callable[[], Any]) -> Any:
        PROCESS_EXIT.alive()
        start = Action(entry, time.time(), owner)
        self._app.actions.query_starting(start)
        try:
            query = call()
        except Exception as error:
            self._app.worker.post(self._app.queries.start_failed, entry, owner, error)
            raise
        finally:
            self._app.actions.query_started(start)
        self._app.worker.post(self._app.queries.begin, query._jsq)  # noqa: SLF001
        return query

    def _around_stop(self, query: Any, call: Callable[[], Any]) -> Any:
        self._note_stop(query)
        return call()

    @internal_errors.log_and_ignore("noting that a query is stopped")
    def _note_stop(self, query: Any) -> None:
        if query.isActive:
            self._app.worker.post(self._app.queries.stopping, str(query.runId))

    def _around_close(self, context: Any, call: Callable[[], Any]) -> Any:
        if context is self._app.bridge.context:
            self._before_close()
        try:
            return call()
        finally:
            if context is self._app.bridge.context:
                self._app.bridge.stopped = True

    @internal_errors.log_and_ignore("ending open runs before Spark stops")
    def _before_close(self) -> None:
        error = sys.exc_info()[1]
        ending = PROCESS_EXIT.now if PROCESS_EXIT.signalled else of_exception(error)
        self._app.settle(ending)
