"""Whatever comes in whatever order, a connector that reports itself has one run, rightly ended."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import example, given
from hypothesis import strategies as st

from headwater.lineage.moments import SECOND
from tests.properties import examples

from .test_debezium_runs import CONFIG, JOB, NAME, Joined

if TYPE_CHECKING:
    from collections.abc import Callable

Moves = list[tuple[str, float]]


class Estate(Joined):
    """A connector of some tasks on a worker, whose words reach the server when a test lets them."""

    def __init__(self, path: Path, tasks: int) -> None:
        super().__init__(path)
        self.held = []
        self.late: list[tuple[str, str, str, int]] = []
        self.count = 0
        self.state, self.tasks = "RUNNING", ["RUNNING"] * tasks
        self.alive: dict[int, str] = {}
        for number in range(tasks):
            self.start(number)
        self.deliver_theirs()
        self.show()

    def show(self) -> None:
        if self.state == "GONE":
            self.connect.connectors.pop(NAME, None)
        else:
            config = {**CONFIG, "headwater.job.name": JOB}
            self.connect.put(NAME, self.state, tuple(self.tasks), config=config)

    def start(self, number: int) -> None:
        self.count += 1
        self.clock.now += 0.01
        self.alive[number] = f"theirs-{self.count:03d}"
        self.word("START", number)

    def word(self, kind: str, number: int) -> None:
        self.late.append((f"cdc.{number}", self.alive[number], kind, self.now))

    def end(self, number: int) -> None:
        if number in self.alive:
            self.clock.now += 0.01
            self.word("COMPLETE", number)
            del self.alive[number]

    def deliver_theirs(self) -> None:
        for job, run, kind, at in self.late:
            self.server.take(job, run, kind, at)
        self.late.clear()

    def deliver(self) -> None:
        """Let the agent's words arrive, as they are sent again and again until they do."""
        if not self.server.down:
            for event in self.held or ():
                self.server.hear(event)
            self.held = []

    def poll(self, seconds: float = 5) -> None:
        self.hear(seconds)

    def kill_agent(self) -> None:
        self.agent = self.make()

    def outage(self) -> None:
        self.server.down = not self.server.down

    def fail(self) -> None:
        if self.state == "RUNNING":
            number = self.count % len(self.tasks)
            self.end(number)
            self.tasks[number] = "FAILED"
            self.show()

    def restart(self) -> None:
        if self.state == "RUNNING":
            for number, state in enumerate(self.tasks):
                if state == "FAILED":
                    self.tasks[number] = "RUNNING"
                    self.start(number)
            self.show()

    def pause(self) -> None:
        if self.state == "RUNNING" and "FAILED" not in self.tasks:
            self.state, self.tasks = "PAUSED", ["PAUSED"] * len(self.tasks)
            self.show()

    def resume(self) -> None:
        if self.state == "PAUSED":
            self.state, self.tasks = "RUNNING", ["RUNNING"] * len(self.tasks)
            self.show()

    def stop(self) -> None:
        if self.state == "RUNNING":
            for number in range(len(self.tasks)):
                self.end(number)
            self.state, self.tasks = "STOPPED", []
            self.show()

    def delete(self) -> None:
        if self.state != "GONE" and self.agent.tracked:  # one that nobody saw is nobody's to tell
            for number in range(len(self.tasks)):
                self.end(number)
            self.state, self.tasks = "GONE", []
            self.deliver_theirs()  # what comes when all is forgotten is nobody's to end
            self.show()

    def kill_worker(self) -> None:
        """It says nothing, and what runs begins anew on another."""
        if self.state == "RUNNING":
            for number in sorted(self.alive):
                self.start(number)

    def quiesce(self) -> None:
        self.server.down = False
        for seconds in (*[5.0] * 12, *[300.0] * 4, *[5.0] * 12):
            self.deliver_theirs()
            self.deliver()
            self.poll(seconds)
        self.deliver()

    def close(self) -> None:
        self.outbox.close()
        self.outbox.forget_connection()

    def move(self, name: str, seconds: float) -> None:
        self.clock.now += seconds
        act: Callable[..., Any] = getattr(self, name)
        act()

    @property
    def condition(self) -> str:
        return "FAILED" if "FAILED" in self.tasks else self.state


def lived(tasks: int, moves: Moves) -> Estate:
    with tempfile.TemporaryDirectory() as folder:
        estate = Estate(Path(folder), tasks)
        try:
            for name, seconds in moves:
                estate.move(name, seconds)
            estate.quiesce()
        finally:
            estate.close()
    return estate


def moves(*names: str, most: int) -> st.SearchStrategy[Moves]:
    gaps = st.sampled_from([0.0, 0.5, 3.0, 12.0])
    return st.lists(st.tuples(st.sampled_from(names), gaps), max_size=most)


AROUND = ("poll", "poll", "deliver", "deliver_theirs", "kill_agent", "outage")
SHOWN = {"fail": "FAILED", "stop": "ABORTED", "pause": "COMPLETED", "delete": "COMPLETED"}


@examples(60)
@given(
    before=moves(*AROUND, most=6),
    how=st.sampled_from(sorted(SHOWN)),
    after=moves(*AROUND, most=8),
    tasks=st.integers(1, 3),
)
@example([("poll", 0.0)], "fail", [("poll", 0.0), ("poll", 3.0), ("poll", 3.0)], 1)
@example([("outage", 0.0), ("poll", 0.0)], "fail", [("poll", 0.0), ("kill_agent", 0.0)], 1)
def test_one_run_with_the_right_end(before: Moves, how: str, after: Moves, tasks: int) -> None:
    """One life, one end; the words of it come in any order, early, late and again."""
    estate = lived(tasks, [("poll", 0.0), *before, (how, 0.0), *after])
    assert estate.states() == [SHOWN[how]]
    for number in range(1, tasks):
        (state,) = estate.states(f"cdc.{number}")
        assert state not in ("NEW", "RUNNING")


ENDS = ("COMPLETE", "FAIL", "ABORT")
LIFE = ("fail", "restart", "pause", "resume", "stop", "delete", "kill_worker")


@examples(60)
@given(moves=moves(*AROUND, *LIFE, most=25), tasks=st.integers(1, 3))
def test_no_run_is_left_and_one_is_seen(moves: Moves, tasks: int) -> None:
    """Any life at all: what runs has one run under way, what does not has none, in every part."""
    estate = lived(tasks, moves)
    shown = estate.states()
    under_way = [state for state in shown if state in ("NEW", "RUNNING")]
    assert len(under_way) == (estate.condition == "RUNNING")
    if estate.condition == "FAILED":
        assert shown[0] == "FAILED"
    for number in range(1, tasks):
        left = [state for state in estate.states(f"cdc.{number}") if state in ("NEW", "RUNNING")]
        assert len(left) <= (estate.condition == "RUNNING")
    assert estate.agent.tracked == [] if estate.condition == "GONE" else estate.agent.tracked


@examples(40)
@given(moves=moves(*AROUND, *LIFE, most=20), tasks=st.integers(1, 3))
def test_an_end_is_decided_once(moves: Moves, tasks: int) -> None:
    """No run has two ends of ours, but where an earlier word made it say one again, earlier."""
    said: dict[str, list[tuple[str, int]]] = {}

    class Heard(Estate):
        def hear(self, seconds: float = 5) -> list[dict[str, Any]]:
            events = super().hear(seconds)
            for event in events:
                if event["type"] in ENDS and (event["part"] or not event["mute"]):
                    said.setdefault(event["run"], []).append((event["type"], event["at"]))
            return events

    with tempfile.TemporaryDirectory() as folder:
        estate = Heard(Path(folder), tasks)
        try:
            for name, seconds in moves:
                estate.move(name, seconds)
            estate.quiesce()
        finally:
            estate.close()
    for ends in said.values():
        assert len({kind for kind, _ in ends}) == 1
        times = [at for _, at in ends]
        assert times == sorted(set(times), reverse=True)
        assert all(at < estate.clock.now * SECOND for at in times)
