"""Actions: each write, command or read of a batch program is a run of its own.

An action is known from the Python call that begins it. While it runs, its own thread in the JVM has
the id of its execution, which gives START its name and lineage; when it is over, Spark's callbacks
report how it went. An execution that cannot be attributed to a call becomes a run with the lineage of
its own plan, START and end together; so does one that did not come from Python.
"""

from __future__ import annotations

import logging
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import COMPLETE, PROCESS_EXIT, failed
from headwater.lineage.openlineage.events import EventType
from headwater.spark import job_names
from headwater.spark.batch.action import Action, EndedExecution
from headwater.spark.batch.attribution import (
    CallMark,
    ExecutionAttribution,
    UnattributedExecutions,
    node_of,
)
from headwater.spark.batch.script import Script
from headwater.spark.driver.wrapped_methods import EntryPoint
from headwater.spark.plan import refused

if TYPE_CHECKING:
    from headwater.emit.process.process_exit import RunEnd
    from headwater.spark.driver.classic import ClassicApplication
    from headwater.spark.streaming.queries import ClassicQuery

POLL_SECONDS = 0.05
LONG_POLL_SECONDS = 0.5
LONG_SECONDS = 2.0
"""From this age on, a call without a plan is polled less often."""
DRAIN_SECONDS = 10.0
MAX_OPEN = 1000
MAX_POLLED = 200
MAX_UNREAD = 64


log = logging.getLogger("headwater.spark")


class ActionTracker:
    """The actions under way.

    That a call began and returned is noted by its own thread, at once: the worker may be behind, and
    would otherwise take the executions of the next call for the last one's. Everything else happens
    on the worker's thread.
    """

    def __init__(self, application: ClassicApplication) -> None:
        self._app = application
        self._attribution = ExecutionAttribution(application.reader)
        self.unattributed = UnattributedExecutions()
        self._polled = application.bridge.next_execution
        self._returned: deque[Action] = deque()
        """The calls that have returned and whose callbacks may still arrive."""
        self._overflowed = False

    @property
    def open(self) -> list[Action]:
        """The actions that have not ended."""
        return list(self._attribution.open)

    @property
    def poll_interval(self) -> float | None:
        """How often to look for executions: only while there is something to find."""
        if self.unattributed:
            return POLL_SECONDS
        waiting = [a.created for a in self.open if not a.known and a.micro_batch is None]
        if not waiting:
            return None
        young = time.monotonic() - max(waiting) < LONG_SECONDS
        return POLL_SECONDS if young else LONG_POLL_SECONDS

    def call_started(self, action: Action) -> bool:
        """An entry point is about to be called by this thread; False when it cannot be followed."""
        if len(self._attribution.open) >= MAX_OPEN:
            # Spark's callbacks still report what it does.
            if not self._overflowed:
                self._overflowed = True
                log.warning(
                    "%s: more than %d calls run at once; the others are reported when they end, "
                    "without a START before",
                    self._app.settings.app_name,
                    MAX_OPEN,
                )
            return False
        # Marked before the worker can see it: a call without a mark would be a candidate for the
        # executions of every call before it.
        rdd = action.entry is not None and action.entry.kind == "rdd"
        action.mark = CallMark.without_plans() if rdd else CallMark.of(self._app.bridge)
        if action.entry is not None and action.entry.script:
            action.script = Script(self._app, action)
        self._attribution.open.append(action)
        if rdd:
            self._app.worker.post(self._start_rdd, action)
        else:
            self._app.worker.post(self.poll)
        return True

    def call_returned(self, action: Action, error: BaseException | None) -> None:
        """The entry point is over; callbacks of its executions may still arrive."""
        action.returned = True
        action.raised = error
        if self._app.bridge.alive:
            action.end_plan = self._next_plan()
            if error is not None:
                self._note_mode(action)
        self._returned.append(action)
        self._app.worker.post(self._drain)

    @internal_errors.log_and_ignore("reading the mode of a writer")
    def _note_mode(self, action: Action) -> None:
        # The program may give the writer another mode before the worker comes to this call.
        if action.entry is not None and refused.depends_on_mode(action.entry):
            action.mode = refused.mode_of(action.owner)

    def query_starting(self, start: Action) -> None:
        """This thread is about to start a streaming query: what that executes is no action."""
        start.mark = CallMark.of(self._app.bridge)
        if start.mark is not None:
            self._attribution.add_query_start(start)

    def query_started(self, start: Action) -> None:
        """The streaming query is started, or could not be."""
        start.end_plan = self._next_plan() if self._app.bridge.alive else None

    @internal_errors.log_and_ignore("marking the end of a call")
    def _next_plan(self) -> int | None:
        return self._app.bridge.next_plan or None

    def _drain(self) -> None:
        """Wait for the callbacks of all calls that have returned, at once: it may take a while."""
        returned = [self._returned.popleft() for _ in range(len(self._returned))]
        if not returned:
            return
        for action in returned:
            if action.raised is not None:
                action.failure = PROCESS_EXIT.of(action.raised)
        self._app.bridge.drain(DRAIN_SECONDS)
        # The callbacks that the drain has brought are in the queue before this.
        for action in returned:
            self._app.worker.post(self.finish, action)

    def poll(self) -> None:
        """Find the plans of the actions under way."""
        self._end_unattributed()
        bridge = self._app.bridge
        if not self._attribution.open or not bridge.alive:
            return
        for action in self.open:
            if action.known or action.mark is None:
                continue
            for number in action.mark.running() or ():
                execution = bridge.execution(number)
                # A thread that has returned may be in its next call already.
                if action.returned or not self._is_batch(execution):
                    continue
                if action.micro_batch is not None:
                    action.executions.add(int(execution.id()))
                    continue
                if action.script is not None:
                    action.script.poll(execution)
                    break
                self._start(action, execution)
        if any(_any_thread(action) and not action.known for action in self.open):
            self._poll_any_thread()

    def _poll_any_thread(self) -> None:
        """Find the plans of actions that Spark may run on a thread of its own."""
        bridge = self._app.bridge
        following = bridge.next_execution
        # Micro-batches may have passed since the last poll: what runs is among the last executions.
        for place in range(max(self._polled, following - MAX_POLLED), following):
            execution = bridge.execution(place)
            if not self._is_batch(execution):
                continue
            calls = self._attribution.candidates(int(execution.id()), execution)
            if len(calls) != 1 or calls[0].micro_batch is not None:
                continue
            if calls[0] in self._attribution.open and _any_thread(calls[0]):
                self._start(calls[0], execution)
        self._polled = following

    def _is_batch(self, execution: Any) -> bool:
        return execution is not None and self._app.queries.owner(execution) is None

    def execution_ended(
        self, function: str, execution: Any, nanoseconds: int, error: Any, at: float
    ) -> None:
        """Spark reports that an execution has ended."""
        query = self._app.queries.owner(execution)
        number = int(execution.id())
        calls = [] if query is not None else self._attribution.candidates(number, execution, error)
        query = query or self._in_micro_batch(calls, execution)
        if query is not None:
            if error is None and query.foreach_batch:
                query.wrote(execution)
            return
        action = calls[0] if len(calls) == 1 else None
        is_open = action in self._attribution.open
        if action is not None and action.life is not None and not is_open:
            return
        if action is None or not is_open:
            self._add_unattributed(function, number, execution, nanoseconds, error, calls)
            return
        action.callbacks += 1
        action.executions.add(number)
        failure = None if error is None else self._jvm_failure(error)
        action.failure = action.failure or failure
        action.ended.append(EndedExecution(number, execution, failure, at - nanoseconds / 1e9, at))
        if len(action.ended) < MAX_UNREAD:
            return
        if action.script is not None:
            action.script.end_before_running()
        else:
            self._read_ended(action)

    def _in_micro_batch(self, calls: list[Action], execution: Any) -> ClassicQuery | None:
        """The query in whose micro-batch an execution was made, of all calls that it may be from."""
        sessions = {action.micro_batch.session if action.micro_batch else "" for action in calls}
        queries = [q for one in sessions if one and (q := self._app.queries.of_session(one))]
        if len(sessions) > 1:
            # Calls of several threads at once: the rows of a batch are read by its own query alone.
            queries = [query for query in queries if query.reads_batch(execution)]
        return queries[0] if len(queries) == 1 else None

    def finish(self, action: Action, ending: RunEnd | None = None) -> None:
        """Emit how the action ended, if it was one."""
        if action not in self._attribution.open:
            return
        self._attribution.finish(action)
        if action.script is not None and action.micro_batch is None:
            action.script.end(ending)
        if action.script is not None or action.micro_batch is not None:
            # A script ended its statements itself; in a micro-batch the query is the run.
            action.owner = action.raised = None
            return
        self._read_ended(action)
        self.unattributed.adopt(action)
        end = ending or action.failure or COMPLETE
        unsuccessful = end.type is not EventType.COMPLETE
        if end.type is EventType.FAIL and not action.known and self._app.bridge.alive:
            self._read_statement(action)
        if action.life is None and (action.known or (action.writes and unsuccessful)):
            action.start(self._app)
        if action.life is not None:
            action.update(self._app)
            action.life.end(end)
        self._app.queries.altered(action.altered)
        action.owner = action.raised = None

    def end_all(self, ending: RunEnd) -> None:
        """The process ends with these under way."""
        self._end_unattributed(at_once=True)
        for action in self.open:
            self.finish(action, None if action.returned else ending)

    def heartbeat(self, age: float) -> None:
        """Emit RUNNING for actions whose last event is this old."""
        for action in self.open:
            if action.life is not None and time.time() - action.life.emitted_at >= age:
                action.life.running()

    def _read_ended(self, action: Action) -> None:
        """Read the executions that have ended, the outer one first.

        The inner execution of a command ends, and is reported, before the outer one: reading it at
        once would give the job the name of the inner command.
        """
        ended, action.ended = action.ended, []
        if not self._app.bridge.alive:
            return
        for one in sorted(ended, key=lambda one: one.number):
            self._learn(action, one.number, one.execution)
        for one in ended:
            if one.failure is None:
                lineage = action.parts.get(one.number, action.lineage)
                action.statistics.read(self._app.bridge.spark, one.execution, lineage)
        targets = action.lineage.targets
        if action.parts and len(set(targets)) < len(targets):
            # A table that two commands of one statement write has the rows of the last alone.
            action.statistics.outputs.clear()

    def _read_statement(self, action: Action) -> None:
        """Name a statement that failed before Spark had a plan of it as if it had not."""
        entry = action.entry
        if entry is None or not entry.operation:
            return
        if entry.sql:
            action.learn(0, self._app.reader.statement(entry.sql), "")
        elif sql := refused.as_sql(entry, action.mode):
            action.learn(0, self._app.reader.statement(sql, entry.operation), "")

    def _learn(self, action: Action, number: int, execution: Any) -> None:
        action.executions.add(number)
        known = action.known and (action.life is not None or action.number <= number)
        if number in action.parts or (known and action.settled and not action.parts):
            return
        lineage = self._app.reader.batch(execution)
        part = action.is_part(lineage)
        if known and not part:
            # The command again, now that its table is there, and not a step inside of it.
            if lineage.operation == action.lineage.operation and lineage.outputs:
                action.lineage = lineage
            return
        node = lineage.node or node_of(execution)
        if self._app.settings.allows_node(node):
            (action.add_part if part else action.learn)(number, lineage, node)

    def _start(self, action: Action, execution: Any) -> None:
        """Emit START for a call that runs, if this execution of it shows what it does."""
        self._learn(action, int(execution.id()), execution)
        if action.known and action.life is None:
            action.start(self._app)

    def _start_rdd(self, action: Action) -> None:
        """Emit START for a call that writes an RDD, which Spark has no plan for."""
        if action.entry is not None and self._app.bridge.alive:
            action.learn(0, self._app.reader.rdd(action.owner, action.entry), "")
            if action.known:
                action.start(self._app)

    def _add_unattributed(
        self,
        function: str,
        number: int,
        execution: Any,
        nanoseconds: int,
        error: Any,
        calls: list[Action],
    ) -> None:
        if not calls and self._attribution.is_query_start(number):
            # The table that a query is to write to, made by `toTable`.
            return
        reads = bool(calls) and all(call.reads for call in calls)
        entry = EntryPoint("read", job_names.operation(function)) if reads else None
        action = Action(entry, time.time() - nanoseconds / 1e9)
        action.jvm_error, action.candidates, action.end_plan = error, calls, 0
        lineage = self._app.reader.batch(execution)
        action.learn(number, lineage, lineage.node or node_of(execution))
        if not action.known or not self._app.settings.allows_node(action.node):
            return
        action.failure = None if error is None else self._jvm_failure(error)
        if error is None:
            action.statistics.read(self._app.bridge.spark, execution, action.lineage)
        self.unattributed.add(action)

    def _end_unattributed(self, at_once: bool = False) -> None:
        for action in self.unattributed.expired(self._attribution.open, at_once):
            self._attribution.open.append(action)
            self.finish(action)

    def _jvm_failure(self, error: Any) -> RunEnd:
        trace = self._app.bridge.trace(error)
        return failed("exception", trace.partition("\n")[0], trace)


def _any_thread(action: Action) -> bool:
    # Spark serves some reads from a thread of its own; a write stays on that of its call.
    return action.reads or action.mark is None or not action.mark.pinned
