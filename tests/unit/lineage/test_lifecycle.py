from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage.lifecycle import Emitted, RunHistory, State, TransitionError
from headwater.lineage.openlineage.events import EventType

SECOND = 1_000_000


def live(*seen: tuple[EventType, int]) -> RunHistory:
    life = RunHistory()
    for event_type, time in seen:
        life.observe(event_type, time)
    return life


observations = st.tuples(
    st.sampled_from(["event", "infer", "declare"]), st.sampled_from(EventType), st.integers(1, 9)
)


def fold(seen: list[tuple[str, EventType, int]]) -> tuple[State, int | None, int | None, bool]:
    life = RunHistory()
    for kind, event_type, time in seen:
        if kind == "event":
            life.observe(event_type, time)
        elif kind == "infer":
            life.infer_end(time + 3, time)
        else:
            life.declare(time, time)
    return life.state, life.end, life.deadline, life.is_inferred


@given(st.data(), st.lists(observations, max_size=12))
def test_order_and_repetition_change_nothing(
    data: st.DataObject, seen: list[tuple[str, EventType, int]]
) -> None:
    again = data.draw(st.lists(st.sampled_from(seen), max_size=6)) if seen else []
    shuffled = data.draw(st.permutations([*seen, *again]))
    assert fold(seen) == fold(shuffled)


def test_nothing_reopens_a_finished_run() -> None:
    life = live((EventType.COMPLETE, 5), (EventType.START, 6), (EventType.RUNNING, 7))
    assert life.state is State.COMPLETED
    assert live((EventType.COMPLETE, 5), (EventType.START, 1)).state is State.COMPLETED


def test_the_earliest_terminal_event_wins() -> None:
    assert live((EventType.FAIL, 9), (EventType.COMPLETE, 5)).state is State.COMPLETED
    assert live((EventType.FAIL, 5), (EventType.COMPLETE, 9)).state is State.FAILED


@pytest.mark.parametrize("other", [EventType.ABORT, EventType.COMPLETE])
def test_of_terminal_events_at_one_time_the_worst_wins(other: EventType) -> None:
    assert live((other, 5), (EventType.FAIL, 5)).state is State.FAILED
    assert live((EventType.COMPLETE, 5), (EventType.ABORT, 5)).state is State.ABORTED


def test_other_alone_is_new() -> None:
    assert live((EventType.OTHER, 1)).state is State.NEW
    assert RunHistory().state is State.NEW


def test_an_inferred_end_yields_to_any_later_word() -> None:
    life = live((EventType.RUNNING, 10))
    life.infer_end(40, after=10)
    assert (life.state, life.end, life.is_inferred) == (State.ABORTED, 40, True)
    life.observe(EventType.RUNNING, 11)
    assert life.state is State.RUNNING
    life.observe(EventType.FAIL, 12)
    assert (life.state, life.end, life.is_inferred) == (State.FAILED, 12, False)


def test_a_declared_heartbeat_gives_a_deadline() -> None:
    life = live((EventType.START, 0), (EventType.RUNNING, 10 * SECOND))
    assert live((EventType.RUNNING, 0)).deadline is None
    life.declare(60 * SECOND, 0)
    assert life.deadline == 190 * SECOND
    life.observe(EventType.COMPLETE, 11 * SECOND)
    assert life.deadline is None


def test_five_steady_beats_are_a_heartbeat() -> None:
    steady = [(EventType.RUNNING, i * 30 * SECOND) for i in range(1, 6)]
    assert live(*steady[:4]).interval is None
    assert live(*steady).interval == 30 * SECOND
    uneven = [(EventType.RUNNING, i * i * SECOND) for i in range(1, 6)]
    assert live(*uneven).interval is None


def test_a_producer_emits_start_once_and_ends_once() -> None:
    run = Emitted()
    with pytest.raises(TransitionError, match="RUNNING cannot follow nothing"):
        run.emit(EventType.RUNNING, 1)
    for event_type in (EventType.START, EventType.RUNNING, EventType.OTHER, EventType.FAIL):
        run = run.emit(event_type, 1)
    assert run.over
    assert run.allows(EventType.OTHER)
    with pytest.raises(TransitionError, match="COMPLETE cannot follow FAIL"):
        run.emit(EventType.COMPLETE, 2)


def test_the_events_of_a_run_never_share_a_time_though_the_clock_steps_back() -> None:
    start = Emitted().emit(EventType.START, 50)
    running = start.emit(EventType.RUNNING, 50)
    end = running.emit(EventType.COMPLETE, 7)
    assert (start.at, running.at, end.at) == (50, 51, 52)
