"""Group commit: many requests share one transaction, each answered after it is on the disk."""

from __future__ import annotations

import asyncio
import logging
import queue
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.lineage.openlineage.events import EventError, EventProblem
from headwater.metrics import Histogram
from headwater.server.store import (
    Receipt,
    Store,
    StoreError,
    StoreUnavailableError,
    UnstorableError,
)
from headwater.server.store.write.incoming.event_reader import EventReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from msgspec import Raw

    from headwater.server.store.write.incoming.prepared import PreparedEvent

__all__ = ["Ingest"]

log = logging.getLogger("headwater.server")

GROUP = 512
LINGER = 0.002
BULK = 256
"""Events of a batch that share one commit at most; fewer where they take longer than `TURN`."""
TURN = 0.05
"""Seconds of CPU after which a commit takes no more events of a batch, since other requests wait."""
LARGE = 64 * 1024
"""A body of more bytes than this is not small: one of them, or one part of a batch, to a commit."""
ASIDE = 256 * 1024
"""An event of more bytes than this is read before it gets to the writer. Reading takes some 20 ms a
MB, far more for what is masked, in which the writer commits what others send."""

COMPUTING = 0.01
"""The share of its time that a writer which only waits does not use of a CPU. Its client wakes ten
times a second, each time for 0.1 ms or, on a busy machine, some more."""


Deliver = Callable[[Any], None]
"""Takes an answer: receipts, what a change gave back, or an exception."""


class _Job(NamedTuple):
    deliver: Deliver
    bodies: Sequence[bytes | PreparedEvent]
    work: Callable[[Store], Any] | None
    divisible: bool = False
    """Whether a commit may take its first events alone; the one who asked hands the rest in again."""


class Ingest:
    """One thread that writes; anyone on the event loop may hand it work.

    Work gathers on the loop while the writer is busy, and for a moment more if the last commit
    was shared, so that the same callers can share the next one. Large events and parts of batches
    queue by themselves, one to a commit, so that small events never wait for many of them.
    """

    def __init__(self, store: Store) -> None:
        self.store = store
        self.accepted = 0
        self.commits = 0
        self.sizes = Histogram(1, 2, 5, 10, 25, 50, 100, 250, 512)
        """Events of each commit."""
        self.failing: str | None = None
        """Why the last commit failed; None since one has succeeded."""
        self._loop = asyncio.get_running_loop()
        self.working = False
        """Whether the writer is at a change that may take long, such as deleting for good."""
        self.stalled: str | None = None
        """Why nothing is handed to the writer: what it is at does not end."""
        self._waiting: list[_Job] = []
        self._large: deque[_Job] = deque()
        self._handed: list[_Job] = []
        self._busy = False
        self._busy_since = 0.0
        self._used = self._used_at = 0.0
        self._last = 1
        self._timer: asyncio.Handle | None = None
        self.publish: Callable[[int, list[dict[str, Any]]], None] | None = None
        self._changes: list[tuple[int, list[dict[str, Any]]]] = []
        store.on_change = self._note
        self._queue: queue.SimpleQueue[list[_Job] | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._run, name="headwater-writer", daemon=True)
        self._thread.start()
        self._readers = ThreadPoolExecutor(1, thread_name_prefix="headwater-large-events")
        self._read_aside = 0

    def submit(self, bodies: Sequence[bytes]) -> asyncio.Future[list[Receipt]]:
        """Hand events in; the future holds their receipts once they are on the disk."""
        future, deliver = self._promise()
        self._take(bodies, deliver, large=sum(map(len, bodies)) > LARGE)
        return future

    async def submit_many(self, bodies: Sequence[Raw | memoryview]) -> list[Receipt]:
        """Hand many events in, some at a time, so that others get their turn; all their receipts.

        Only those that are handed in are copied: the memory of the last ones serves the next.
        """
        receipts: list[Receipt] = []
        start = 0
        while start < len(bodies):
            end, size = start + 1, len(bodies[start])
            while end < len(bodies) and end - start < BULK and size < LARGE * 32:
                size += len(bodies[end])
                end += 1
            future, deliver = self._promise()
            part = [bytes(body) for body in bodies[start:end]]
            self._take(part, deliver, large=True, divisible=True)
            found = await future
            receipts += found
            start += len(found)
        return receipts

    def hand_in(self, body: bytes, deliver: Deliver) -> None:
        """Hand one event in; `deliver` is called on the loop with a list of its receipt, or an error."""
        self._take((body,), deliver, large=len(body) > LARGE)

    def _take(
        self, bodies: Sequence[bytes], deliver: Deliver, *, large: bool, divisible: bool = False
    ) -> None:
        if len(bodies) != 1 or len(bodies[0]) <= ASIDE:
            self._enqueue(_Job(deliver, bodies, None, divisible), large=large)
            return
        self._read_aside += 1
        # A reader of its own: the writer's remembers what it has met, and serves one thread.
        read = self._readers.submit(EventReader(self.store.limits).prepare, bodies[0])
        read.add_done_callback(
            lambda done: self._loop.call_soon_threadsafe(self._was_read, done, deliver)
        )

    def _was_read(self, done: Future[PreparedEvent], deliver: Deliver) -> None:
        self._read_aside -= 1
        error = done.exception()
        if isinstance(error, EventError):
            error.__traceback__ = error.__context__ = None  # it holds all that was decoded
            deliver([Receipt(error=error)])
        elif error is not None:
            deliver(error)
        else:
            self._enqueue(_Job(deliver, (done.result(),), None), large=True)

    def perform(self, work: Callable[[Store], Any]) -> asyncio.Future[Any]:
        """Carry out any other change, in its turn, on the writer's thread."""
        future, deliver = self._promise()
        self._enqueue(_Job(deliver, (), work))
        return future

    async def close(self) -> None:
        """Finish what was handed in, then stop."""
        while self._read_aside:
            await asyncio.sleep(0.01)
        self._readers.shutdown()
        while self._busy or self._waiting or self._large:
            if self.stalled is not None:
                return  # the writer's thread ends with the process
            await self.perform(lambda _: None)
        self._queue.put(None)
        await asyncio.to_thread(self._thread.join)

    def _note(self, seq: int, changes: list[dict[str, Any]]) -> None:
        """Keep what a commit changed until those who wait for it have their answers."""
        self._changes.append((seq, changes))

    def _promise(self) -> tuple[asyncio.Future[Any], Deliver]:
        future: asyncio.Future[Any] = self._loop.create_future()

        def deliver(answer: Any) -> None:
            if future.done():
                return
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        return future, deliver

    def busy_for(self) -> float:
        """Seconds that the writer has been at what was handed to it last."""
        return self._loop.time() - self._busy_since if self._busy else 0.0

    def waited(self) -> float:
        """Seconds that the writer has waited for the store, by what was found at each call.

        On a machine that is short of CPU, a writer may take long for little: one that computes is
        not waiting.
        """
        now, used = self._loop.time(), _cpu_seconds(self._thread)
        since = max(self._used_at, self._busy_since)
        if used - self._used > COMPUTING * (now - since):
            self._used, self._used_at = used, now
        return min(self.busy_for(), now - self._used_at)

    def give_up(self, reason: str) -> None:
        """Answer everyone who waits, since the writer does not; what it is at may still be kept.

        Until the writer is back, whatever is handed in is answered with the same.
        """
        log.error("nothing can be written: %s", reason)
        self.failing = self.stalled = reason
        error = StoreUnavailableError(reason)
        waiting = [*self._waiting, *self._large]
        self._waiting = []
        self._large.clear()
        # A change that the writer is at goes on: who asked for it waits for what becomes of it.
        for job in [*(job for job in self._handed if job.work is None), *waiting]:
            job.deliver(error)

    def _enqueue(self, job: _Job, *, large: bool = False) -> None:
        if self.stalled is not None:
            job.deliver(StoreUnavailableError(self.stalled))
            return
        (self._large if large else self._waiting).append(job)
        if self._busy:
            return
        if large or len(self._waiting) >= self._last:
            self._hand_over()
        elif self._timer is None:
            self._timer = self._loop.call_later(LINGER, self._hand_over)

    def _hand_over(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if (self._waiting or self._large) and not self._busy:
            self._busy, self._busy_since = True, self._loop.time()
            jobs, self._waiting = self._waiting, []
            if self._large:
                jobs.append(self._large.popleft())
            self._handed = jobs
            self._queue.put(jobs)

    def _resolve(
        self, answers: list[tuple[_Job, Any]], changes: list[tuple[int, list[dict[str, Any]]]]
    ) -> None:
        self._busy, self._handed = False, []
        stalled, self.stalled = self.stalled, None
        for job, answer in answers:
            if stalled is not None and job.work is None:
                continue
            try:
                job.deliver(answer)
            except Exception:
                log.exception("the answer to a request could not be delivered")
        self._last = len(answers) + len(self._waiting)
        if self._waiting or self._large:
            # Those just answered get a moment to come back before the next commit.
            self._timer = self._timer or self._loop.call_later(LINGER, self._hand_over)
        if self.publish is not None:
            for seq, found in changes:
                self.publish(seq, found)

    def _run(self) -> None:
        while (jobs := self._queue.get()) is not None:
            answers = self._settle(jobs)
            changes, self._changes = self._changes, []
            if not self._loop.is_closed():
                self._loop.call_soon_threadsafe(self._resolve, answers, changes)

    def _settle(self, jobs: list[_Job]) -> list[tuple[_Job, Any]]:
        answers: list[tuple[_Job, Any]] = []
        # What is divisible stands behind the others.
        bodies = [body for job in jobs for body in job.bodies]
        least = sum(len(job.bodies) for job in jobs if not job.divisible)
        try:
            receipts = self._append(bodies, least + 1)
        except Exception as error:  # noqa: BLE001
            self._failed(error)
            answers += [(job, error) for job in jobs if job.work is None]
        else:
            position = 0
            for job in jobs:
                if job.work is None:
                    size = len(job.bodies)
                    answers.append((job, receipts[position : position + size]))
                    position += size
        for job in jobs:
            if job.work is not None:
                self.working = True
                try:
                    answers.append((job, job.work(self.store)))
                except Exception as error:  # noqa: BLE001
                    if type(error) in (StoreError, StoreUnavailableError):
                        self._failed(error)
                    self.store.abandon()
                    answers.append((job, error))
                finally:
                    self.working = False
        return answers

    def _failed(self, error: Exception) -> None:
        """Remember why writing fails; what is wrong with the data alone is no failure to write."""
        if not isinstance(error, UnstorableError):
            self.failing = str(error) or repr(error)

    @property
    def queued(self) -> int:
        """Events and changes that wait for the writer or that it is at."""
        waiting = (*self._waiting, *self._large, *self._handed)
        return self._read_aside + sum(len(job.bodies) or 1 for job in waiting)

    def _committed(self, receipts: list[Receipt]) -> None:
        self.commits += 1
        if events := sum(1 for receipt in receipts if receipt.seq):
            self.sizes.observe(events)
        self.failing = None

    def _append(self, bodies: list[bytes | PreparedEvent], least: int) -> list[Receipt]:
        """Store events; of those beyond the first `least`, as many as there is time for."""
        receipts: list[Receipt] = []
        for start in range(0, len(bodies), GROUP):
            chunk = bodies[start : start + GROUP]
            try:
                found = self.store.append(chunk, least=least - start, turn=TURN)
            except StoreUnavailableError:
                raise
            except Exception as error:
                if len(chunk) > 1:
                    log.exception("a group of %d events failed; trying them one by one", len(chunk))
                    receipts += self._singly(chunk)
                elif isinstance(error, UnstorableError):
                    receipts.append(_refused(error))
                else:
                    raise
            else:
                receipts += found
                self._committed(found)
                if len(found) < len(chunk):
                    break
        self.accepted += sum(1 for r in receipts if r.seq and not r.duplicate)
        return receipts

    def _singly(self, bodies: list[bytes | PreparedEvent]) -> list[Receipt]:
        receipts: list[Receipt] = []
        for body in bodies:
            try:
                # What was read before has the numbers of a commit that was undone.
                found = self.store.append([body if isinstance(body, bytes) else body.raw])
                receipts += found
                self._committed(found)
            except StoreUnavailableError:
                raise
            except UnstorableError as error:
                receipts.append(_refused(error))
            except Exception as error:
                log.exception("an event could not be stored; its producer receives the failure")
                self._failed(error)
                receipts.append(Receipt(failure=repr(error)))
        return receipts


def _cpu_seconds(thread: threading.Thread) -> float:
    """The CPU that a running thread has used, where the system reports it."""
    clock_of = getattr(time, "pthread_getcpuclockid", None)
    if clock_of is None or thread.ident is None or not thread.is_alive():
        return 0.0
    return time.clock_gettime(clock_of(thread.ident))


def _refused(error: UnstorableError) -> Receipt:
    return Receipt(error=EventError([EventProblem("event", error.message)]))
