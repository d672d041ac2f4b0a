"""Where tags get to: by hand, and the same as a naive search along values that nobody masked."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

from hypothesis import given
from hypothesis import strategies as st

from headwater.insight import Hand, handed, tag_reach, tags_on
from headwater.lineage.graph import MemoryGraph
from headwater.lineage.model import Transformation
from tests.properties import examples

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

Column = tuple[int, str]
COPY = Transformation("DIRECT", "IDENTITY")
HASH = Transformation("DIRECT", "TRANSFORMATION", masking=True)
FILTER = Transformation("INDIRECT", "FILTER")
ALL = 10_000


class Columns(MemoryGraph[Column]):
    """Columns, what becomes of each on its way, and the tags on them."""

    def __init__(
        self,
        edges: Mapping[tuple[Column, Column], tuple[Transformation, ...]],
        tags: Mapping[Column, set[str]] | None = None,
    ) -> None:
        super().__init__(edges)
        self._how = edges
        self._tags = tags or {}

    def how(self, source: Column, target: Column) -> tuple[Transformation, ...]:
        return self._how[source, target]

    def tags_set(self, columns: Collection[Column]) -> dict[Column, set[str]]:
        return {column: self._tags[column] for column in columns if column in self._tags}

    def tags_inside(self, columns: Collection[Column]) -> dict[Column, set[str]]:
        return {}


EMAIL, TOPIC, HASHED, TABLE, REPORT, ROWS = ((n, "c") for n in range(6))
CHAIN = Columns(
    {
        (EMAIL, TOPIC): (COPY,),
        (TOPIC, HASHED): (HASH,),
        (TOPIC, TABLE): (),
        (HASHED, REPORT): (COPY,),
        (TABLE, ROWS): (FILTER,),
    },
    {EMAIL: {"pii"}, HASHED: {"id"}},
)


def test_a_tag_goes_along_values_and_ends_where_they_are_masked() -> None:
    found = tag_reach(CHAIN, [EMAIL], depth=9, limit=ALL)
    assert set(found.reached) == {EMAIL, TOPIC, TABLE}
    assert found.stops == ((TOPIC, HASHED),)
    assert (found.path(TABLE), found.path(EMAIL)) == ((EMAIL, TOPIC, TABLE), (EMAIL,))
    assert not found.cut


def test_a_column_has_the_tags_of_what_it_is_made_of() -> None:
    found, cut = tags_on(CHAIN, [REPORT], depth=9, limit=ALL)
    assert not cut
    assert found["id"].path(REPORT) == (HASHED, REPORT)
    assert REPORT not in found["pii"].reached
    assert found["pii"].stops == ((TOPIC, HASHED),)


def test_a_cut_answer_says_so() -> None:
    assert tag_reach(CHAIN, [EMAIL], depth=1, limit=ALL).cut
    assert tag_reach(CHAIN, [EMAIL], depth=9, limit=2).cut
    assert tags_on(CHAIN, [REPORT], depth=1, limit=ALL)[1]


def test_a_value_that_also_goes_along_in_the_clear_is_not_masked() -> None:
    assert handed((HASH,)) is Hand.MASKED
    assert handed((HASH, FILTER)) is Hand.MASKED
    assert handed((HASH, COPY)) is Hand.VALUE
    assert handed((HASH, Transformation())) is Hand.VALUE
    assert handed(()) is Hand.VALUE
    assert handed((FILTER,)) is Hand.ROWS


columns = st.tuples(st.integers(0, 7), st.sampled_from("ab"))
hows = st.lists(st.sampled_from((COPY, HASH, FILTER, Transformation())), max_size=3).map(tuple)
estates = st.dictionaries(st.tuples(columns, columns), hows, max_size=40)


def clear(how: tuple[Transformation, ...]) -> bool:
    return not how or any(one.type != "INDIRECT" and not one.masking for one in how)


def reachable(
    edges: Mapping[tuple[Column, Column], tuple[Transformation, ...]], seeds: set[Column]
) -> set[Column]:
    """Every column that some chain of edges in the clear leads to, found the slow way."""
    found = set(seeds)
    while more := {b for (a, b), how in edges.items() if a in found and clear(how)} - found:
        found |= more
    return found


@given(estates, st.sets(columns, max_size=4))
@examples(400)
def test_a_tag_reaches_what_a_naive_search_reaches(
    edges: dict[tuple[Column, Column], tuple[Transformation, ...]], seeds: set[Column]
) -> None:
    graph = Columns(edges, {seed: {"pii"} for seed in seeds})
    wanted = reachable(edges, seeds)
    found = tag_reach(graph, sorted(seeds), depth=ALL, limit=ALL)
    assert set(found.reached) == wanted
    masked = {
        edge
        for edge, how in edges.items()
        if edge[0] in wanted and not clear(how) and any(one.type != "INDIRECT" for one in how)
    }
    assert set(found.stops) == masked
    for column in wanted:
        path = found.path(column)
        assert path[0] in seeds
        assert all(clear(edges[step]) for step in itertools.pairwise(path))
    # Asked from the other end, each column has the tag if and only if the tag gets there.
    for column in {end for edge in edges for end in edge} | seeds:
        tags, cut = tags_on(graph, [column], depth=ALL, limit=ALL)
        assert not cut
        assert ("pii" in tags and column in tags["pii"].reached) == (column in wanted)
