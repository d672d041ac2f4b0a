"""A connector that reports itself: the agent speaks of the run that it began, and of one only."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect.access import Trouble

from .fake_connect import SINK
from .test_agent import Bench

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

CONFIG = {**SINK, "joined": "debezium"}
NAME = "cdc"
SOON = 5.0
# Longer than a connector is given to report itself.
PATIENCE = 16.0


class Joined(Bench):
    """A connector that reports itself, and what the server knows of its runs."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.under_way = []
        self.put()

    def put(self, state: str = "RUNNING", *tasks: str, **more: str) -> None:
        self.connect.put(NAME, state, tasks or (state,), config={**CONFIG, **more})

    def say(self, seconds: float = SOON) -> list[tuple[str, str]]:
        """What is said next, and of which run; a run of the agent's own is called ours."""
        return [(e["type"], self.name(e)) for e in self.tick(seconds)]

    def name(self, event: dict[str, Any]) -> str:
        run: str = event["run"]
        return run if run.startswith("theirs") else "ours"

    def begin(self, run: str = "theirs-1") -> None:
        """The connector has told of a run, and the agent has taken it up."""
        self.under_way = [run]
        assert self.say() == [("RUNNING", run)]


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
    bench.under_way = []  # it has told the end itself
    assert bench.say() == []


def test_a_pause_ends_the_run_and_what_is_resumed_is_ours(bench: Joined) -> None:
    bench.begin()
    bench.put("PAUSED")
    assert bench.say() == [("COMPLETE", "theirs-1")]
    assert bench.say() == []
    bench.put()
    # The word of the end may not have come yet where runs are asked for.
    assert bench.say() == [("START", "ours")]
    assert bench.say(300) == [("RUNNING", "ours")]
    bench.under_way = []
    assert bench.say(300) == [("RUNNING", "ours")]
    del bench.connect.connectors[NAME]
    assert bench.say() == [("COMPLETE", "ours")]


def test_what_was_paused_before_the_agent_came_goes_on_with_its_run(bench: Joined) -> None:
    bench.under_way = ["theirs-1"]
    bench.put("PAUSED")
    assert bench.say() == []
    bench.put()
    assert bench.say() == [("RUNNING", "theirs-1")]


def test_a_failure_that_it_took_for_an_end_is_told(bench: Joined) -> None:
    bench.begin()
    bench.under_way = []
    bench.put("RUNNING", "FAILED")
    assert bench.say() == [("START", "ours"), ("FAIL", "ours")]
    assert bench.say() == []
    bench.put()
    assert bench.say() == []
    bench.begin("theirs-2")


def test_a_failure_that_it_did_not_live_to_tell_is_told(bench: Joined) -> None:
    bench.begin()
    bench.put("RUNNING", "FAILED")
    assert bench.say() == [("FAIL", "theirs-1")]


def test_a_task_that_began_anew_has_a_new_run(bench: Joined) -> None:
    bench.begin()
    bench.under_way = ["theirs-2"]
    bench.put(more="1")
    assert bench.say() == [("RUNNING", "theirs-2")]
    bench.under_way = ["theirs-3", "theirs-2"]  # the worker was killed
    assert bench.say(300) == [("ABORT", "theirs-2"), ("RUNNING", "theirs-3")]
    assert bench.new() == []
    bench.connect.fail(Trouble.UNREACHABLE)
    assert bench.say() == []
    assert bench.say(700) == [("ABORT", "theirs-3")]


def test_a_restart_ends_no_run_that_has_begun_since(bench: Joined) -> None:
    bench.begin()
    bench.under_way = ["theirs-2"]
    bench.put("RUNNING", "RESTARTING")
    assert bench.say() == []
    bench.put()
    assert bench.say() == [("RUNNING", "theirs-2")]
    bench.under_way = []
    bench.put("RUNNING", "FAILED")
    assert bench.say() == [("START", "ours"), ("FAIL", "ours")]
    bench.under_way = ["theirs-3"]
    bench.put("RUNNING", "RESTARTING")
    assert bench.say() == []
    bench.put()
    assert bench.say() == [("RUNNING", "theirs-3")]
    bench.put("PAUSED")
    assert bench.say() == [("COMPLETE", "theirs-3")]
    bench.put()
    assert bench.say() == [("START", "ours")]
    bench.under_way = ["theirs-4", bench.agent.tracked[0].run]
    bench.put("RUNNING", "RESTARTING")
    assert bench.say() == [("ABORT", "ours")]
    bench.put()
    assert bench.say() == [("RUNNING", "theirs-4")]


def test_a_run_of_ours_gives_way_to_one_of_its_own(bench: Joined) -> None:
    assert bench.say() == []
    assert bench.say(PATIENCE) == [("START", "ours")]
    ours = bench.agent.tracked[0].run
    bench.under_way = ["theirs-1", ours]
    assert bench.say(300) == [("ABORT", "ours"), ("RUNNING", "theirs-1")]


def test_a_run_that_it_gave_up_while_it_runs_is_followed_by_ours(bench: Joined) -> None:
    bench.begin()
    bench.under_way = []  # it told a failure that it then recovered from by itself
    assert bench.say(300) == []
    assert bench.say(PATIENCE) == [("START", "ours")]


def test_only_the_job_is_told_while_nobody_knows_its_runs(bench: Joined) -> None:
    bench.under_way = None
    (start,) = bench.tick()
    assert (start["type"], start["mute"]) == ("START", True)
    bench.put("RUNNING", "FAILED")
    failed = bench.tick()
    assert [(e["type"], e["mute"]) for e in failed] == [("START", False), ("FAIL", False)]
    bench.put()
    (start,) = bench.tick()
    assert (start["type"], start["mute"]) == ("START", True)
    bench.under_way = ["theirs-1"]
    assert bench.say(300) == [("RUNNING", "theirs-1")]
    bench.under_way = None
    bench.put("PAUSED")
    assert bench.say() == [("COMPLETE", "theirs-1")]


def test_a_job_that_is_reported_from_now_on_ends_ours(bench: Joined) -> None:
    bench.connect.put(NAME)
    assert bench.say() == [("START", "ours")]
    bench.connect.put(NAME, config={**CONFIG, "headwater.job.name": "theirs"})
    assert bench.say() == [("COMPLETE", "ours")]
    bench.begin()


def test_an_agent_that_comes_back_speaks_of_the_same_run(bench: Joined) -> None:
    bench.begin()
    bench.agent = bench.make()
    assert [run for _, run in bench.say()] == []
    bench.put("STOPPED", "STOPPED")
    assert bench.say() == [("ABORT", "theirs-1")]
