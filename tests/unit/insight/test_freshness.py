"""Stale or not, since when, and why."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import pytest

from headwater.insight import Freshness, JobProblem, JobStatus, freshness
from headwater.lineage.graph import MemoryGraph
from headwater.lineage.lifecycle import State

from .nodes import Node, dataset, job

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping

    from headwater.lineage.graph import Pairs

MINUTE = 60_000_000
NOW = 1_000 * MINUTE


class Known(MemoryGraph[Node]):
    """A graph in memory that knows how some of its jobs stand."""

    def __init__(
        self,
        edges: Iterable[tuple[Node, Node]],
        pairs: Mapping[Node, Pairs[Node]] | None = None,
        /,
        **known: JobStatus,
    ) -> None:
        super().__init__(edges, pairs)
        self.known = {job(name): status for name, status in known.items()}
        self.flowed: dict[Node, int | None] = {}

    def statuses(self, jobs: Collection[Node]) -> dict[Node, JobStatus]:
        return {one: self.known[one] for one in jobs if one in self.known}

    def last_records(self, _: Node, jobs: Collection[Node]) -> dict[Node, int | None]:
        return {one: self.flowed[one] for one in jobs if one in self.flowed}


def chain(*names: str) -> list[tuple[Node, Node]]:
    """raw -> job -> a -> job -> b …, jobs and datasets in turn."""
    nodes = [job(name) if i % 2 else dataset(name) for i, name in enumerate(names)]
    return list(itertools.pairwise(nodes))


CHAIN = chain("raw", "ingest", "bronze", "clean", "silver")


def judged(depth: int = 20, **known: JobStatus) -> Freshness[Node]:
    return freshness(Known(CHAIN, **known), dataset("silver"), NOW, depth=depth)


RUNNING = JobStatus(State.RUNNING, NOW - 50 * MINUTE, NOW - MINUTE)


def test_a_running_producer_makes_it_live() -> None:
    found = judged(ingest=RUNNING, clean=RUNNING)
    assert (found.verdict, found.since, found.causes) == ("live", None, ())
    assert found.last == NOW - MINUTE


def test_a_heartbeat_is_no_write_where_the_flow_is_known() -> None:
    graph = Known(CHAIN, ingest=RUNNING, clean=RUNNING)
    graph.flowed = {job("ingest"): NOW - 5 * MINUTE}  # says nothing of what `clean` writes
    found = freshness(graph, dataset("silver"), NOW)
    assert (found.last, found.source) == (NOW - MINUTE, "heartbeat")
    graph.flowed[job("clean")] = NOW - 9 * MINUTE
    found = freshness(graph, dataset("silver"), NOW)
    assert (found.verdict, found.last, found.source) == ("live", NOW - 9 * MINUTE, "flow")
    graph.flowed[job("clean")] = None
    found = freshness(graph, dataset("silver"), NOW)
    assert (found.verdict, found.last, found.source) == ("live", None, None)


def test_the_end_of_a_complete_run_is_a_write_whatever_flowed_before() -> None:
    done = JobStatus(State.COMPLETED, None, NOW - MINUTE, 10 * MINUTE, complete=NOW - MINUTE)
    graph = Known(CHAIN, ingest=RUNNING, clean=done)
    assert freshness(graph, dataset("silver"), NOW).source == "run"
    graph.flowed = {job("clean"): NOW - 2 * MINUTE}
    found = freshness(graph, dataset("silver"), NOW)
    assert (found.last, found.source) == (NOW - MINUTE, "run")


def test_a_failed_job_far_up_is_the_cause() -> None:
    failed = JobStatus(State.FAILED, NOW - 30 * MINUTE)
    found = judged(ingest=failed, clean=RUNNING)
    assert (found.verdict, found.since) == ("stale", NOW - 30 * MINUTE)
    (cause,) = found.causes
    assert (cause.job, cause.trouble, cause.distance, cause.root) == (
        job("ingest"), JobProblem.FAILED, 3, True,
    )  # fmt: skip


def test_the_root_stands_first_and_what_it_explains_after_it() -> None:
    found = judged(
        ingest=JobStatus(State.ABORTED, NOW - 20 * MINUTE),
        clean=JobStatus(State.FAILED, NOW - 10 * MINUTE),
    )
    assert [(c.job.name, c.root) for c in found.causes] == [("ingest", True), ("clean", False)]
    assert found.since == NOW - 20 * MINUTE


def test_what_failed_first_is_no_consequence() -> None:
    found = judged(
        ingest=JobStatus(State.ABORTED, NOW - 10 * MINUTE),
        clean=JobStatus(State.FAILED, NOW - 20 * MINUTE),
    )
    assert [(c.job.name, c.root) for c in found.causes] == [("clean", True), ("ingest", True)]


@pytest.mark.parametrize(
    ("silent", "verdict"), [(10, "fresh"), (20, "fresh"), (22, "stale"), (500, "stale")]
)
def test_a_batch_is_late_by_its_own_habit(silent: int, verdict: str) -> None:
    last = NOW - silent * MINUTE
    done = JobStatus(State.COMPLETED, last, last, 10 * MINUTE)
    found = judged(ingest=RUNNING, clean=done)
    assert found.verdict == verdict
    assert found.due == last + 21 * MINUTE
    if verdict == "stale":
        assert found.since == found.due
        assert found.causes[0].trouble is JobProblem.LATE


def test_a_stream_that_ended_is_a_cause_and_a_batch_without_a_habit_is_not() -> None:
    ended = JobStatus(State.COMPLETED, NOW - 5 * MINUTE, NOW - 5 * MINUTE, streaming=True)
    assert judged(clean=ended).causes[0].trouble is JobProblem.ENDED
    once = ended._replace(streaming=False)
    assert judged(clean=once).verdict == "unknown"


def test_nothing_known_is_said_so_and_a_cut_walk_too() -> None:
    assert judged().verdict == "unknown"
    assert not judged().cut
    assert judged(depth=1).cut


def ring(**known: JobStatus) -> Freshness[Node]:
    """What is found for a, which x makes b of, of which y makes a."""
    edges = chain("a", "x", "b", "y", "a")
    return freshness(Known(edges, **known), dataset("a"), NOW)


def roots(found: Freshness[Node]) -> list[tuple[str, bool]]:
    return [(cause.job.name, cause.root) for cause in found.causes]


def test_a_ring_has_the_job_that_broke_first_as_its_cause() -> None:
    failed, later = JobStatus(State.FAILED, NOW - MINUTE), JobStatus(State.FAILED, NOW)
    assert roots(ring(x=failed, y=later)) == [("x", True), ("y", False)]
    assert roots(ring(x=later, y=failed)) == [("y", True), ("x", False)]


def test_of_a_ring_that_broke_at_once_the_nearest_job_is_the_cause() -> None:
    failed = JobStatus(State.FAILED, NOW)
    assert roots(ring(x=failed, y=failed)) == [("y", True), ("x", False)]


def test_what_feeds_a_ring_and_broke_as_soon_explains_it() -> None:
    failed = JobStatus(State.FAILED, NOW)
    edges = [*chain("a", "x", "b", "y", "a"), *chain("raw", "z", "a")]
    graph = Known(edges, x=failed, y=failed, z=failed)
    # Both z and y write a; only z has nothing further up.
    assert roots(freshness(graph, dataset("b"), NOW)) == [("z", True), ("x", False), ("y", False)]
