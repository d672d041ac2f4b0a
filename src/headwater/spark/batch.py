"""Actions: each write, command or read of a batch program is a run of its own.

An action is known from its entry point. While it runs, its own thread in the JVM says which execution
it is in, which gives START its name and lineage; when it is over, Spark's callbacks say how it went.
A callback that could be of several actions is nobody's: it becomes a run by what its own plan says,
START and end together, as does one that nobody entered through Python.
"""

from __future__ import annotations

import time
from collections import deque
from typing import TYPE_CHECKING, Any

from headwater.emit import event, once
from headwater.emit.ends import COMPLETE, ENDS, failed
from headwater.lineage.events import EventType
from headwater.spark import names
from headwater.spark.action import Action
from headwater.spark.entries import Entry
from headwater.spark.loose import Loose
from headwater.spark.whose import Marks, aimed, same_error

if TYPE_CHECKING:
    from headwater.emit.ends import Ending
    from headwater.spark.application import Application

LOOK_SECONDS = 0.05
SOON_SECONDS = 2.0
SELDOM_SECONDS = 0.5
DRAIN_SECONDS = 2.0
KEPT = 256
MOST_OPEN = 1000
MOST_LOOKED = 200


class Actions:
    """The actions under way.

    That one began and returned is noted by its own thread, at once: the worker may be behind, and
    would otherwise take the work of the next for the last one's. The rest is the worker's.
    """

    def __init__(self, application: Application) -> None:
        self._app = application
        self._open: list[Action] = []
        self._starts: deque[Action] = deque(maxlen=KEPT)
        self.loose = Loose()
        self._done: deque[Action] = deque(maxlen=KEPT)
        self._seen = application.bridge.next_execution

    @property
    def interval(self) -> float | None:
        """How often to look for executions: only while there is something to find."""
        if self.loose:
            return LOOK_SECONDS
        waiting = [action.at for action in list(self._open) if not action.known]
        if not waiting:
            return None
        return LOOK_SECONDS if time.monotonic() - max(waiting) < SOON_SECONDS else SELDOM_SECONDS

    def began(self, action: Action) -> bool:
        """An entry point is about to be called by this thread; False when it cannot be followed."""
        if len(self._open) >= MOST_OPEN:
            # What it does is still heard of, by Spark's callbacks.
            once.report("following so many calls, so some are left out; this", OverflowError())
            return False
        self._open.append(action)
        action.marks = Marks.of(self._app.bridge)
        self._app.worker.post(self.look)
        return True

    def returned(self, action: Action, error: BaseException | None) -> None:
        """The entry point is over; its callbacks may still be on their way."""
        action.returned = True
        action.raised = error
        if self._app.bridge.alive:
            action.past = self._past()
        self._app.worker.post(self._drain, action)

    def starts(self, start: Action) -> None:
        """A query is about to be started by this thread: what that makes is no work of its own."""
        start.marks = Marks.of(self._app.bridge)
        if start.marks is not None:
            self._starts.append(start)

    def started(self, start: Action) -> None:
        """The query is started, or could not be."""
        start.past = self._past() if self._app.bridge.alive else None

    @once.quiet("marking the end of a call")
    def _past(self) -> int | None:
        return self._app.bridge.next_plan or None

    def _drain(self, action: Action) -> None:
        if action.raised is not None:
            action.failure = ENDS.of(action.raised)
        self._app.bridge.drain(DRAIN_SECONDS)
        # What the drain brought stands before this in the queue.
        self._app.worker.post(self.finish, action)

    def look(self) -> None:
        """Find the plans of the actions under way."""
        self._settle_loose()
        bridge = self._app.bridge
        if not self._open or not bridge.alive:
            return
        for action in list(self._open):
            if action.known or action.marks is None:
                continue
            for number in action.marks.running() or ():
                execution = bridge.execution(number)
                # A thread that has returned may be in its next call already.
                if not action.returned and self._batch(execution):
                    self._learn(action, execution)
        following = bridge.next_execution
        # Batches of queries have passed while nothing was looked for: what runs is among the last.
        for number in range(max(self._seen, following - MOST_LOOKED), following):
            execution = bridge.execution(number)
            found = self._whose(execution) if self._batch(execution) else []
            if len(found) == 1 and found[0] in self._open and self._elsewhere(found[0]):
                self._learn(found[0], execution)
        self._seen = following

    def _batch(self, execution: Any) -> bool:
        return execution is not None and self._app.queries.owner(execution) is None

    @staticmethod
    def _elsewhere(action: Action) -> bool:
        # Spark serves some reads from a thread of its own; a write stays on that of its call.
        return action.reads or action.marks is None or not action.marks.pinned

    def called_back(self, function: str, execution: Any, nanoseconds: int, error: Any) -> None:
        """Spark says that an execution is over."""
        query = self._app.queries.owner(execution)
        if query is not None:
            if error is None and query.batches:
                query.wrote(execution)
            return
        found = self._whose(execution, error)
        action = found[0] if len(found) == 1 else None
        if action is not None and action.life is not None and action not in self._open:
            return
        if action is None or action not in self._open:
            self._loosely(function, execution, nanoseconds, error, found)
            return
        action.called_back += 1
        self._learn(action, execution)
        if error is None:
            action.counts.read(execution, action.lineage)
        elif action.failure is None:
            action.failure = self._jvm_failure(error)

    def finish(self, action: Action, ending: Ending | None = None) -> None:
        """Say how the action ended, if it was one."""
        if action not in self._open:
            return
        self._open.remove(action)
        self._done.append(action)
        self.loose.adopt(action)
        said = ending or action.failure or COMPLETE
        failed = said.type is not EventType.COMPLETE
        if action.life is None and (action.known or (action.writes and failed)):
            action.start(self._app)
        if action.life is not None:
            action.tell(self._app)
            action.life.end(said)
        action.owner = action.raised = None

    def end_all(self, ending: Ending) -> None:
        """The process ends with these under way."""
        self._settle_loose(at_once=True)
        for action in list(self._open):
            self.finish(action, None if action.returned else ending)

    def beat(self, age: float) -> None:
        """Say of long actions that they still run."""
        for action in list(self._open):
            if action.life is not None and event.now() - action.life.told >= age:
                action.life.running()

    def _whose(self, execution: Any, error: Any = None) -> list[Action]:
        """Every action that an execution may belong to, as far as facts tell."""
        number = int(execution.id())
        around = [*self._open, *self._done]
        for action in around:
            if number in action.executions:
                return [action]
        own = [action for action in around if action.plan == number]
        if own:
            # The same frame read again: the same name and lineage, whichever it is.
            return next(([a] for a in own if a in self._open and not a.called_back), own[:1])
        late = [action for action in self._done if action.past is not None]
        found = [action for action in (*self._open, *late) if action.made(number)]
        if len(found) > 1 and error is not None:
            found = [a for a in found if same_error(a.raised, error)] or found
        if len(found) > 1:
            outputs = self._app.reader.batch(execution).outputs
            found = aimed(found, outputs) if outputs else found
        return found

    def _learn(self, action: Action, execution: Any) -> None:
        action.executions.add(int(execution.id()))
        before = action.known
        if before and action.placed:
            return
        lineage = self._app.reader.batch(execution)
        if before:
            # The command again, now that its table is there, and not a step inside of it.
            if lineage.operation == action.lineage.operation and lineage.outputs:
                action.lineage = lineage
            return
        node = str(execution.logical().nodeName())
        if not self._app.settings.allows_node(node):
            return
        if lineage.outputs or not action.lineage.inputs:
            action.lineage, action.node = lineage, node
        if action.known and action.life is None:
            action.start(self._app)

    def _loosely(
        self, function: str, execution: Any, nanoseconds: int, error: Any, maybe: list[Action]
    ) -> None:
        if not maybe and any(start.made(int(execution.id())) for start in self._starts):
            # The table that a query is to write to, made by `toTable`.
            return
        reads = bool(maybe) and all(action.reads for action in maybe)
        entry = Entry("read", names.operation(function)) if reads else None
        action = Action(entry, event.now() - nanoseconds / 1e9)
        action.heard, action.maybe, action.past = error, maybe, 0
        action.lineage = self._app.reader.batch(execution)
        action.node = str(execution.logical().nodeName())
        if not action.known or not self._app.settings.allows_node(action.node):
            return
        action.failure = None if error is None else self._jvm_failure(error)
        if error is None:
            action.counts.read(execution, action.lineage)
        self.loose.add(action)

    def _settle_loose(self, at_once: bool = False) -> None:
        for action in self.loose.ripe(self._open, at_once):
            self._open.append(action)
            self.finish(action)

    def _jvm_failure(self, error: Any) -> Ending:
        trace = self._app.bridge.trace(error)
        return failed("exception", trace.partition("\n")[0], trace)
