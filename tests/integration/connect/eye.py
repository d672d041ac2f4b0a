"""A look at what a server shows of one connector, again and again beside what happens to it."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .reporting import Server

LIVE = ("NEW", "RUNNING")
# What a killed worker left stands beside the next run until the agent looks again, which it does less
# and less often while Connect is away.
LEFT = 20.0
SOON = 5.0


class Eye:
    """Sees whether ever another job was shown than the one, or two of its runs under way."""

    def __init__(self, server: Server, *names: str) -> None:
        self.jobs: set[tuple[str, ...]] = set()
        self.doubled = 0.0
        """For how many seconds at most two runs were under way."""
        self._server, self._names = server, names
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Eye:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join(30)
        assert self.jobs == {(self._server.job,)}
        assert self.doubled < LEFT

    def _look(self) -> None:
        since = None
        while not self._stop.wait(0.1):
            shown = [job for name in self._names for job in self._server.jobs(name)]
            self.jobs.add(tuple(shown))
            live = [state for state in self._server.states() if state in LIVE]
            since = (since or time.monotonic()) if len(live) > 1 else None
            self.doubled = max(self.doubled, time.monotonic() - since if since else 0.0)
