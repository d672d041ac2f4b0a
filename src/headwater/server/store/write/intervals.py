"""From runs to edges with time intervals.

A job's edges at a moment are those of its runs alive then and of the run that finished last
before it. So a run holds its edges from the event that named them until another run, finishing
later, takes its place.
"""

from __future__ import annotations

import itertools
from collections import defaultdict
from typing import NamedTuple

__all__ = ["Interval", "RunSpan", "intervals", "merged", "splice"]

Interval = tuple[int, "int | None"]


class RunSpan(NamedTuple):
    """One run's claim on one edge."""

    run: bytes
    end: int | None
    slot: int
    since: int
    until: int | None = None


def intervals(
    spans: list[RunSpan], finished: list[tuple[int, bytes]] | None = None
) -> dict[int, list[Interval]]:
    """When each edge held, given every claim on it; None is an open end.

    `finished` are the ends of all runs in order, where the claims are only those on some edges.
    """
    if finished is None:
        finished = sorted({(s.end, s.run) for s in spans if s.end is not None})
    replaced: dict[bytes, int] = {}
    for (_, run), (end, _) in itertools.pairwise(finished):
        replaced[run] = end
    held: dict[int, list[Interval]] = defaultdict(list)
    for span in spans:
        since = span.since if span.end is None else min(span.since, span.end)
        until = replaced.get(span.run) if span.end is not None else None
        if span.until is not None:
            until = span.until if until is None else min(until, span.until)
        if until is None or since < until:
            held[span.slot].append((since, until))
    return {key: merged(found) for key, found in held.items()}


def splice(old: list[Interval], new: list[Interval], low: int) -> list[Interval]:
    """`old` up to `low`, `new` from `low` on."""
    before = [(s, low if u is None else min(u, low)) for s, u in old if s < low]
    after = [(max(s, low), u) for s, u in new if u is None or u > low]
    return merged([*before, *after])


def merged(found: list[Interval]) -> list[Interval]:
    """Intervals with those that meet or overlap made one."""
    if len(found) == 1:
        return found
    result: list[Interval] = []
    for since, until in sorted(found, key=lambda i: i[0]):
        if result and (result[-1][1] is None or since <= result[-1][1]):
            last = result[-1][1]
            longer = None if last is None or until is None else max(last, until)
            result[-1] = (result[-1][0], longer)
        else:
            result.append((since, until))
    return result
