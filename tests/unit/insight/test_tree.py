"""Lineage as a tree: whole, nearest first, and true to pairs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import tree
from headwater.lineage.graph import MemoryGraph
from tests.properties import examples

from .nodes import Node, dataset, job

if TYPE_CHECKING:
    from headwater.insight import LineageTree

A, B, C, D = map(dataset, "abcd")
COPY, JOIN, LOAD = map(job, ("copy", "join", "load"))


def drawn(found: LineageTree[Node]) -> list[str]:
    return [
        "  " * row.level + row.node.name + (" again" if row.repeated else "") for row in found.rows
    ]


def test_a_node_is_opened_where_it_is_nearest() -> None:
    # d comes from c by `load` at once, and by way of b and `copy` too.
    edges = [(A, JOIN), (JOIN, C), (C, COPY), (COPY, B), (B, LOAD), (C, LOAD), (LOAD, D)]
    up = tree(MemoryGraph(edges), D, depth=10, limit=100)
    assert drawn(up) == [
        "d", "  load", "    b", "      copy", "        c again", "    c", "      join", "        a",
    ]  # fmt: skip
    assert up.path(7) == (A, JOIN, C, LOAD, D)
    assert drawn(tree(MemoryGraph(edges), C, depth=2, limit=100, downstream=True)) == [
        "c", "  copy", "    b", "  load", "    d",
    ]  # fmt: skip


def test_a_job_is_opened_with_what_belongs_to_the_way_it_is_reached() -> None:
    # `copy` writes b from a and d from c; `join` reads both.
    out = dataset("out")
    edges = [(A, COPY), (C, COPY), (COPY, B), (COPY, D), (B, JOIN), (D, JOIN), (JOIN, out)]
    pairs = {COPY: {B: frozenset({A}), D: frozenset({C})}}
    up = tree(MemoryGraph(edges, pairs), out, depth=10, limit=100)
    assert drawn(up) == [
        "out", "  join", "    b", "      copy", "        a", "    d", "      copy", "        c",
    ]  # fmt: skip
    down = tree(MemoryGraph(edges, pairs), A, depth=10, limit=100, downstream=True)
    assert drawn(down) == ["a", "  copy", "    b", "      join", "        out"]


def test_a_ring_ends() -> None:
    found = tree(MemoryGraph([(A, COPY), (COPY, A)]), A, depth=10, limit=100)
    assert drawn(found) == ["a", "  copy", "    a again"]


def test_what_is_left_out_is_told() -> None:
    edges = [(dataset(f"d{n}"), LOAD) for n in range(9)]
    found = tree(MemoryGraph([*edges, (LOAD, A)]), A, depth=10, limit=5)
    assert found.cut
    assert len(found.rows) == 5


names = st.sampled_from("abcdef")
edges = st.lists(
    st.one_of(
        st.tuples(names.map(dataset), names.map(job)), st.tuples(names.map(job), names.map(dataset))
    ),
    max_size=25,
)


@pytest.mark.parametrize("down", [False, True])
def test_a_tree_holds_what_can_be_reached(down: bool) -> None:
    @examples(150)
    @given(edges, st.integers(0, 8), st.data())
    def check(drawn: list[tuple[Node, Node]], depth: int, data: st.DataObject) -> None:
        start = dataset("a")
        outputs = sorted({b for a, b in drawn if a == job("a")})
        inputs = sorted({a for a, b in drawn if b == job("a")})
        feeds = {
            out: frozenset(data.draw(st.sets(st.sampled_from(inputs)))) if inputs else frozenset()
            for out in outputs
        }
        pairs = {job("a"): feeds} if data.draw(st.booleans()) else {}
        found = tree(MemoryGraph(drawn, pairs), start, depth=depth, limit=1_000, downstream=down)
        # Brute force: follow every path, job by the dataset it was entered through.
        reached, frontier = {start}, {(start, start)}
        for _ in range(depth):
            following = set()
            for node, entry in frontier:
                for a, b in drawn:
                    near, far = (a, b) if down else (b, a)
                    fed = pairs.get(node)
                    allowed = fed is None or (
                        entry in fed.get(far, ()) if down else far in fed.get(entry, ())
                    )
                    if near == node and allowed:
                        following.add((far, node))
            frontier = following
            reached |= {node for node, _ in frontier}
        assert {row.node for row in found.rows} == reached
        for number, row in enumerate(found.rows):
            path = found.path(number)
            assert len(path) == row.level + 1 <= depth + 1
            for near, far in zip(path[1:], path, strict=False):
                assert ((near, far) if down else (far, near)) in drawn

    check()
