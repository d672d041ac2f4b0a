"""What changed between two moments."""

from __future__ import annotations

from headwater.insight import Moment, difference
from headwater.insight.difference import around
from headwater.lineage.graph import Edge, MemoryGraph, Node, NodeKind
from headwater.lineage.schema import Field, Schema

JOB = Node(NodeKind.JOB, "jobs", "load")
A, B, C = (Node(NodeKind.DATASET, "lake", name) for name in "abc")


def moment(*edges: tuple[Node, Node], **columns: str) -> Moment:
    schema = {B: Schema(tuple(Field(n, t) for n, t in columns.items()))} if columns else {}
    return around(MemoryGraph(edges), JOB, schema)


def test_edges_and_nodes_come_and_go() -> None:
    found = difference(moment((A, JOB), (JOB, B)), moment((A, JOB), (JOB, C)))
    assert (found.appeared, found.vanished) == ((C,), (B,))
    assert (found.added, found.removed) == ((Edge(JOB, C),), (Edge(JOB, B),))
    assert found


def test_nothing_changed_is_false() -> None:
    same = moment((A, JOB), (JOB, B), id="int")
    assert not difference(same, same)


def test_columns_are_compared_and_judged() -> None:
    before = moment((JOB, B), id="int", name="string")
    (wider,) = difference(before, moment((JOB, B), id="int", name="string", x="int")).schemas
    assert wider.compatible
    assert [str(c) for c in wider.changes] == ["x was added (int)"]
    (narrow,) = difference(before, moment((JOB, B), id="int")).schemas
    assert not narrow.compatible


def test_a_cut_side_is_told() -> None:
    graph = MemoryGraph([(A, JOB), (JOB, B)])
    assert difference(around(graph, A, depth=1), around(graph, A)).cut
