"""The background thread that reads plans and emits: callbacks only post to it, so no job waits."""

from __future__ import annotations

import logging
import queue
import threading
import time
from typing import TYPE_CHECKING, Any

from headwater.emit import internal_errors

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_QUEUED = 10_000

log = logging.getLogger("headwater.spark")


class Worker:
    """Runs posted tasks in order, and periodic ones at their interval."""

    def __init__(self, name: str) -> None:
        self.name = name
        # SimpleQueue.put may be interrupted by a signal handler that puts again; Queue.put may not.
        self._queue: queue.SimpleQueue[Callable[[], Any] | None] = queue.SimpleQueue()
        self._timers: list[_Timer] = []
        self._overflowed = False
        self._thread = threading.Thread(target=self._run, daemon=True, name=name)
        self._thread.start()

    def post(self, task: Callable[..., Any], *args: Any, droppable: bool = False) -> None:
        """Run a task on the worker's thread; a droppable one is dropped when too many are queued."""
        if droppable and self._queue.qsize() > MAX_QUEUED:
            if not self._overflowed:
                self._overflowed = True
                log.warning(
                    "%s: more than %d tasks are queued; the ends of some actions are not reported",
                    self.name,
                    MAX_QUEUED,
                )
            return
        self._queue.put(lambda: task(*args))

    def every(self, interval: Callable[[], float | None], task: Callable[[], Any]) -> None:
        """Run a task periodically; an interval of None pauses it."""
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
                task = self._queue.get(timeout=self._time_to_next())
            except queue.Empty:
                self._tick()
                continue
            if task is None:
                return
            try:
                task()
            except Exception as error:  # noqa: BLE001
                internal_errors.report("reading a job's lineage", error)
            self._tick()

    def _time_to_next(self) -> float:
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
                internal_errors.report("running a periodic task", error)


class _Timer:
    def __init__(self, interval: Callable[[], float | None], task: Callable[[], Any]) -> None:
        self.interval = interval
        self.task = task
        self.last = time.monotonic()

    def due(self) -> float | None:
        wanted = self.interval()
        return None if wanted is None else self.last + wanted
