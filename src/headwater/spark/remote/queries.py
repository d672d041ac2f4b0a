"""Streaming queries of a Spark Connect client.

The client has no JVM: a query is read from the message that starts it and the server's explain text,
and its progress and end come from the client's listener, or from polling where there is none.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import PROCESS_EXIT, RunEnd
from headwater.lineage.openlineage.events import EventType
from headwater.spark.remote import command_lineage
from headwater.spark.remote.explain.leaves import PATTERN
from headwater.spark.remote.listener import RemoteQueryListener, failure
from headwater.spark.remote.server_client import own_requests
from headwater.spark.streaming import progress
from headwater.spark.streaming.runs import QueryRun, QueryRuns, refused_job, unnamed_job
from headwater.spark.streaming.statistics import QueryStatistics

if TYPE_CHECKING:
    from headwater.spark.model import PlanLineage
    from headwater.spark.remote.application import ConnectApplication
    from headwater.spark.reporting import Counts
    from headwater.spark.streaming.progress import Progress

POLL_SECONDS = 5.0
MAX_UNANSWERED = 3
MAX_EARLY = 64
_SERVER_GONE = RunEnd(
    EventType.FAIL, "server gone", "the Spark Connect server does not answer any more"
)


class ConnectQuery(QueryRun):
    """One run of a streaming query; `start_message` started it, `handle` is the client's own."""

    def __init__(
        self,
        application: ConnectApplication,
        run: str,
        name: str,
        lineage: PlanLineage,
        start_message: Any,
        handle: Any,
    ) -> None:
        super().__init__(application, run, name, lineage)
        self.statistics = QueryStatistics(lambda _: {})
        self.uncounted: list[Progress] | None = None
        """Reports that wait for those before them, which the listener may have missed."""
        self.bounded = bool(start_message.available_now or start_message.once)
        self.start_message = start_message
        self.handle = handle
        self.topics: frozenset[str] = frozenset()
        self.subscribes_pattern = any(text.startswith(PATTERN) for text in lineage.problems)
        self.reread = False
        """Whether the topics of its last micro-batch have been read before its end."""
        self.poll_pending = False
        self.unanswered = 0

    def counted(self) -> tuple[Counts, Counts]:
        return self.statistics.read(self.lineage), self.statistics.written(self.lineage)


class ConnectQueries(QueryRuns[ConnectQuery]):
    """The streaming queries of a session that run; all but `begin` and polling is the worker's."""

    def __init__(self, application: ConnectApplication) -> None:
        super().__init__(application)
        self._app = application
        self._early: dict[str, RunEnd | None] = {}
        self._listener = RemoteQueryListener(
            application.spark,
            lambda *report: application.worker.post(self.progressed, *report),
            lambda *report: application.worker.post(self.terminated, *report),
        )
        self._polled = time.monotonic()

    def begin(self, start: Any, result: Any, function: str, handle: Any) -> None:
        """A query has been started: read it, then emit START. Runs on the thread that may ask."""
        self._listener.register()
        lineage = self._lineage(start, frozenset())
        if not (result.name or start.query_name):
            # A query that has just ended may not have been reported yet: its name is free.
            for query in self.open:
                self._poll(query)
        self._app.worker.post(self._began, start, result, function, handle, lineage)

    def _lineage(self, start: Any, topics: frozenset[str]) -> PlanLineage:
        app = self._app
        return command_lineage.of_frame(
            app.server,
            start.input,
            lambda session: command_lineage.stream_target(session, start),
            app.definitions,
            topics,
        ).lineage()

    def _began(
        self, start: Any, result: Any, function: str, handle: Any, lineage: PlanLineage
    ) -> None:
        run = str(result.query_id.run_id)
        name = str(result.name or start.query_name)
        name = name or unnamed_job(self._app.settings, lineage, function, self.taken)
        query = self._open[run] = ConnectQuery(self._app, run, name, lineage, start, handle)
        query.start()
        self._polled = 0.0
        if run in self._early:
            self.terminated(run, self._early.pop(run))

    def start_failed(self, start: Any, function: str, error: BaseException) -> None:
        """A query could not be started; it is named as if it had."""
        options = dict(start.options)
        target = start.table_name or options.get("topic") or start.path or options.get("path", "")
        name = str(start.query_name) or refused_job(self._app.settings, str(target), function)
        self.refused(name, error)

    def stopping(self, run: str) -> None:
        super().stopping(run)
        self._polled = 0.0

    def progressed(self, run: str, text: str) -> None:
        """A micro-batch is done."""
        query = self._open.get(run)
        if query is not None:
            query.progress = progress.read(text)
            self._count(query, query.progress)
            topics = query.topics | query.progress.topics
            if query.subscribes_pattern and topics != query.topics:
                # A pattern's topics are known only from the offsets of a micro-batch.
                self._app.ask(self._reread, query, topics)
            query.topics = topics

    def _count(self, query: ConnectQuery, report: Progress) -> None:
        if query.uncounted is not None:
            query.uncounted.append(report)
        elif query.statistics.batch >= 0:
            query.statistics.add([report])
        else:
            query.uncounted = [report]
            self._app.ask(self._count_first, query)

    def _count_first(self, query: ConnectQuery) -> None:
        reports: list[Progress] = []
        try:
            with own_requests():
                reports = [progress.read(_text(one)) for one in query.handle.recentProgress]
        finally:
            self._app.worker.post(self._counted_first, query, reports)

    def _counted_first(self, query: ConnectQuery, reports: list[Progress]) -> None:
        waiting, query.uncounted = query.uncounted or [], None
        query.statistics.add([*reports, *waiting] if reports else [])

    def _reread(self, query: ConnectQuery, topics: frozenset[str]) -> None:
        lineage = self._lineage(query.start_message, topics)
        self._app.worker.post(query.change, lineage)

    def terminated(self, run: str, ending: RunEnd | None) -> None:
        """A query is over; without an ending it ended without an error."""
        query = self._open.get(run)
        if query is None:
            # It may be over before its START has been emitted.
            self._early[run] = ending
            while len(self._early) > MAX_EARLY:
                self._early.pop(next(iter(self._early)))
            return
        asked = query.subscribes_pattern or query.uncounted is not None
        if asked and not query.reread and ending is not _SERVER_GONE:
            # The topics of its last micro-batch, or its first reports, are being read.
            query.reread = True
            self._app.ask(self._app.worker.post, self.terminated, run, ending)
            return
        self._open.pop(run)
        self.end_one(query, ending)

    def poll(self, age: float) -> None:
        """Emit heartbeats; ask now and then whether queries run, since events may be lost."""
        self.heartbeat(age)
        if self._open and time.monotonic() - self._polled > POLL_SECONDS:
            self._polled = time.monotonic()
            for query in self.open:
                self._check(query)

    def _check(self, query: ConnectQuery) -> None:
        """Ask whether a query runs; while the last request is pending, whether the server answers."""
        if not query.poll_pending:
            query.poll_pending, query.unanswered = True, 0
            self._app.ask(self._poll, query)
            return
        query.unanswered = 0 if self._app.server.answers() else query.unanswered + 1
        if query.unanswered >= MAX_UNANSWERED:
            self.terminated(query.spark_run, _SERVER_GONE)

    def _poll(self, query: ConnectQuery) -> None:
        try:
            with own_requests():
                active = query.spark_run not in self._open or query.handle.isActive
                latest = None if self._listener.available else query.handle.lastProgress
                raised = None if active else query.handle.exception()
        except Exception as error:  # noqa: BLE001
            internal_errors.report("asking whether a query runs", error)
            return
        finally:
            query.poll_pending = False
        if latest:
            self._app.worker.post(self.progressed, query.spark_run, _text(latest))
        if not active:
            ending = failure(str(raised)) if raised is not None else None
            self._app.worker.post(self.terminated, query.spark_run, ending)

    def poll_all(self) -> None:
        """Ask of each query whether it runs, before its end is concluded from the program's own."""
        running = self.open
        if running and not PROCESS_EXIT.signalled and self._app.server.answers():
            for query in running:
                self._app.ask(self._poll, query)

    def unregister(self) -> None:
        """Remove the listener from the session."""
        self._listener.unregister()


def _text(report: Any) -> str:
    """The JSON of a progress report: an object since PySpark 4.0, a dictionary before."""
    return str(getattr(report, "json", None) or json.dumps(report))
