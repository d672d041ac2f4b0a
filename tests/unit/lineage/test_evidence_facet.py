"""The reader of `headwater_evidence` takes what has the published shape, whatever stands beside it."""

from __future__ import annotations

import pytest

from headwater.lineage.openlineage.evidence_facet import ReportedEdge, read_evidence

A, B = ({"namespace": "s3://lake", "name": name} for name in "ab")
ITEM = {"source": "config key", "detail": "topics", "observed": True}


def test_edges_datasets_and_an_own_list_are_read() -> None:
    edge = {
        "input": A,
        "output": B,
        "columns": False,
        "named": ["id"],
        "evidence": [{**ITEM, "more": 1}],
    }
    found = read_evidence(
        {"edges": [edge], "datasets": [{**A, "evidence": [ITEM]}], "evidence": [ITEM]}
    )
    a, b = ("s3://lake", "a"), ("s3://lake", "b")
    assert found.edges == [ReportedEdge(a, b, False, frozenset({"id"}), [ITEM])]
    assert (found.datasets, found.items, found.names) == ([(a, [ITEM])], [ITEM], {a, b})


@pytest.mark.parametrize("odd", [None, 7, "x", [1], {"edges": 1, "datasets": "x", "evidence": {}}])
def test_another_shape_reports_nothing(odd: object) -> None:
    assert read_evidence(odd) == ([], [], [])


def test_a_damaged_entry_costs_no_other() -> None:
    whole = {"input": A, "output": B}
    odd = [
        1,
        {"input": 3, "output": B},
        {"input": A},
        {**whole, "columns": 1, "named": 2, "evidence": [3]},
    ]
    found = read_evidence({"edges": odd, "datasets": [{"name": "a"}, {**B}]})
    ends = ("s3://lake", "a"), ("s3://lake", "b")
    assert found.edges == [ReportedEdge(*ends, None, frozenset(), [])]
    assert found.datasets == [(ends[1], [])]
