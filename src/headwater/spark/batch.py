"""Actions: each write, command or read of a batch program is a run of its own.

An action is known from its entry point. While it runs, its plan is found among Spark's executions
under way, which gives START its name and lineage; when it is over, Spark's callbacks say how it
went. An action that nobody entered through Python has only its callback, which gives both.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.emit import event
from headwater.emit.ends import COMPLETE, ENDS, Ending, of_exception
from headwater.lineage.events import EventType
from headwater.spark import counts, facets, names
from headwater.spark.model import PlanLineage

if TYPE_CHECKING:
    from headwater.emit.life import Life
    from headwater.spark.application import Application
    from headwater.spark.entries import Entry

LOOK_SECONDS = 0.05
SOON_SECONDS = 2.0
SELDOM_SECONDS = 0.5
DRAIN_SECONDS = 2.0
LOOSE_SECONDS = 0.5


class Action:
    """One piece of work, from its entry to its end."""

    def __init__(self, entry: Entry | None, began: float) -> None:
        self.entry = entry
        self.began = began
        self.executions: set[int] = set()
        self.lineage = PlanLineage()
        self.node = ""
        self.life: Life | None = None
        self.counts = counts.Counts()
        self.returned = False
        self.failure: Ending | None = None
        self.called_back = 0
        self.at = time.monotonic()

    @property
    def writes(self) -> bool:
        """Whether the entry alone says that this is more than a read."""
        entry = self.entry
        return entry is not None and entry.kind in ("write", "sql") and bool(entry.word)

    @property
    def known(self) -> bool:
        """Whether enough is known to say START."""
        if self.lineage.outputs:
            return True
        return self.entry is not None and self.entry.kind == "read" and bool(self.lineage.inputs)


class Actions:
    """The actions under way; everything here happens on the worker's thread."""

    def __init__(self, application: Application) -> None:
        self._app = application
        self._open: list[Action] = []
        self._loose: list[Action] = []
        self._seen = application.bridge.next_execution

    @property
    def interval(self) -> float | None:
        """How often to look for executions: only while there is something to find."""
        if self._loose:
            return LOOK_SECONDS
        waiting = [action.at for action in self._open if not action.known]
        if not waiting:
            return None
        return LOOK_SECONDS if time.monotonic() - max(waiting) < SOON_SECONDS else SELDOM_SECONDS

    def began(self, action: Action) -> None:
        """An entry point was called."""
        self._open.append(action)

    def look(self) -> None:
        """Find the plans of the actions under way."""
        self._settle_loose()
        if not self._open or not self._app.bridge.alive:
            return
        following = self._app.bridge.next_execution
        for number in range(self._seen, following):
            execution = self._app.bridge.execution(number)
            if execution is None or self._app.queries.owner(execution) is not None:
                continue
            action = self._match(execution)
            if action is not None:
                self._learn(action, execution)
        self._seen = following

    def returned(self, action: Action, error: BaseException | None) -> None:
        """The entry point is over; its callbacks may still be on their way."""
        action.returned = True
        if error is not None:
            action.failure = _failure(error)
        self._app.bridge.drain(DRAIN_SECONDS)
        self._app.worker.post(self.finish, action)

    def called_back(self, function: str, execution: Any, nanoseconds: int, error: Any) -> None:
        """Spark says that an execution is over."""
        query = self._app.queries.owner(execution)
        if query is not None:
            if error is None and query.batches:
                query.wrote(execution)
            return
        action = self._match(execution)
        if action is None:
            self._loosely(execution, nanoseconds, error)
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
        said = ending or action.failure or COMPLETE
        failed = said.type is not EventType.COMPLETE
        if action.life is None and (action.known or (action.writes and failed)):
            self._start(action)
        if action.life is not None:
            self._tell(action)
            action.life.end(said)

    def end_all(self, ending: Ending) -> None:
        """The process ends with these under way."""
        self._settle_loose(at_once=True)
        for action in list(self._open):
            self.finish(action, None if action.returned else ending)

    def beat(self, age: float) -> None:
        """Say of long actions that they still run."""
        for action in self._open:
            if action.life is not None and event.now() - action.life.told >= age:
                action.life.running()

    def _match(self, execution: Any) -> Action | None:
        number = int(execution.id())
        for action in self._open:
            if number in action.executions:
                return action
        if len(self._open) <= 1:
            return self._open[0] if self._open else None
        text = str(execution.logical())
        named = [a for a in self._open if a.entry and a.entry.target and a.entry.target in text]
        return named[0] if named else next((a for a in self._open if not a.executions), None)

    def _learn(self, action: Action, execution: Any) -> None:
        action.executions.add(int(execution.id()))
        if action.known:
            return
        lineage = self._app.reader.batch(execution)
        node = str(execution.logical().nodeName())
        if not self._app.settings.allows_node(node):
            return
        if lineage.outputs or not action.lineage.inputs:
            action.lineage, action.node = lineage, node
        self._start_known(action)

    def _start_known(self, action: Action) -> None:
        if action.known and action.life is None:
            self._start(action)

    def _start(self, action: Action) -> None:
        entry = action.entry
        word = entry.word if entry and not action.node else names.operation(action.node)
        if entry and entry.kind == "read":
            word = entry.word
        if action.lineage.outputs or action.lineage.inputs:
            name = names.job(self._app.settings, action.lineage, word)
        else:
            target = entry.target if entry else ""
            short = names.snake("_".join(target.replace("/", ".").split(".")[-2:]))
            name = names.plain(self._app.settings, word, short)
        kind = "SQL_JOB" if action.lineage.sql or (entry and entry.sql) else "COMMAND"
        life = self._app.child(name, "BATCH", kind)
        if life is None:
            return
        action.life = life
        self._tell(action)
        life.start(action.began)

    def _tell(self, action: Action) -> None:
        assert action.life is not None
        lineage, settings = action.lineage, self._app.settings
        if not lineage.sql and action.entry is not None and action.entry.sql:
            from msgspec.structs import replace

            lineage = replace(lineage, sql=action.entry.sql)
        action.life.inputs = facets.inputs(lineage, settings, action.counts.inputs)
        action.life.outputs = facets.outputs(lineage, settings, action.counts.outputs)
        action.life.job_facets.update(facets.sql(lineage))
        action.life.run_facets.update(facets.problems(lineage))

    def _loosely(self, execution: Any, nanoseconds: int, error: Any) -> None:
        action = Action(None, event.now() - nanoseconds / 1e9)
        action.lineage = self._app.reader.batch(execution)
        action.node = str(execution.logical().nodeName())
        if not action.lineage.outputs or not self._app.settings.allows_node(action.node):
            return
        action.failure = None if error is None else self._jvm_failure(error)
        if error is None:
            action.counts.read(execution, action.lineage)
        for other in self._loose:
            same = other.lineage.outputs[0].id == action.lineage.outputs[0].id
            if same and action.began <= other.began:
                # The command around the one that was heard of first.
                self._loose.remove(other)
                break
        self._loose.append(action)

    def _settle_loose(self, at_once: bool = False) -> None:
        now = time.monotonic()
        for action in list(self._loose):
            if at_once or now - action.at >= LOOSE_SECONDS:
                self._loose.remove(action)
                self._open.append(action)
                self.finish(action)

    def _jvm_failure(self, error: Any) -> Ending:
        trace = self._app.bridge.trace(error)
        return Ending(EventType.FAIL, "exception", trace.splitlines()[0] if trace else "", trace)


def _failure(error: BaseException) -> Ending:
    if ENDS.signalled:
        return Ending(EventType.ABORT, f"signal {ENDS.signalled}")
    return of_exception(error)
