"""An application: its own run, and the runs of its actions and streaming queries below it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Protocol

from msgspec.structs import replace

from headwater.emit import journals
from headwater.emit.run_emitter import RunEmitter, new_run_id
from headwater.lineage.model import Ancestors, RunRef
from headwater.lineage.openlineage.events import EventType
from headwater.spark import job_names, reporting
from headwater.spark.driver.worker import Worker
from headwater.spark.streaming.flow import SECONDS as FLOW_SECONDS
from headwater.spark.streaming.flow import FlowSamples

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from headwater.emit.process.process_exit import RunEnd
    from headwater.spark.driver.config import SparkSettings
    from headwater.spark.streaming.runs import QueryRun

GRACE_SECONDS = 5.0
POLL_SECONDS = 1.0


class OpenActions(Protocol):
    """The actions of an application that have not ended."""

    def end_all(self, ending: RunEnd) -> None:
        """Emit how all that are open end."""


class OpenQueries(Protocol):
    """The streaming queries of an application that run."""

    @property
    def open(self) -> Iterable[QueryRun]:
        """The queries that run."""

    def end_all(self, ending: RunEnd) -> None:
        """Emit how all that are open end."""


class Application:
    """The run of one application, which `ClassicApplication` and `ConnectApplication` extend.

    They differ in how they learn what Spark does: through py4j from the driver's JVM, or from the
    messages that a Spark Connect client exchanges with its server.
    """

    actions: OpenActions
    queries: OpenQueries

    def __init__(
        self, settings: SparkSettings, conf: Mapping[str, str], version: str, ui: str = ""
    ) -> None:
        self.settings = settings
        self.journal = journals.journal(settings.transport or None)
        self.worker = Worker("headwater-spark")
        self.flow = FlowSamples(self.journal)
        self._over = False
        self._closing: tuple[float, RunEnd] | None = None
        self._ended = threading.Event()
        self._run = reporting.run(settings, conf, version, ui)
        ref = RunRef(settings.namespace, job_names.plain(settings), new_run_id())
        above = settings.ancestors
        self._below = above.below(ref) if above else Ancestors(ref, ref)
        self._suppressed = not settings.allows_job(ref.name)
        self.life = self._life(ref, above, "BATCH", "APPLICATION")

    def begin(self) -> None:
        """Emit START, and poll what is open from now on."""
        self.worker.every(lambda: POLL_SECONDS, self._tick)
        self.worker.every(lambda: FLOW_SECONDS, lambda: self.flow.post(self.queries.open))
        if not self._suppressed:
            self.worker.post(self.life.start, time.time())

    def child(self, name: str, processing: str, kind: str) -> RunEmitter | None:
        """A run below this application, or None when a job filter suppresses it."""
        if not self.settings.allows_job(name):
            return None
        ref = RunRef(self.settings.namespace, name, new_run_id())
        return self._life(ref, self._below, processing, kind)

    def _life(self, ref: RunRef, above: Ancestors | None, processing: str, kind: str) -> RunEmitter:
        return RunEmitter(
            self.journal,
            reporting.job(self.settings, ref.name, processing, kind),
            replace(self._run, id=ref.run_id, ancestors=above),
            self.settings.disabled_facets,
        )

    def poll(self, age: float) -> None:
        """Poll what is open; emit a heartbeat for every run whose last event is this old."""
        raise NotImplementedError

    def heartbeat(self, age: float) -> None:
        """Emit RUNNING for the application, if its last event is this old."""
        if not self._suppressed and time.time() - self.life.emitted_at >= age:
            self.life.running()

    def end_children(self, ending: RunEnd) -> None:
        """End everything but the application itself, which may still fail after this."""
        self.worker.post(self.actions.end_all, ending)
        self.worker.post(self.queries.end_all, ending)
        self.worker.wait(GRACE_SECONDS)
        self._closing = (time.monotonic(), ending)

    def ending(self, given: RunEnd) -> RunEnd:
        """How it ends: a program that ends well ends as its session was stopped."""
        closed = self._closing is not None and given.type is EventType.COMPLETE
        return self._closing[1] if closed and self._closing else given

    def end_now(self, ending: RunEnd) -> None:
        """End everything; the first ending stands. On the worker's thread."""
        if self._over:
            return
        self.actions.end_all(ending)
        self.queries.end_all(ending)
        self._over = True
        self.life.end(ending)
        self.after_end()
        self._ended.set()

    def after_end(self) -> None:
        """Everything is emitted: the process may end as soon as this returns."""

    def _tick(self) -> None:
        if self._over:
            return
        if self._closing is None:
            self.poll(self.settings.heartbeat)
        elif time.monotonic() - self._closing[0] > GRACE_SECONDS:
            self.end_now(self._closing[1])
