"""Group commit: many requests share one transaction, each answered after it is on the disk."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.server.store import Receipt, Store, StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["Ingest"]

log = logging.getLogger("headwater.server")

GROUP = 512
LINGER = 0.002


Tell = Callable[[Any], None]
"""Takes an answer: receipts, what a change gave back, or an exception."""


class _Job(NamedTuple):
    tell: Tell
    bodies: Sequence[bytes]
    work: Callable[[Store], Any] | None


class Ingest:
    """One thread that writes; anyone on the event loop may hand it work.

    Work gathers on the loop while the writer is busy, and for a moment more if the last commit
    was shared, so that the same callers can share the next one.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.accepted = 0
        self.commits = 0
        self._loop = asyncio.get_running_loop()
        self._waiting: list[_Job] = []
        self._busy = False
        self._last = 1
        self._timer: asyncio.Handle | None = None
        self.publish: Callable[[int, list[dict[str, Any]]], None] | None = None
        self._changes: list[tuple[int, list[dict[str, Any]]]] = []
        store.on_change = self._note
        self._queue: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="headwater-writer", daemon=True)
        self._thread.start()

    def submit(self, bodies: Sequence[bytes]) -> asyncio.Future[list[Receipt]]:
        """Hand events in; the future holds their receipts once they are on the disk."""
        future, tell = self._promise()
        self._enqueue(_Job(tell, bodies, None))
        return future

    def hand_in(self, body: bytes, tell: Tell) -> None:
        """Hand one event in; `tell` is called on the loop with a list of its receipt, or an error."""
        self._enqueue(_Job(tell, (body,), None))

    def perform(self, work: Callable[[Store], Any]) -> asyncio.Future[Any]:
        """Carry out any other change, in its turn, on the writer's thread."""
        future, tell = self._promise()
        self._enqueue(_Job(tell, (), work))
        return future

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        while self._busy or self._waiting:
            await self.perform(lambda _: None)
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _note(self, seq: int, changes: list[dict[str, Any]]) -> None:
        """Keep what a commit changed until those who wait for it have their answers."""
        self._changes.append((seq, changes))

    def _promise(self) -> tuple[asyncio.Future[Any], Tell]:
        future: asyncio.Future[Any] = self._loop.create_future()

        def tell(answer: Any) -> None:
            if future.done():
                return
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        return future, tell

    def _enqueue(self, job: _Job) -> None:
        self._waiting.append(job)
        if self._busy:
            return
        if len(self._waiting) >= self._last:
            self._hand_over()
        elif self._timer is None:
            self._timer = self._loop.call_later(LINGER, self._hand_over)

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._waiting and not self._busy:
            self._busy = True
            self._queue.put(self._waiting)
            self._waiting = []

    def _resolve(
        self, answers: list[tuple[Tell, Any]], changes: list[tuple[int, list[dict[str, Any]]]]
    ) -> None:
        self._busy = False
        for tell, answer in answers:
            try:
                tell(answer)
            except Exception:
                log.exception("an answer could not be given")
        self._last = len(answers) + len(self._waiting)
        if self._waiting:
            # Those just answered get a moment to come back before the next commit.
            self._timer = self._loop.call_later(LINGER, self._hand_over)
        if self.publish is not None:
            for seq, found in changes:
                self.publish(seq, found)

    def _run(self) -> None:
        while (jobs := self._queue.get()) is not None:
            answers = self._settle(jobs)
            changes, self._changes = self._changes, []
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._resolve, answers, changes)

    def _settle(self, jobs: list[_Job]) -> list[tuple[Tell, Any]]:
        answers: list[tuple[Tell, Any]] = []
        bodies = [body for job in jobs for body in job.bodies]
        try:
            receipts = self._append(bodies)
        except Exception as error:  # noqa: BLE001
            answers += [(job.tell, error) for job in jobs if job.work is None]
        else:
            position = 0
            for job in jobs:
                if job.work is None:
                    size = len(job.bodies)
                    answers.append((job.tell, receipts[position : position + size]))
                    position += size
        for job in jobs:
            if job.work is not None:
                try:
                    answers.append((job.tell, job.work(self.store)))
                except Exception as error:  # noqa: BLE001
                    self.store.abandon()
                    answers.append((job.tell, error))
        return answers

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
            except Exception as error:
                log.exception("an event could not be taken in")
                receipts.append(Receipt(failure=repr(error)))
        return receipts
