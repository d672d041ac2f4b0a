"""Stale or not, since when, and why."""

from __future__ import annotations

import itertools

import pytest

from headwater.insight import Freshness, Standing, Trouble, freshness
from headwater.lineage.graph import MemoryGraph, Node, NodeKind
from headwater.lineage.lifecycle import State

MINUTE = 60_000_000
NOW = 1_000 * MINUTE


def job(name: str) -> Node:
    return Node(NodeKind.JOB, "jobs", name)


def dataset(name: str) -> Node:
    return Node(NodeKind.DATASET, "lake", name)


def chain(*names: str) -> MemoryGraph:
    """raw -> job -> a -> job -> b …, jobs and datasets in turn."""
    nodes = [job(name) if i % 2 else dataset(name) for i, name in enumerate(names)]
    return MemoryGraph(itertools.pairwise(nodes))


GRAPH = chain("raw", "ingest", "bronze", "clean", "silver")


def judged(depth: int = 20, **standings: Standing) -> Freshness:
    known = {job(name): standing for name, standing in standings.items()}
    return freshness(GRAPH, dataset("silver"), lambda _: known, NOW, depth=depth)


RUNNING = Standing(State.RUNNING, NOW - 50 * MINUTE, NOW - MINUTE)


def test_a_running_producer_makes_it_live() -> None:
    found = judged(ingest=RUNNING, clean=RUNNING)
    assert (found.verdict, found.since, found.causes) == ("live", None, ())
    assert found.last == NOW - MINUTE


def test_a_failed_job_far_up_is_the_cause() -> None:
    failed = Standing(State.FAILED, NOW - 30 * MINUTE)
    found = judged(ingest=failed, clean=RUNNING)
    assert (found.verdict, found.since) == ("stale", NOW - 30 * MINUTE)
    (cause,) = found.causes
    assert (cause.job, cause.trouble, cause.distance, cause.root) == (
        job("ingest"), Trouble.FAILED, 3, True,
    )  # fmt: skip


def test_the_root_stands_first_and_what_it_explains_after_it() -> None:
    found = judged(
        ingest=Standing(State.ABORTED, NOW - 10 * MINUTE),
        clean=Standing(State.FAILED, NOW - 20 * MINUTE),
    )
    assert [(c.job.name, c.root) for c in found.causes] == [("ingest", True), ("clean", False)]
    assert found.since == NOW - 20 * MINUTE


@pytest.mark.parametrize(
    ("silent", "verdict"), [(10, "fresh"), (20, "fresh"), (22, "stale"), (500, "stale")]
)
def test_a_batch_is_late_by_its_own_habit(silent: int, verdict: str) -> None:
    last = NOW - silent * MINUTE
    done = Standing(State.COMPLETED, last, last, 10 * MINUTE)
    found = judged(ingest=RUNNING, clean=done)
    assert found.verdict == verdict
    assert found.due == last + 21 * MINUTE
    if verdict == "stale":
        assert found.since == found.due
        assert found.causes[0].trouble is Trouble.LATE


def test_a_stream_that_ended_is_a_cause_and_a_batch_without_a_habit_is_not() -> None:
    ended = Standing(State.COMPLETED, NOW - 5 * MINUTE, NOW - 5 * MINUTE, streaming=True)
    assert judged(clean=ended).causes[0].trouble is Trouble.ENDED
    once = ended._replace(streaming=False)
    assert judged(clean=once).verdict == "unknown"


def test_nothing_known_is_said_so_and_a_cut_walk_too() -> None:
    assert judged().verdict == "unknown"
    assert not judged().cut
    assert judged(depth=1).cut


def test_a_cycle_has_an_end() -> None:
    loop = MemoryGraph(
        [(dataset("a"), job("x")), (job("x"), dataset("b")),
         (dataset("b"), job("y")), (job("y"), dataset("a"))]
    )  # fmt: skip
    failed = Standing(State.FAILED, NOW)
    known = {job("x"): failed, job("y"): failed}
    found = freshness(loop, dataset("a"), lambda _: known, NOW)
    assert len(found.causes) == 2
