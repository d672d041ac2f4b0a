"""Actions of a Spark Connect client: each command that writes, and each read, is a run of its own.

The client's own call names the action that a plan belongs to, so nothing has to be attributed as in
`batch/`. A command is read on one thread while the server works on it, and emitted from another:
neither waits for the program, and the program waits for neither.
"""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors
from headwater.emit.process.process_exit import COMPLETE, PROCESS_EXIT
from headwater.lineage.openlineage.events import EventType
from headwater.spark import job_names, reporting
from headwater.spark.driver.wrapped_methods import SQL_COMMAND
from headwater.spark.model import PlanLineage
from headwater.spark.remote import command_lineage, statements, targets
from headwater.spark.remote.messages import statement_of

if TYPE_CHECKING:
    from headwater.emit.process.process_exit import RunEnd
    from headwater.emit.run_emitter import RunEmitter
    from headwater.spark.remote.application import ConnectApplication
    from headwater.spark.remote.command_lineage import CommandLineage

START_SECONDS = 20.0
"""How long START waits for the plan of a command."""
SLOW_SECONDS = 5.0
MAX_SLOW = 3
MAX_OPEN = 1000

log = logging.getLogger("headwater.spark")


class ConnectAction:
    """One command or read, from its call to its end."""

    def __init__(self, kind: str, message: Any, names: int, method: str) -> None:
        self.kind = kind
        self.message = message
        self.names = names
        self.method = method
        self.began = time.time()
        self.created = time.monotonic()
        self.command: CommandLineage | None = None
        self.lineage = PlanLineage()
        self.ending: RunEnd | None = None
        self.life: RunEmitter | None = None

    @property
    def sql(self) -> str:
        """The statement, where there is one."""
        return statement_of(self.message) if self.kind == "sql_command" else ""


class ConnectActions:
    """The actions under way; everything but `call_started` and `call_returned` is the worker's."""

    def __init__(self, application: ConnectApplication) -> None:
        self._app = application
        self._open: list[ConnectAction] = []
        self._slow = 0
        self._overflowed = False

    @property
    def reports_reads(self) -> bool:
        """Whether plain reads are reported too: no more once the server was slow to explain."""
        return self._slow < MAX_SLOW

    def call_started(self, kind: str, message: Any, method: str = "") -> ConnectAction | None:
        """A call is about to be made; None when it cannot be followed."""
        if len(self._open) >= MAX_OPEN:
            if not self._overflowed:
                self._overflowed = True
                log.warning(
                    "%s: more than %d calls run at once; the others are not reported",
                    self._app.settings.app_name,
                    MAX_OPEN,
                )
            return None
        action = ConnectAction(kind, message, self._app.names, method)
        self._open.append(action)
        self._app.ask(self._read, action, droppable=kind == "read")
        return action

    def call_returned(self, action: ConnectAction, error: BaseException | None) -> None:
        """The call is over."""
        action.ending = PROCESS_EXIT.of(error)
        # The requests that were made for this call are in the queue before this.
        self._app.ask(self._settle, action)

    def _read(self, action: ConnectAction) -> None:
        command = self._read_command(action)
        if command.seconds > SLOW_SECONDS and self._slow < MAX_SLOW:
            self._slow += 1
            if not self.reports_reads:
                log.warning(
                    "reads are no longer reported for %s: the server took longer than %g s to "
                    "explain %d plans; writes are still reported",
                    self._app.settings.app_name,
                    SLOW_SECONDS,
                    MAX_SLOW,
                )
        if action.names != self._app.names:
            # A view or a setting may have become another one since the call.
            command.session.problem(
                "names changed while the plan was read: its columns are not known"
            )
            command.forget_columns()
        action.lineage = command.lineage()
        action.command = command
        self._app.worker.post(self._start, action)

    def _read_command(self, action: ConnectAction) -> CommandLineage:
        server, definitions, message = self._app.server, self._app.definitions, action.message
        if action.kind == "write_operation":
            return command_lineage.of_frame(
                server, message.input, lambda session: targets.of_v1(session, message), definitions
            )
        if action.kind == "write_operation_v2":
            return command_lineage.of_frame(
                server, message.input, lambda session: targets.of_v2(session, message), definitions
            )
        if action.kind == "merge_into_table_command":
            return command_lineage.of_merge(server, message, definitions)
        if action.kind == "sql_command":
            return command_lineage.of_statement(server, message, definitions)
        return command_lineage.of_query(server, message, definitions)

    def _settle(self, action: ConnectAction) -> None:
        """Read the target again when the call is over: its table may exist only now."""
        self._app.server.clear_cache()
        if action.command is not None:
            action.lineage = internal_errors.log_and_ignore("reading a command")(
                action.command.lineage
            )() or (action.lineage)
        self._app.worker.post(self._finish, action)

    def _start(self, action: ConnectAction) -> None:
        if action not in self._open or action.life is not None:
            return
        name = self._job_name(action)
        if not name:
            return
        kind = "SQL_JOB" if action.sql else "COMMAND"
        action.life = self._app.child(name, "BATCH", kind)
        if action.life is not None:
            self._update(action)
            action.life.start(action.began)

    def _job_name(self, action: ConnectAction) -> str:
        """The job name, as a listener in the server would give it; nothing when it is no job."""
        settings = self._app.settings
        command = action.command
        if action.kind == "read":
            inputs = action.lineage.inputs
            return job_names.job(settings, action.lineage, action.method) if inputs else ""
        target = command.target if command is not None else None
        if command is not None and target is not None:
            if target.parts:
                return job_names.job(settings, command.stands_for, target.operation)
            if action.lineage.outputs:
                return job_names.job(settings, action.lineage, target.operation)
        failed = action.ending is not None and action.ending.type is not EventType.COMPLETE
        if statements.is_script(action.sql):
            named = statements.script_targets(action.sql)[:1]
            return job_names.plain(settings, "script", *map(_short, named))
        if action.sql:
            match = SQL_COMMAND.match(statements.bare(action.sql))
            writes_nothing = target is not None and not target.parts
            if match is None or (writes_nothing and not failed):
                return ""
            table = (match[2] or "").replace("`", "")
            return job_names.plain(settings, job_names.operation(match[1]), _short(table))
        operation = job_names.operation(action.method or action.kind)
        return job_names.plain(settings, operation) if failed else ""

    def _update(self, action: ConnectAction) -> None:
        if action.life is None:
            return
        action.life.lineage = reporting.lineage(action.lineage, self._app.settings)

    def _finish(self, action: ConnectAction, ending: RunEnd | None = None) -> None:
        if action not in self._open:
            return
        self._start(action)
        self._open.remove(action)
        if action.life is None:
            return
        self._update(action)
        action.life.end(ending or action.ending or COMPLETE)

    def end_all(self, ending: RunEnd) -> None:
        """The process or the session ends with these under way."""
        for action in list(self._open):
            self._finish(action, None if action.ending is not None else ending)

    def poll(self, age: float) -> None:
        """Start what has waited too long for its plan; emit heartbeats for long actions."""
        for action in list(self._open):
            if action.life is None:
                if time.monotonic() - action.created > START_SECONDS and action.kind != "read":
                    internal_errors.log_and_ignore("naming an action")(self._start)(action)
            elif time.time() - action.life.emitted_at >= age:
                action.life.running()


def _short(table: str) -> str:
    """The last parts of a table's name as it is written."""
    return job_names.snake("_".join(table.split(".")[-2:]))
