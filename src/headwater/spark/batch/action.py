"""An action: one write, command or read of a batch program, from its call to its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec.structs import replace

from headwater.spark import job_names, reporting
from headwater.spark.batch.statistics import ActionStatistics
from headwater.spark.driver.wrapped_methods import SQL_QUERY, without_comments
from headwater.spark.model import PlanLineage
from headwater.spark.plan import multi_insert
from headwater.spark.stores import formats

if TYPE_CHECKING:
    from headwater.emit.process.process_exit import RunEnd
    from headwater.emit.run_emitter import RunEmitter
    from headwater.lineage.model import Dataset
    from headwater.lineage.naming import DatasetName
    from headwater.spark.batch.attribution import CallMark
    from headwater.spark.batch.script import Script
    from headwater.spark.driver.application import Application
    from headwater.spark.driver.wrapped_methods import EntryPoint, MicroBatch


class EndedExecution(NamedTuple):
    """An execution that has ended and is not read yet; `number` is that of its plan."""

    number: int
    execution: Any
    failure: RunEnd | None
    began: float
    ended: float


class Action:
    """One piece of work; `entry` is the Python call that began it, None when no call is known."""

    def __init__(self, entry: EntryPoint | None, began: float, owner: Any = None) -> None:
        self.entry = entry
        self.began = began
        self.owner = owner
        """The DataFrame, writer or session that was called."""
        self.micro_batch: MicroBatch | None = None
        """The micro-batch that the call was made in: what it writes is the query's."""
        self.mark: CallMark | None = None
        self.end_plan: int | None = None
        """The number of the next plan when the call returned."""
        self.returned = False
        self.raised: BaseException | None = None
        self.mode = ""
        """The mode of the writer that was called, where the call failed and it makes a difference."""
        self.jvm_error: Any = None
        self.candidates: list[Action] = []
        """The calls that an unattributed execution may belong to."""
        self.executions: set[int] = set()
        self.callbacks = 0
        self.ended: list[EndedExecution] = []
        """Executions that are not read yet, in the order in which they ended."""
        self.script: Script | None = None
        self.claims: dict[tuple[str, DatasetName], int] = {}
        """By class and output, the plan that was attributed by the place it writes to."""
        self.parts: dict[int, PlanLineage] = {}
        """By plan, the commands of a multi-insert that Spark 3.5 executes one by one."""
        self.lineage = PlanLineage()
        self.node = ""
        self.number = -1
        """The number of the plan that the lineage was read from."""
        self.statistics = ActionStatistics()
        self.failure: RunEnd | None = None
        self.life: RunEmitter | None = None
        self.created = time.monotonic()
        self._plan: int | None = None

    @property
    def writes(self) -> bool:
        """Whether the call alone shows that this is more than a read."""
        entry = self.entry
        return entry is not None and entry.kind in ("write", "sql", "rdd") and bool(entry.operation)

    @property
    def reads(self) -> bool:
        """Whether the call alone shows that nothing is written."""
        return self.entry is not None and self.entry.kind == "read"

    @property
    def can_write(self) -> bool:
        """Whether the call may write: no action of a DataFrame, and no statement that only queries."""
        entry = self.entry
        if self.reads or entry is None:
            return not self.reads
        return not (entry.sql and SQL_QUERY.match(without_comments(entry.sql)))

    @property
    def frame(self) -> Any:
        """The execution of the frame that a read is of; an action such as `count` makes another one."""
        java = getattr(self.owner, "_jdf", None) if self.reads else None
        return None if java is None else java.queryExecution()

    @property
    def plan(self) -> int:
        """The number of the plan that a frame had before it was read; -1 for anything else."""
        if self._plan is None:
            frame = self.frame
            self._plan = -1 if frame is None else int(frame.id())
        return self._plan

    def made(self, number: int) -> bool:
        """Whether a plan of this number was made while the call lasted, by whichever thread."""
        first = self.mark.first if self.mark else 0
        return first <= number and (self.end_plan is None or number < self.end_plan)

    @property
    def known(self) -> bool:
        """Whether enough is known to emit START."""
        if self.lineage.outputs:
            return True
        return self.reads and bool(self.lineage.inputs)

    def learn(self, number: int, lineage: PlanLineage, node: str) -> None:
        """Take in the lineage of an execution; of several that write, the outer one counts.

        A command such as CREATE TABLE AS SELECT runs another one inside of it, which has a plan of
        its own. The outer plan is made first, so it has the lower number.
        """
        outer = self.number < 0 or number < self.number
        if lineage.outputs:
            better = not self.lineage.outputs or outer
        else:
            better = not self.lineage.outputs and not self.lineage.inputs
        if better:
            self.lineage, self.node, self.number = lineage, node, number

    def is_part(self, lineage: PlanLineage) -> bool:
        """Whether this is one command of the multi-insert that was called, and not all of it."""
        called, whole = self.entry.operation if self.entry else "", multi_insert.OPERATION
        if called != whole or (self.lineage.operation == whole and not self.parts):
            return False
        return bool(lineage.outputs) and lineage.operation != whole

    def add_part(self, number: int, lineage: PlanLineage, node: str) -> None:
        """Take in one command of a multi-insert."""
        self.parts[number] = lineage
        whole = multi_insert.together([part for _, part in sorted(self.parts.items())])
        self.lineage = replace(whole, operation=multi_insert.OPERATION)
        self.node, self.number = node, min(self.parts)

    @property
    def settled(self) -> bool:
        """Whether its end reports nothing new: a new table gets its location, an altered one its schema."""
        made = self.lineage.operation.startswith(("create_table", "replace_table"))
        outputs = self.lineage.outputs
        if made and any(_keeps_schema(one) for one in outputs):
            return False
        return all(one.placed for one in outputs) and not self.altered

    @property
    def altered(self) -> frozenset[DatasetName]:
        """The tables that it gives, or may give, another schema."""
        evolves = self.lineage.evolves
        changed = ((one.id, one.change) for one in self.lineage.outputs)
        return frozenset(
            name for name, change in changed if evolves or (change and change.change == "ALTER")
        )

    def start(self, application: Application) -> None:
        """Emit START, as soon as the job has a name."""
        kind = "SQL_JOB" if self.lineage.sql or (self.entry and self.entry.sql) else "COMMAND"
        self.life = application.child(self._job_name(application), "BATCH", kind)
        if self.life is not None:
            self.update(application)
            self.life.start(self.began)

    def _job_name(self, application: Application) -> str:
        entry, lineage = self.entry, self.lineage
        operation = entry.operation if entry and not self.node else job_names.operation(self.node)
        if entry and entry.kind == "read":
            operation = entry.operation
        if lineage.outputs or lineage.inputs:
            return job_names.job(application.settings, lineage, operation)
        target = entry.target if entry else ""
        short = job_names.snake("_".join(target.replace("/", ".").split(".")[-2:]))
        return job_names.plain(application.settings, operation, short)

    def update(self, application: Application) -> None:
        """Put what is known into the next event."""
        assert self.life is not None
        lineage, settings = self.lineage, application.settings
        if not lineage.sql and self.entry is not None and self.entry.sql:
            lineage = replace(lineage, sql=self.entry.sql)
        counted = self.statistics
        self.life.lineage = reporting.lineage(lineage, settings, counted.inputs, counted.outputs)


def _keeps_schema(one: Dataset) -> bool:
    """Whether the catalog of a table has a schema of it to report, once it is made."""
    table_format = formats.by_name(one.storage_layer) if one.catalog is not None else None
    return table_format is not None and table_format.keeps_catalogs
