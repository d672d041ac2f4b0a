"""The one thread that does the work: callbacks only hand over, so that no job waits for it."""

from __future__ import annotations

import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import once

if TYPE_CHECKING:
    from collections.abc import Callable

MOST_WAITING = 10_000


class Worker:
    """Runs what is posted, in order, and some things at intervals."""

    def __init__(self, name: str) -> None:
        # SimpleQueue.put may be interrupted by a signal handler that puts again; Queue.put may not.
        self._queue: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._timers: list[_Timer] = []
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()

    def post(self, task: Callable[..., Any], *args: Any, droppable: bool = False) -> None:
        """Run it soon, on the worker's thread."""
        if droppable and self._queue.qsize() > MOST_WAITING:
            once.report("keeping up, so something is left out; this", OverflowError())
            return
        self._queue.put(lambda: task(*args))

    def every(self, interval: Callable[[], float | None], task: Callable[[], Any]) -> None:
        """Run it at an interval in seconds; None means not now."""
        self._timers.append(_Timer(interval, task))

    def wait(self, seconds: float) -> bool:
        """Wait until everything posted so far is done; False when the time is up."""
        done = threading.Event()
        self._queue.put(done.set)
        return done.wait(seconds) if self._thread.is_alive() else False

    def stop(self) -> None:
        """Let the thread end after what is posted."""
        self._queue.put(None)

    def _run(self) -> None:
        while True:
            try:
                task = self._queue.get(timeout=self._patience())
            except queue.Empty:
                self._tick()
                continue
            if task is None:
                return
            try:
                task()
            except Exception as error:  # noqa: BLE001
                once.report("reading a job's lineage", error)
            self._tick()

    def _patience(self) -> float:
        now = time.monotonic()
        due = [at for timer in self._timers if (at := timer.due()) is not None]
        return max(0.0, min([*(at - now for at in due), 1.0]))

    def _tick(self) -> None:
        now = time.monotonic()
        for timer in self._timers:
            at = timer.due()
            if at is None or at > now:
                continue
            timer.last = now
            try:
                timer.task()
            except Exception as error:  # noqa: BLE001
                once.report("a regular duty", error)


class _Timer:
    def __init__(self, interval: Callable[[], float | None], task: Callable[[], Any]) -> None:
        self.interval = interval
        self.task = task
        self.last = time.monotonic()

    def due(self) -> float | None:
        wanted = self.interval()
        return None if wanted is None else self.last + wanted
