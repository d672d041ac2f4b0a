"""Does a reader fall behind: is its lag growing, by its last reports?"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["REPORTS", "grows"]

REPORTS = 10
FEWEST = 4
LEAST = 10
SHARE = 0.05


def grows(lags: Sequence[int]) -> bool:
    """Whether a lag has grown over its last reports, the oldest first.

    Each of the newer half lies above each of the older half: a lag that goes up and down with every
    batch does not grow. In all it has to be `LEAST` records, and a twentieth, more than it was.
    """
    last = lags[-REPORTS:]
    if len(last) < FEWEST:
        return False
    half = len(last) // 2
    gained = last[-1] - last[0]
    return min(last[-half:]) > max(last[:half]) and gained >= max(LEAST, SHARE * last[0])
