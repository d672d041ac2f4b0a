"""Group commit: many requests share one transaction, each answered after it is on the disk."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from headwater.server.store import Receipt, Store, StoreUnavailableError

__all__ = ["Ingest"]

log = logging.getLogger("headwater.server")

GROUP = 512


class _Job(NamedTuple):
    future: asyncio.Future[Any]
    bodies: Sequence[bytes] | None
    work: Callable[[Store], Any] | None


class Ingest:
    """One thread that writes; anyone on the event loop may hand it work."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.accepted = 0
        self.commits = 0
        self._loop = asyncio.get_running_loop()
        self._queue: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="headwater-writer", daemon=True)
        self._thread.start()

    def submit(self, bodies: Sequence[bytes]) -> asyncio.Future[list[Receipt]]:
        """Hand events in; the future holds their receipts once they are on the disk."""
        future: asyncio.Future[list[Receipt]] = self._loop.create_future()
        self._queue.put(_Job(future, bodies, None))
        return future

    def perform(self, work: Callable[[Store], Any]) -> asyncio.Future[Any]:
        """Carry out any other change, in its turn, on the writer's thread."""
        future: asyncio.Future[Any] = self._loop.create_future()
        self._queue.put(_Job(future, None, work))
        return future

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _run(self) -> None:
        waiting: list[_Job] = []
        running = True
        while running:
            job = self._queue.get()
            while job is not None:
                waiting.append(job)
                if job.work is not None or sum(len(j.bodies or ()) for j in waiting) >= GROUP:
                    break
                try:
                    job = self._queue.get_nowait()
                except queue.Empty:
                    break
            running = job is not None
            self._settle(waiting)
            waiting = []

    def _settle(self, waiting: list[_Job]) -> None:
        events = [job for job in waiting if job.bodies is not None]
        answers: list[tuple[asyncio.Future[Any], Any]] = []
        if events:
            bodies = [body for job in events for body in job.bodies or ()]
            try:
                receipts: Any = self._append(bodies)
            except Exception as error:  # noqa: BLE001  (every caller gets an answer)
                answers += [(job.future, error) for job in events]
            else:
                position = 0
                for job in events:
                    size = len(job.bodies or ())
                    answers.append((job.future, receipts[position : position + size]))
                    position += size
        for job in waiting:
            if job.work is not None:
                try:
                    answers.append((job.future, job.work(self.store)))
                except Exception as error:  # noqa: BLE001
                    self.store.abandon()
                    answers.append((job.future, error))
        if answers and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(_resolve, answers)

    def _append(self, bodies: list[bytes]) -> list[Receipt]:
        receipts: list[Receipt] = []
        for start in range(0, len(bodies), GROUP):
            chunk = bodies[start : start + GROUP]
            try:
                receipts += self.store.append(chunk)
            except StoreUnavailableError:
                raise
            except Exception:
                if len(chunk) == 1:
                    raise
                log.exception("a group of %d events failed; trying them one by one", len(chunk))
                receipts += self._singly(chunk)
            self.commits += 1
        self.accepted += sum(1 for r in receipts if r.seq and not r.duplicate)
        return receipts

    def _singly(self, bodies: list[bytes]) -> list[Receipt]:
        receipts: list[Receipt] = []
        for body in bodies:
            try:
                receipts += self.store.append([body])
            except StoreUnavailableError:
                raise
            except Exception as error:  # noqa: BLE001  (its neighbours must not pay for it)
                log.exception("an event could not be taken in")
                receipts.append(Receipt(failure=repr(error)))
        return receipts


def _resolve(answers: list[tuple[asyncio.Future[Any], Any]]) -> None:
    for future, answer in answers:
        if future.done():
            continue
        if isinstance(answer, BaseException):
            future.set_exception(answer)
        else:
            future.set_result(answer)
