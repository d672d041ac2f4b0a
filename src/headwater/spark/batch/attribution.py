"""Which Python call an execution of Spark belongs to, decided by facts only.

Spark reports the end of an execution without saying which call made it, and a program may have calls
on many threads. A call is marked with the number of the next plan when it begins and when it returns,
and with its thread in the JVM. An execution that fits several calls is attributed to none of them.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.emit import internal_errors

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from headwater.lineage.model import Dataset
    from headwater.spark.batch.action import Action
    from headwater.spark.driver.bridge import JvmBridge
    from headwater.spark.driver.plan_reader import PlanReader
    from headwater.spark.model import PlanLineage

EXECUTION_ID, ROOT_EXECUTION_ID = "spark.sql.execution.id", "spark.sql.execution.root.id"
MAX_FINISHED = 256
UNATTRIBUTED_SECONDS = 0.5


class CallMark(NamedTuple):
    """What sets one call apart: the first plan it can have made, and its thread in the JVM."""

    first: int
    thread: Any
    pinned: bool

    @classmethod
    def without_plans(cls) -> CallMark:
        """The mark of a call that makes no plans, as the actions of RDDs."""
        return cls(sys.maxsize, None, pinned=True)

    @staticmethod
    @internal_errors.log_and_ignore("marking a call")
    def of(bridge: JvmBridge) -> CallMark:
        """The mark of a call that is about to be made by this thread."""
        return CallMark(bridge.next_plan, bridge.thread if bridge.pinned else None, bridge.pinned)

    @internal_errors.log_and_ignore("asking a thread for its executions")
    def running(self) -> list[int]:
        """The ids of the executions that the call's own thread is in, the outer one first."""
        if self.thread is None:
            return []
        # The inner one first: read the other way round, both may begin between the two, and the
        # outer one would be missed.
        inner = self.thread.getProperty(EXECUTION_ID)
        outer = self.thread.getProperty(ROOT_EXECUTION_ID) if inner is not None else None
        return list(dict.fromkeys(int(number) for number in (outer, inner) if number is not None))


class ExecutionAttribution:
    """The calls under way and the last ones that ended, and which of them an execution is from."""

    def __init__(self, reader: PlanReader) -> None:
        self._reader = reader
        self.open: list[Action] = []
        self._finished: deque[Action] = deque(maxlen=MAX_FINISHED)
        self._query_starts: deque[Action] = deque(maxlen=MAX_FINISHED)

    def finish(self, action: Action) -> None:
        """Keep a call that is over: callbacks of its executions may still arrive."""
        self.open.remove(action)
        self._finished.append(action)

    def add_query_start(self, start: Action) -> None:
        """Keep a call that starts a streaming query: what it executes is no action of its own."""
        self._query_starts.append(start)

    def is_query_start(self, number: int) -> bool:
        """Whether an execution was made while a streaming query was being started."""
        return any(start.made(number) for start in self._query_starts)

    def candidates(self, number: int, execution: Any, error: Any = None) -> list[Action]:
        """Every call that an execution may belong to; exactly one when it is certain."""
        calls = [*self.open, *self._finished]
        for action in calls:
            if number in action.executions:
                return [action]
        own = [action for action in calls if action.plan == number]
        if own:
            # The same frame read again: the same name and lineage, whichever it is.
            return next(([a] for a in own if a in self.open and not a.callbacks), own[:1])
        late = [action for action in self._finished if action.end_plan is not None]
        found = [action for action in (*self.open, *late) if action.made(number)]
        if len(found) > 1 and error is not None:
            found = [a for a in found if same_error(a.raised, error)] or found
        if len(found) > 1:
            lineage = self._reader.batch(execution)
            if not lineage.outputs:
                return self._by_inputs(found, lineage) or found
            found = by_target(found, lineage.outputs)
            if len(found) == 1 and not self._claim(found[0], execution, lineage):
                return [*found, *(a for a in calls if a is not found[0] and a.made(number))]
        return found

    def _by_inputs(self, actions: list[Action], lineage: PlanLineage) -> list[Action]:
        """The reads that have had no execution yet and are of a frame that reads the same datasets."""
        wanted = {one.id for one in lineage.inputs}
        return [
            action
            for action in actions
            if wanted
            and not action.callbacks
            and action.frame is not None
            and {one.id for one in self._reader.batch(action.frame).inputs} == wanted
        ]

    def _claim(self, action: Action, execution: Any, lineage: PlanLineage) -> bool:
        """Attribute a write to the call that names its place; another one cannot be its own too.

        What a command executes inside of it is of another class.
        """
        if not lineage.outputs:
            return True
        for one in action.ended if not action.claims else ():
            for output in self._reader.batch(one.execution).outputs[:1]:
                action.claims[node_of(one.execution), output.id] = one.number
        number = int(execution.id())
        claim = (node_of(execution), lineage.outputs[0].id)
        return number == action.claims.setdefault(claim, number)


class UnattributedExecutions:
    """Executions that could not be attributed to a Python call yet.

    Each waits up to 0.5 s for the call that owns it, then becomes a run with the lineage of its own plan.
    """

    def __init__(self) -> None:
        self._waiting: list[Action] = []
        self._empty = threading.Event()
        self._empty.set()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def wait(self, seconds: float) -> bool:
        """Wait until none is left; False when the time is up."""
        return self._empty.wait(seconds)

    def add(self, action: Action) -> None:
        """Keep an execution that has ended."""
        inner = [other for other in self._waiting if is_inner(other, action)]
        if inner:
            # The command around the one that ended first: its plan was made before.
            self._waiting.remove(min(inner, key=lambda other: other.number))
        self._waiting.append(action)
        self._empty.clear()

    def adopt(self, action: Action) -> None:
        """Attribute an execution to the call that raised the same JVM exception."""
        for other in list(self._waiting):
            if action in other.candidates and same_error(action.raised, other.jvm_error):
                self._waiting.remove(other)
                if not action.known:
                    action.lineage, action.node = other.lineage, other.node

    def expired(self, open_calls: list[Action], at_once: bool = False) -> Iterator[Action]:
        """Those that no call has claimed in time: runs of their own."""
        now = time.monotonic()
        for action in list(self._waiting):
            # A call that has just returned may have raised this execution's error.
            waits = any(call.returned and call in open_calls for call in action.candidates)
            if at_once or (now - action.created >= UNATTRIBUTED_SECONDS and not waits):
                self._waiting.remove(action)
                if not is_step(action):
                    yield action
        if not self._waiting:
            self._empty.set()


def node_of(execution: Any) -> str:
    """The name of the node at the top of an execution's plan."""
    return str(execution.logical().nodeName())


@internal_errors.log_and_ignore("comparing errors")
def same_error(raised: BaseException | None, jvm_error: Any) -> bool:
    """Whether what Python raised is the very throwable that Spark reported."""
    if raised is None or jvm_error is None:
        return False
    thrown = getattr(raised, "_origin", None) or getattr(raised, "java_exception", None)
    return thrown is not None and bool(jvm_error.equals(thrown))


def same_output(one: Action, other: Action) -> bool:
    """Whether two actions write the same dataset first."""
    first, second = one.lineage.outputs, other.lineage.outputs
    return bool(first) and bool(second) and first[0].id == second[0].id


def is_inner(one: Action, outer: Action) -> bool:
    """Whether an execution may be what a command (CREATE TABLE AS SELECT) executes inside of it."""
    return same_output(one, outer) and one.number > outer.number >= 0 and one.node != outer.node


def is_step(unattributed: Action) -> bool:
    """Whether an execution is a step of an action that has a run."""
    if any(
        call.life is not None and is_inner(unattributed, call) for call in unattributed.candidates
    ):
        return True
    # Every candidate has a run, and one of them that output.
    calls = [action for action in unattributed.candidates if action.can_write]
    # A script has no run of its own: its statements have.
    reported = all(action.life is not None or action.script is not None for action in calls)
    return reported and any(same_output(action, unattributed) for action in calls)


def by_target(actions: list[Action], outputs: Iterable[Dataset]) -> list[Action]:
    """The calls that may write there: one alone if it names the place and no other does."""
    written = list(outputs)
    able = [action for action in actions if action.can_write]
    targets = [action.entry.targets if action.entry else () for action in able]
    hits = [
        action
        for action, names in zip(able, targets, strict=True)
        if any(_names_dataset(name, dataset) for name in names for dataset in written)
    ]
    return hits if len(hits) == 1 else able


def _names_dataset(target: str, dataset: Dataset) -> bool:
    wanted = target.rstrip("/")
    for name in (dataset.name, *(link.name for link in dataset.symlinks)):
        known = name.rstrip("/")
        if wanted == known:
            return True
        for one, other in ((wanted, known), (known, wanted)):
            if one.endswith((f"/{other.lstrip('/')}", f".{other}", f":{other}")):
                return True
    return False
