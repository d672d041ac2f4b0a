"""A connector with several tasks that reports a job for each: one of them is the whole."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from headwater.connect.debezium.task_jobs import LOOKUPS_PER_POLL
from headwater.connect.services.endpoint import ProblemKind

from .test_debezium_runs import CONFIG, JOB, NAME, SOON, Joined

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

PARTS = ("cdc.1", "cdc.2")
THREE = ("RUNNING", "RUNNING", "RUNNING")


class Tasks(Joined):
    """Three tasks, each with a run that it began itself."""

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.put("RUNNING", *THREE)
        self.start("a")

    def start(self, mark: str) -> None:
        for number in range(3):
            self.theirs("START", f"theirs-{number}{mark}", f"cdc.{number}")

    def finish(self, mark: str, *numbers: int) -> None:
        for number in numbers or range(3):
            self.theirs("COMPLETE", f"theirs-{number}{mark}", f"cdc.{number}")

    def settle(self) -> list[tuple[str, str]]:
        """What is said until nothing is left to say."""
        return [said for _ in range(4) for said in self.say()]

    def of_parts(self) -> list[list[str]]:
        return [self.states(part) for part in PARTS]

    def asked(self, seconds: float) -> int:
        before = self.server.asked
        self.hear(seconds)
        return self.server.asked - before


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Tasks]:
    made = Tasks(tmp_path)
    yield made
    made.outbox.close()
    made.outbox.forget_connection()


def folded(events: list[dict[str, Any]]) -> list[str]:
    return [event["job"] for event in events if event["part"] and not event["run"]]


def test_every_further_task_is_said_to_be_a_part_once(bench: Tasks) -> None:
    said = bench.hear()
    assert folded(said) == list(PARTS)
    assert [(e["type"], e["job"]) for e in said if not e["part"]] == [("RUNNING", JOB)]
    for seconds in (SOON, 300, 300):
        assert folded(bench.hear(seconds)) == []
    bench.agent = bench.make()
    assert folded(bench.hear()) == []
    bench.put("RUNNING", *THREE, more="1")
    assert folded(bench.hear()) == list(PARTS)
    bench.put("RUNNING", *THREE, "RUNNING", more="1")
    assert folded(bench.hear()) == [*PARTS, "cdc.3"]


def test_one_task_has_no_parts_and_nobody_is_asked_for_any(bench: Tasks) -> None:
    bench.put("RUNNING", "RUNNING")
    assert folded(bench.hear()) == []
    # Soon after a change, then less and less often; in the end with the heartbeats only.
    assert [bench.asked(SOON) for _ in range(8)] == [1, 0, 1, 0, 0, 0, 1, 0]
    assert [bench.asked(300) for _ in range(3)] == [1, 1, 1]


def test_parts_are_asked_for_on_a_change_and_a_heartbeat_only(bench: Tasks) -> None:
    assert [bench.asked(SOON) for _ in range(8)] == [1, 1 + 2, 0, 1, 0, 0, 0, 1]
    assert [bench.asked(seconds) for seconds in (300, SOON, SOON)] == [1, 2, 0]


@pytest.mark.parametrize(
    ("state", "tasks", "shown"),
    [("PAUSED", ("PAUSED",) * 3, "COMPLETED"), ("STOPPED", (), "ABORTED")],
)
def test_runs_that_are_left_under_way_end_with_the_whole(
    bench: Tasks, state: str, tasks: tuple[str, ...], shown: str
) -> None:
    bench.settle()
    bench.connect.put(NAME, state, tasks, config={**CONFIG, "headwater.job.name": JOB})
    bench.settle()
    assert bench.states() == [shown]
    assert bench.of_parts() == [[shown], [shown]]
    assert bench.settle() == []


def test_runs_that_end_by_themselves_are_left_alone(bench: Tasks) -> None:
    bench.settle()
    bench.finish("a")
    del bench.connect.connectors[NAME]
    assert bench.settle() == []
    assert [bench.states(), *bench.of_parts()] == [["COMPLETED"]] * 3
    assert bench.agent.tracked == []


def test_a_task_that_fails_is_a_failure_of_the_whole(bench: Tasks) -> None:
    bench.settle()
    bench.finish("a", 1)
    bench.put("RUNNING", "RUNNING", "FAILED", "RUNNING")
    assert bench.say() == [("FAIL", "theirs-0a")]  # its own task goes on: no word is on the way
    assert bench.settle() == [("FAIL", "theirs-2a")]
    assert [bench.states(), *bench.of_parts()] == [["FAILED"], ["COMPLETED"], ["FAILED"]]
    bench.clock.now += 1
    bench.theirs("START", "theirs-1b", "cdc.1")
    bench.put("RUNNING", *THREE)
    assert [bench.say(), bench.say()] == [[], [("START", "ours")]]
    assert bench.settle() == []
    assert bench.states() == ["RUNNING", "FAILED"]
    assert bench.of_parts() == [["RUNNING", "COMPLETED"], ["FAILED"]]
    bench.put("PAUSED", *("PAUSED",) * 3)
    assert bench.settle() == [("COMPLETE", "ours"), ("COMPLETE", "theirs-1b")]


def test_a_task_that_begins_anew_before_the_others_has_not_failed(bench: Tasks) -> None:
    bench.settle()
    bench.finish("a")
    bench.put("RUNNING", *("FAILED",) * 3)
    assert bench.say() == [("FAIL", "theirs-0a")]
    bench.clock.now += 1
    bench.theirs("START", "theirs-0b")
    bench.put("RUNNING", "RUNNING", "FAILED", "FAILED")
    assert bench.say(1) == []
    bench.put("RUNNING", *THREE)
    assert bench.say(1) == [("RUNNING", "theirs-0b")]
    assert bench.states() == ["RUNNING", "FAILED"]


def test_one_task_that_begins_anew_alone_shares_the_failure(bench: Tasks) -> None:
    bench.settle()
    bench.finish("a")
    bench.put("RUNNING", *("FAILED",) * 3)
    assert bench.say() == [("FAIL", "theirs-0a")]
    bench.clock.now += 1
    bench.theirs("START", "theirs-0b")
    bench.put("RUNNING", "RUNNING", "FAILED", "FAILED")
    assert [bench.say(), bench.say()] == [[], [("FAIL", "theirs-0b")]]
    assert bench.states() == ["FAILED", "FAILED"]


def test_what_a_killed_worker_left_is_over(bench: Tasks) -> None:
    bench.settle()
    bench.clock.now += 1
    bench.start("b")
    assert bench.say(300) == [("ABORT", "theirs-0a"), ("RUNNING", "theirs-0b")]
    assert bench.settle() == [("ABORT", "theirs-1a"), ("ABORT", "theirs-2a")]
    assert [bench.states(), *bench.of_parts()] == [["RUNNING", "ABORTED"]] * 3
    bench.connect.fail(ProblemKind.UNREACHABLE)
    bench.say()
    assert bench.say(700) == [("ABORT", "theirs-0b")]
    assert bench.settle() == [("ABORT", "theirs-1b"), ("ABORT", "theirs-2b")]
    assert bench.settle() == []


def test_tasks_that_are_no_more_have_no_run(bench: Tasks) -> None:
    bench.settle()
    bench.put("RUNNING", "RUNNING", "RUNNING", more="1")
    bench.settle()
    assert [bench.states(), *bench.of_parts()] == [["RUNNING"], ["RUNNING"], ["COMPLETED"]]


def test_no_part_is_forgotten_when_the_server_is_away_or_the_agent_dies(bench: Tasks) -> None:
    bench.settle()
    bench.server.down, bench.held = True, []
    del bench.connect.connectors[NAME]
    assert bench.settle() == [("COMPLETE", "theirs-0a")]
    bench.agent = bench.make()
    assert bench.settle() == []
    bench.server.down = False
    assert bench.settle() == [("COMPLETE", "theirs-1a"), ("COMPLETE", "theirs-2a")]
    assert bench.agent.tracked == []
    assert bench.settle() == []


@pytest.mark.parametrize("shown", [(), ("RUNNING",), ("RUNNING", "RUNNING")])
def test_tasks_that_connect_does_not_show_yet_keep_their_runs(
    bench: Tasks, shown: tuple[str, ...]
) -> None:
    """Debezium reports a run when its task begins to start, Connect a status once it has."""
    config = {**CONFIG, "headwater.job.name": JOB}
    bench.connect.put(NAME, "RUNNING", shown, config=config, planned=3)
    assert folded(bench.hear()) == list(PARTS)
    assert bench.settle() == []
    assert bench.say(60) == []
    assert bench.of_parts() == [["RUNNING"]] * 2
    bench.put("RUNNING", *THREE)
    assert bench.settle() == [("RUNNING", "theirs-0a")]
    assert [bench.states(), *bench.of_parts()] == [["RUNNING"]] * 3


def test_tasks_that_are_added_keep_their_runs_and_those_that_go_do_not(bench: Tasks) -> None:
    bench.settle()
    config = {**CONFIG, "headwater.job.name": JOB}
    bench.theirs("START", "theirs-3a", "cdc.3")
    bench.connect.put(NAME, "RUNNING", THREE, config=config, planned=4)
    assert folded(bench.hear()) == [*PARTS, "cdc.3"]
    assert bench.settle() == []
    bench.put("RUNNING", *THREE, "RUNNING")
    bench.settle()
    assert bench.states("cdc.3") == ["RUNNING"]
    bench.put("RUNNING", "RUNNING")  # their worker died meanwhile, and did not end them
    bench.settle()
    assert [bench.states(part) for part in (JOB, *PARTS, "cdc.3")] == [
        ["RUNNING"], ["COMPLETED"], ["COMPLETED"], ["COMPLETED"]
    ]  # fmt: skip


def test_parts_of_one_that_was_stopped_before_it_was_seen_are_found(bench: Tasks) -> None:
    bench.finish("a", 0, 1)  # the third task's worker died
    bench.connect.put(NAME, "STOPPED", (), config={**CONFIG, "headwater.job.name": JOB})
    bench.server.down = True
    assert bench.settle() == []
    bench.server.down = False
    bench.clock.now += 300
    heard = [event for _ in range(4) for event in bench.hear()]
    assert folded(heard) == list(PARTS)
    assert [bench.states(), *bench.of_parts()] == [["ABORTED"], ["COMPLETED"], ["ABORTED"]]


def test_nobody_is_waited_for_who_will_never_say(bench: Tasks) -> None:
    bench.server.down, bench.server.may_answer_later = True, False
    bench.settle()
    del bench.connect.connectors[NAME]
    bench.settle()
    assert bench.agent.tracked == []


def test_one_that_is_made_again_at_once_is_seen(bench: Tasks) -> None:
    bench.settle()
    before = dict(bench.connect.connectors)
    bench.finish("a")
    bench.connect.connectors.clear()
    assert bench.say() == []
    assert bench.server.deleted == [JOB, *PARTS]
    bench.connect.connectors.update(before)
    bench.clock.now += 1
    bench.start("b")
    assert bench.say() == [("RUNNING", "theirs-0b")]
    bench.settle()
    assert [bench.states(), *bench.of_parts()] == [["RUNNING", "COMPLETED"]] * 3


def test_many_parts_are_asked_for_a_few_at_a_time(bench: Tasks) -> None:
    tasks = ("RUNNING",) * (2 * LOOKUPS_PER_POLL + 10)
    bench.put("RUNNING", *tasks, more="1")
    asked = [bench.asked(SOON) for _ in range(6)]
    assert asked == [1, 1 + LOOKUPS_PER_POLL, LOOKUPS_PER_POLL, 1 + 9, 0, 0]
