"""Spark's listeners, called by the driver's JVM through py4j; each hands over and returns at once.

A Spark Connect client has no JVM to be called by: its listener is `remote/listener.py`, and it hears
of streaming queries only.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.driver.bridge import JvmBridge

# The names of methods and of the class inside are Java's.
# ruff: noqa: N802


class ExecutionListener:
    """Receives the end of every command and action of a session."""

    def __init__(self, ended: Callable[[str, Any, int, Any], None]) -> None:
        self._ended: Callable[[str, Any, int, Any], None] | None = ended

    def onSuccess(self, function: str, execution: Any, nanoseconds: int) -> None:
        if self._ended:
            self._ended(function, execution, nanoseconds, None)

    def onFailure(self, function: str, execution: Any, error: Any) -> None:
        if self._ended:
            self._ended(function, execution, 0, error)

    def disable(self) -> None:
        """Ignore further callbacks, also of sessions that were cloned from this one."""
        self._ended = None

    def equals(self, other: Any) -> bool:
        """Spark compares every listener when one is unregistered."""
        return other is self

    def hashCode(self) -> int:
        return id(self) & 0x7FFFFFFF

    class Java:
        implements = ("org.apache.spark.sql.util.QueryExecutionListener",)


class QueryListener:
    """Receives start, progress and end of every streaming query of a session."""

    def __init__(
        self,
        started: Callable[[Any], None],
        progressed: Callable[[], None],
        terminated: Callable[[Any], None],
    ) -> None:
        self._started, self._progressed, self._terminated = started, progressed, terminated
        self._disabled = False

    def onQueryStarted(self, event: Any) -> None:
        if not self._disabled:
            self._started(event)

    def onQueryProgress(self, _event: Any) -> None:
        if not self._disabled:
            self._progressed()

    def onQueryIdle(self, _event: Any) -> None:
        pass

    def onQueryTerminated(self, event: Any) -> None:
        if not self._disabled:
            self._terminated(event)

    def disable(self) -> None:
        """Ignore further callbacks."""
        self._disabled = True

    class Java:
        implements = ("org.apache.spark.sql.streaming.PythonStreamingQueryListener",)


class ShutdownHook:
    """Runs when the JVM shuts down in order."""

    def __init__(self, shutdown_started: Callable[[], None]) -> None:
        self._shutdown_started = shutdown_started

    def run(self) -> None:
        self._shutdown_started()

    class Java:
        implements = ("java.lang.Runnable",)


class Registration:
    """Both listeners of one session, while they are registered."""

    def __init__(
        self, bridge: JvmBridge, session: Any, executions: ExecutionListener, queries: QueryListener
    ) -> None:
        from pyspark.java_gateway import ensure_callback_server_started

        start: Any = ensure_callback_server_started
        start(bridge.gateway)
        self._session = session
        self._gateway = bridge.gateway
        self._listeners = (executions, queries)
        self._manager = session.listenerManager()
        # py4j makes a new proxy each time a Python object is passed; inside a Java array it stays one,
        # so that unregister finds the listener that was registered.
        jvm = bridge.jvm
        self._held = bridge.gateway.new_array(jvm.java.lang.Object, 1)
        jvm.java.lang.reflect.Array.set(self._held, 0, executions)
        self._listener = jvm.java.lang.Class.forName(executions.Java.implements[0])
        self._call("register")
        wrapper = bridge.jvm.org.apache.spark.sql.streaming.PythonStreamingQueryListenerWrapper
        self._wrapped = wrapper(queries)
        session.streams().addListener(self._wrapped)

    def close(self) -> None:
        """Unregister both listeners."""
        for listener in self._listeners:
            listener.disable()
        if self._session is None:
            return
        with contextlib.suppress(Exception):
            self._call("unregister")
        with contextlib.suppress(Exception):
            self._session.streams().removeListener(self._wrapped)

    def release(self) -> None:
        """Stay registered, but let the JVM collect the session when its program drops it."""
        self._session = self._manager = self._held = self._wrapped = None

    def _call(self, name: str) -> None:
        method = self._manager.getClass().getMethod(name, self._types())
        method.invoke(self._manager, self._held)

    def _types(self) -> Any:
        types = self._gateway.new_array(self._gateway.jvm.java.lang.Class, 1)
        types[0] = self._listener
        return types

    @staticmethod
    @internal_errors.log_and_ignore("listening to a session")
    def of(
        bridge: JvmBridge, session: Any, executions: ExecutionListener, queries: QueryListener
    ) -> Registration:
        """A registration, or nothing when Spark refuses it."""
        return Registration(bridge, session, executions, queries)
