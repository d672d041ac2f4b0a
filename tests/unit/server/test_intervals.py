from __future__ import annotations

import itertools

from hypothesis import given
from hypothesis import strategies as st

from headwater.server.store.write.intervals import Interval, RunSpan, intervals, splice

times = st.integers(0, 12)


@st.composite
def runs(draw: st.DrawFn) -> list[RunSpan]:
    spans: list[RunSpan] = []
    for run in range(draw(st.integers(0, 5))):
        start = draw(times)
        end = draw(st.none() | st.integers(start, 14))
        slots = draw(st.dictionaries(st.integers(0, 3), st.integers(start, 14), max_size=3))
        spans += [RunSpan(bytes([run]), end, slot, since) for slot, since in slots.items()]
    return spans


def drawn(spans: list[RunSpan], moment: int) -> set[int]:
    """The definition itself: edges of the runs alive, and of the run that finished last."""
    alive = {s.slot for s in spans if s.since <= moment and (s.end is None or moment < s.end)}
    ended = [(s.end, s.run) for s in spans if s.end is not None and s.end <= moment]
    last = max(ended)[1] if ended else None
    return alive | {s.slot for s in spans if s.run == last}


def held(found: dict[int, list[Interval]], moment: int) -> set[int]:
    return {
        slot
        for slot, spans in found.items()
        if any(since <= moment and (until is None or moment < until) for since, until in spans)
    }


@given(runs())
def test_intervals_say_what_the_definition_says(spans: list[RunSpan]) -> None:
    found = intervals(spans)
    for moment in range(16):
        assert held(found, moment) == drawn(spans, moment)


@given(runs())
def test_intervals_do_not_touch(spans: list[RunSpan]) -> None:
    for found in intervals(spans).values():
        for (_, until), (since, _) in itertools.pairwise(found):
            assert until is not None
            assert until < since


@given(runs(), runs(), times)
def test_a_splice_is_old_before_and_new_after(a: list[RunSpan], b: list[RunSpan], low: int) -> None:
    old, new = intervals(a), intervals(b)
    for slot in {*old, *new}:
        joined = {slot: splice(old.get(slot, []), new.get(slot, []), low)}
        for moment in range(16):
            side = old if moment < low else new
            assert held(joined, moment) == held({slot: side.get(slot, [])}, moment)


def test_a_claim_given_up_ends_early() -> None:
    assert intervals([RunSpan(b"1", None, 0, 2, until=5)]) == {0: [(2, 5)]}
