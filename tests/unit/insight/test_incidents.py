"""Which troubles are one, on graphs made by hand and by hypothesis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import JobProblem, families, freshness, root_causes
from headwater.insight.freshness import JobStatus
from headwater.insight.incidents import WITHIN
from headwater.lineage.graph import MemoryGraph
from headwater.lineage.lifecycle import State

if TYPE_CHECKING:
    from collections.abc import Collection

    from headwater.lineage.graph import Pairs

Node = tuple[str, str]
FAILED, LATE, PAUSED = JobProblem.FAILED, JobProblem.LATE, JobProblem.PAUSED


def job(name: str) -> Node:
    return ("job", name)


def data(name: str) -> Node:
    return ("dataset", name)


CHAIN = MemoryGraph(
    [
        (data("a"), job("1")),
        (job("1"), data("b")),
        (data("b"), job("2")),
        (job("2"), data("c")),
        (data("c"), job("3")),
        (job("3"), data("d")),
    ]
)


def test_what_breaks_behind_a_broken_job_is_its_incident() -> None:
    (cause,) = root_causes(CHAIN, {job("3"): (FAILED, 30), job("1"): (FAILED, 10)})
    assert cause.job == job("1")
    assert cause.jobs == (job("3"),)
    assert cause.datasets == (data("b"), data("c"), data("d"))
    assert cause.behind == (data("b"), job("2"), data("c"), job("3"), data("d"))


def test_what_breaks_before_a_sink_reaches_only_the_table_that_it_feeds() -> None:
    orders, bids, landing, table = map(data, ("orders", "bids", "orders_landing", "bids_table"))
    reads = [(job("orders-source"), orders), (job("bids-source"), bids)]
    sink = [
        (orders, job("sink")),
        (bids, job("sink")),
        (job("sink"), landing),
        (job("sink"), table),
    ]
    behind = [(landing, job("report")), (job("report"), data("daily"))]
    known = {job("sink"): {landing: frozenset({orders}), table: frozenset({bids})}}
    graph = MemoryGraph([*reads, *sink, *behind], known)
    wrong = {job("bids-source"): (FAILED, 10), job("report"): (FAILED, 20)}
    bid, report = root_causes(graph, wrong)
    assert (bid.job, bid.jobs, bid.datasets) == (job("bids-source"), (), (bids, table))
    assert bid.behind == (bids, job("sink"), table)
    assert (report.job, report.datasets) == (job("report"), (data("daily"),))
    bid, order = root_causes(graph, wrong | {job("orders-source"): (FAILED, 15)})
    assert (bid.jobs, bid.datasets) == ((), (bids, table))
    assert (order.jobs, order.datasets) == ((job("report"),), (orders, landing, data("daily")))
    # A sink that breaks leaves all that it writes stale, also where it breaks with one of its sources.
    (alone,) = root_causes(graph, {job("sink"): (FAILED, 10)})
    assert set(alone.datasets) == {table, landing, data("daily")}
    (both,) = root_causes(
        graph,
        {job("bids-source"): (FAILED, 10), job("sink"): (FAILED, 20), job("report"): (FAILED, 30)},
    )
    assert both.jobs == (job("sink"), job("report"))
    assert both.behind == (bids, job("sink"), table, landing, job("report"), data("daily"))
    paused = {job("bids-source"): (PAUSED, 10), job("report"): (LATE, 20)}
    assert [one.job for one in root_causes(graph, paused)] == [job("report")]


@pytest.mark.parametrize("planned", [False, True])
def test_each_part_of_the_graph_is_walked_once_however_many_jobs_broke_together(
    planned: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Jobs in a row whose pairs lead from one to the next only where it broke too."""

    def asked(number: int) -> int:
        edges: list[tuple[Node, Node]] = []
        pairs: dict[Node, Pairs[Node]] = {}
        wrong: dict[Node, tuple[JobProblem, int]] = {}
        for n in range(number):
            one, other = job(f"{n:04}"), data(f"from {n}")
            side, onward = data(f"side {n}"), data(f"onward {n}")
            edges += [(data(f"onward {n - 1}"), one), (other, one), (one, side), (one, onward)]
            if not planned:
                known = frozenset({data(f"onward {n - 1}")}), frozenset({other})
                pairs[one] = dict(zip((side, onward), known, strict=True))
            wrong[one] = (PAUSED if planned else FAILED, 1_000 + n)
        graph, nodes = MemoryGraph(edges, pairs), 0
        step = MemoryGraph.next

        def counted(graph: Any, some: Collection[Node], way: Any) -> Any:
            nonlocal nodes
            nodes += len(some)
            return step(graph, some, way)

        monkeypatch.setattr(MemoryGraph, "next", counted)
        causes = root_causes(graph, wrong)
        monkeypatch.undo()
        assert [len(one.jobs) for one in causes] == ([] if planned else [number - 1])
        return nodes

    assert asked(80) < 2.5 * asked(40)


def test_what_breaks_before_it_or_much_later_is_an_incident_of_its_own() -> None:
    before = root_causes(CHAIN, {job("3"): (FAILED, 10), job("1"): (FAILED, 30)})
    assert [one.job for one in before] == [job("3"), job("1")]
    # Each dataset is named once: by the cause that was there first.
    assert [one.datasets for one in before] == [(data("d"),), (data("b"), data("c"))]
    later = root_causes(CHAIN, {job("1"): (FAILED, 10), job("3"): (FAILED, 11 + WITHIN)})
    assert [one.job for one in later] == [job("1"), job("3")]


def test_jobs_of_a_ring_that_broke_at_once_are_not_lost() -> None:
    ring = MemoryGraph(
        [
            (job("1"), data("a")),
            (data("a"), job("2")),
            (job("2"), data("b")),
            (data("b"), job("1")),
        ]
    )
    (cause,) = root_causes(ring, {job("1"): (FAILED, 5), job("2"): (FAILED, 5)})
    assert (cause.job, cause.jobs) == (job("1"), (job("2"),))


def test_what_is_planned_is_no_cause_and_explains_who_is_late() -> None:
    assert root_causes(CHAIN, {job("1"): (PAUSED, 10), job("2"): (LATE, 20)}) == []
    (failed,) = root_causes(CHAIN, {job("1"): (PAUSED, 10), job("2"): (FAILED, 20)})
    assert failed.job == job("2")
    (late,) = root_causes(CHAIN, {job("2"): (LATE, 20)})
    assert late.job == job("2")


def test_parts_come_before_the_whole_and_others_stay_alone() -> None:
    runs = {
        job("app"): ("r1", ""),
        job("query"): ("r2", "r1"),
        job("step"): ("r3", "r2"),
        job("other"): ("r4", "r9"),
    }
    assert sorted(families(runs)) == [
        [job("other")],
        [job("step"), job("query"), job("app")],
    ]


class Estate(MemoryGraph[Node]):
    """A graph whose jobs failed at some moments."""

    wrong: dict[Node, int]

    def statuses(self, jobs: object) -> dict[Node, JobStatus]:
        return {node: JobStatus(State.FAILED, since) for node, since in self.wrong.items()}

    def last_records(self, dataset: Node, jobs: object) -> dict[Node, int | None]:
        return {}


edges = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 5), st.booleans()), max_size=25)


def apart(
    drawn: list[tuple[int, int, bool]], kept: set[tuple[int, int, int]]
) -> dict[Node, Pairs[Node]]:
    """The pairs of each job: every input feeds every output but those that are kept apart."""
    return {
        job(str(number)): {
            data(str(output)): frozenset(
                data(str(read))
                for j, read, writes in drawn
                if j == number and not writes and (number, read, output) not in kept
            )
            for j, output, writes in drawn
            if j == number and writes
        }
        for number in {number for number, _, _ in kept}
    }


@given(
    edges,
    st.sets(st.tuples(st.integers(0, 5), st.integers(0, 5), st.integers(0, 5)), max_size=25),
    st.dictionaries(st.integers(0, 5), st.integers(0, 50), max_size=6),
)
def test_every_stale_dataset_is_behind_a_cause_and_every_broken_job_is_told_once(
    drawn: list[tuple[int, int, bool]], kept: set[tuple[int, int, int]], broken: dict[int, int]
) -> None:
    estate = Estate(
        [
            (job(str(j)), data(str(d))) if writes else (data(str(d)), job(str(j)))
            for j, d, writes in drawn
        ],
        apart(drawn, kept),
    )
    estate.wrong = {job(str(number)): since for number, since in broken.items()}
    causes = root_causes(estate, {node: (FAILED, since) for node, since in estate.wrong.items()})
    named = [dataset for one in causes for dataset in one.datasets]
    assert len(named) == len(set(named))
    told = [node for one in causes for node in (one.job, *one.jobs)]
    assert sorted(told) == sorted(estate.wrong)
    stale = {
        data(str(d)) for d in range(6) if freshness(estate, data(str(d)), 100).verdict == "stale"
    }
    assert set(named) == stale
