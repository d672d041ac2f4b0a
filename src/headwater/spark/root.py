"""The root of what is told of one application: its own run, and the runs below it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING, Any, Protocol

from headwater.emit import event, session
from headwater.emit.life import Life, new_run_id
from headwater.emit.parent import Ancestors, RunRef
from headwater.lineage.events import EventType
from headwater.spark import facets, names
from headwater.spark.flow import SECONDS as FLOW_SECONDS
from headwater.spark.flow import Flow
from headwater.spark.worker import Worker

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.emit.ends import Ending
    from headwater.spark.config import Settings

GRACE_SECONDS = 5.0
LOOK_SECONDS = 1.0


class Parts(Protocol):
    """The actions or the queries of an application."""

    def end_all(self, ending: Ending) -> None:
        """Say how all that are open end."""


class Root:
    """An application's own run; who extends this knows its actions and queries."""

    actions: Parts
    queries: Any

    def __init__(self, settings: Settings, conf: Mapping[str, str], version: str) -> None:
        self.settings = settings
        self.journal = session.journal(settings.transport or None)
        self.worker = Worker("headwater-spark")
        self.flow = Flow(self.journal)
        self._over = False
        self._closing: tuple[float, Ending] | None = None
        self._said = threading.Event()
        self._about_runs = facets.of_run(settings, conf, version)
        ref = RunRef(settings.namespace, names.plain(settings), new_run_id())
        above = settings.ancestors
        self._below = above.below(ref) if above else Ancestors(ref, ref)
        self._silent = not settings.allows_job(ref.name)
        parent = {"parent": above.facet} if above else {}
        self.life = self._life(ref, parent, "BATCH", "APPLICATION")

    def begin(self) -> None:
        """Say START, and look after what is open from now on."""
        self.worker.every(lambda: LOOK_SECONDS, self._tick)
        self.worker.every(lambda: FLOW_SECONDS, lambda: self.flow.post(self.queries.open))
        if not self._silent:
            self.worker.post(self.life.start, event.now())

    def child(self, name: str, processing: str, kind: str) -> Life | None:
        """A run below this application, or None when a filter keeps it out."""
        if not self.settings.allows_job(name):
            return None
        ref = RunRef(self.settings.namespace, name, new_run_id())
        return self._life(ref, {"parent": self._below.facet}, processing, kind)

    def _life(self, ref: RunRef, parent: dict[str, Any], processing: str, kind: str) -> Life:
        return Life(
            self.journal,
            ref,
            run_facets={**parent, **self._about_runs},
            job_facets=facets.of_job(self.settings, processing, kind),
            without=self.settings.disabled_facets,
        )

    def look(self, age: float) -> None:
        """Look after what is open; a run that has said nothing for so long says that it lives."""
        raise NotImplementedError

    def beat(self, age: float) -> None:
        """Say that the application lives, if it has said nothing for so long."""
        if not self._silent and event.now() - self.life.told >= age:
            self.life.running()

    def end_parts(self, ending: Ending) -> None:
        """Say how everything ends but the application itself, which may still fail after this."""
        self.worker.post(self.actions.end_all, ending)
        self.worker.post(self.queries.end_all, ending)
        self.worker.wait(GRACE_SECONDS)
        self._closing = (time.monotonic(), ending)

    def ending(self, given: Ending) -> Ending:
        """How it ends: a program that ends well has nothing to add to how its session was stopped."""
        closed = self._closing is not None and given.type is EventType.COMPLETE
        return self._closing[1] if closed and self._closing else given

    def end_now(self, ending: Ending) -> None:
        """Say how everything ends; the first one stands. On the worker's thread."""
        if self._over:
            return
        self.actions.end_all(ending)
        self.queries.end_all(ending)
        self._over = True
        self.life.end(ending)
        self.leave()
        self._said.set()

    def leave(self) -> None:
        """Everything is said: the process may end as soon as this returns."""

    def _tick(self) -> None:
        if self._over:
            return
        if self._closing is None:
            self.look(self.settings.heartbeat)
        elif time.monotonic() - self._closing[0] > GRACE_SECONDS:
            self.end_now(self._closing[1])
