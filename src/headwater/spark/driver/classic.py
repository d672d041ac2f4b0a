"""The application of a driver with a JVM (Spark Classic): one SparkContext and its sessions."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.emit.process.process_exit import COMPLETE, PROCESS_EXIT, RunEnd
from headwater.lineage.openlineage.events import EventType
from headwater.spark.batch.tracker import ActionTracker
from headwater.spark.driver.application import GRACE_SECONDS, POLL_SECONDS, Application
from headwater.spark.driver.bridge import JvmBridge
from headwater.spark.driver.calls import EntryPointCalls
from headwater.spark.driver.listener import ExecutionListener, QueryListener, Registration
from headwater.spark.driver.plan_reader import PlanReader
from headwater.spark.log_filter import OwnErrorsFilter
from headwater.spark.streaming.queries import ClassicQueries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.spark.driver import config

EXIT_SECONDS = 15.0
MAX_SESSIONS = 20


class ClassicApplication(Application):
    """The application of one SparkContext."""

    def __init__(self, spark: SparkSession, settings: config.SparkSettings) -> None:
        self.bridge = JvmBridge(spark)
        context = self.bridge.context
        conf = dict(context.getConf().getAll())
        super().__init__(settings, conf, str(context.version), context.uiWebUrl or "")
        self.reader = PlanReader(self.bridge)
        worker = self.worker.name
        self._own_errors = OwnErrorsFilter(lambda: threading.current_thread().name == worker)
        self._registrations: dict[str, Registration] = {}
        self.queries: ClassicQueries = ClassicQueries(self)
        self.actions: ActionTracker = ActionTracker(self)
        self.calls = EntryPointCalls(self)
        self.worker.every(lambda: self.actions.poll_interval, self.actions.poll)
        self.begin()

    @property
    def over(self) -> bool:
        """Whether this application emits nothing more."""
        return self._over or self.bridge.stopped

    def listen(self, spark: SparkSession) -> None:
        """Register listeners with a session; a second time changes nothing."""
        java = spark._jsparkSession  # noqa: SLF001
        key = str(java.sessionUUID())
        if key in self._registrations:
            return
        executions = ExecutionListener(self._execution_ended)
        queries = QueryListener(
            lambda started: self.worker.post(self.queries.started, started),
            self.queries.progressed,
            lambda terminated: self.worker.post(self.queries.terminated, terminated),
        )
        made = Registration.of(self.bridge, java, executions, queries)
        if made is not None:
            if not self._registrations:
                self.bridge.add_shutdown_hook()
                # Counts the events of the listener bus while it is idle.
                self.worker.post(self.bridge.drain, POLL_SECONDS)
            self._registrations[key] = made
            # A service may make a session for each request; the first is the program's own.
            if len(self._registrations) > MAX_SESSIONS:
                list(self._registrations.values())[-MAX_SESSIONS].release()
            self.worker.post(self._add_running_queries, java)

    def finish(self, ending: RunEnd) -> None:
        """End everything; called once, as the process ends."""
        if self._over:
            return
        self.worker.post(self._finish, ending, time.time())
        self._ended.wait(EXIT_SECONDS + GRACE_SECONDS)

    def close(self, ending: RunEnd) -> None:
        """Unregister the listeners and end everything: detached, or replaced by another."""
        for registration in self._registrations.values():
            registration.close()
        self.finish(ending)
        self.worker.stop()

    def settle(self, ending: RunEnd) -> None:
        """End everything but the application itself: Spark is about to stop."""
        self.bridge.drain(EXIT_SECONDS)
        self.worker.wait(EXIT_SECONDS)
        self.end_children(ending)

    def flush(self, seconds: float) -> bool:
        """Wait until what has happened so far is emitted and received."""
        deadline = time.monotonic() + seconds
        drained = self.bridge.drain(seconds) or not self.bridge.alive

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        # The end of an action is posted by the task that its return has posted.
        emitted = self.worker.wait(left()) and self.worker.wait(left())
        emitted = emitted and self.actions.unattributed.wait(left())
        return drained and emitted and self.journal.flush(left())

    def _finish(self, given: RunEnd, began: float) -> None:
        if self._over:
            return
        drained = self.bridge.drain(max(0.1, EXIT_SECONDS - (time.time() - began)))
        if not drained and given.type is EventType.FAIL:
            self.bridge.wait_for_exit(POLL_SECONDS)
        ending = self.ending(given)
        if self._closing is None and self.bridge.lost and not PROCESS_EXIT.signalled:
            ending = jvm_gone(self.bridge, given)
        # The callbacks that the drain has brought are in the queue before this.
        self.worker.post(self.end_now, ending)

    def after_end(self) -> None:
        self._own_errors.close()
        self.bridge.remove_shutdown_hook()

    def _execution_ended(self, function: str, execution: Any, took: int, error: Any) -> None:
        self.worker.post(
            self.actions.execution_ended, function, execution, took, error, time.time(),
            droppable=True,
        )  # fmt: skip

    def _add_running_queries(self, java: Any) -> None:
        for query in java.streams().active():
            self.queries.begin(query)

    def poll(self, age: float) -> None:
        if self.bridge.lost:
            self._end_without_jvm()
            return
        self.queries.poll()
        self.queries.heartbeat(age)
        self.actions.heartbeat(age)
        self.heartbeat(age)

    def _end_without_jvm(self) -> None:
        # A signal to the whole process group kills the JVM first; our own handler is about to run.
        time.sleep(POLL_SECONDS)
        if PROCESS_EXIT.signalled or self._over or self.bridge.stopped:
            return
        self.end_now(jvm_gone(self.bridge))


def jvm_gone(bridge: JvmBridge, ending: RunEnd = COMPLETE) -> RunEnd:
    """The end of everything when the JVM has died under a living driver."""
    if bridge.shutting_down:
        return RunEnd(EventType.ABORT, "JVM stopped")
    message = f"the JVM of the driver is gone{bridge.exit_reason}"
    return RunEnd(EventType.FAIL, "JVM gone", message, ending.stack_trace)
