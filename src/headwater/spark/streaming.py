"""Streaming queries: each start of a query is one run of one job, however many batches it takes."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.emit.ends import COMPLETE, ENDS, Ending, failed, of_exception
from headwater.lineage.events import EventType
from headwater.spark import names
from headwater.spark.query import Query

if TYPE_CHECKING:
    from headwater.spark.application import Application
    from headwater.spark.entries import Entry

KEPT = 1000
KEPT_EARLY = 64
STOPPED = Ending(EventType.ABORT, "stopped")


class Queries:
    """The streaming queries of an application; everything here happens on the worker's thread."""

    def __init__(self, application: Application) -> None:
        self._app = application
        self._open: dict[str, Query] = {}
        self._ended: deque[str] = deque(maxlen=KEPT)
        self._early: dict[str, Any] = {}
        self._stopping: set[str] = set()
        self._moved = False

    @property
    def open(self) -> list[Query]:
        """The queries that run."""
        return list(self._open.values())

    def moved(self) -> None:
        """A batch is over somewhere; called from Spark's thread, so it only notes it."""
        self._moved = True

    def started(self, found: Any) -> None:
        """Spark says that a query starts."""
        run = found.runId()
        if str(run.toString()) in self._open:
            return
        java = self._app.bridge.session.streams().get(found.id())
        if java is not None:
            self.begin(java)

    def begin(self, java: Any, function: str = "") -> None:
        """A query has started; its sources and sinks can be read at once."""
        run = str(java.runId().toString())
        if run in self._open or run in self._ended:
            return
        query = Query(self._app, java, function)
        self._open[query.spark_run] = query
        if run in self._early:
            self.terminated(self._early.pop(run))

    def refused(self, entry: Entry, name: str, error: BaseException) -> None:
        """A query could not start."""
        target = names.snake(entry.target.rsplit("/", 1)[-1])
        given = name or names.plain(self._app.settings, "streaming", target)
        life = self._app.child(given, "STREAMING", "STREAMING_QUERY")
        if life is not None:
            life.start()
            life.end(of_exception(error))

    def stopping(self, run: str) -> None:
        """The program stops a query that runs."""
        self._stopping.add(run)

    def terminated(self, found: Any) -> None:
        """Spark says that a query is over."""
        run = str(found.runId().toString())
        query = self._open.pop(run, None)
        if query is None:
            # One that fails at once may be over before its start has returned.
            if run not in self._ended:
                self._early[run] = found
                while len(self._early) > KEPT_EARLY:
                    self._early.pop(next(iter(self._early)))
            return
        self._ended.append(run)
        self._look(query)
        query.end(self._ending(query, found, run))
        self._stopping.discard(run)

    def owner(self, execution: Any) -> Query | None:
        """The query in whose batch an execution runs."""
        if not self._open:
            return None
        session = str(execution.sparkSession().sessionUUID())
        return next((q for q in self._open.values() if q.session == session), None)

    def look(self) -> None:
        """Read where the queries have got to."""
        if self._moved and self._app.bridge.alive:
            self._moved = False
            for query in self.open:
                self._look(query)

    def beat(self, age: float) -> None:
        """Say that they run."""
        for query in self.open:
            query.beat(age)

    def end_all(self, ending: Ending) -> None:
        """The process, the session or the JVM ends with these running."""
        said = STOPPED if ending.type is EventType.COMPLETE else ending
        for run, query in list(self._open.items()):
            if self._app.bridge.alive:
                self._look(query)
            query.end(STOPPED if run in self._stopping else said)
        self._open.clear()

    @once.quiet("reading a query's progress")
    def _look(self, query: Query) -> None:
        query.look()

    def _ending(self, query: Query, found: Any, run: str) -> Ending:
        if ENDS.signalled:
            return Ending(EventType.ABORT, f"signal {ENDS.signalled}")
        if self._app.bridge.leaving:
            return Ending(EventType.ABORT, "JVM stopped")
        error = found.exception()
        if error.isDefined():
            trace = self._trace(query) or str(error.get())
            return failed("query exception", str(error.get()).partition("\n")[0], trace)
        return COMPLETE if query.bounded and run not in self._stopping else STOPPED

    @once.quiet("reading why a query failed")
    def _trace(self, query: Query) -> str:
        raised = query.java.exception()
        return self._app.bridge.trace(raised.get()) if raised.isDefined() else ""
