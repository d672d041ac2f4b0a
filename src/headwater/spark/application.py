"""An application: the parent of every action and query of one SparkContext."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import event, session
from headwater.emit.ends import COMPLETE, ENDS, Ending
from headwater.emit.life import Life, new_run_id
from headwater.emit.parent import Ancestors, RunRef
from headwater.lineage.events import EventType
from headwater.spark import config, facets, names
from headwater.spark.batch import Actions
from headwater.spark.bridge import Bridge
from headwater.spark.calls import Calls
from headwater.spark.flow import SECONDS as FLOW_SECONDS
from headwater.spark.flow import Flow
from headwater.spark.listener import ExecutionListener, QueryListener, Registration
from headwater.spark.reader import Reader
from headwater.spark.streaming import Queries
from headwater.spark.worker import Worker

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXIT_SECONDS = 15.0
GRACE_SECONDS = 5.0
LOOK_SECONDS = 1.0


class Application:
    """What is told of one SparkContext."""

    def __init__(self, spark: SparkSession, settings: config.Settings) -> None:
        self.settings = settings
        self.bridge = Bridge(spark)
        self.journal = session.journal(settings.transport or None)
        self.worker = Worker("headwater-spark")
        self.flow = Flow(self.journal)
        self.reader = Reader(self.bridge)
        self._closing: tuple[float, Ending] | None = None
        self._over = False
        self._said = threading.Event()
        self._registrations: dict[str, Registration] = {}
        version = str(self.bridge.context.version)
        conf = dict(self.bridge.context.getConf().getAll())
        self._about_runs = facets.of_run(settings, conf, version)
        ref = RunRef(settings.namespace, names.plain(settings), new_run_id())
        above = settings.ancestors
        self._below = above.below(ref) if above else Ancestors(ref, ref)
        self.life = Life(
            self.journal,
            ref,
            run_facets={**({"parent": above.facet} if above else {}), **self._about_runs},
            job_facets=facets.of_job(settings, "BATCH", "APPLICATION"),
            without=settings.disabled_facets,
        )
        self._silent = not settings.allows_job(ref.name)
        self.queries = Queries(self)
        self.actions = Actions(self)
        self.calls = Calls(self)
        self.worker.every(lambda: self.actions.interval, self.actions.look)
        self.worker.every(lambda: LOOK_SECONDS, self._watch)
        self.worker.every(lambda: FLOW_SECONDS, lambda: self.flow.post(self.queries.open))
        if not self._silent:
            self.worker.post(self.life.start, event.now())

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
            self.worker.post(self._running_already, java)

    def child(self, name: str, processing: str, kind: str) -> Life | None:
        """A run below this application, or None when a filter keeps it out."""
        if not self.settings.allows_job(name):
            return None
        ref = RunRef(self.settings.namespace, name, new_run_id())
        return Life(
            self.journal,
            ref,
            run_facets={"parent": self._below.facet, **self._about_runs},
            job_facets=facets.of_job(self.settings, processing, kind),
            without=self.settings.disabled_facets,
        )

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
        self.worker.post(self.actions.end_all, ending)
        self.worker.post(self.queries.end_all, ending)
        self.worker.wait(GRACE_SECONDS)
        # The program may still fail after this; the application's own end waits for it a little.
        self._closing = (time.monotonic(), ending)

    def flush(self, seconds: float) -> bool:
        """Wait until what has happened so far is told and has arrived."""
        deadline = time.monotonic() + seconds
        drained = self.bridge.drain(seconds) or not self.bridge.alive

        def left() -> float:
            return max(0.0, deadline - time.monotonic())

        # The end of an action is posted by what its return has posted.
        told = self.worker.wait(left()) and self.worker.wait(left())
        return drained and told and self.journal.flush(left())

    def _finish(self, ending: Ending, began: float) -> None:
        if self._over:
            return
        if self._closing is not None and ending.type is EventType.COMPLETE:
            ending = self._closing[1]
        elif self.bridge.lost and not ENDS.signalled:
            ending = gone(self.bridge, ending)
        self.bridge.drain(max(0.1, EXIT_SECONDS - (event.now() - began)))
        # What the drain brought stands behind this in the queue.
        self.worker.post(self._finish_now, ending)

    def _finish_now(self, ending: Ending) -> None:
        if self._over:
            return
        self.actions.end_all(ending)
        self.queries.end_all(ending)
        self._over = True
        self.life.end(ending)
        self.bridge.forget_shutdown()
        self._said.set()

    def _execution_ended(self, function: str, execution: Any, took: int, error: Any) -> None:
        self.worker.post(self.actions.called_back, function, execution, took, error, droppable=True)

    def _running_already(self, java: Any) -> None:
        for query in java.streams().active():
            self.queries.begin(query)

    def _watch(self) -> None:
        if self._over:
            return
        if self._closing is not None:
            if time.monotonic() - self._closing[0] > GRACE_SECONDS:
                self._finish_now(self._closing[1])
            return
        if self.bridge.lost:
            self._bereft()
            return
        self.queries.look()
        age = self.settings.heartbeat
        self.queries.beat(age)
        self.actions.beat(age)
        if not self._silent and event.now() - self.life.told >= age:
            self.life.running()

    def _bereft(self) -> None:
        # A signal to the whole process group kills the JVM first; the handler is about to say so.
        time.sleep(LOOK_SECONDS)
        if ENDS.signalled or self._over or self.bridge.stopped:
            return
        self._finish_now(gone(self.bridge))


def gone(bridge: Bridge, ending: Ending = COMPLETE) -> Ending:
    """The end of everything when the JVM has died under a living driver."""
    if bridge.leaving:
        return Ending(EventType.ABORT, "JVM stopped")
    message = f"the JVM of the driver is gone{bridge.fate}"
    return Ending(EventType.FAIL, "JVM gone", message, ending.stack_trace)
