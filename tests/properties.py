"""How many examples a property test tries: all in `make test-full`, a quarter elsewhere."""

from __future__ import annotations

import os
from typing import Any

from hypothesis import settings

FULL = os.environ.get("HEADWATER_TESTS") == "full"  # set by scripts/lanes.py


def examples(count: int, **others: Any) -> settings:
    # No deadline: how long one example takes says more of a busy machine than of the code.
    return settings(max_examples=count if FULL else max(10, count // 4), deadline=None, **others)
