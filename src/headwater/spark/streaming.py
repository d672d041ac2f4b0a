"""Streaming queries: each start of a query is one run of one job, however many batches it takes."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.emit import event, once
from headwater.emit.ends import COMPLETE, ENDS, Ending, of_exception
from headwater.lineage.events import EventType
from headwater.spark import facets, names, progress

if TYPE_CHECKING:
    from headwater.emit.life import Life
    from headwater.spark.application import Application
    from headwater.spark.entries import Entry
    from headwater.spark.model import PlanLineage

BOUNDED = ("AvailableNow", "OneTime", "Once")
BATCHES_READ = 3
STOPPED = Ending(EventType.ABORT, "stopped")


class Query:
    """One run of a streaming query."""

    def __init__(self, application: Application, query: Any, function: str) -> None:
        self._app = application
        self.renames = application.settings.renames
        self.java = query
        self.spark_run = str(query.runId().toString())
        execution = query.streamingQuery() if _has_wrapper(query) else query
        self.batches = "ForeachBatch" in str(execution.sink().getClass().getName())
        self.session = str(execution.sparkSessionForStream().sessionUUID())
        self.bounded = str(execution.trigger().toString()).startswith(BOUNDED)
        self.lineage = application.reader.streaming(query)
        self.progress: progress.Progress | None = None
        self.stopped = False
        self._batches: dict[str, int] = {}
        self._sources: PlanLineage = self.lineage
        self._topics: frozenset[str] = frozenset()
        self._function = function
        name = query.name() or self._unnamed()
        self.life: Life | None = application.child(str(name), "STREAMING", "STREAMING_QUERY")
        if self.life is not None:
            self._tell()
            self.life.start()

    @property
    def ref(self) -> Any:
        """The run as others name it."""
        assert self.life is not None
        return self.life.ref

    def look(self) -> None:
        """Take in the latest progress; new topics are told at once."""
        latest = self.java.lastProgress()
        if latest is None:
            return
        self.progress = progress.read(str(latest.json()))
        topics = self.progress.topics
        if self._topics and topics - self._topics:
            self._reread()
        self._topics = self._topics | topics

    def wrote(self, execution: Any) -> None:
        """A batch inside `foreachBatch` has run a command: what it wrote is the query's output."""
        node = str(execution.logical().nodeName())
        count = self._batches[node] = self._batches.get(node, 0) + 1
        # Every batch runs the same code: later ones are read now and then, to see a change.
        if count > BATCHES_READ and count & (count - 1):
            return
        found = self._app.reader.join(execution, self._sources)
        if not found.outputs:
            return
        before = {one.id: one for one in (*self.lineage.inputs, *self.lineage.outputs)}
        if all(one.id in before for one in (*found.inputs, *found.outputs)) and all(
            self.lineage.columns.get(key) == value for key, value in found.columns.items()
        ):
            return
        self.lineage = merged(self.lineage, found)
        self._tell()
        if self.life is not None:
            self.life.running(self._facets())

    def beat(self, age: float) -> None:
        """Say that the query still runs, with where it has got to."""
        if self.life is not None and event.now() - self.life.told >= age:
            self.life.running(self._facets())

    def end(self, ending: Ending) -> None:
        """Say how the query ended."""
        if self.life is not None:
            self.life.end(ending, self._facets())

    def _reread(self) -> None:
        found = self._app.reader.streaming(self.java)
        if not found.inputs:
            return
        self._sources = found
        kept = [one for one in self.lineage.outputs if one not in found.outputs]
        self.lineage = merged(found, replace(self.lineage, inputs=(), outputs=tuple(kept)))
        self._tell()
        if self.life is not None:
            self.life.running(self._facets())

    def _facets(self) -> dict[str, Any]:
        return {"headwater_streaming": self.progress.facet} if self.progress else {}

    def _tell(self) -> None:
        if self.life is not None:
            self.life.inputs = facets.inputs(self.lineage, self._app.settings)
            self.life.outputs = facets.outputs(self.lineage, self._app.settings)
            self.life.run_facets.update(facets.problems(self.lineage))

    def _unnamed(self) -> str:
        sink = next(iter(self.lineage.outputs), None)
        if sink is not None:
            return names.plain(self._app.settings, "streaming", names.short(sink))
        if self._function:
            return names.plain(self._app.settings, "foreach_batch", names.snake(self._function))
        source = next(iter(self.lineage.inputs), None)
        return names.plain(
            self._app.settings, "streaming", "from_" + names.short(source) if source else ""
        )


def _has_wrapper(query: Any) -> bool:
    return "Wrapper" in str(query.getClass().getSimpleName())


def merged(first: PlanLineage, second: PlanLineage) -> PlanLineage:
    """Two readings of one job as one: what the second says of a dataset stands."""

    def union(a: tuple[Any, ...], b: tuple[Any, ...]) -> tuple[Any, ...]:
        return tuple({one.id: one for one in (*a, *b)}.values())

    return replace(
        first,
        inputs=union(first.inputs, second.inputs),
        outputs=union(first.outputs, second.outputs),
        columns={**first.columns, **second.columns},
        problems=tuple(dict.fromkeys((*first.problems, *second.problems))),
    )


class Queries:
    """The streaming queries of an application; everything here happens on the worker's thread."""

    def __init__(self, application: Application) -> None:
        self._app = application
        self._open: dict[str, Query] = {}
        self._ended: dict[str, float] = {}
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
            return
        self._ended[run] = time.monotonic()
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
            message = str(error.get()).splitlines()[0]
            from headwater.lineage.naming import redact

            return Ending(EventType.FAIL, "query exception", redact(message), redact(trace))
        return COMPLETE if query.bounded and run not in self._stopping else STOPPED

    @once.quiet("reading why a query failed")
    def _trace(self, query: Query) -> str:
        raised = query.java.exception()
        return self._app.bridge.trace(raised.get()) if raised.isDefined() else ""
