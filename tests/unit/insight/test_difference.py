"""What changed between two moments."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import Moment, around, difference
from headwater.lineage.graph import MemoryGraph
from headwater.lineage.schema import Field, Schema
from tests.properties import examples

from .nodes import Node, dataset, job

JOB = job("load")
A, B, C = map(dataset, "abc")


def moment(*edges: tuple[Node, Node], limit: int = 10, **columns: str) -> Moment[Node]:
    schema = {B: Schema(tuple(Field(n, t) for n, t in columns.items()))} if columns else {}
    found = around(MemoryGraph(edges), JOB, depth=2, limit=limit)
    return Moment(found.nodes, found.edges, schema, found.cut)


def test_edges_and_nodes_come_and_go() -> None:
    found = difference(moment((A, JOB), (JOB, B)), moment((A, JOB), (JOB, C)))
    assert (found.appeared, found.vanished) == ((C,), (B,))
    assert (found.added, found.removed) == (((JOB, C),), ((JOB, B),))
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
    edges = [(A, JOB), (A, job("other"))]
    assert difference(moment(*edges, limit=1), moment(*edges)).cut
    assert not difference(moment(*edges), moment(*edges)).cut


def test_columns_and_states_come_and_go() -> None:
    edge, other = (((A, "id"), (B, "id")), ((A, "x"), (B, "y")))
    before = Moment(columns=frozenset({edge}), states={JOB: "RUNNING", job("gone"): "RUNNING"})
    after = Moment(columns=frozenset({other}), states={JOB: "FAILED"})
    found = difference(before, after)
    assert (found.columns_added, found.columns_removed) == ((other,), (edge,))
    assert [(one.job, one.before, one.after) for one in found.states] == [
        (JOB, "RUNNING", "FAILED")
    ]
    assert found
    assert not difference(after, after)


NODES = st.sampled_from([*map(job, "xyz"), *map(dataset, "abcd")])
SCHEMAS = st.lists(
    st.builds(Field, st.sampled_from("pqr"), st.sampled_from(["int", "string"])),
    unique_by=lambda one: one.name,
).map(lambda fields: Schema(tuple(fields)))
COLUMNS = st.tuples(st.sampled_from([A, B, C]), st.sampled_from("pqr"))
MOMENTS = st.builds(
    Moment,
    st.frozensets(NODES),
    st.frozensets(st.tuples(NODES, NODES)),
    st.dictionaries(st.sampled_from([A, B, C]), SCHEMAS),
    st.booleans(),
    st.frozensets(st.tuples(COLUMNS, COLUMNS)),
    st.dictionaries(st.sampled_from([*map(job, "xyz")]), st.sampled_from(["RUNNING", "FAILED"])),
)


@examples(200)
@given(MOMENTS, MOMENTS)
def test_equal_moments_do_not_differ_and_others_differ_both_ways(
    one: Moment[Node], two: Moment[Node]
) -> None:
    assert not difference(one, one)
    there, back = difference(one, two), difference(two, one)
    assert (there.appeared, there.vanished) == (back.vanished, back.appeared)
    assert (there.added, there.removed) == (back.removed, back.added)
    assert (there.columns_added, there.columns_removed) == (
        back.columns_removed, back.columns_added,
    )  # fmt: skip
    assert set(there.appeared) == two.nodes - one.nodes
    assert set(there.added) == two.edges - one.edges
    assert set(there.columns_added) == two.columns - one.columns
    both = one.states.keys() & two.states.keys()
    changed = {node for node in both if one.states[node] != two.states[node]}
    assert {found.job for found in there.states} == changed
