"""The sending side of a run's life: START once, RUNNING while it lives, one terminal event."""

from __future__ import annotations

import os
import threading
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

import headwater
from headwater.lineage.lifecycle import Emitted
from headwater.lineage.model import End, Failure, Lineage, RunRef
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventType
from headwater.lineage.openlineage.writer import Writer

if TYPE_CHECKING:
    from headwater.emit.journal import Journal
    from headwater.emit.process.process_exit import RunEnd
    from headwater.lineage.model import Job, Run

PRODUCER = f"urn:headwater:emit:{headwater.__version__}"
HEARTBEAT_SECONDS = 300.0


def heartbeat_seconds() -> float:
    """How often an open run emits RUNNING: `HEADWATER_HEARTBEAT_SECONDS`, else five minutes."""
    return given_seconds("HEADWATER_HEARTBEAT_SECONDS", HEARTBEAT_SECONDS)


def given_seconds(variable: str, default: float) -> float:
    """A time from the environment; one that is none, or no time at all, counts as not given."""
    try:
        given = float(os.environ.get(variable, ""))
    except ValueError:
        return default
    return given if 0 < given < float("inf") else default


def new_run_id(at: datetime | None = None) -> str:
    """A UUID of version 7, so that ids sort by time: of this moment, or of now."""
    from openlineage.client.uuid import generate_new_uuid

    return str(generate_new_uuid(at) if at else generate_new_uuid())


Facets = dict[str, dict[str, Any]]


class RunEmitter:
    """The sending side of one run; the first terminal event stands, whoever emits it."""

    def __init__(
        self, journal: Journal, job: Job, run: Run, disabled_facets: frozenset[str] = frozenset()
    ) -> None:
        self.job = job
        self.run = run
        self.lineage = Lineage()
        self._writer = Writer(PRODUCER, disabled_facets)
        self._journal = journal
        self._key = ""
        self._emitted = Emitted()
        self._lock = threading.RLock()

    @property
    def ref(self) -> RunRef:
        """The run and its job, by name."""
        return RunRef(self.job.namespace, self.job.name, self.run.id)

    @property
    def over(self) -> bool:
        """Whether the terminal event has been decided."""
        return self._emitted.over

    @property
    def started(self) -> bool:
        """Whether START has been emitted."""
        return self._emitted.last is not None

    @property
    def emitted_at(self) -> float:
        """The time of the last event, in seconds since 1970; 0 before the first."""
        return self._emitted.at / SECOND

    def start(self, moment: float | None = None, facets: Facets | None = None) -> None:
        """Emit START, with the lineage as far as it is known, and the content of further run facets."""
        if self._forked:
            return
        with self._lock:
            if not self.started:
                self._emit(EventType.START, moment or time.time(), facets or {})

    def running(self, facets: Facets | None = None) -> None:
        """Emit RUNNING, with full lineage and the content of further run facets."""
        if self._forked:
            return
        with self._lock:
            if self._emitted.open:
                self._emit(EventType.RUNNING, time.time(), facets or {})

    def end(
        self, ending: RunEnd, facets: Facets | None = None, moment: float | None = None
    ) -> bool:
        """Emit the terminal event, unless one was emitted before; its time is `moment`, or now."""
        if self._forked:
            return False
        with self._lock:
            if not self._emitted.open:
                return False
            self._emit(ending.type, moment or time.time(), facets or {}, ending)
            return True

    @property
    def _forked(self) -> bool:
        # In a child that was forked since; and another thread of the parent may have held the lock.
        return not self._journal.of_this_process

    def _emit(
        self, kind: EventType, moment: float, facets: Facets, ending: RunEnd | None = None
    ) -> None:
        after = self._emitted.emit(kind, round(moment * SECOND))
        body = self._body(kind, after.at / SECOND, facets, ending)
        if kind is EventType.START:
            self._key = self._journal.begin(self.run.id, body)
        elif after.over:
            self._journal.end(self._key, self.run.id, body)
        else:
            self._journal.emit(self._key, self.run.id, body)
        # Not before it is on disk: an end without a beginning would follow.
        self._emitted = after

    def _body(
        self, kind: EventType, moment: float, facets: Facets, ending: RunEnd | None
    ) -> dict[str, Any]:
        failed = ending is not None and ending.type is EventType.FAIL
        return self._writer.run_event(
            kind,
            datetime.fromtimestamp(moment, timezone.utc),
            self.job,
            replace(self.run, facets={**self.run.facets, **facets}),
            self.lineage,
            end=End(ending.reason, by=ending.by) if ending else None,
            failure=_failure(ending) if ending and failed else None,
        )


def _failure(ending: RunEnd) -> Failure:
    return Failure(ending.message or ending.reason, ending.stack_trace, "PYTHON")
