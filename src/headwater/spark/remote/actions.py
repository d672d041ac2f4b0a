"""Actions of a Spark Connect client: each command that writes, and each read, is a run of its own.

A command is read on one thread while the server works on it, and told on another: neither waits for
the program, and the program waits for neither.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from headwater.emit import event, once
from headwater.emit.ends import COMPLETE, ENDS
from headwater.lineage.events import EventType
from headwater.spark import facets, names
from headwater.spark.entries import _COMMAND as COMMAND
from headwater.spark.model import PlanLineage
from headwater.spark.remote import reading, statements, targets
from headwater.spark.remote.messages import statement_of

if TYPE_CHECKING:
    from headwater.emit.ends import Ending
    from headwater.emit.life import Life
    from headwater.spark.remote.application import RemoteApplication
    from headwater.spark.remote.reading import Reading

PATIENCE_SECONDS = 20.0
COSTLY_SECONDS = 5.0
MOST_COSTLY = 3
MOST_OPEN = 1000


class Action:
    """One command or read, from its call to its end."""

    def __init__(self, kind: str, message: Any, names_then: int) -> None:
        self.kind = kind
        self.message = message
        self.names_then = names_then
        self.began = event.now()
        self.at = time.monotonic()
        self.word = ""
        self.reading: Reading | None = None
        self.lineage = PlanLineage()
        self.ending: Ending | None = None
        self.life: Life | None = None

    @property
    def sql(self) -> str:
        """The statement, where there is one."""
        return statement_of(self.message) if self.kind == "sql_command" else ""


class Actions:
    """The actions under way; everything but `began` and `returned` is done by the worker."""

    def __init__(self, application: RemoteApplication) -> None:
        self._app = application
        self._open: list[Action] = []
        self._costly = 0

    @property
    def reads(self) -> bool:
        """Whether plain reads are told too: not any more where the server takes long to explain."""
        return self._costly < MOST_COSTLY

    def began(self, kind: str, message: Any, word: str = "") -> Action | None:
        """A call is about to be made; None when it cannot be followed."""
        if len(self._open) >= MOST_OPEN:
            once.report("following so many calls, so some are left out; this", OverflowError())
            return None
        action = Action(kind, message, self._app.names)
        action.word = word
        self._open.append(action)
        self._app.ask(self._read, action, droppable=kind == "read")
        return action

    def returned(self, action: Action, error: BaseException | None) -> None:
        """The call is over."""
        action.ending = ENDS.of(error)
        # Whatever was asked for this call stands before this.
        self._app.ask(self._settle, action)

    def _read(self, action: Action) -> None:
        server, pool = self._app.server, self._app.pool
        message = action.message
        if action.kind == "write_operation":
            write = message
            found = reading.of_frame(
                server, write.input, lambda world: targets.of_v1(world, write), pool
            )
        elif action.kind == "write_operation_v2":
            write = message
            found = reading.of_frame(
                server, write.input, lambda world: targets.of_v2(world, write), pool
            )
        elif action.kind == "merge_into_table_command":
            found = reading.of_merge(server, message, pool)
        elif action.kind == "sql_command":
            found = reading.of_statement(server, message, pool)
        else:
            found = reading.of_query(server, message, pool)
        if found.seconds > COSTLY_SECONDS and self._costly < MOST_COSTLY:
            self._costly += 1
            if not self.reads:
                once.report(
                    "explaining plans costs too much: reads are not told; this", TimeoutError()
                )
        if action.names_then != self._app.names:
            # A view or a setting may have become another one since the call.
            found.world.problem("names changed while the plan was read: its columns are not known")
            found.query = None
        action.lineage = found.lineage()
        action.reading = found
        self._app.worker.post(self._start, action)

    def _settle(self, action: Action) -> None:
        """Look again when the call is over: a table may be there that was not."""
        self._app.server.forget()
        if action.reading is not None:
            action.lineage = once.quiet("reading a command")(action.reading.lineage)() or (
                action.lineage
            )
        self._app.worker.post(self._finish, action)

    def _start(self, action: Action) -> None:
        if action not in self._open or action.life is not None:
            return
        name = self._name(action)
        if not name:
            return
        kind = "SQL_JOB" if action.sql else "COMMAND"
        action.life = self._app.child(name, "BATCH", kind)
        if action.life is not None:
            self._tell(action)
            action.life.start(action.began)

    def _name(self, action: Action) -> str:
        """The job's name, as a listener in the server would give it; nothing when it is no job."""
        settings = self._app.settings
        found = action.reading
        if action.kind == "read":
            inputs = action.lineage.inputs
            return names.job(settings, action.lineage, action.word) if inputs else ""
        target = found.target if found is not None else None
        if found is not None and target is not None:
            if target.parts:
                return names.job(settings, found.stands_for, target.operation)
            if action.lineage.outputs:
                return names.job(settings, action.lineage, target.operation)
        failed = action.ending is not None and action.ending.type is not EventType.COMPLETE
        if action.sql:
            match = COMMAND.match(statements.bare(action.sql))
            silent = target is not None and not target.parts
            if match is None or (silent and not failed):
                return ""
            short = names.snake("_".join((match[2] or "").replace("`", "").split(".")[-2:]))
            return names.plain(settings, names.operation(match[1]), short)
        return names.plain(settings, names.operation(action.word or action.kind)) if failed else ""

    def _tell(self, action: Action) -> None:
        if action.life is None:
            return
        lineage, settings = action.lineage, self._app.settings
        action.life.inputs = facets.inputs(lineage, settings)
        action.life.outputs = facets.outputs(lineage, settings)
        action.life.job_facets.update(facets.sql(lineage))
        action.life.run_facets.update(facets.problems(lineage))

    def _finish(self, action: Action, ending: Ending | None = None) -> None:
        if action not in self._open:
            return
        self._start(action)
        self._open.remove(action)
        if action.life is None:
            return
        self._tell(action)
        action.life.end(ending or action.ending or COMPLETE)

    def end_all(self, ending: Ending) -> None:
        """The process or the session ends with these under way."""
        for action in list(self._open):
            self._finish(action, None if action.ending is not None else ending)

    def look(self, age: float) -> None:
        """Start what has waited too long for its plan; say of long ones that they still run."""
        for action in list(self._open):
            if action.life is None:
                if time.monotonic() - action.at > PATIENCE_SECONDS and action.kind != "read":
                    once.quiet("naming an action")(self._start)(action)
            elif event.now() - action.life.told >= age:
                action.life.running()
