"""Calls to the driver's JVM that are not about plans: executions, its listener bus, its end."""

from __future__ import annotations

import contextlib
import os
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.lineage.naming import redact
from headwater.spark.driver.listener import ShutdownHook
from headwater.spark.jvm import unconverted

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# Exit codes after SIGTERM, SIGINT or SIGHUP: the JVM ran its shutdown hooks.
SIGNAL_EXIT_CODES = frozenset({143, 130, 129, -15, -2, -1})
BUSY_SECONDS = 0.2
"""After this long the listener bus of a program is taken to be busy all the time."""
COUNTS = 3
EXECUTION = "org.apache.spark.sql.execution.SQLExecution$"
PLAN = "org.apache.spark.sql.execution.QueryExecution$"


class JvmBridge:
    """The JVM of one SparkContext, reached through py4j."""

    def __init__(self, spark: SparkSession) -> None:
        self.spark = spark
        self.context: Any = spark.sparkContext
        self.gateway: Any = self.context._gateway  # noqa: SLF001
        self.jvm: Any = self.context._jvm  # noqa: SLF001
        self.session: Any = spark._jsparkSession  # noqa: SLF001
        self._scala_context: Any = self.context._jsc.sc()  # noqa: SLF001
        self._listener_bus: Any = self._scala_context.listenerBus()
        self.stopped = False
        self._shutting_down = False
        self._hook: Any = None
        self._parent = os.getppid()
        self._counter: Any = None
        self._executions: Any = None
        self._plans: Any = None
        self._planner: Any = None
        self._events: BusEvents | None = None
        self._find_counter()
        self._find_plans()

    @internal_errors.log_and_ignore(
        "finding running executions (START will be emitted with the end)"
    )
    def _find_counter(self) -> None:
        kind = self.jvm.java.lang.Class.forName(EXECUTION)
        executions = kind.getField("MODULE$").get(None)
        counter = kind.getDeclaredField("_nextExecutionId")
        counter.setAccessible(True)
        counter.get(executions)
        unconverted(executions.getQueryExecution)
        self._executions, self._counter = executions, counter

    @internal_errors.log_and_ignore(
        "finding the number of the next plan (concurrent calls may stay unattributed)"
    )
    def _find_plans(self) -> None:
        kind = self.jvm.java.lang.Class.forName(PLAN)
        counter = kind.getDeclaredField("_nextExecutionId")
        counter.setAccessible(True)
        # Static to Scala 2.13, a field of the one object to 2.12.
        owner = kind.getField("MODULE$").get(None)
        int(counter.get(owner))
        self._plans, self._planner = counter, owner

    @property
    def pinned(self) -> bool:
        """Whether each thread of Python has a thread of the JVM to itself."""
        from py4j.clientserver import ClientServer

        return isinstance(self.gateway, ClientServer)

    @property
    def thread(self) -> Any:
        """The properties that Spark keeps for the JVM's side of the calling thread."""
        found = self._scala_context.getLocalProperties()
        unconverted(found.getProperty)
        return found

    @property
    def next_plan(self) -> int:
        """The number that Spark gives to the next QueryExecution; 0 when it cannot be known."""
        # py4j gives a Java number of any kind, an AtomicLong too, as a number of Python's.
        return 0 if self._plans is None else int(self._plans.get(self._planner))

    @property
    def alive(self) -> bool:
        """Whether the JVM answers and its context has not been stopped."""
        return not self.stopped and self._answers

    @property
    def _answers(self) -> bool:
        """Whether the JVM is there at all: it outlives its context."""
        process = getattr(self.gateway, "proc", None)
        if process is not None:
            return process.poll() is None
        # Under spark-submit the JVM is the parent of this process.
        return "PYSPARK_GATEWAY_PORT" not in os.environ or os.getppid() == self._parent

    def wait_for_exit(self, seconds: float) -> None:
        """Wait for the process of a JVM that answers no more: its ports close before it exits."""
        deadline = time.monotonic() + seconds
        while self.alive and time.monotonic() < deadline:
            time.sleep(0.02)

    @internal_errors.log_and_ignore("adding a shutdown hook to the JVM")
    def add_shutdown_hook(self) -> None:
        """Learn when the JVM shuts down in order, which it cannot report when it is killed."""
        self._hook = self.jvm.java.lang.Thread(ShutdownHook(self._shutdown_started))
        self.jvm.java.lang.Runtime.getRuntime().addShutdownHook(self._hook)

    def remove_shutdown_hook(self) -> None:
        """This process ends first: the JVM must not call it any more."""
        if self._hook is not None and self._answers and not self._shutting_down:
            with contextlib.suppress(Exception):
                self.jvm.java.lang.Runtime.getRuntime().removeShutdownHook(self._hook)
        self._hook = None

    def _shutdown_started(self) -> None:
        self._shutting_down = True

    @property
    def shutting_down(self) -> bool:
        """Whether the JVM shuts down in order, as it does on a signal."""
        process = getattr(self.gateway, "proc", None)
        if process is not None and process.poll() in SIGNAL_EXIT_CODES:
            self._shutting_down = True
        return self._shutting_down

    @property
    def lost(self) -> bool:
        """Whether the JVM is gone, or going, without this program having stopped it."""
        return not self.stopped and (self.shutting_down or not self.alive)

    @property
    def exit_reason(self) -> str:
        """How the JVM ended, where this process is its parent."""
        process = getattr(self.gateway, "proc", None)
        code = process.poll() if process is not None else None
        if code is None:
            return ""
        return f", killed by signal {-code}" if code < 0 else f", with exit code {code}"

    @property
    def next_execution(self) -> int:
        """The number that Spark gives to its next execution."""
        return 0 if self._counter is None else int(self._counter.get(self._executions))

    def execution(self, number: int) -> Any:
        """The QueryExecution of an execution under way, or None when it is over."""
        return self._executions.getQueryExecution(number)

    def drain(self, seconds: float) -> bool:
        """Wait until Spark has called back for everything that has happened so far."""
        if not self.alive:
            return False
        deadline = time.monotonic() + seconds
        events = self._events
        first = min(seconds, BUSY_SECONDS) if events is not None else seconds
        try:
            self._listener_bus.waitUntilEmpty(int(first * 1000))
        except Exception:  # noqa: BLE001
            return events is not None and events.wait(deadline)
        if events is None:
            self._events = BusEvents.of(self._listener_bus)
        return True

    def trace(self, throwable: Any) -> str:
        """The stack trace of a JVM exception."""
        utils = getattr(self.jvm, "org.apache.spark.util.Utils")
        return redact(str(utils.exceptionString(throwable)))


class BusEvents:
    """How many events Spark has posted, and how many of them our listeners have been called with.

    With calls on many threads the listener bus is never empty, but the events until now are over soon.
    """

    def __init__(self, bus: Any) -> None:
        registry = bus.metrics().metricRegistry()
        self._posted = registry.counter("numEventsPosted")
        self._processed = registry.timer("queue.shared.listenerProcessingTime")
        self._dropped = registry.counter("queue.shared.numDroppedEvents")
        # Those from before the queue was there are never processed. An event that is posted between
        # the two readings would be taken for one of them: the lowest difference is right.
        self._never = min(self._count(bus) for _ in range(COUNTS))

    @staticmethod
    @internal_errors.log_and_ignore(
        "counting the events of the listener bus (ends may take longer)"
    )
    def of(bus: Any) -> BusEvents:
        """The events of a bus, which is empty now."""
        return BusEvents(bus)

    def wait(self, deadline: float) -> bool:
        """Wait for the events until now; False when the time is up."""
        try:
            wanted = int(self._posted.getCount()) - self._never
            while self._over < wanted:
                if time.monotonic() > deadline:
                    return False
                time.sleep(0.02)
        except Exception:  # noqa: BLE001
            return False
        return True

    def _count(self, bus: Any) -> int:
        bus.waitUntilEmpty(int(BUSY_SECONDS * 1000))
        over = self._over
        return int(self._posted.getCount()) - over

    @property
    def _over(self) -> int:
        return int(self._processed.getCount()) + int(self._dropped.getCount())


def trace_of(error: BaseException) -> str:
    """The JVM's trace inside a Python exception, where there is one."""
    for name in ("_stackTrace", "stackTrace"):  # the latter up to Spark 3.5
        found = getattr(error, name, None)
        if isinstance(found, str):
            return found
    java = getattr(error, "java_exception", None)
    if java is None:
        return ""
    try:
        from pyspark import SparkContext

        utils = getattr(SparkContext._jvm, "org.apache.spark.util.Utils")  # noqa: SLF001
        return str(utils.exceptionString(java))
    except Exception:  # noqa: BLE001
        return ""
