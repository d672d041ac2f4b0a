"""Streaming queries of a Spark Connect client: each start is one run, heard of by its listener."""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import once
from headwater.emit.ends import COMPLETE, ENDS, Ending, of_exception
from headwater.lineage.events import EventType
from headwater.spark import names, progress
from headwater.spark.remote import reading
from headwater.spark.remote.listener import Listener, failure
from headwater.spark.remote.query import Query
from headwater.spark.remote.world import asking
from headwater.spark.streaming import STOPPED

if TYPE_CHECKING:
    from headwater.spark.model import PlanLineage
    from headwater.spark.remote.application import RemoteApplication

POLL_SECONDS = 5.0
MOST_SILENT = 3
_GONE = Ending(EventType.FAIL, "server gone", "the Spark Connect server does not answer any more")


class Queries:
    """The streaming queries of a session that run; all but the hand-over is the worker's."""

    def __init__(self, application: RemoteApplication) -> None:
        self._app = application
        self._open: dict[str, Query] = {}
        self._over: dict[str, Ending] = {}
        self._stopping: set[str] = set()
        self._listener = Listener(
            application.spark,
            lambda *told: application.worker.post(self.progressed, *told),
            lambda *told: application.worker.post(self.terminated, *told),
        )
        self._polled = time.monotonic()

    @property
    def open(self) -> list[Query]:
        """The queries that run."""
        return list(self._open.values())

    def begin(self, start: Any, result: Any, function: str, handle: Any) -> None:
        """A query has been started: read it, then tell of it. Runs where the server is asked."""
        self._listener.open()
        lineage = self._lineage(start, frozenset())
        self._app.worker.post(self._began, start, result, function, handle, lineage)

    def _lineage(self, start: Any, topics: frozenset[str]) -> PlanLineage:
        app = self._app
        return reading.of_frame(
            app.server,
            start.input,
            lambda world: reading.stream_target(world, start),
            app.pool,
            topics,
        ).lineage()

    def _began(
        self, start: Any, result: Any, function: str, handle: Any, lineage: PlanLineage
    ) -> None:
        run = str(result.query_id.run_id)
        name = str(result.name or start.query_name) or self._unnamed(lineage, function)
        query = Query(self._app, run, name, lineage)
        query.bounded = bool(start.available_now or start.once)
        query.handle = handle
        query.start = start
        if query.life is not None:
            query.life.start()
        self._open[run] = query
        self._polled = 0.0
        if run in self._over:
            self.terminated(run, self._over.pop(run))

    def _unnamed(self, lineage: PlanLineage, function: str) -> str:
        settings = self._app.settings
        if lineage.outputs:
            return names.plain(settings, "streaming", names.short(lineage.outputs[0]))
        if function:
            return names.plain(settings, "foreach_batch", names.snake(function))
        source = next(iter(lineage.inputs), None)
        return names.plain(settings, "streaming", "from_" + names.short(source) if source else "")

    def refused(self, start: Any, error: BaseException) -> None:
        """A query could not be started."""
        options = dict(start.options)
        target = start.table_name or options.get("topic") or start.path or options.get("path", "")
        short = names.snake("_".join(str(target).replace("/", ".").split(".")[-2:]))
        name = str(start.query_name) or names.plain(self._app.settings, "streaming", short)
        life = self._app.child(name, "STREAMING", "STREAMING_QUERY")
        if life is not None:
            life.start()
            life.end(of_exception(error))

    def stopping(self, run: str) -> None:
        """The program stops a query."""
        self._stopping.add(run)
        self._polled = 0.0

    def progressed(self, run: str, text: str) -> None:
        """A batch is done."""
        query = self._open.get(run)
        if query is not None:
            query.progress = progress.read(text)
            topics = query.topics | query.progress.topics
            if query.patterned and topics != query.topics:
                # A batch says what a pattern stands for.
                self._app.ask(self._reread, query, topics)
            query.topics = topics

    def _reread(self, query: Query, topics: frozenset[str]) -> None:
        lineage = self._lineage(query.start, topics)
        self._app.worker.post(self._retold, query, lineage)

    @staticmethod
    def _retold(query: Query, lineage: PlanLineage) -> None:
        query.tell(lineage)
        if query.life is not None:
            query.life.running(query.facets())

    def terminated(self, run: str, ending: Ending | None) -> None:
        """A query is over; without an ending it ended without a fault."""
        query = self._open.get(run)
        if query is not None and query.patterned and not query.settled and ending is not _GONE:
            # What its last batch said of topics is being read.
            query.settled = True
            self._app.ask(self._app.worker.post, self.terminated, run, ending)
            return
        self._open.pop(run, None)
        if query is None:
            # It may be over before its start has been told.
            self._over[run] = ending or COMPLETE
            while len(self._over) > 64:
                self._over.pop(next(iter(self._over)))
            return
        if ENDS.signalled:
            ending = Ending(EventType.ABORT, f"signal {ENDS.signalled}")
        elif ending is None or ending.type is EventType.COMPLETE:
            ended = query.bounded and run not in self._stopping
            ending = COMPLETE if ended else STOPPED
        query.end(ending)
        self._stopping.discard(run)

    def look(self, age: float) -> None:
        """Say that they run; ask now and then whether they do, since a listener may be deaf."""
        for query in self.open:
            query.beat(age)
        if self._open and time.monotonic() - self._polled > POLL_SECONDS:
            self._polled = time.monotonic()
            for query in self.open:
                self._check(query)

    def _check(self, query: Query) -> None:
        """Ask whether a query runs; where the last question is still open, whether anyone is there."""
        if not query.asked:
            query.asked, query.silent = True, 0
            self._app.ask(self._poll, query)
            return
        query.silent = 0 if self._app.server.answers() else query.silent + 1
        if query.silent >= MOST_SILENT:
            self.terminated(query.run, _GONE)

    def _poll(self, query: Query) -> None:
        try:
            with asking():
                active = query.run not in self._open or query.handle.isActive
                latest = query.handle.lastProgress if self._listener.deaf else None
                raised = None if active else query.handle.exception()
        except Exception as error:  # noqa: BLE001
            once.report("asking whether a query runs", error)
            return
        finally:
            query.asked = False
        if latest:
            text = getattr(latest, "json", None) or json.dumps(latest)
            self._app.worker.post(self.progressed, query.run, text)
        if not active:
            said = failure(str(raised)) if raised is not None else None
            self._app.worker.post(self.terminated, query.run, said)

    def ask_all(self) -> None:
        """Ask of each query whether it runs, before its end is concluded from the program's own."""
        running = self.open
        if running and not ENDS.signalled and self._app.server.answers():
            for query in running:
                self._app.ask(self._poll, query)

    def end_all(self, ending: Ending) -> None:
        """The process or the session ends with these running."""
        said = STOPPED if ending.type is EventType.COMPLETE else ending
        for run, query in list(self._open.items()):
            query.end(STOPPED if run in self._stopping else said)
        self._open.clear()

    def deafen(self) -> None:
        """Hear nothing more."""
        self._listener.close()
