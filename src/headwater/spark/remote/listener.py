"""The listener to streaming queries of a Spark Connect client, where its PySpark has one.

The server sends query events over gRPC to a thread of the client; there is no py4j and no listener to
executions, unlike `driver/listener.py`.
"""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import RunEnd, failed
from headwater.spark.remote.messages import knows
from headwater.spark.remote.server_client import own_requests

if TYPE_CHECKING:
    from collections.abc import Callable

    Progressed = Callable[[str, str], None]
    Terminated = Callable[[str, RunEnd | None], None]


class RemoteQueryListener:
    """Registered with the first query; where it is not `available`, queries must be polled."""

    def __init__(self, spark: Any, progressed: Progressed, terminated: Terminated) -> None:
        self._spark = spark
        self._callbacks = (progressed, terminated)
        self._registered: Any = None
        self.available = True

    @internal_errors.log_and_ignore("listening to streaming queries")
    def register(self) -> None:
        """Receive events of every query of the session; a second time changes nothing."""
        if self._registered is not None or not self.available:
            return
        import pyspark.sql.connect.proto as messages
        from pyspark.sql.connect.streaming import query as module

        self.available = False
        if not knows(messages.Command, "streaming_query_listener_bus_command"):
            # Spark 3.5 runs a listener on the server, from where it cannot reach this process.
            return
        listener = _listener(*self._callbacks)
        # The client's own thread would keep a program from ending that does not stop its session.
        patched: Any = module
        before = patched.Thread
        patched.Thread = functools.partial(threading.Thread, daemon=True)
        try:
            with own_requests():
                self._spark.streams.addListener(listener)
        finally:
            patched.Thread = before
        self._registered, self.available = listener, True

    @internal_errors.log_and_ignore("removing the listener to streaming queries")
    def unregister(self) -> None:
        """Receive no more events."""
        if self._registered is not None:
            with own_requests():
                self._spark.streams.removeListener(self._registered)
            self._registered = None


def failure(text: str) -> RunEnd:
    """The end of a query with an exception."""
    lines = [line for line in text.splitlines() if line.strip()]
    message = lines[0] if lines else "the query failed"
    return failed("query exception", message, text)


def _listener(progressed: Progressed, terminated: Terminated) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    # The names of methods are Spark's.
    class Listener(StreamingQueryListener):
        """Hands over what the server reports."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            progressed(str(event.progress.runId), event.progress.json)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            terminated(str(event.runId), failure(str(event.exception)) if event.exception else None)

    return Listener()
