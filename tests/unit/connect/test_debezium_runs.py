"""A connector that reports itself: the agent speaks of the run that it began, and of one only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect.services.endpoint import ProblemKind
from headwater.lineage.moments import SECOND

from .backend import Backend
from .fake_connect import SINK
from .test_agent import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = {**SINK, "joined": "debezium", "openlineage.integration.enabled": "true"}
NAME = "cdc"
JOB = "cdc.0"
SOON = 5.0
# Longer than a connector is given to report itself.
PATIENCE = 16.0


class Joined(Bench):
    """A connector that reports itself, and a server that hears it and the agent."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.runs = self.server = Backend()
        self.agent = self.make()
        self.held: list[dict[str, Any]] | None = None
        self.put()

    @property
    def now(self) -> int:
        return int(self.clock.now * SECOND)

    def put(self, state: str = "RUNNING", *tasks: str, **more: str) -> None:
        config = {**CONFIG, "headwater.job.name": JOB, **more}
        self.connect.put(NAME, state, tasks or (state,), config=config)

    def theirs(self, kind: str, run: str = "theirs-1", job: str = JOB, late: float = 0) -> None:
        """What the connector tells the server itself."""
        self.server.take(job, run, kind, self.now - int(late * SECOND))

    def hear(self, seconds: float = SOON) -> list[dict[str, Any]]:
        """What the agent says next; the server hears it, unless it is held."""
        said = self.tick(seconds)
        if self.held is None:
            for event in said:
                self.server.hear(event)
        else:
            self.held += said
        return said

    def say(self, seconds: float = SOON) -> list[tuple[str, str]]:
        """What is said next of runs, and of which; a run of the agent's own is called ours."""
        said = self.hear(seconds)
        return [(e["type"], self.name(e)) for e in said if e["type"] != "DELETED"]

    def name(self, event: dict[str, Any]) -> str:
        run: str = event["run"]
        return run if run.startswith("theirs") or not run else "ours"

    def begin(self, run: str = "theirs-1") -> None:
        """The connector has told of a run, and the agent has taken it up."""
        self.theirs("START", run)
        assert self.say() == [("RUNNING", run)]

    def states(self, job: str = JOB) -> list[str]:
        return self.server.states(job)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Joined]:
    made = Joined(tmp_path)
    yield made
    made.outbox.close()
    made.outbox.forget_connection()


def test_the_run_under_way_is_taken_up_and_ends_once(bench: Joined) -> None:
    assert bench.say() == []  # its own word may be on the way
    bench.begin()
    assert bench.say() == []
    assert bench.say(300) == [("RUNNING", "theirs-1")]
    del bench.connect.connectors[NAME]
    bench.theirs("COMPLETE")
    assert bench.say() == []
    assert bench.states() == ["COMPLETED"]


def test_a_pause_ends_the_run_and_what_is_resumed_is_ours(bench: Joined) -> None:
    bench.begin()
    bench.held = []  # the word of the end may not have come yet where runs are asked for
    bench.put("PAUSED")
    assert bench.say() == [("COMPLETE", "theirs-1")]
    assert bench.say() == []
    bench.put()
    assert bench.say() == [("START", "ours")]
    assert bench.say(300) == [("RUNNING", "ours")]
    for event in bench.held:
        bench.server.hear(event)
    bench.held = None
    assert bench.say(300) == [("RUNNING", "ours")]
    del bench.connect.connectors[NAME]
    assert bench.say() == [("COMPLETE", "ours")]
    assert bench.states() == ["COMPLETED", "COMPLETED"]


@pytest.mark.parametrize(
    ("state", "said", "shown"),
    [("PAUSED", "COMPLETE", "COMPLETED"), ("STOPPED", "ABORT", "ABORTED")],
)
def test_what_was_at_rest_before_the_agent_came_is_no_longer_under_way(
    bench: Joined, state: str, said: str, shown: str
) -> None:
    bench.theirs("START", late=100)
    bench.put(state)
    heard = [*bench.say(), *bench.say(), *bench.say()]
    assert heard == [(said, "theirs-1")]
    assert bench.states() == [shown]
    bench.put()
    bench.say()
    assert bench.say(PATIENCE) == ([("START", "ours")] if state == "STOPPED" else [])
    assert bench.states() == ["RUNNING", shown]


def test_a_failure_that_it_took_for_an_end_is_told_of_that_run(bench: Joined) -> None:
    bench.begin()
    bench.clock.now += 1
    bench.theirs("COMPLETE")
    end = bench.now
    bench.put("RUNNING", "FAILED")
    (fail,) = bench.hear()
    assert (fail["type"], fail["run"], fail["at"]) == ("FAIL", "theirs-1", end)
    assert fail["failed"] == [0]
    assert bench.states() == ["FAILED"]
    assert [bench.say(seconds) for seconds in (5, 10, 20, 300)] == [[], [], [], []]
    bench.put()
    assert bench.say() == []
    bench.begin("theirs-2")
    assert bench.states() == ["RUNNING", "FAILED"]


def test_a_stop_that_it_took_for_an_end_is_told_of_that_run(bench: Joined) -> None:
    bench.begin()
    bench.theirs("COMPLETE")
    bench.connect.put(NAME, "STOPPED", (), config={**CONFIG, "headwater.job.name": JOB})
    assert bench.say() == [("ABORT", "theirs-1")]
    assert [bench.say(seconds) for seconds in (5, 300)] == [[], []]
    assert bench.states() == ["ABORTED"]


def test_a_failure_that_it_did_not_live_to_tell_is_told(bench: Joined) -> None:
    bench.begin()
    bench.put("RUNNING", "FAILED")
    assert bench.say() == []  # its own word of an end may be on the way
    seen = bench.now
    (fail,) = bench.hear()
    assert (fail["type"], fail["run"], fail["at"]) == ("FAIL", "theirs-1", seen)
    assert bench.states() == ["FAILED"]


def test_its_word_that_comes_later_still_makes_no_end_of_a_failure(bench: Joined) -> None:
    bench.begin()
    bench.put("RUNNING", "FAILED")
    assert bench.say() == []
    assert bench.say() == [("FAIL", "theirs-1")]
    bench.theirs("COMPLETE", late=100)
    assert bench.states() == ["COMPLETED"]
    bench.agent = bench.make()  # as after a kill
    assert bench.say() == [("FAIL", "theirs-1")]
    assert bench.states() == ["FAILED"]
    assert [bench.say(seconds) for seconds in (5, 10, 20, 300)] == [[], [], [], []]


def test_its_word_may_come_when_it_runs_again(bench: Joined) -> None:
    bench.begin()
    bench.put("RUNNING", "FAILED")
    bench.say()
    assert bench.say() == [("FAIL", "theirs-1")]
    bench.put()
    bench.begin("theirs-2")
    bench.theirs("COMPLETE", late=100)
    assert bench.say(300) == [("FAIL", "theirs-1"), ("RUNNING", "theirs-2")]
    assert bench.states() == ["RUNNING", "FAILED"]


def test_whoever_orders_an_end_did_not_order_that_of_an_earlier_run(bench: Joined) -> None:
    bench.begin()
    bench.put("STOPPED")
    assert bench.say() == []
    assert bench.say() == [("ABORT", "theirs-1")]
    bench.put()
    bench.begin("theirs-2")
    bench.theirs("COMPLETE", late=12)  # of the first run, which was stopped
    bench.order("pause", NAME, "bob")
    bench.put("PAUSED")
    ends = [(e["type"], e["run"], e["end"]) for e in bench.hear()]
    assert ends == [("ABORT", "theirs-1", None), ("COMPLETE", "theirs-2", ["paused", "bob"])]


def test_a_failure_before_its_first_word_is_ours(bench: Joined) -> None:
    bench.put("RUNNING", "FAILED")
    assert bench.say() == []
    assert bench.say() == [("START", "ours"), ("FAIL", "ours")]
    assert bench.say(300) == []


def test_a_connector_first_seen_failed_has_the_run_it_failed_in(bench: Joined) -> None:
    bench.connect.connectors.clear()
    bench.theirs("START", "theirs-old")
    bench.theirs("COMPLETE", "theirs-old")  # one of that name that was deleted
    assert bench.say() == []
    bench.clock.now += 1
    bench.theirs("START")
    bench.theirs("COMPLETE")
    bench.put("RUNNING", "FAILED")
    assert bench.say() == [("FAIL", "theirs-1")]
    assert bench.states() == ["FAILED", "COMPLETED"]


def test_every_run_of_one_that_fails_again_and_again_has_failed(bench: Joined) -> None:
    bench.begin()
    bench.theirs("COMPLETE")
    bench.put("RUNNING", "FAILED")
    assert bench.say() == [("FAIL", "theirs-1")]
    for run in ("theirs-2", "theirs-3"):  # each between two looks
        bench.clock.now += 1
        bench.theirs("START", run)
        bench.theirs("COMPLETE", run)
    assert sorted(bench.say(300)) == [("FAIL", "theirs-2"), ("FAIL", "theirs-3")]
    assert bench.states() == ["FAILED"] * 3
    assert bench.say(300) == []


def test_a_task_that_began_anew_has_a_new_run(bench: Joined) -> None:
    bench.begin()
    bench.theirs("COMPLETE")
    bench.put(more="1")
    bench.begin("theirs-2")
    bench.clock.now += 1
    bench.theirs("START", "theirs-3")  # the worker was killed
    assert bench.say(300) == [("ABORT", "theirs-2"), ("RUNNING", "theirs-3")]
    bench.connect.fail(ProblemKind.UNREACHABLE)
    assert bench.say() == []
    assert bench.say(700) == [("ABORT", "theirs-3")]
    assert bench.states() == ["ABORTED", "ABORTED", "COMPLETED"]


def test_what_a_killed_worker_left_is_over_soon_after_it_is_back(bench: Joined) -> None:
    bench.begin()
    for _ in range(20):  # long enough that it is looked at with its heartbeats only
        bench.say(60)
    bench.connect.fail(ProblemKind.UNREACHABLE)
    assert bench.say() == []
    bench.connect.broken = None
    assert bench.say() in ([], [("RUNNING", "theirs-1")])
    bench.theirs("START", "theirs-2")
    assert bench.say() == [("ABORT", "theirs-1"), ("RUNNING", "theirs-2")]


def test_a_restart_ends_no_run_that_has_begun_since(bench: Joined) -> None:
    bench.begin()
    bench.theirs("COMPLETE")
    bench.clock.now += 1
    bench.theirs("START", "theirs-2")
    bench.put("RUNNING", "RESTARTING")
    assert bench.say() == []
    bench.put()
    assert bench.say() == [("RUNNING", "theirs-2")]
    bench.theirs("COMPLETE", "theirs-2")
    bench.put("RUNNING", "FAILED")
    assert bench.say() == [("FAIL", "theirs-2")]
    bench.clock.now += 1
    bench.theirs("START", "theirs-3")
    bench.put("RUNNING", "RESTARTING")
    assert bench.say() == []
    bench.put()
    assert bench.say() == [("RUNNING", "theirs-3")]
    bench.put("PAUSED")
    assert bench.say() == [("COMPLETE", "theirs-3")]
    bench.put()
    assert bench.say() == [("START", "ours")]
    bench.clock.now += 1
    bench.theirs("START", "theirs-4")
    bench.put("RUNNING", "RESTARTING")
    assert bench.say() == [("ABORT", "ours")]
    bench.put()
    assert bench.say() == [("RUNNING", "theirs-4")]


def test_a_run_of_ours_gives_way_to_one_of_its_own(bench: Joined) -> None:
    assert bench.say() == []
    assert bench.say(PATIENCE) == [("START", "ours")]
    bench.clock.now += 1
    bench.theirs("START")
    assert bench.say(300) == [("ABORT", "ours"), ("RUNNING", "theirs-1")]


def test_a_run_that_it_gave_up_while_it_runs_is_followed_by_ours(bench: Joined) -> None:
    bench.begin()
    bench.theirs("FAIL")  # it told a failure that it then recovered from by itself
    assert bench.say(300) == []
    assert bench.say(PATIENCE) == [("START", "ours")]


def test_only_the_job_is_told_while_nobody_knows_its_runs(bench: Joined) -> None:
    bench.server.down, bench.server.may_answer_later = True, False
    (start,) = bench.hear()
    assert (start["type"], start["mute"]) == ("START", True)
    bench.put("RUNNING", "FAILED")
    failed = bench.hear()
    assert [(e["type"], e["mute"]) for e in failed] == [("START", False), ("FAIL", False)]
    bench.put()
    (start,) = bench.hear()
    assert (start["type"], start["mute"]) == ("START", True)
    bench.server.down = False
    bench.theirs("START")
    assert bench.say(300) == [("RUNNING", "theirs-1")]
    bench.server.down = True
    bench.put("PAUSED")
    assert bench.say() == [("COMPLETE", "theirs-1")]


def test_a_failure_while_the_server_is_away_waits_for_its_word_of_the_run(bench: Joined) -> None:
    bench.theirs("START")
    bench.server.down = True
    assert [e["mute"] for e in bench.hear()] == [True]
    bench.theirs("COMPLETE")
    bench.put("RUNNING", "FAILED")
    assert [bench.say(), bench.say(60)] == [[], []]
    bench.server.down = False
    assert bench.say() == [("FAIL", "theirs-1")]
    assert bench.states() == ["FAILED"]


def test_a_failure_is_told_though_the_server_stays_away(bench: Joined) -> None:
    bench.begin()
    bench.theirs("COMPLETE")
    bench.server.down, bench.held = True, []
    bench.put("RUNNING", "FAILED")
    assert bench.say() == []
    assert bench.say() == [("FAIL", "theirs-1")]
    bench.server.down = False
    for event in bench.held:
        bench.server.hear(event)
    bench.held = None
    assert bench.states() == ["COMPLETED"]  # it ended before that was seen
    assert bench.say(SOON) + bench.say(10) == [("FAIL", "theirs-1")]
    assert bench.states() == ["FAILED"]


def test_a_job_that_is_reported_from_now_on_ends_ours(bench: Joined) -> None:
    bench.connect.put(NAME)
    assert bench.say() == [("START", "ours")]
    bench.put()
    assert bench.say() == [("COMPLETE", "ours")]
    bench.begin()


def test_an_agent_that_comes_back_speaks_of_the_same_run(bench: Joined) -> None:
    bench.begin()
    bench.agent = bench.make()
    assert [run for _, run in bench.say()] == []
    bench.put("STOPPED", "STOPPED")
    assert [*bench.say(), *bench.say()] == [("ABORT", "theirs-1")]
