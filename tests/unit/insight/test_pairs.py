"""Walks keep to the pairs of a job: which of its inputs feed which of its outputs."""

from __future__ import annotations

from collections import defaultdict

from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import JobStatus, around, between, freshness, reach
from headwater.lineage.graph import Direction, MemoryGraph, Pairs, walk
from headwater.lineage.lifecycle import State
from tests.properties import examples

from .nodes import Node, dataset, job
from .test_freshness import NOW, Known

ORDERS, BIDS, LANDING, TABLE, RAW, REPORT = map(
    dataset, ("orders", "bids", "orders_landing", "db.bids", "shop.bids", "report")
)
SINK, SOURCE, READER = map(job, ("sink", "source", "reader"))
EDGES = [
    (ORDERS, SINK), (BIDS, SINK), (SINK, LANDING), (SINK, TABLE),
    (RAW, SOURCE), (SOURCE, BIDS), (LANDING, READER), (READER, REPORT),
]  # fmt: skip
PAIRS: dict[Node, Pairs[Node]] = {SINK: {LANDING: frozenset([ORDERS]), TABLE: frozenset([BIDS])}}
GRAPH = MemoryGraph(EDGES, PAIRS)


def reached(start: Node, direction: Direction, graph: MemoryGraph[Node] = GRAPH) -> set[Node]:
    return set(walk(graph, [start], direction, depth=99, limit=99).distance)


def test_a_sink_that_carries_two_tables_does_not_mix_them() -> None:
    assert reached(LANDING, Direction.UPSTREAM) == {LANDING, SINK, ORDERS}
    assert reached(RAW, Direction.DOWNSTREAM) == {RAW, SOURCE, BIDS, SINK, TABLE}
    unknown = MemoryGraph(EDGES)
    assert RAW in reached(LANDING, Direction.UPSTREAM, unknown)
    assert between(GRAPH, ORDERS, LANDING) == [SINK]
    assert between(GRAPH, ORDERS, TABLE) == []
    assert between(unknown, ORDERS, TABLE) == [SINK]


def test_a_job_where_a_walk_starts_shows_all_it_has() -> None:
    assert reached(SINK, Direction.UPSTREAM) == {SINK, ORDERS, BIDS, SOURCE, RAW}
    assert around(GRAPH, SINK, depth=9, limit=99).nodes == {n for edge in EDGES for n in edge}


def test_a_neighbourhood_keeps_to_the_pairs() -> None:
    found = around(GRAPH, LANDING, depth=9, limit=99)
    assert found.nodes == {LANDING, SINK, ORDERS, READER, REPORT}
    assert found.edges == {(ORDERS, SINK), (SINK, LANDING), (LANDING, READER), (READER, REPORT)}
    assert (found.jobs, found.cut) == ({SINK: 0, READER: 0}, False)


def test_what_depends_on_a_job_keeps_to_the_pairs() -> None:
    assert reach(GRAPH, SOURCE, limit=99) == (1, 2, False)
    assert reach(MemoryGraph(EDGES), SOURCE, limit=99) == (2, 4, False)


def test_a_job_is_visited_again_for_what_leads_to_it_later() -> None:
    # loop writes c from b, and b from a: up from c it is met twice.
    a, b, c, loop = dataset("a"), dataset("b"), dataset("c"), job("loop")
    edges = [(a, loop), (b, loop), (loop, b), (loop, c)]
    pairs: dict[Node, Pairs[Node]] = {loop: {c: frozenset([b]), b: frozenset([a])}}
    found = walk(MemoryGraph(edges, pairs), [c], Direction.UPSTREAM, depth=9, limit=9)
    assert found.distance == {c: 0, loop: 1, b: 2, a: 4}
    assert len(found.steps) == len(set(found.steps)) == 4


def test_a_failure_on_the_other_path_makes_nothing_stale() -> None:
    failed = JobStatus(State.FAILED, NOW - 1)
    running = JobStatus(State.RUNNING, NOW - 9, NOW - 1)
    estate = Known(EDGES, PAIRS, source=failed, sink=running, reader=running)
    assert freshness(estate, LANDING, NOW).verdict == "live"
    assert freshness(estate, TABLE, NOW).verdict == "stale"
    assert not freshness(estate, LANDING, NOW, depth=2).cut
    assert freshness(estate, TABLE, NOW, depth=2).cut


DATASETS = [dataset(name) for name in "abcdef"]
some = st.frozensets(st.sampled_from(DATASETS), max_size=4)


@st.composite
def graphs(draw: st.DrawFn) -> tuple[list[tuple[Node, Node]], dict[Node, Pairs[Node]]]:
    """Jobs over six datasets; of some the pairs are known."""
    edges: list[tuple[Node, Node]] = []
    pairs: dict[Node, Pairs[Node]] = {}
    for name in "jklm":
        one, inputs, outputs = job(name), draw(some), draw(some)
        edges += [(i, one) for i in inputs] + [(one, o) for o in outputs]
        if draw(st.booleans()):
            pairs[one] = {o: draw(some) & inputs for o in outputs}
    return edges, pairs


def pairs_of(
    edges: list[tuple[Node, Node]], pairs: dict[Node, Pairs[Node]]
) -> set[tuple[Node, Node, Node]]:
    """Every input, job and output such that the one feeds the other through the job."""
    inputs, outputs = defaultdict(set), defaultdict(set)
    for origin, target in edges:
        if target.kind == "job":
            inputs[target].add(origin)
        else:
            outputs[origin].add(target)
    return {
        (i, one, o)
        for one in outputs
        for o in outputs[one]
        for i in (pairs[one][o] if one in pairs else inputs[one])
    }


def spread(start: set[Node], links: set[tuple[Node, Node]]) -> set[Node]:
    """What is reached from some nodes along links, by trying all of them until nothing is new."""
    found = set(start)
    while more := {b for a, b in links if a in found} - found:
        found |= more
    return found


@examples(300)
@given(graphs(), st.sampled_from(DATASETS))
def test_a_walk_is_reachability_over_pairs(
    made: tuple[list[tuple[Node, Node]], dict[Node, Pairs[Node]]], start: Node
) -> None:
    edges, pairs = made
    graph, fed = MemoryGraph(edges, pairs), pairs_of(edges, pairs)
    up = spread({start}, {(o, i) for i, _, o in fed})
    writers = {origin for origin, target in edges if target in up and origin.kind == "job"}
    assert reached(start, Direction.UPSTREAM, graph) == up | writers
    down = spread({start}, {(i, o) for i, _, o in fed})
    readers = {target for origin, target in edges if origin in down and target.kind == "job"}
    assert reached(start, Direction.DOWNSTREAM, graph) == down | readers
    found = walk(graph, [start], Direction.UPSTREAM, depth=99, limit=99)
    assert len(found.steps) == len(set(found.steps))


@examples(300)
@given(graphs(), st.sampled_from(DATASETS))
def test_a_neighbourhood_is_what_pairs_join(
    made: tuple[list[tuple[Node, Node]], dict[Node, Pairs[Node]]], start: Node
) -> None:
    edges, pairs = made
    ports: dict[tuple[Node, Node], Node] = {
        edge: Node("port", f"{edge[0]}>{edge[1]}") for edge in edges
    }
    joined = [(ports[i, one], ports[one, o]) for i, one, o in pairs_of(edges, pairs)]
    for one in {n for edge in edges for n in edge if n.kind == "job"} - pairs.keys():
        own = [port for edge, port in ports.items() if one in edge]
        joined += [(a, b) for a in own for b in own]
    for edge, port in ports.items():
        joined += [(end, port) for end in edge if end.kind == "dataset"]
    found = around(MemoryGraph(edges, pairs), start, depth=99, limit=99)
    met = spread({start}, {*joined, *((b, a) for a, b in joined)})
    assert found.datasets.keys() == {n for n in met if n.kind == "dataset"}
    assert found.edges == {edge for edge, port in ports.items() if port in met}
    assert found.jobs.keys() == {n for edge in found.edges for n in edge if n.kind == "job"}
