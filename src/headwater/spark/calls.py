"""Calls of PySpark's entry points: what happens before and after each, on the caller's own thread."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from headwater.emit import event, once
from headwater.emit.ends import ENDS, of_exception
from headwater.spark.action import Action

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.application import Application
    from headwater.spark.entries import Entry


class Calls:
    """The entry points of one application; nothing here waits for anything but the end of Spark."""

    def __init__(self, application: Application) -> None:
        self._app = application

    def around(self, entry: Entry, owner: Any, call: Callable[[], Any]) -> Any:
        """Run an entry point, and tell of it."""
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
            once.quiet("listening to a new session")(self._app.listen)(made)
            return made
        ENDS.alive()
        action = Action(entry, event.now(), owner)
        if not self._app.actions.began(action):
            return call()
        try:
            result = call()
        except BaseException as error:
            self._app.actions.returned(action, error)
            raise
        self._app.actions.returned(action, None)
        return result

    def _around_start(self, entry: Entry, owner: Any, call: Callable[[], Any]) -> Any:
        ENDS.alive()
        start = Action(entry, event.now(), owner)
        self._app.actions.starts(start)
        try:
            query = call()
        except Exception as error:
            self._app.worker.post(self._app.queries.refused, entry, "", error)
            raise
        finally:
            self._app.actions.started(start)
        function = getattr(owner, "_headwater_batches", "")
        self._app.worker.post(self._app.queries.begin, query._jsq, function)  # noqa: SLF001
        return query

    def _around_stop(self, query: Any, call: Callable[[], Any]) -> Any:
        self._note_stop(query)
        return call()

    @once.quiet("noting that a query is stopped")
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

    @once.quiet("telling what is left before Spark stops")
    def _before_close(self) -> None:
        error = sys.exc_info()[1]
        ending = ENDS.now if ENDS.signalled else of_exception(error)
        self._app.settle(ending)
