"""An action: one write, command or read of a batch program, from its entry to its end."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.spark import counts, facets, names
from headwater.spark.model import PlanLineage

if TYPE_CHECKING:
    from headwater.emit.ends import Ending
    from headwater.emit.life import Life
    from headwater.spark.application import Application
    from headwater.spark.entries import Entry
    from headwater.spark.whose import Marks


class Action:
    """One piece of work, from its entry to its end."""

    def __init__(self, entry: Entry | None, began: float, owner: Any = None) -> None:
        self.entry = entry
        self.began = began
        self.owner = owner
        self.marks: Marks | None = None
        self.past: int | None = None
        self.raised: BaseException | None = None
        self.heard: Any = None
        self.maybe: list[Action] = []
        self._plan: int | None = None
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
    def reads(self) -> bool:
        """Whether the entry alone says that nothing is written."""
        return self.entry is not None and self.entry.kind == "read"

    @property
    def plan(self) -> int:
        """The number of the plan that a frame had before it was read; -1 for anything else."""
        if self._plan is None:
            frame = getattr(self.owner, "_jdf", None) if self.reads else None
            self._plan = -1 if frame is None else int(frame.queryExecution().id())
        return self._plan

    def made(self, number: int) -> bool:
        """Whether a plan of this number was made while the call lasted, by whichever thread."""
        first = self.marks.first if self.marks else 0
        return first <= number and (self.past is None or number < self.past)

    @property
    def known(self) -> bool:
        """Whether enough is known to say START."""
        if self.lineage.outputs:
            return True
        return self.reads and bool(self.lineage.inputs)

    @property
    def placed(self) -> bool:
        """Whether it is known where everything written lies: a new table's place is its catalog's."""
        return all(one.placed for one in self.lineage.outputs)

    def start(self, application: Application) -> None:
        """Say START, as soon as the work has a name."""
        entry, lineage = self.entry, self.lineage
        word = entry.word if entry and not self.node else names.operation(self.node)
        if entry and entry.kind == "read":
            word = entry.word
        if lineage.outputs or lineage.inputs:
            name = names.job(application.settings, lineage, word)
        else:
            target = entry.target if entry else ""
            short = names.snake("_".join(target.replace("/", ".").split(".")[-2:]))
            name = names.plain(application.settings, word, short)
        kind = "SQL_JOB" if lineage.sql or (entry and entry.sql) else "COMMAND"
        self.life = application.child(name, "BATCH", kind)
        if self.life is not None:
            self.tell(application)
            self.life.start(self.began)

    def tell(self, application: Application) -> None:
        """Put what is known into the next event."""
        assert self.life is not None
        lineage, settings = self.lineage, application.settings
        if not lineage.sql and self.entry is not None and self.entry.sql:
            lineage = replace(lineage, sql=self.entry.sql)
        self.life.inputs = facets.inputs(lineage, settings, self.counts.inputs)
        self.life.outputs = facets.outputs(lineage, settings, self.counts.outputs)
        self.life.job_facets.update(facets.sql(lineage))
        self.life.run_facets.update(facets.problems(lineage))


def same_output(one: Action, other: Action) -> bool:
    ours, theirs = one.lineage.outputs, other.lineage.outputs
    return bool(ours) and bool(theirs) and ours[0].id == theirs[0].id


def is_part(loose: Action) -> bool:
    """Whether it is a step of a told action: all that it may be of are told, one of that output."""
    told = all(action.life is not None for action in loose.maybe)
    return told and any(same_output(action, loose) for action in loose.maybe)
