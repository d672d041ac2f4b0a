"""Executions that no call is known for: runs by what their own plans say, once nobody asks for them."""

from __future__ import annotations

import threading
import time
from typing import TYPE_CHECKING

from headwater.spark.action import is_part, same_output
from headwater.spark.whose import same_error

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.spark.action import Action

WAIT_SECONDS = 0.5


class Loose:
    """What was heard of and is nobody's, for as long as somebody's may still be heard of."""

    def __init__(self) -> None:
        self._all: list[Action] = []
        self._settled = threading.Event()
        self._settled.set()

    def __bool__(self) -> bool:
        return bool(self._all)

    def wait(self, seconds: float) -> bool:
        """Wait until it is known of each what it is; False when the time is up."""
        return self._settled.wait(seconds)

    def add(self, action: Action) -> None:
        """Keep one that was heard of."""
        for other in self._all:
            if same_output(other, action) and action.began <= other.began:
                # The command around the one that was heard of first.
                self._all.remove(other)
                break
        self._all.append(action)
        self._settled.clear()

    def adopt(self, action: Action) -> None:
        """Give what was heard of the very error that a call raised to that call."""
        for other in list(self._all):
            if action in other.maybe and same_error(action.raised, other.heard):
                self._all.remove(other)
                if not action.known:
                    action.lineage, action.node = other.lineage, other.node

    def ripe(self, under_way: list[Action], at_once: bool = False) -> Iterator[Action]:
        """Those that are runs of their own."""
        now = time.monotonic()
        for action in list(self._all):
            # A call that has just returned may know the error for its own.
            waits = any(other.returned and other in under_way for other in action.maybe)
            if at_once or (now - action.at >= WAIT_SECONDS and not waits):
                self._all.remove(action)
                if not is_part(action):
                    yield action
        if not self._all:
            self._settled.set()
