"""The threads that empty an outbox, one for each destination, so that none waits for another."""

from __future__ import annotations

import logging
import random
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

from headwater.emit.transports import AnsweredError, RefusedError
from headwater.errors import HeadwaterError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.emit.destinations import Destination
    from headwater.emit.outbox import Outbox, Pending

log = logging.getLogger(__name__)

BATCH = 50
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
IDLE = 5.0
MOST_REASONS = 100
# An event that the server answers with an error so often, for so long, may be at fault itself.
STUCK_ATTEMPTS = 5
STUCK_SECONDS = 60.0
# So many of the events behind it are candidates to find out whether the server takes others.
PROBES = 200


class _Stuck(NamedTuple):
    """The event at the head of a queue that the server keeps answering with an error."""

    seq: int
    attempts: int
    since: float


class Sender:
    """Sends what the outbox holds for some destinations, in order, until they have taken it."""

    def __init__(
        self, outbox: Outbox, destinations: Sequence[Destination], *, longest: float = LONGEST_WAIT
    ) -> None:
        self.outbox = outbox
        self.destinations = list(destinations)
        self.problems: dict[str, str] = {}
        self._longest = longest
        self._stop = threading.Event()
        self._wakers: list[threading.Event] = []
        self._threads: list[threading.Thread] = []
        self._logged: set[tuple[str, str]] = set()
        self._stuck: dict[str, _Stuck] = {}

    @property
    def names(self) -> list[str]:
        """The names of the destinations."""
        return [destination.name for destination in self.destinations]

    def start(self) -> None:
        """Begin to send, including what an earlier process left for these destinations."""
        for destination in self.destinations:
            wake = threading.Event()
            self._wakers.append(wake)
            self.outbox.on_event(wake.set)
            thread = threading.Thread(
                target=self._work, args=(destination, wake), daemon=True, name=destination.name
            )
            self._threads.append(thread)
            thread.start()

    def stop(self, flush: float = 0.0) -> bool:
        """Stop sending after at most `flush` seconds; True if nothing is left to send."""
        empty = self.outbox.drained(flush, self.names)
        self._stop.set()
        for wake in self._wakers:
            wake.set()
        for thread in self._threads:
            thread.join(timeout=5)
        for destination in self.destinations:
            try:
                destination.close()
            except Exception as error:  # noqa: BLE001  (whatever it is, the job goes on)
                log.debug("closing %s: %s", destination.shown, redact(repr(error)))
        return empty

    def _work(self, destination: Destination, wake: threading.Event) -> None:
        wait = FIRST_WAIT
        while not self._stop.is_set():
            wake.clear()
            try:
                sent = self._attempt(destination)
            except Exception as error:  # noqa: BLE001
                self._report(destination, error)
                self.outbox.forget_connection()
                self._stop.wait(wait)
                wait = min(wait * 2, self._longest)
                continue
            wait = FIRST_WAIT
            if not sent:
                wake.wait(IDLE)
        self.outbox.forget_connection()

    def _attempt(self, destination: Destination) -> int:
        try:
            return self._batch(destination)
        except AnsweredError as error:
            if not self._head_at_fault(destination, error):
                raise
            return 1

    def _batch(self, destination: Destination) -> int:
        batch = self.outbox.pending(destination.name, BATCH)
        done: list[int] = []
        try:
            for event in batch:
                if self._stop.is_set():
                    break
                if self._deliver(destination, event):
                    done.append(event.seq)
        finally:
            if done:
                destination.flush()
                self.outbox.sent(destination.name, done)
        if batch:
            self._recover(destination)
        return len(batch)

    def _deliver(self, destination: Destination, event: Pending) -> bool:
        """Send one event; False if it was refused for good and set aside."""
        try:
            destination.send(event.body)
        except RefusedError as refusal:
            self._set_aside(destination, event, refusal.message)
            return False
        return True

    def _head_at_fault(self, destination: Destination, error: AnsweredError) -> bool:
        """Set the head of the queue aside if it alone is at fault.

        It is when it failed again and again, and the server takes another event between two
        attempts at it. While the server takes no other, or there is none, the head waits.
        """
        head, *behind = self.outbox.pending(destination.name, PROBES)
        now = time.monotonic()
        before = self._stuck.get(destination.name)
        if before is None or before.seq != head.seq:
            before = _Stuck(head.seq, 0, now)
        stuck = self._stuck[destination.name] = before._replace(attempts=before.attempts + 1)
        if not behind or stuck.attempts < STUCK_ATTEMPTS or now - stuck.since < STUCK_SECONDS:
            return False
        # At random, since its neighbours may be at fault like it.
        probe = random.choice(behind)  # noqa: S311
        try:
            destination.send(probe.body)
        except RefusedError:
            return False
        destination.flush()
        self.outbox.sent(destination.name, [probe.seq])
        try:
            destination.send(head.body)
        except AnsweredError:
            how_often = f"{stuck.attempts} times in {now - stuck.since:.0f} s"
            reason = f"{error.message} ({how_often}, while it took other events)"
            self._set_aside(destination, head, reason)
        else:
            destination.flush()
            self.outbox.sent(destination.name, [head.seq])
        return True

    def _set_aside(self, destination: Destination, event: Pending, reason: str) -> None:
        self.outbox.refuse(destination.name, event, reason)
        # A reason may quote the event: of many that differ, the first hundred are enough.
        logged = (destination.name, reason[:200])
        if logged not in self._logged and len(self._logged) < MOST_REASONS:
            self._logged.add(logged)
            log.warning(
                "%s refused an event of run %s: %s; it is kept aside, see `headwater outbox list`",
                destination.shown, event.run, reason[:200], extra={"run": event.run},
            )  # fmt: skip

    def _report(self, destination: Destination, error: Exception) -> None:
        known = isinstance(error, HeadwaterError)
        text = str(error) if known else redact(f"{type(error).__name__}: {error}")
        if destination.name not in self.problems:
            log.warning("%s: %s; events stay queued and are retried", destination.shown, text)
        self.problems[destination.name] = f"{destination.shown}: {text}"

    def _recover(self, destination: Destination) -> None:
        if self.problems.pop(destination.name, None) is not None:
            began = time.strftime("%H:%M:%S")
            log.warning("%s accepts events again since %s", destination.shown, began)
