"""The threads that empty an outbox, one for each destination, so that none waits for another."""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING

from headwater.emit.transport import RefusedError
from headwater.errors import HeadwaterError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.emit.outbox import Outbox, Pending
    from headwater.emit.transport import Destination

log = logging.getLogger(__name__)

BATCH = 50
FIRST_WAIT = 0.5
LONGEST_WAIT = 30.0
IDLE = 5.0
MOST_REASONS = 100


class Sender:
    """Sends what the outbox holds, in order, again and again until it arrives."""

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
        self._parked: set[tuple[str, str]] = set()

    def start(self) -> None:
        """Begin to send, including what an earlier process left."""
        self.outbox.register(d.name for d in self.destinations)
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
        """Stop sending, after waiting a little for what is left; says whether nothing is."""
        empty = self.outbox.drained(flush) if flush else not self.outbox.waiting()
        self._stop.set()
        for wake in self._wakers:
            wake.set()
        for thread in self._threads:
            thread.join(timeout=5)
        for destination in self.destinations:
            try:
                destination.close()
            except Exception:
                log.debug("closing %s", destination.shown, exc_info=True)
        return empty

    def _work(self, destination: Destination, wake: threading.Event) -> None:
        wait = FIRST_WAIT
        while not self._stop.is_set():
            wake.clear()
            try:
                sent = self._batch(destination)
            except Exception as error:  # noqa: BLE001
                self._say(destination, error)
                self.outbox.forget_connection()
                self._stop.wait(wait)
                wait = min(wait * 2, self._longest)
                continue
            wait = FIRST_WAIT
            if not sent:
                wake.wait(IDLE)
        self.outbox.forget_connection()

    def _batch(self, destination: Destination) -> int:
        batch = self.outbox.pending(destination.name, BATCH)
        done = 0
        try:
            for event in batch:
                if self._stop.is_set():
                    break
                if not self._deliver(destination, event):
                    continue
                done = event.seq
        finally:
            if done:
                destination.flush()
                self.outbox.sent(destination.name, done)
        if batch:
            self._recover(destination)
        return len(batch)

    def _deliver(self, destination: Destination, event: Pending) -> bool:
        try:
            destination.send(event.body)
        except RefusedError as refusal:
            self.outbox.park(destination.name, event, refusal.message)
            reason = refusal.message[:200]
            # A reason may name the event: of many, the first few say enough.
            said = (destination.name, reason)
            if said not in self._parked and len(self._parked) < MOST_REASONS:
                self._parked.add(said)
                text = "%s refused an event of run %s, which is put aside: %s"
                log.warning(text, destination.shown, event.run, reason)
            return False
        return True

    def _say(self, destination: Destination, error: Exception) -> None:
        known = isinstance(error, HeadwaterError)
        text = str(error) if known else redact(f"{type(error).__name__}: {error}")
        if destination.name not in self.problems:
            log.warning("%s: %s; events wait and are sent again", destination.shown, text)
        self.problems[destination.name] = f"{destination.shown}: {text}"

    def _recover(self, destination: Destination) -> None:
        if self.problems.pop(destination.name, None) is not None:
            began = time.strftime("%H:%M:%S")
            log.warning("%s takes events again since %s", destination.shown, began)
