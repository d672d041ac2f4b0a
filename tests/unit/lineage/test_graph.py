from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage.columns import WHOLE, combine, from_column_lineage
from headwater.lineage.graph import Direction, MemoryGraph, NodeKind, Walk, walk
from headwater.lineage.openlineage import lineage_facet
from headwater.lineage.openlineage.facets import (
    ColumnLineageFacet,
    LineageFacet,
    Transformation,
    read,
)

Node = tuple[str, str]


def dataset(name: str) -> Node:
    return NodeKind.DATASET.value, name


def job(name: str) -> Node:
    return NodeKind.JOB.value, name


A, B, C, D = (dataset(name) for name in "abcd")
J, K = job("j"), job("k")
CHAIN = MemoryGraph([(A, J), (J, B), (B, K), (K, C), (D, K)])


def upstream(graph: MemoryGraph[Node], start: Node, depth: int = 9, limit: int = 9) -> Walk[Node]:
    return walk(graph, [start], Direction.UPSTREAM, depth=depth, limit=limit)


def downstream(graph: MemoryGraph[Node], start: Node) -> list[Node]:
    return list(walk(graph, [start], Direction.DOWNSTREAM, depth=9, limit=9).distance)


def test_upstream_and_downstream() -> None:
    up = upstream(CHAIN, C)
    assert up.distance == {C: 0, K: 1, B: 2, D: 2, J: 3, A: 4}
    assert (A, J) in up.edges
    assert downstream(CHAIN, A) == [A, J, B, K, C]
    assert not up.cut
    assert up.ahead == []


def test_both_ways_at_once() -> None:
    found = walk(CHAIN, [B], None, depth=1, limit=9)
    assert found.distance == {B: 0, J: 1, K: 1}
    assert found.edges == {(J, B), (B, K)}


def test_a_walk_ends_at_its_depth_and_at_its_limit() -> None:
    near = upstream(CHAIN, C, depth=2)
    assert (list(near.distance), near.ahead, near.cut) == ([C, K, B, D], [B, D], False)
    few = upstream(CHAIN, C, limit=3)
    assert (list(few.distance), few.cut) == ([C, K, B], True)
    jobs = walk(CHAIN, [C], Direction.UPSTREAM, depth=9, limit=1, counts=lambda n: n in (J, K))
    assert (set(jobs.distance), jobs.cut) == ({C, K, B, D}, True)


def test_a_walk_goes_on_in_another_one() -> None:
    found = upstream(CHAIN, B)
    walk(CHAIN, [B], Direction.DOWNSTREAM, depth=9, limit=9, found=found)
    assert found.distance == {B: 0, J: 1, A: 2, K: 1, C: 2}


def test_a_walk_that_goes_on_finds_what_a_walk_from_all_its_starts_finds() -> None:
    """It comes to the job through one input at first, then starts there, or comes through the other."""
    graph = MemoryGraph(
        [(A, J), (B, J), (J, C), (J, D), (D, K), (K, B)],
        {J: {C: frozenset({A}), D: frozenset({B})}},
    )
    for further in (J, B, K):
        found = Walk({A: 0})
        for start in (A, further):
            found.distance.setdefault(start, 0)
            walk(graph, [start], Direction.DOWNSTREAM, depth=9, limit=9, found=found)
        whole = walk(graph, [A, further], Direction.DOWNSTREAM, depth=9, limit=9)
        assert found.distance.keys() == whole.distance.keys() == {A, B, J, C, D, K}


def test_a_cycle_ends() -> None:
    ring = MemoryGraph([(A, J), (J, B), (B, K), (K, A)])
    assert set(downstream(ring, A)) == {A, J, B, K}


nodes = st.sampled_from([dataset(c) for c in "abcdef"])


@given(st.lists(st.tuples(nodes, nodes), max_size=12), nodes, nodes)
def test_walks_agree_in_both_directions(edges: list[tuple[Node, Node]], a: Node, b: Node) -> None:
    graph = MemoryGraph(edges)
    assert (b in downstream(graph, a)) == (a in upstream(graph, b).distance)


def test_column_edges_are_read_once_each() -> None:
    facet = read(
        b'{"fields":{"total":{"inputFields":['
        b'{"namespace":"n","name":"t","field":"a","transformations":[{"type":"DIRECT","subtype":"AGGREGATION"}]},'
        b'{"namespace":"n","name":"t","field":"a","transformations":[{"type":"INDIRECT","subtype":"FILTER"}]},'
        b'{"namespace":"n","name":"t","field":"b"}],"transformationType":"IDENTITY"}},'
        b'"dataset":[{"namespace":"n","name":"t","field":"k"}]}',
        ColumnLineageFacet,
    )
    assert facet is not None
    edges = {(e.field, e.output): e for e in from_column_lineage(facet)}
    assert set(edges) == {("a", "total"), ("b", "total"), ("k", WHOLE)}
    assert [t.subtype for t in edges["a", "total"].transformations] == ["AGGREGATION", "FILTER"]
    assert edges["b", "total"].transformations == (Transformation("DIRECT", "IDENTITY"),)


def test_the_explicit_lineage_facet_pairs_targets_with_sources() -> None:
    facet = read(
        b'{"entries":[{"namespace":"n","name":"out","type":"DATASET","fields":{"x":{"inputs":['
        b'{"namespace":"n","name":"in","type":"DATASET","field":"y"},{"type":"JOB"}]}}},'
        b'{"namespace":"n","name":"other","type":"DATASET"}]}',
        LineageFacet,
    )
    assert facet is not None
    edges: dict[str, list[tuple[str, str, str]]] = {}
    for (_, name), statement in lineage_facet.of_job(facet).items():
        columns = read(statement, ColumnLineageFacet)
        assert columns is not None
        edges[name] = [(e.name, e.field, e.output) for e in from_column_lineage(columns)]
    assert edges == {"out": [("in", "y", "x")], "other": []}


def test_steps_combine_to_the_stronger() -> None:
    identity, total = Transformation("DIRECT", "IDENTITY"), Transformation("DIRECT", "AGGREGATION")
    where = Transformation("INDIRECT", "FILTER", masking=True)
    assert combine(identity, total).subtype == "AGGREGATION"
    assert combine(total, where) == Transformation("INDIRECT", "FILTER", None, masking=True)
