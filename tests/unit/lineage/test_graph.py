from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.lineage.columns import WHOLE, combine, from_column_lineage, split
from headwater.lineage.facets import ColumnLineage, Lineage, Transformation, read
from headwater.lineage.graph import (
    Direction,
    Edge,
    MemoryGraph,
    Node,
    NodeKind,
    downstream,
    paths,
    upstream,
    walk,
)


def dataset(name: str) -> Node:
    return Node(NodeKind.DATASET, "s3://lake", name)


def job(name: str) -> Node:
    return Node(NodeKind.JOB, "jobs", name)


def column(name: str, field: str) -> Node:
    return Node(NodeKind.COLUMN, "s3://lake", name, field)


A, B, C, D = (dataset(name) for name in "abcd")
J, K = job("j"), job("k")
CHAIN = MemoryGraph([(A, J), (J, B), (B, K), (K, C), (D, K)])


def test_node_ids_are_marquez_ids() -> None:
    assert A.id == "dataset:s3://lake:a"
    assert column("a", "x").id == "datasetField:s3://lake:a:x"


def test_upstream_and_downstream() -> None:
    up = upstream(CHAIN, C)
    assert up.distance == {C: 0, K: 1, B: 2, D: 2, J: 3, A: 4}
    assert Edge(A, J) in up.edges
    assert downstream(CHAIN, A).nodes == [A, J, B, K, C]
    assert not up.cut


def test_a_walk_says_when_it_was_cut() -> None:
    assert upstream(CHAIN, C, depth=2).nodes == [C, K, B, D]
    assert upstream(CHAIN, C, depth=2).cut
    assert upstream(CHAIN, C, limit=3).cut
    assert not upstream(CHAIN, C, depth=4).cut


def test_a_cycle_ends() -> None:
    ring = MemoryGraph([(A, J), (J, B), (B, K), (K, A)])
    assert set(downstream(ring, A).nodes) == {A, J, B, K}


def test_paths_are_shortest_first() -> None:
    graph = MemoryGraph([(A, J), (J, B), (B, K), (K, C), (J, C)])
    assert paths(graph, A, C) == [[A, J, C], [A, J, B, K, C]]
    assert paths(graph, C, A) == []


def test_aliases_are_followed_for_datasets_and_their_columns() -> None:
    hive = Node(NodeKind.DATASET, "hive://meta:9083", "db.a")
    graph = MemoryGraph([(J, hive), (A, K)], aliases={hive: A})
    assert downstream(graph, J).nodes == [J, A, K]
    assert graph.resolve(hive._replace(kind=NodeKind.COLUMN, column="x")) == column("a", "x")
    looped = MemoryGraph(aliases={A: B, B: A})
    assert looped.resolve(A) in (A, B)


nodes = st.sampled_from([dataset(c) for c in "abcdef"])


@given(st.lists(st.tuples(nodes, nodes), max_size=12), nodes, nodes)
def test_walks_agree_in_both_directions(edges: list[tuple[Node, Node]], a: Node, b: Node) -> None:
    graph = MemoryGraph(edges)
    ahead, back = walk(graph, a, Direction.DOWNSTREAM), walk(graph, b, Direction.UPSTREAM)
    assert (b in ahead.distance) == (a in back.distance)
    assert bool(paths(graph, a, b)) == (b in ahead.distance)


def test_column_edges_are_read_once_each() -> None:
    facet = read(
        "columnLineage",
        b'{"fields":{"total":{"inputFields":['
        b'{"namespace":"n","name":"t","field":"a","transformations":[{"type":"DIRECT","subtype":"AGGREGATION"}]},'
        b'{"namespace":"n","name":"t","field":"a","transformations":[{"type":"INDIRECT","subtype":"FILTER"}]},'
        b'{"namespace":"n","name":"t","field":"b"}],"transformationType":"IDENTITY"}},'
        b'"dataset":[{"namespace":"n","name":"t","field":"k"}]}',
        ColumnLineage,
    )
    assert facet is not None
    edges = {(e.field, e.output): e for e in from_column_lineage(facet)}
    assert set(edges) == {("a", "total"), ("b", "total"), ("k", WHOLE)}
    assert [t.subtype for t in edges["a", "total"].transformations] == ["AGGREGATION", "FILTER"]
    assert edges["b", "total"].transformations == (Transformation("DIRECT", "IDENTITY"),)


def test_the_explicit_lineage_facet_pairs_targets_with_sources() -> None:
    facet = read(
        "lineage",
        b'{"entries":[{"namespace":"n","name":"out","type":"DATASET","fields":{"x":{"inputs":['
        b'{"namespace":"n","name":"in","type":"DATASET","field":"y"},{"type":"JOB"}]}}},'
        b'{"namespace":"n","name":"other","type":"DATASET"}]}',
        Lineage,
    )
    assert facet is not None
    assert [(e.name, e.field, e.output) for e in split(facet, "n", "out")] == [("in", "y", "x")]
    assert split(facet, "n", "other") == []


def test_steps_combine_to_the_stronger() -> None:
    identity, total = Transformation("DIRECT", "IDENTITY"), Transformation("DIRECT", "AGGREGATION")
    where = Transformation("INDIRECT", "FILTER", masking=True)
    assert combine(identity, total).subtype == "AGGREGATION"
    assert combine(total, where) == Transformation("INDIRECT", "FILTER", None, masking=True)
