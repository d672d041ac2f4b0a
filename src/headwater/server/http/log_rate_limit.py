"""Keeps the log readable: of one kind of message, no more than some a minute."""

from __future__ import annotations

import logging
import threading
import time

__all__ = ["RateLimitFilter"]

MINUTE = 60.0
KINDS = 500


class RateLimitFilter(logging.Filter):
    """Lets the first messages of a kind pass in each minute and then logs how many it left out.

    A kind is the text before its values are filled in, so what clients send makes no new kinds.
    """

    def __init__(self, most: int = 20, every: float = MINUTE) -> None:
        super().__init__()
        self._most = most
        self._every = every
        self._lock = threading.Lock()
        self._seen: dict[tuple[int, str], list[float]] = {}

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether a record may pass."""
        now = time.monotonic()
        kind = (record.levelno, str(record.msg)[:200])
        with self._lock:
            if kind not in self._seen and len(self._seen) >= KINDS:
                self._seen.clear()
            start, count = self._seen.get(kind, (now, 0))
            if now - start >= self._every:
                left = int(count) - self._most
                start, count = now, 0
                if left > 0:
                    record.msg = f"{record.msg} ({left} more like this were left out)"
            self._seen[kind] = [start, count + 1]
        return count < self._most
