"""An application: the parent of every action and query of one SparkContext."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.emit import event
from headwater.emit.ends import COMPLETE, ENDS, Ending
from headwater.lineage.events import EventType
from headwater.spark.batch import Actions
from headwater.spark.bridge import Bridge
from headwater.spark.calls import Calls
from headwater.spark.listener import ExecutionListener, QueryListener, Registration
from headwater.spark.reader import Reader
from headwater.spark.root import GRACE_SECONDS, LOOK_SECONDS, Root
from headwater.spark.streaming import Queries

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from headwater.spark import config

EXIT_SECONDS = 15.0
MOST_SESSIONS = 20


class Application(Root):
    """What is told of one SparkContext."""

    def __init__(self, spark: SparkSession, settings: config.Settings) -> None:
        self.bridge = Bridge(spark)
        context = self.bridge.context
        super().__init__(settings, dict(context.getConf().getAll()), str(context.version))
        self.reader = Reader(self.bridge)
        self._registrations: dict[str, Registration] = {}
        self.queries: Queries = Queries(self)
        self.actions: Actions = Actions(self)
        self.calls = Calls(self)
        self.worker.every(lambda: self.actions.interval, self.actions.look)
        self.begin()

    @property
    def over(self) -> bool:
        """Whether this application has nothing more to say."""
        return self._over or self.bridge.stopped

    def listen(self, spark: SparkSession) -> None:
        """Hear a session; a second time changes nothing."""
        java = spark._jsparkSession  # noqa: SLF001
        key = str(java.sessionUUID())
        if key in self._registrations:
            return
        executions = ExecutionListener(self._execution_ended)
        queries = QueryListener(
            lambda found: self.worker.post(self.queries.started, found),
            self.queries.moved,
            lambda found: self.worker.post(self.queries.terminated, found),
        )
        made = Registration.of(self.bridge, java, executions, queries)
        if made is not None:
            if not self._registrations:
                self.bridge.hear_shutdown()
            self._registrations[key] = made
            # A service may make a session for each request; the first is the program's own.
            if len(self._registrations) > MOST_SESSIONS:
                list(self._registrations.values())[-MOST_SESSIONS].release()
            self.worker.post(self._running_already, java)

    def finish(self, ending: Ending) -> None:
        """Say how everything ends; called once, as the process ends."""
        if self._over:
            return
        self.worker.post(self._finish, ending, event.now())
        self._said.wait(EXIT_SECONDS + GRACE_SECONDS)

    def close(self, ending: Ending) -> None:
        """Hear nothing more and say how it ended: detached, or replaced by another application."""
        for registration in self._registrations.values():
            registration.close()
        self.finish(ending)
        self.worker.stop()

    def settle(self, ending: Ending) -> None:
        """Say how everything ends but the application itself: Spark is about to stop."""
        self.bridge.drain(EXIT_SECONDS)
        self.worker.wait(EXIT_SECONDS)
        self.end_parts(ending)

    def flush(self, seconds: float) -> bool:
        """Wait until what has happened so far is told and has arrived."""
        deadline = time.monotonic() + seconds
        drained = self.bridge.drain(seconds) or not self.bridge.alive

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        # The end of an action is posted by what its return has posted.
        told = self.worker.wait(left()) and self.worker.wait(left())
        told = told and self.actions.loose.wait(left())
        return drained and told and self.journal.flush(left())

    def _finish(self, given: Ending, began: float) -> None:
        if self._over:
            return
        drained = self.bridge.drain(max(0.1, EXIT_SECONDS - (event.now() - began)))
        if not drained and given.type is EventType.FAIL:
            self.bridge.fade(LOOK_SECONDS)
        ending = self.ending(given)
        if self._closing is None and self.bridge.lost and not ENDS.signalled:
            ending = gone(self.bridge, given)
        # What the drain brought stands behind this in the queue.
        self.worker.post(self.end_now, ending)

    def leave(self) -> None:
        self.bridge.forget_shutdown()

    def _execution_ended(self, function: str, execution: Any, took: int, error: Any) -> None:
        self.worker.post(self.actions.called_back, function, execution, took, error, droppable=True)

    def _running_already(self, java: Any) -> None:
        for query in java.streams().active():
            self.queries.begin(query)

    def look(self, age: float) -> None:
        if self.bridge.lost:
            self._bereft()
            return
        self.queries.look()
        self.queries.beat(age)
        self.actions.beat(age)
        self.beat(age)

    def _bereft(self) -> None:
        # A signal to the whole process group kills the JVM first; the handler is about to say so.
        time.sleep(LOOK_SECONDS)
        if ENDS.signalled or self._over or self.bridge.stopped:
            return
        self.end_now(gone(self.bridge))


def gone(bridge: Bridge, ending: Ending = COMPLETE) -> Ending:
    """The end of everything when the JVM has died under a living driver."""
    if bridge.leaving:
        return Ending(EventType.ABORT, "JVM stopped")
    message = f"the JVM of the driver is gone{bridge.fate}"
    return Ending(EventType.FAIL, "JVM gone", message, ending.stack_trace)
