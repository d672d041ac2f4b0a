"""What lies around a node, what it reaches, and where things come from."""

from __future__ import annotations

from headwater.insight import (
    around,
    behind_each,
    beside,
    between,
    flow,
    hidden,
    reach,
    spanned,
    trace,
)
from headwater.lineage.graph import MemoryGraph

from .nodes import dataset, job

J, K, L = map(job, "jkl")
A, B, C, D = map(dataset, "abcd")
GRAPH = MemoryGraph([(A, J), (J, B), (B, K), (K, C), (C, L), (L, D)])


def test_depth_counts_jobs_and_their_datasets_come_along() -> None:
    near = around(GRAPH, J, depth=0, limit=9)
    assert (near.jobs, near.datasets) == ({J: 0}, {A: 0, B: 0})
    assert near.links == {(J, A, False), (J, B, True)}
    assert near.edges == {(A, J), (J, B)}
    far = around(GRAPH, J, depth=1, limit=9)
    assert (far.jobs, far.datasets) == ({J: 0, K: 1}, {A: 0, B: 0, C: 1})
    assert far.nodes == {J, K, A, B, C}


def test_a_dataset_has_its_jobs_at_no_distance() -> None:
    found = around(GRAPH, B, depth=0, limit=1)
    assert (found.jobs, found.datasets) == ({J: 0, K: 0}, {B: 0, A: 0, C: 0})
    assert not found.cut
    assert around(GRAPH, B, depth=1, limit=2).cut
    alone = around(GRAPH, dataset("x"), depth=3, limit=9)
    assert (len(alone.datasets), alone.jobs) == (1, {})


def test_two_moments_are_drawn_as_one() -> None:
    both = around(GRAPH, J, depth=1, limit=9) | around(MemoryGraph([(J, D)]), J, depth=1, limit=9)
    assert both.nodes == {J, K, A, B, C, D}
    assert (J, D, True) in both.links


def test_some_nodes_with_what_is_next_to_them() -> None:
    found = spanned(GRAPH, [J, D])
    assert found.jobs == {J: 0, L: 1}
    assert found.datasets == {D: 0, A: 1, B: 1}
    assert {flow(link) for link in found.links} == {(A, J), (J, B), (L, D)}


def test_what_is_not_shown_is_counted() -> None:
    assert hidden(GRAPH, {J: 0, B: 0}) == {J: (1, 0), B: (0, 1)}


def test_what_pairs_keep_off_the_walk_is_not_counted_as_left_out() -> None:
    copies = [(A, J), (C, J), (J, B), (J, D)]
    graph = MemoryGraph([*copies, (B, K)], {J: {B: frozenset({A}), D: frozenset({C})}})
    near = around(graph, B, depth=0, limit=9)
    assert hidden(graph, near.nodes, near.asked) == {}
    # A job that was asked for, and one of which no dataset is drawn, have all of their own.
    assert hidden(graph, {J: 0, B: 0}, {J}) == {J: (2, 1), B: (0, 1)}
    assert hidden(graph, {J: 0, K: 0}) == {J: (2, 2), K: (1, 0)}
    # What belongs to the way and does not fit is counted.
    assert hidden(graph, {J: 0, B: 0}, {B}) == {J: (1, 0), B: (0, 1)}
    assert spanned(graph, [J, D]).asked == {J, D}


def test_neighbours_and_the_jobs_between_two_datasets() -> None:
    assert beside(GRAPH, B) == ([J], [K])
    assert behind_each(GRAPH, [B, D]) == {B: [K], D: []}
    assert between(GRAPH, A, B) == [J]
    assert between(GRAPH, B, A) == []


def test_what_depends_on_a_job_is_counted_up_to_a_bound() -> None:
    assert reach(GRAPH, J, limit=9) == (2, 3, False)
    assert reach(GRAPH, J, limit=2) == (1, 1, True)


def test_a_trace_goes_up_and_if_asked_down() -> None:
    assert list(trace(GRAPH, [B], depth=9, limit=9).distance) == [B, J, A]
    both = trace(GRAPH, [B], depth=1, limit=9, downstream=True)
    assert both.distance == {B: 0, J: 1, K: 1}
