"""Questions about times that retention has deleted from the store, answered by the lake if there is one.

The server has no lake of its own: `headwater server` sets `App.past.history`. A route declares by `past`
that it can be asked about such moments.
"""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future
from queue import SimpleQueue
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from headwater.server.http import HttpError

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.server.http import Request, Response
    from headwater.server.routing import Declared
    from headwater.server.store.read.namespace_limit import Limit

__all__ = ["SOURCE", "History", "PastQuestion", "PastQuestions", "marked", "past_question"]

SOURCE = "lake"
"""The member `source` of an answer that did not come from the store."""
QUESTIONS = 8
"""Questions about the past that may wait for one another."""
SECONDS = 60.0
"""How long a question may take, with its wait for those before it."""
HANGING = 3
"""Questions that may hang at once, each on a thread of its own, before no other one is asked."""
STOP_SECONDS = 1.0
"""How long a server that stops lets a question go on."""
RETRY = [(b"retry-after", b"2")]


class PastQuestion(NamedTuple):
    """What of the past a request asks about, to find the records that its answer depends on."""

    node: str
    """The id of a dataset, a job or a column; empty for the whole estate."""
    direction: str
    """`up`, `down`, `both`, or `around` for what is beside it too."""
    moments: tuple[tuple[int, int], ...]
    """Spans of time in which edges count, in microseconds."""
    depth: int
    since: int
    """The earliest moment that it names."""
    period: tuple[int, int] | None = None
    """Where it asks what changed in the whole estate: between which moments."""
    programs: bool = False
    """Whether its answer shows jobs with the application that runs them."""


class History(Protocol):
    """Answers requests about the past, by the server's own routes over records kept elsewhere."""

    def answer(self, question: PastQuestion, request: Request, limit: Limit | None) -> Response:
        """The answer; raises HttpError where the records cannot be had."""
        ...

    def close(self) -> None:
        """Let go of what it holds."""
        ...

    def renewed(self) -> History:
        """Another one like it, for the questions behind one that hangs in this one."""
        ...


class PastQuestions:
    """Puts questions to a history or the lake, one after the other, and gives up one that hangs."""

    def __init__(self) -> None:
        self.history: History | None = None
        self._worker = _Worker()
        self._hanging: list[_Worker] = []
        self._asked: set[asyncio.Future[Response]] = set()

    async def ask(self, question: PastQuestion, request: Request, limit: Limit | None) -> Response:
        """The answer; raises HttpError."""
        history = self.history
        assert history is not None
        return await self.answer(lambda: marked(history.answer(question, request, limit)))

    async def answer(self, read: Callable[[], Response]) -> Response:
        """An answer for which the lake has to be read; raises HttpError."""
        self._hanging = [one for one in self._hanging if one.alive]
        if len(self._hanging) >= HANGING:
            text = f"the lake does not answer: {HANGING} questions to it hang"
            raise HttpError(503, text, headers=RETRY)
        if len(self._asked) >= QUESTIONS:
            raise HttpError(503, "too many questions to the lake at once", headers=RETRY)
        worker = self._worker
        work = worker.submit(read)
        answer: asyncio.Future[Response] = asyncio.wrap_future(work)
        self._asked.add(answer)
        try:
            await asyncio.wait({answer}, timeout=SECONDS)
            if answer.done() and not answer.cancelled():
                return answer.result()
            answer.cancel()
        finally:
            self._asked.discard(answer)
        if work.running() and worker is self._worker:
            self._give_up()
        raise HttpError(503, "a question to the lake was not answered in time", headers=RETRY)

    def _give_up(self) -> None:
        """Leave a thread to its question; what it uses is closed behind that question."""
        history = self.history
        self._worker.end(history.close if history is not None else None)
        self._hanging.append(self._worker)
        self._worker = _Worker()
        self.history = history.renewed() if history is not None else None

    def stop(self) -> None:
        """Let the questions that are being answered go on for a moment, and no longer."""
        loop = asyncio.get_running_loop()
        for answer in self._asked:
            loop.call_later(STOP_SECONDS, answer.cancel)

    async def close(self) -> None:
        """Let go of the history, but not under a question: it reads what is closed."""
        self.stop()
        self._worker.end(self.history.close if self.history is not None else None)
        await asyncio.to_thread(self._worker.join, STOP_SECONDS)


class _Worker:
    """Works one thing off after the other. Its thread is a daemon: a process that ends waits for no lake."""

    def __init__(self) -> None:
        self._waiting: SimpleQueue[tuple[Future[Any], Callable[[], Any]] | None] = SimpleQueue()
        self._thread: threading.Thread | None = None

    @property
    def alive(self) -> bool:
        return self._thread is not None and self._thread.is_alive()

    def submit(self, work: Callable[[], Any]) -> Future[Any]:
        future: Future[Any] = Future()
        self._waiting.put((future, work))
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="headwater-history", daemon=True)
            self._thread.start()
        return future

    def end(self, last: Callable[[], Any] | None) -> None:
        """Do one last thing, behind what is being done."""
        if last is not None:
            self.submit(last)
        self._waiting.put(None)

    def join(self, seconds: float) -> None:
        if self._thread is not None:
            self._thread.join(seconds)

    def _run(self) -> None:
        while (taken := self._waiting.get()) is not None:
            future, work = taken
            if not future.set_running_or_notify_cancel():
                continue
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001  (whoever asked raises it)
                future.set_exception(error)
            else:
                future.set_result(result)
            del future, work, taken


def past_question(declared: Declared, request: Request) -> PastQuestion | None:
    """What a request asks about the past; None where it asks about now, or its route cannot be asked."""
    past = declared.past
    if past is None:
        return None
    given = {one.name: one.value(request) for one in declared.parameters.values()}
    first, last = given.get("from"), given.get("to")
    since: Any = first
    if first is None and past.between and last is not None:
        first, since = 0, last  # all that is known until then
    elif first is None:
        first = last = since = given.get("at")
    if first is None:
        return None
    now = time.time_ns() // 1000
    last = now if last is None else min(last, now)
    if first > last:
        return None  # the route itself refuses such a period
    node = given.get("node", "")
    if "dataset" in request.path:
        node = f"dataset:{request.path['namespace']}:{request.path['dataset']}"
    return PastQuestion(
        node,
        given.get("direction", past.direction),
        ((first, last),) if past.between else ((first, first), (last, last)),
        given["depth"],
        since,
        (first, last) if past.changes and not node else None,
        past.programs,
    )


def marked(response: Response) -> Response:
    """An answer that says that it did not come from the store; a document stays as it is."""
    content: Any = response.content
    if isinstance(content, bytes):
        if not content.startswith(b"{"):
            return response
        content = msgspec.json.decode(content)
    return response._replace(content={**content, "source": SOURCE})
