"""Streaming queries of Spark Classic, read from the driver's JVM."""

from __future__ import annotations

import re
from collections import deque
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import RunEnd, failed
from headwater.lineage.openlineage.events import EventType
from headwater.spark import job_names
from headwater.spark.batch.statistics import ActionStatistics
from headwater.spark.error_text import raised_in
from headwater.spark.jvm import JvmSession, class_name, hidden, kind, seq
from headwater.spark.model import PlanLineage, each_once
from headwater.spark.plan.leaves import MAX_LEAVES, first_number
from headwater.spark.streaming import progress
from headwater.spark.streaming.runs import QueryRun, QueryRuns, refused_job, unnamed_job
from headwater.spark.streaming.statistics import QueryStatistics

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.lineage.model import ColumnSource, Dataset
    from headwater.lineage.naming import DatasetName
    from headwater.spark.driver.bridge import JvmBridge
    from headwater.spark.driver.classic import ClassicApplication
    from headwater.spark.driver.wrapped_methods import EntryPoint
    from headwater.spark.reporting import Counts
    from headwater.spark.streaming.progress import Progress
    from headwater.spark.streaming.runs import Taken

BOUNDED_TRIGGERS = ("AvailableNow", "OneTime", "Once")
MAX_ENDED = 1000
MAX_EARLY = 64
BATCHES_READ = 3
MAX_COMMANDS = 64
MAX_KEY = 500
MAX_FIELDS = 25
MAX_CLOSURES = 4
MAX_NEWER = 5
_NUMBERS = re.compile(r"#\d+L?")


class ClassicQuery(QueryRun):
    """One run of a streaming query of a driver's JVM."""

    def __init__(self, application: ClassicApplication, query: Any, taken: Taken) -> None:
        self._bridge = application.bridge
        self._reader = application.reader
        self.java = query
        self._execution = query.streamingQuery() if _has_wrapper(query) else query
        sink = self._execution.sink()
        self.foreach_batch = "ForeachBatch" in str(sink.getClass().getName())
        self.session = str(self._execution.sparkSessionForStream().sessionUUID())
        lineage = application.reader.streaming(query)
        name = query.name()
        if not name:
            function = (_function(self._bridge, sink) or "") if self.foreach_batch else ""
            name = unnamed_job(application.settings, lineage, function, taken)
        super().__init__(application, str(query.runId().toString()), str(name), lineage)
        self.bounded = str(self._execution.trigger().toString()).startswith(BOUNDED_TRIGGERS)
        self.statistics = QueryStatistics(self._initial_offsets)
        self._commands: dict[str, _Command] = {}
        self._source_lineage: PlanLineage = lineage
        self._topics = frozenset(one.name for one in lineage.inputs if one.type == "TOPIC")
        self._wrote = False

    @property
    def active(self) -> bool:
        """Whether the query runs; Spark reports its end a little later."""
        return bool(self._bridge.alive and self.java.isActive())

    def poll(self) -> None:
        """Take in the latest progress; new topics are reported at once."""
        latest = self.java.lastProgress()
        if latest is None:
            return
        self.progress = progress.read(str(latest.json()))
        self.statistics.add(self._since(self.progress))
        topics = self.progress.topics
        # The first micro-batch gives the table new columns if it merges schemas.
        first = self._writes_table and not self._wrote and self.progress.rows > 0
        self._wrote = self._wrote or first
        if first or topics - self._topics:
            self._topics = self._topics | topics
            self.reread()

    def _since(self, latest: Progress) -> list[Progress]:
        """The reports since the last poll: several short micro-batches may have passed."""
        first = self.statistics.batch < 0
        behind = latest.batch - self.statistics.batch
        if behind < 2 and not first:
            return [latest]
        recent = self._bridge.jvm.scala.Predef.genericWrapArray(self.java.recentProgress())
        # One or two may have come since the latest was asked for; those counted before are passed by.
        kept = recent if first else recent.takeRight(behind + MAX_NEWER)
        return progress.read_all(str(kept.mkString("[", ",", "]")))

    @internal_errors.log_and_ignore("reading where a topic is read from")
    def _offsets(self, description: str) -> progress.Offsets:
        if self._bridge.pinned:
            # Kafka's source reads them only on a thread with a session, and this one is ours alone.
            session = self._execution.sparkSession()
            getattr(self._bridge.jvm, class_name(session)).setActiveSession(session)
        sources = hidden(self._execution, "uniqueSources").keysIterator()
        while sources.hasNext():
            source = sources.next()
            if str(source.toString()) == description:
                return progress.offsets(str(source.initialOffset().json()))
        return {}

    def _initial_offsets(self, description: str) -> progress.Offsets:
        return self._offsets(description) or {}

    def wrote(self, execution: Any) -> None:
        """A micro-batch of `foreachBatch` has run a command: what it wrote is the query's output."""
        command = self._command(execution.logical())
        command.count += 1
        # Every batch runs the same code: after the first three, only batches 4, 8, 16, … are read.
        if command.count <= BATCHES_READ or not command.count & (command.count - 1):
            command.lineage = self._reader.foreach_batch(execution, self._source_lineage)
            self._take_in(command.lineage)
        if command.lineage.outputs and not command.mixed:
            counted = ActionStatistics()
            counted.read(self._bridge.spark, execution, replace(command.lineage, inputs=()))
            self.statistics.add_written(counted.outputs)

    @internal_errors.log_and_ignore("finding the rows of a micro-batch in a plan")
    def reads_batch(self, execution: Any) -> bool:
        """Whether a plan reads the rows of a micro-batch: they have the numbers of the stream's columns."""
        known = self._source_lineage.frontier or {}
        leaves = seq(execution.analyzed().collectLeaves(), MAX_LEAVES)
        rows = [leaf for leaf in leaves if kind(leaf) == "LogicalRDD"]
        return any(first_number(leaf) in known for leaf in rows)

    def _command(self, plan: Any) -> _Command:
        """The command that a plan is, by its text without the numbers that each batch has of its own."""
        node = str(plan.nodeName())
        key = f"{node} {_NUMBERS.sub('', str(plan.simpleString(MAX_FIELDS)))[:MAX_KEY]}"
        if key not in self._commands and len(self._commands) >= MAX_COMMANDS:
            # A path of its own for each batch, as it seems.
            return self._commands.setdefault(node, _Command(mixed=True))
        return self._commands.setdefault(key, _Command())

    def _take_in(self, found: PlanLineage) -> None:
        if not found.outputs:
            return
        again = merged(self.lineage, found)
        if _described(again) != _described(self.lineage):
            self.change(again)

    def reread(self) -> None:
        """Read the query again: it has new topics, or a table that it writes may be altered."""
        found = self._reader.streaming(self.java)
        if not found.inputs and not found.outputs:
            return
        self._source_lineage = found
        # What commands wrote is read again with their next micro-batch, from all topics.
        self._commands.clear()
        again = renewed(self.lineage, found)
        if again.inputs != self.lineage.inputs or again.outputs != self.lineage.outputs:
            self.change(again)

    @property
    def _writes_table(self) -> bool:
        return any(one.symlinks for one in self.lineage.outputs)

    def writes_any(self, datasets: Collection[DatasetName]) -> bool:
        """Whether the query writes one of these."""
        return any(one.id in datasets for one in self.lineage.outputs)

    def heartbeat(self, age: float) -> None:
        if self.is_due(age) and self._writes_table:
            # Another program may have altered the table.
            self._refresh()
        super().heartbeat(age)

    @internal_errors.log_and_ignore("reading a query again")
    def _refresh(self) -> None:
        self.reread()

    def counted(self) -> tuple[Counts, Counts]:
        return self.statistics.read(self.lineage), self.statistics.written(self.lineage)


class _Command:
    """A command that `foreachBatch` runs in each micro-batch, and what it was last read as.

    `mixed` stands for all that have the same node, whatever they write.
    """

    def __init__(self, *, mixed: bool = False) -> None:
        self.mixed = mixed
        self.count = 0
        self.lineage = PlanLineage()


class ClassicQueries(QueryRuns[ClassicQuery]):
    """The streaming queries of one SparkContext; everything but `progressed` is the worker's."""

    def __init__(self, application: ClassicApplication) -> None:
        super().__init__(application)
        self._app = application
        self._ended: deque[str] = deque(maxlen=MAX_ENDED)
        self._early: dict[str, Any] = {}
        """Terminations that Spark reported before the start of their query was read."""
        self._progressed = False

    def progressed(self) -> None:
        """A micro-batch is over somewhere; called from Spark's thread, so it only sets a flag."""
        self._progressed = True

    def started(self, found: Any) -> None:
        """Spark reports that a query starts."""
        if str(found.runId().toString()) in self._open:
            return
        java = self._app.bridge.session.streams().get(found.id())
        if java is not None:
            self.begin(java)

    def begin(self, java: Any) -> None:
        """A query has started; its sources and sinks can be read at once."""
        run = str(java.runId().toString())
        if run in self._open or run in self._ended:
            return
        query = self._open[run] = ClassicQuery(self._app, java, self.taken)
        query.start()
        if run in self._early:
            self.terminated(self._early.pop(run))

    def start_failed(self, entry: EntryPoint, writer: Any, error: BaseException) -> None:
        """A query could not start; it is named as if it had."""
        options = self._options(writer) or {}
        given = {key.lower(): value for key, value in options.items()}
        target = entry.target or given.get("topic") or given.get("path", "")
        function = str(getattr(writer, "_headwater_foreach_batch", ""))
        name = given.get("queryname") or refused_job(self._app.settings, target, function)
        self.refused(name, error)

    @internal_errors.log_and_ignore("reading the options of a query that could not start")
    def _options(self, writer: Any) -> dict[str, str]:
        session = JvmSession(self._app.bridge.spark)
        return session.mapping(hidden(writer._jwrite, "extraOptions"))  # noqa: SLF001

    def terminated(self, found: Any) -> None:
        """Spark reports that a query is over."""
        run = str(found.runId().toString())
        query = self._open.pop(run, None)
        if query is None:
            # One that fails at once may be over before its start has returned.
            if run not in self._ended:
                self._early[run] = found
                while len(self._early) > MAX_EARLY:
                    self._early.pop(next(iter(self._early)))
            return
        self._ended.append(run)
        self._poll(query)
        self.end_one(query, self._failure(query, found))

    def owner(self, execution: Any) -> ClassicQuery | None:
        """The query in whose micro-batch an execution runs."""
        if not self._open:
            return None
        return self.of_session(str(execution.sparkSession().sessionUUID()))

    def of_session(self, session: str) -> ClassicQuery | None:
        """The query with a session of this id."""
        return next((q for q in self._open.values() if q.session == session), None)

    def altered(self, datasets: Collection[DatasetName]) -> None:
        """Tables were altered: queries that write them report their new schema."""
        for query in self.open if datasets and self._app.bridge.alive else ():
            if query.writes_any(datasets):
                self._reread(query)

    @internal_errors.log_and_ignore("reading a query again")
    def _reread(self, query: ClassicQuery) -> None:
        query.reread()

    def poll(self) -> None:
        """Read the progress of the queries, if any has made some."""
        if self._progressed and self._app.bridge.alive:
            self._progressed = False
            for query in self.open:
                self._poll(query)

    def before_end(self, query: ClassicQuery) -> None:
        if self._app.bridge.alive:
            self._poll(query)

    @internal_errors.log_and_ignore("reading a query's progress")
    def _poll(self, query: ClassicQuery) -> None:
        query.poll()

    def _failure(self, query: ClassicQuery, found: Any) -> RunEnd | None:
        if self._app.bridge.shutting_down:
            return RunEnd(EventType.ABORT, "JVM stopped")
        error = found.exception()
        if not error.isDefined():
            return None
        trace = self._trace(query) or str(error.get())
        return failed("query exception", raised_in(str(error.get())), trace)

    @internal_errors.log_and_ignore("reading why a query failed")
    def _trace(self, query: ClassicQuery) -> str:
        raised = query.java.exception()
        return self._app.bridge.trace(raised.get()) if raised.isDefined() else ""


@internal_errors.log_and_ignore("finding the function of foreachBatch")
def _function(bridge: JvmBridge, sink: Any) -> str:
    """The name of the Python function that a sink calls, through the closures of Spark around it."""
    held = hidden(sink, "batchWriter")
    for _ in range(MAX_CLOSURES):
        if held is None or "$Proxy" in str(held.getClass().getName()):
            break
        held = hidden(held, "arg$1")
    if held is None:
        return ""
    handler = bridge.jvm.java.lang.reflect.Proxy.getInvocationHandler(held)
    called = bridge.gateway.gateway_property.pool[str(hidden(handler, "id"))]
    return job_names.of_function(getattr(called, "func", called))


def _has_wrapper(query: Any) -> bool:
    return "Wrapper" in str(query.getClass().getSimpleName())


def renewed(before: PlanLineage, found: PlanLineage) -> PlanLineage:
    """A query that was read again, with what its commands alone read and write.

    A MERGE reads its own table: left out, that edge would come and go with every heartbeat.
    """
    written = {one.id for one in found.outputs}
    outputs = tuple(one for one in before.outputs if one.id not in written)
    again = merged(found, replace(before, inputs=(), outputs=outputs))
    return replace(again, inputs=merged(before, found).inputs)


def merged(first: PlanLineage, second: PlanLineage) -> PlanLineage:
    """Two readings of one job as one."""
    # The later reading counts, in the order of the earlier one: a change of order is none.
    inputs = each_once(first.inputs) | each_once((*second.inputs, *first.inputs))
    outputs = {one.id: one for one in first.outputs}
    for one in second.outputs:
        known = outputs.get(one.id)
        outputs[one.id] = one if known is None else _combined(known, one)
    return replace(
        first,
        inputs=tuple(inputs.values()),
        outputs=tuple(outputs.values()),
        problems=tuple(dict.fromkeys((*first.problems, *second.problems))),
    )


def _combined(first: Dataset, second: Dataset) -> Dataset:
    """An output that two commands write: its columns come from what either writes into them."""
    schema = second.schema or first.schema
    if first.columns is None or second.columns is None:
        return replace(second, schema=schema, columns=second.columns or first.columns)
    one, other = first.columns, second.columns
    fields = {
        name: _sources(one.fields.get(name, ()), other.fields.get(name, ()))
        for name in dict.fromkeys((*one.fields, *other.fields))
    }
    unknown = tuple(dict.fromkeys((*one.unknown, *other.unknown)))
    dataset = _sources(one.dataset, other.dataset)
    columns = replace(other, fields=fields, dataset=dataset, unknown=unknown)
    return replace(second, schema=schema, columns=columns)


def _sources(
    first: tuple[ColumnSource, ...], second: tuple[ColumnSource, ...]
) -> tuple[ColumnSource, ...]:
    found: dict[tuple[Any, str], ColumnSource] = {}
    for one in (*first, *second):
        known = found.get((one.dataset, one.field))
        steps = (*known.transformations, *one.transformations) if known else one.transformations
        found[one.dataset, one.field] = replace(one, transformations=tuple(dict.fromkeys(steps)))
    return tuple(found.values())


def _described(lineage: PlanLineage) -> tuple[Any, ...]:
    """What of a lineage counts as new: datasets, columns and groups, not the snapshot that was read."""
    inputs = tuple((one.id, one.groups) for one in lineage.inputs)
    return inputs, tuple((one.id, one.schema, one.columns) for one in lineage.outputs)
