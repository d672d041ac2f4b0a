"""Waiting for a condition, bounded."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, TypeVar

from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


def wait_until(
    condition: Callable[[], T | None], *, seconds: float, what: str, interval: float = 0.1
) -> T:
    """Ask again and again until the answer is true, and return it."""
    deadline = time.monotonic() + seconds
    while not (answer := condition()):
        if time.monotonic() > deadline:
            raise HeadwaterError(f"waited {seconds:g} s in vain for {what}")
        time.sleep(interval)
    return answer
