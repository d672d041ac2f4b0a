"""Keeps the log readable: of one kind of message, no more than some a minute."""

from __future__ import annotations

import logging
import re
import threading
import time

__all__ = ["RateLimitFilter"]

MINUTE = 60.0
KINDS = 500
_NUMBER = re.compile(r"0x[0-9a-f]+|[0-9]+")


class RateLimitFilter(logging.Filter):
    """Lets the first messages of a kind pass in each minute and then logs how many it left out.

    A kind is the first line of the text, before its values are filled in and without numbers that
    asyncio has filled in, so what clients send makes no new kinds.
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
        line = str(record.msg)[:200].partition("\n")[0]
        kind = (record.levelno, _NUMBER.sub("", line))
        with self._lock:
            if kind not in self._seen and len(self._seen) >= KINDS:
                kind = (record.levelno, "")
            start, count = self._seen.get(kind, (now, 0))
            if now - start >= self._every:
                left = int(count) - self._most
                start, count = now, 0
                if left > 0:
                    record.msg = f"{record.msg} ({left} more like this were left out)"
            self._seen[kind] = [start, count + 1]
        return count < self._most
