"""What must not be under way in another thread while the process forks.

A child has the thread that forked and no other. A lock that another thread held at that moment is
held in the child for ever.
"""

from __future__ import annotations

import os
import threading

# Whoever is inside may wait for a disk, or for another process that writes to the same file.
LONGEST_WAIT = 5.0


class ForkGuard:
    """A re-entrant lock that forks wait for, at most a few seconds."""

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._held = False
        os.register_at_fork(
            before=self._before, after_in_parent=self._after, after_in_child=self._after_in_child
        )

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def _before(self) -> None:
        self._held = self._lock.acquire(timeout=LONGEST_WAIT)

    def _after(self) -> None:
        if self._held:
            self._lock.release()

    def _after_in_child(self) -> None:
        if self._held:
            self._lock.release()
        else:
            self._lock = threading.RLock()


IN_SQLITE = ForkGuard()
"""SQLite has locks for the whole process: a child that finds one held can open no database."""
