"""Facets that are not quite as they should be: what fits is kept, and nothing else is."""

from __future__ import annotations

import json
from typing import Any

import pytest

from headwater.lineage.openlineage import facets


def job_type(**pattern: Any) -> facets.JobTypeFacet | None:
    body = {"processingType": "STREAMING", "integration": "X", "emissionPattern": pattern}
    return facets.read(json.dumps(body).encode(), facets.JobTypeFacet)


@pytest.mark.parametrize(
    ("window", "interval"),
    [(300, 300_000_000), (0.5, 1_000_000), ("300", 300_000_000), (1e308, None), (1e30, None),
     (-5, None), (0, None), ("PT5M", None), ({}, None), (None, None)],
)  # fmt: skip
def test_a_promised_interval(window: Any, interval: int | None) -> None:
    found = job_type(eventTrigger="PERIODIC", windowDuration=window)
    assert found is not None
    assert found.processingType == "STREAMING"
    assert found.emissionPattern is not None
    assert found.emissionPattern.interval == interval


def test_only_a_periodic_job_promises_one() -> None:
    found = job_type(eventTrigger="EVENT_BASED", windowDuration=300)
    assert found is not None
    assert found.emissionPattern is not None
    assert found.emissionPattern.interval is None


@pytest.mark.parametrize(
    ("name", "kind", "body", "expected"),
    [
        ("jobType", facets.JobTypeFacet, {"processingType": "BATCH", "emissionPattern": "often"},
         facets.JobTypeFacet("BATCH")),
        ("tags", facets.TagsFacet,
         {"tags": [{"key": "pii", "value": True}, {"value": "x"}, 7, {"key": "n", "value": 3}]},
         facets.TagsFacet([facets.TagEntry("pii"), facets.TagEntry("n")])),
        ("documentation", facets.DocumentationFacet, {"description": ["a"]}, facets.DocumentationFacet()),
        ("parent", facets.ParentFacet, {"run": {"runId": "a"}, "job": "b"},
         facets.ParentFacet(run=facets._RunRef("a"))),
        ("symlinks", facets.SymlinksFacet, {"identifiers": [{"namespace": "a"}]}, facets.SymlinksFacet([])),
        ("headwater_cluster", facets.ClusterFacet, {"clusterId": []}, None),
        ("headwater_cluster", facets.ClusterFacet, {"clusterId": "c", "bootstrap": "a:1"},
         facets.ClusterFacet("c")),
        ("dataSource", facets.DataSourceFacet, ["a"], None),
    ],
)  # fmt: skip
def test_what_fits_is_kept(name: str, kind: Any, body: Any, expected: Any) -> None:
    assert facets.read(json.dumps(body).encode(), kind) == expected


def test_one_time_that_cannot_be_read_does_not_cost_the_other() -> None:
    body = b'{"nominalStartTime":"2026-03-01T09:00:00Z","nominalEndTime":"tomorrow"}'
    found = facets.read(body, facets.NominalTimeFacet)
    assert found is not None
    assert found.nominalStartTime is not None
    assert found.nominalEndTime is None


def test_no_json_is_no_facet() -> None:
    assert facets.read(b"{", facets.TagsFacet) is None
