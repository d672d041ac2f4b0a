"""Where the lake's tables stand, and how rows are replaced."""

from __future__ import annotations

import importlib
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

offsets = st.dictionaries(
    st.sampled_from(["t", "u"]), st.dictionaries(st.sampled_from("012"), st.integers(0, 9))
)


def program() -> Any:
    return importlib.import_module("lake")


@given(offsets, offsets)
def test_a_position_never_goes_back(one: Any, other: Any) -> None:
    further = program().further
    found = further(one, other)
    assert further(other, one) == found
    assert further(found, one) == found == further(found, other)
    for given_offsets in (one, other):
        for topic, parts in given_offsets.items():
            assert all(found[topic][part] >= offset for part, offset in parts.items())


def test_rows_are_merged_by_their_key() -> None:
    sql = program().merge_sql("c.n.edges", "source", ["node", "k"], ("node", "k", "v"))
    assert sql.startswith("MERGE INTO c.n.edges t USING source s ON t.node = s.node AND t.k = s.k ")
    assert "WHEN MATCHED AND s.gone THEN DELETE WHEN MATCHED THEN UPDATE SET" in sql
    assert "WHEN NOT MATCHED AND NOT s.gone THEN INSERT (node, k, v)" in sql
