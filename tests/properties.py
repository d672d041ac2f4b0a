"""What property and fuzz tests share: how many examples, orders of events, paths of a document."""

from __future__ import annotations

import itertools
import os
from typing import TYPE_CHECKING, Any, TypeVar

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

T = TypeVar("T")

FULL = os.environ.get("HEADWATER_TESTS") == "full"  # set by scripts/lanes.py


def examples(count: int, **others: Any) -> settings:
    """All examples in `make test-full`, new ones in each run; elsewhere a twentieth, always the same."""
    # No deadline: how long one example takes says more of a busy machine than of the code.
    count = count if FULL else max(5, count // 20)
    others.setdefault("suppress_health_check", [HealthCheck.too_slow])
    return settings(max_examples=count, deadline=None, derandomize=not FULL, **others)


def orders(items: Iterable[T], step: int = 1) -> Iterator[tuple[T, ...]]:
    """Every order of the items in `make test-full`, or one of `step`; elsewhere one of five of those.

    Of three or four items there are no more than 24, all of which are tried everywhere.
    """
    some = tuple(items)
    few = len(some) < 5
    every = 1 if few else step if FULL else 5 * step
    return itertools.islice(itertools.permutations(some), 0, None, every)


def in_another_order(data: st.DataObject, sent: list[T]) -> list[list[T]]:
    """The same events in another order, some of them repeated, cut into two groups."""
    again = data.draw(st.lists(st.sampled_from(sent), max_size=3))
    shuffled = data.draw(st.permutations([*sent, *again]))
    cut = data.draw(st.integers(0, len(shuffled)))
    return [shuffled[:cut], shuffled[cut:]]


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """The path of every member and item of a document."""
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        yield (*path, key)
        yield from places(inner, (*path, key))
