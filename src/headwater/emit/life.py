"""The sending side of a run's life: START once, RUNNING while it lives, one terminal event."""

from __future__ import annotations

import os
import threading
from typing import TYPE_CHECKING, Any

from headwater.emit import event
from headwater.emit.event import facet
from headwater.lineage.events import EventType
from headwater.lineage.lifecycle import Producer

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from headwater.emit.ends import Ending
    from headwater.emit.journal import Journal
    from headwater.emit.parent import RunRef

HEARTBEAT_SECONDS = 300.0


def heartbeat_seconds() -> float:
    """How often an open run says that it lives: `HEADWATER_HEARTBEAT_SECONDS`, else five minutes."""
    return given_seconds("HEADWATER_HEARTBEAT_SECONDS", HEARTBEAT_SECONDS)


def given_seconds(variable: str, default: float) -> float:
    """A time from the environment; one that is none, or no time at all, counts as not given."""
    try:
        given = float(os.environ.get(variable, ""))
    except ValueError:
        return default
    return given if 0 < given < float("inf") else default


def new_run_id() -> str:
    """A UUID of version 7, so that ids sort by time."""
    from openlineage.client.uuid import generate_new_uuid

    return str(generate_new_uuid())


def job_type(processing: str, integration: str, kind: str, beat: float) -> dict[str, Any]:
    """The `jobType` facet of a job that says everything anew with every heartbeat."""
    pattern = {
        "eventTrigger": "PERIODIC",
        "eventContentMode": "COMPLETE_SNAPSHOT",
        "windowDuration": max(1, round(beat)),
    }
    return facet(
        "jobType",
        processingType=processing,
        integration=integration,
        jobType=kind,
        emissionPattern=pattern,
    )


class Life:
    """The sending side of one run; the first terminal event stands, whoever says it."""

    def __init__(
        self,
        journal: Journal,
        ref: RunRef,
        *,
        run_facets: Mapping[str, Any] | None = None,
        job_facets: Mapping[str, Any] | None = None,
        without: frozenset[str] = frozenset(),
    ) -> None:
        self.ref = ref
        self._without = without
        self.run_facets = dict(run_facets or {})
        self.job_facets = dict(job_facets or {})
        self.inputs: Sequence[Mapping[str, Any]] = ()
        self.outputs: Sequence[Mapping[str, Any]] = ()
        self.told = 0.0
        self._journal = journal
        self._key = ""
        self._producer = Producer()
        self._lock = threading.RLock()

    @property
    def over(self) -> bool:
        """Whether the terminal event has been decided."""
        return self._producer.over

    @property
    def started(self) -> bool:
        """Whether START has been said."""
        return self._producer.said is not None

    def start(self, moment: float | None = None) -> None:
        """Say START, with the lineage as far as it is known."""
        with self._lock:
            if self._producer.allows(EventType.START):
                body = self._body(EventType.START, moment, {})
                self._key = self._journal.begin(self.ref.run_id, body)
                # Not before it is on disk: an end without a beginning would follow.
                self._producer.say(EventType.START)

    def running(self, facets: Mapping[str, Any] | None = None) -> None:
        """Say RUNNING, with full lineage."""
        with self._lock:
            if self.started and not self.over:
                self._producer.say(EventType.RUNNING)
                body = self._body(EventType.RUNNING, None, facets or {})
                self._journal.tell(self._key, self.ref.run_id, body)

    def end(self, ending: Ending, facets: Mapping[str, Any] | None = None) -> bool:
        """Say the terminal event, unless one was said before."""
        with self._lock:
            if not self.started or self.over:
                return False
            self._producer.say(ending.type)
            said = {**(facets or {}), **_end_facets(ending)}
            body = self._body(ending.type, None, said)
            self._journal.end(self._key, self.ref.run_id, body)
            return True

    def _body(
        self, kind: EventType, moment: float | None, facets: Mapping[str, Any]
    ) -> dict[str, Any]:
        at = moment or event.now()
        # Clocks may step back; the order of one run's events may not.
        self.told = max(at, self.told + 1e-6)
        return event.body(
            kind,
            run_id=self.ref.run_id,
            namespace=self.ref.namespace,
            name=self.ref.name,
            moment=self.told,
            run_facets=self._wanted({**self.run_facets, **facets}),
            job_facets=self._wanted(self.job_facets),
            inputs=self.inputs,
            outputs=self.outputs,
        )

    def _wanted(self, facets: Mapping[str, Any]) -> dict[str, Any]:
        return {name: value for name, value in facets.items() if name not in self._without}


def _end_facets(ending: Ending) -> dict[str, Any]:
    found = {"headwater_end": facet("headwater_end", reason=ending.reason, inferred=False)}
    if ending.type is EventType.FAIL:
        found["errorMessage"] = facet(
            "errorMessage",
            message=ending.message or ending.reason,
            programmingLanguage="PYTHON",
            stackTrace=ending.stack_trace or None,
        )
    return found
