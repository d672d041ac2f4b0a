"""SQL scripts (`BEGIN … END`): each statement that writes is a run of its own, with its own end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.emit.process.process_exit import COMPLETE
from headwater.spark.batch.action import Action
from headwater.spark.batch.attribution import node_of

if TYPE_CHECKING:
    from headwater.emit.process.process_exit import RunEnd
    from headwater.spark.batch.action import EndedExecution
    from headwater.spark.driver.classic import ClassicApplication

_NO_STATEMENTS = ("CompoundBody", "CreateVariable", "SetVariable", "DropVariable")
"""What Spark executes of a script besides its statements."""


class Script:
    """The statements of one call; they run one after the other, on the thread of the call."""

    def __init__(self, application: ClassicApplication, call: Action) -> None:
        self._app = application
        self._call = call
        self._running: dict[int, Action] = {}
        self._polled = -1

    def poll(self, execution: Any) -> None:
        """The script is in this execution: those before it are over."""
        number = int(execution.id())
        if number == self._polled:
            return
        self._polled = number
        self._call.executions.add(number)
        self._end_all(number)
        statement = self._statement(number, execution, time.time())
        if statement is not None:
            statement.start(self._app)
            self._running[number] = statement

    def end_before_running(self) -> None:
        """Emit the ends of statements while the script goes on."""
        mark = self._call.mark
        for number in (mark.running() if mark is not None else None) or ():
            execution = self._app.bridge.execution(number)
            if execution is not None:
                self._end_all(int(execution.id()))
                return

    def end(self, ending: RunEnd | None) -> None:
        """The script is over; with an `ending`, the process ends while it runs."""
        if self._app.bridge.alive:
            self._end_all()
        for statement in self._running.values():
            if statement.life is not None:
                statement.life.end(ending or self._call.failure or COMPLETE)
        self._running.clear()

    def _end_all(self, before: int = -1) -> None:
        """Emit the ends of statements; those of plans up to `before`, which still runs.

        What a statement executes inside of it (CREATE TABLE AS SELECT inserts) has a later plan and
        ends earlier.
        """
        ended = [one for one in self._call.ended if before < 0 or one.number < before]
        self._call.ended = [one for one in self._call.ended if one not in ended]
        arrived = {one.number: place for place, one in enumerate(ended)}
        outer: list[tuple[EndedExecution, Action, list[EndedExecution]]] = []
        for one in sorted(ended, key=lambda one: one.number):
            around = (o for o in outer if arrived[o[0].number] > arrived[one.number])
            if (found := next(around, None)) is not None:
                found[2].append(one)
                continue
            statement = self._running.pop(one.number, None)
            statement = statement or self._statement(one.number, one.execution, one.began)
            if statement is not None:
                outer.append((one, statement, [one]))
        for one, statement, executions in outer:
            self._end_one(one, statement, executions)

    def _end_one(
        self, one: EndedExecution, statement: Action, executions: list[EndedExecution]
    ) -> None:
        if not statement.settled:
            # Its table is there now, and with it the table's location and schema.
            again = self._app.reader.batch(one.execution)
            statement.lineage = again if again.outputs else statement.lineage
        for execution in executions:
            if execution.failure is None:
                spark = self._app.bridge.spark
                statement.statistics.read(spark, execution.execution, statement.lineage)
        if statement.life is None:
            statement.start(self._app)
        if statement.life is not None:
            statement.update(self._app)
            statement.life.end(one.failure or COMPLETE, moment=one.ended)
        self._app.queries.altered(statement.altered)

    def _statement(self, number: int, execution: Any, began: float) -> Action | None:
        node = node_of(execution)
        if node in _NO_STATEMENTS or not self._app.settings.allows_node(node):
            return None
        made = Action(self._call.entry, began)
        made.learn(number, self._app.reader.batch(execution), node)
        return made if made.lineage.outputs else None
