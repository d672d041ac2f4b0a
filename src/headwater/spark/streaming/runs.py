"""Runs of streaming queries: one start of a query is one run, however many micro-batches it takes.

Spark Classic reads a query and its progress from the driver's JVM (`streaming/queries.py`), a Spark
Connect client from its server's messages (`remote/queries.py`); the run is the same for both.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from itertools import chain, count
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec.structs import replace

from headwater.emit.process.process_exit import COMPLETE, PROCESS_EXIT, RunEnd, of_exception
from headwater.lineage.openlineage.events import EventType
from headwater.spark import job_names, reporting

if TYPE_CHECKING:
    from headwater.emit.run_emitter import RunEmitter
    from headwater.spark.driver.application import Application
    from headwater.spark.driver.config import SparkSettings
    from headwater.spark.model import PlanLineage
    from headwater.spark.reporting import Counts
    from headwater.spark.streaming.progress import Progress

Taken = Callable[[str], bool]

STOPPED = RunEnd(EventType.ABORT, "stopped")


class QueryRun:
    """One run of a streaming query; `bounded` when it ends by itself (`availableNow`, `once`)."""

    def __init__(
        self, application: Application, spark_run: str, name: str, lineage: PlanLineage
    ) -> None:
        self.settings = application.settings
        self.spark_run = spark_run
        self.name = name
        self.lineage = lineage
        self.bounded = False
        self.progress: Progress | None = None
        self.life: RunEmitter | None = application.child(name, "STREAMING", "STREAMING_QUERY")

    @property
    def ref(self) -> Any:
        """Namespace, job and id of the run."""
        assert self.life is not None
        return self.life.ref

    @property
    def active(self) -> bool:
        """Whether the query still runs, as far as is known."""
        return True

    def counted(self) -> tuple[Counts, Counts]:
        """How much was read and written so far, by dataset."""
        return {}, {}

    def is_due(self, age: float) -> bool:
        """Whether the last event is this old."""
        return self.life is not None and time.time() - self.life.emitted_at >= age

    def start(self) -> None:
        """Emit START."""
        self._update()
        if self.life is not None:
            self.life.start(facets=self._facets())

    def change(self, lineage: PlanLineage) -> None:
        """Emit RUNNING at once: what the query reads or writes has changed."""
        self.lineage = lineage
        self._update()
        if self.life is not None:
            self.life.running(self._facets())

    def heartbeat(self, age: float) -> None:
        """Emit RUNNING if the last event is this old."""
        if self.life is not None and self.is_due(age):
            self._update()
            self.life.running(self._facets())

    def end(self, ending: RunEnd) -> None:
        """Emit how the query ended."""
        if self.life is not None:
            self._update()
            self.life.end(ending, self._facets())

    def _facets(self) -> dict[str, Any]:
        groups = sorted({group for one in self.lineage.inputs for group in one.groups})
        known = {
            "headwater_streaming": self.progress.facet if self.progress else None,
            "headwater_consumerGroups": {"groups": groups} if groups else None,
        }
        return {name: facet for name, facet in known.items() if facet is not None}

    def _update(self) -> None:
        if self.life is not None:
            # A streaming query has no text of its own: its SQL belongs to what started it.
            plan = replace(self.lineage, sql="")
            self.life.lineage = reporting.lineage(plan, self.settings, *self.counted())


Q = TypeVar("Q", bound=QueryRun)


class QueryRuns(Generic[Q]):
    """The streaming queries of an application that run, by Spark's run id."""

    def __init__(self, application: Application) -> None:
        self._application = application
        self._open: dict[str, Q] = {}
        self._stopping: set[str] = set()

    @property
    def open(self) -> list[Q]:
        """The queries that run."""
        return list(self._open.values())

    def taken(self, name: str) -> bool:
        """Whether a query that runs has this job name."""
        return any(q.name == name and q.active for q in self.open)

    def stopping(self, run: str) -> None:
        """The program has called `stop()` on a query that runs."""
        self._stopping.add(run)

    def refused(self, name: str, error: BaseException) -> None:
        """Emit START and FAIL for a query that could not start."""
        life = self._application.child(name, "STREAMING", "STREAMING_QUERY")
        if life is not None:
            life.start()
            life.end(of_exception(error))

    def heartbeat(self, age: float) -> None:
        """Emit RUNNING for every query whose last event is this old."""
        for query in self.open:
            query.heartbeat(age)

    def end_all(self, ending: RunEnd) -> None:
        """The process, the session or the JVM ends with these running."""
        end = STOPPED if ending.type is EventType.COMPLETE else ending
        for run, query in list(self._open.items()):
            self.before_end(query)
            query.end(STOPPED if run in self._stopping else end)
        self._open.clear()

    def before_end(self, query: Q) -> None:
        """Take in the last progress of a query, where it can still be had."""

    def end_one(self, query: Q, failure: RunEnd | None) -> None:
        """End one query: by a signal, by its failure, by itself, or because it was stopped."""
        run = query.spark_run
        if PROCESS_EXIT.signalled:
            ending = PROCESS_EXIT.now
        elif failure is not None:
            ending = failure
        else:
            ending = COMPLETE if query.bounded and run not in self._stopping else STOPPED
        query.end(ending)
        self._stopping.discard(run)


def unnamed_job(settings: SparkSettings, lineage: PlanLineage, function: str, taken: Taken) -> str:
    """The job name of a query without queryName: by its sink, its function or its source.

    A name that a running query has is `taken`: two queries at once are two jobs. The next name adds
    the source, and then they are numbered in the order in which they start.
    """
    sink, source = next(iter(lineage.outputs), None), next(iter(lineage.inputs), None)
    origin = "from_" + job_names.short(source) if source else ""
    if sink is not None:
        parts = ("streaming", job_names.short(sink))
    elif function:
        parts = ("foreach_batch", job_names.snake(function))
    else:
        parts = ("streaming", origin)
    first = job_names.plain(settings, *parts)
    full = first if origin in parts else job_names.plain(settings, *parts, origin)
    numbered = (f"{full}_{number}" for number in count(2))
    return next(name for name in chain((first, full), numbered) if not taken(name))


def refused_job(settings: SparkSettings, target: str, function: str) -> str:
    """The job name of a query that was refused at its start: by the place or the function it names."""
    if not target and function:
        return job_names.plain(settings, "foreach_batch", job_names.snake(function))
    parts = [part for part in target.replace("/", ".").split(".") if part]
    return job_names.plain(settings, "streaming", job_names.snake("_".join(parts[-2:])))
