"""The client's own listener to streaming queries, where its version of PySpark has one."""

from __future__ import annotations

import functools
import threading
from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.emit.ends import Ending, failed
from headwater.spark.remote.messages import knows
from headwater.spark.remote.world import asking

if TYPE_CHECKING:
    from collections.abc import Callable

    Progressed = Callable[[str, str], None]
    Terminated = Callable[[str, Ending | None], None]


class Listener:
    """Registered with the first query; `deaf` where nothing can be heard, so that one must ask."""

    def __init__(self, spark: Any, progressed: Progressed, terminated: Terminated) -> None:
        self._spark = spark
        self._told = (progressed, terminated)
        self._registered: Any = None
        self.deaf = False

    @once.quiet("listening to streaming queries")
    def open(self) -> None:
        """Hear of every query of the session; a second time changes nothing."""
        if self._registered is not None or self.deaf:
            return
        import pyspark.sql.connect.proto as messages
        from pyspark.sql.connect.streaming import query as module

        self.deaf = True
        if not knows(messages.Command, "streaming_query_listener_bus_command"):
            # Spark 3.5 runs a listener on the server, from where it cannot tell us anything.
            return
        listener = _made(*self._told)
        # The client's own thread would keep a program from ending that does not stop its session.
        kept: Any = module
        before = kept.Thread
        kept.Thread = functools.partial(threading.Thread, daemon=True)
        try:
            with asking():
                self._spark.streams.addListener(listener)
        finally:
            kept.Thread = before
        self._registered, self.deaf = listener, False

    @once.quiet("leaving streaming queries alone")
    def close(self) -> None:
        """Hear nothing more."""
        if self._registered is not None:
            with asking():
                self._spark.streams.removeListener(self._registered)
            self._registered = None


def failure(text: str) -> Ending:
    """The end of a query with an exception."""
    lines = [line for line in text.splitlines() if line.strip()]
    message = lines[0] if lines else "the query failed"
    return failed("query exception", message, text)


def _made(progressed: Progressed, terminated: Terminated) -> Any:
    from pyspark.sql.streaming.listener import StreamingQueryListener

    # The names of methods are Spark's.
    class Heard(StreamingQueryListener):
        """Hands over what the server says."""

        def onQueryStarted(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryProgress(self, event: Any) -> None:  # noqa: N802
            found = event.progress
            progressed(str(found.runId), found.json)

        def onQueryIdle(self, event: Any) -> None:  # noqa: N802
            pass

        def onQueryTerminated(self, event: Any) -> None:  # noqa: N802
            terminated(str(event.runId), failure(str(event.exception)) if event.exception else None)

    return Heard()
