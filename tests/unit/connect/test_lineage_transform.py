"""A lineage transform beside the agent: one job, one run, rightly ended."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from headwater.connect.derive.context import DeriveSettings
from headwater.connect.derive.lineage import derive
from headwater.connect.derive.metadata import NoMetadata
from headwater.connect.model import Connector

from .test_debezium_runs import NAME, PATIENCE, Joined

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

JOB = "orders-to-lake"
TRANSFORM = {
    "transforms": "openlineage",
    "transforms.openlineage.type": "com.acme.OpenLineageLifecycleSmt",
    "transforms.openlineage.connector.name": JOB,
}
MINE = {**TRANSFORM, "joined": "transform", "headwater.job.name": JOB}


class Beside(Joined):
    """A connector with a lineage transform; `records` lets the first one through."""

    def put(self, state: str = "RUNNING", *tasks: str, **more: str) -> None:
        super().put(state, *tasks, **{**MINE, "openlineage.integration.enabled": "", **more})

    def theirs(self, kind: str, run: str = "theirs-1", job: str = JOB, late: float = 0) -> None:
        super().theirs(kind, run, job, late)

    def records(self) -> None:
        self.connect.active[NAME] = ("orders",)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[Beside]:
    made = Beside(tmp_path)
    yield made
    made.outbox.close()
    made.outbox.forget_connection()


def suppressed(bench: Beside, seconds: float = 5) -> list[tuple[str, bool]]:
    return [(event["type"], event["mute"]) for event in bench.hear(seconds)]


def test_the_run_that_the_transform_begins_is_the_only_one(bench: Beside) -> None:
    assert suppressed(bench) == [("START", True)]  # for the job alone
    for _ in range(12):
        assert suppressed(bench) == []
    bench.records()
    bench.theirs("RUNNING")
    assert suppressed(bench) == [("RUNNING", True)]
    assert bench.say() == [("RUNNING", "theirs-1")]
    assert bench.say(300) == [("RUNNING", "theirs-1")]
    del bench.connect.connectors[NAME]
    bench.theirs("COMPLETE")
    assert bench.say() == []
    assert bench.states(JOB) == ["COMPLETED"]


def test_a_run_that_was_under_way_is_taken_up_at_once(bench: Beside) -> None:
    bench.records()
    bench.theirs("RUNNING", late=100)
    assert bench.say() == [("RUNNING", "theirs-1")]
    bench.put("PAUSED")
    assert bench.say() == [("COMPLETE", "theirs-1")]
    assert bench.states(JOB) == ["COMPLETED"]


def test_a_failure_that_the_transform_calls_complete_fails_its_run(bench: Beside) -> None:
    bench.records()
    bench.theirs("RUNNING")
    bench.say()
    bench.clock.now += 1
    bench.theirs("COMPLETE")
    bench.put("RUNNING", "FAILED")
    assert bench.say() == [("FAIL", "theirs-1")]
    assert bench.states(JOB) == ["FAILED"]


def test_a_transform_that_never_reports_costs_no_run(bench: Beside) -> None:
    """Its worker may lack the address of the server."""
    bench.records()
    bench.say()
    assert bench.say(PATIENCE) == [("START", "ours")]
    assert bench.states(JOB) == ["RUNNING"]


def test_a_topic_that_stays_quiet_has_a_run_after_a_heartbeat(bench: Beside) -> None:
    assert suppressed(bench) == [("START", True)]
    bench.say(301)
    assert bench.say(PATIENCE) == [("START", "ours")]


def test_several_tasks_have_no_jobs_of_their_own(bench: Beside) -> None:
    bench.records()
    bench.put("RUNNING", "RUNNING", "RUNNING")
    bench.theirs("RUNNING")
    heard = bench.hear()
    assert [(event["job"], event["part"]) for event in heard] == [(JOB, 0)]


@pytest.mark.parametrize(
    ("more", "joined"),
    [
        ({}, "transform"),
        ({"headwater.job.name": "own"}, ""),
        ({"headwater.namespace": "own"}, ""),
        ({"transforms.openlineage.connector.name": ""}, ""),
        ({"transforms": ""}, ""),
    ],
)
def test_which_connectors_share_their_job_with_a_transform(
    more: dict[str, str], joined: str
) -> None:
    config = {"connector.class": "x.Sink", "topics": "a", **TRANSFORM, **more}
    assert derive(Connector("c", "sink", config), NoMetadata(), DeriveSettings()).joined == joined
