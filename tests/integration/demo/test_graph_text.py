"""`headwater lab graph` on a real lineage server."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.lab.demo.lineage_client import LineageClient
from headwater.lab.lab import Lab

if TYPE_CHECKING:
    from collections.abc import Iterator

SCHEMA_URL = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    """A lab with nothing but a lineage server, which was told of three jobs in a row."""
    made = Lab(tmp_path_factory.mktemp("graph") / "lab")
    made.up(["server"])
    lineage = LineageClient(made.context)
    topic, table = lineage.name("kafka orders"), lineage.name("warehouse default/orders")
    source, total = lineage.name("postgres shop.public.orders"), lineage.name("warehouse sums")
    for job, reads, writes, column, how in (
        ("z-source", source, topic, "price", "IDENTITY"),
        ("load", topic, table, "price", "IDENTITY"),
        ("a-sum", table, total, "total", "AGGREGATION"),
    ):
        event = _event(job, reads, writes, column, how)
        httpx.post(f"{lineage.url}/api/v1/lineage", json=event).raise_for_status()
    event = _event("load", topic, lineage.name("warehouse default/bids"), "price", "IDENTITY")
    del event["outputs"][0]["facets"]
    httpx.post(f"{lineage.url}/api/v1/lineage", json=event).raise_for_status()
    yield made
    made.reset()


def _event(
    job: str, reads: tuple[str, str], writes: tuple[str, str], column: str, how: str
) -> dict[str, Any]:
    source = {"namespace": reads[0], "name": reads[1], "field": "price"}
    steps = [{"type": "DIRECT", "subtype": how}]
    lineage = {
        "_producer": "https://example.org",
        "_schemaURL": "https://openlineage.io/spec/facets/1-2-0/ColumnLineageDatasetFacet.json",
        "fields": {column: {"inputFields": [{**source, "transformations": steps}]}},
    }
    return {
        "eventType": "RUNNING",
        "eventTime": "2026-01-01T00:00:00Z",
        "producer": "https://example.org",
        "schemaURL": SCHEMA_URL,
        "run": {"runId": str(uuid.uuid4())},
        "job": {"namespace": "shop", "name": job},
        "inputs": [{"namespace": reads[0], "name": reads[1]}],
        "outputs": [
            {"namespace": writes[0], "name": writes[1], "facets": {"columnLineage": lineage}}
        ],
    }


def _graph(lab: Lab, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "headwater", "lab", "graph", "--home", str(lab.home.root), *words],
        env={**os.environ, "CI": "true"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_jobs_come_in_the_order_data_takes(lab: Lab) -> None:
    drawn = json.loads(_graph(lab, "--json").stdout)
    assert [job["job"] for job in drawn] == ["z-source", "load", "a-sum"]
    assert drawn[1] == {
        "job": "load",
        "state": "RUNNING",
        "reads": ["kafka orders"],
        "writes": ["warehouse default/bids", "warehouse default/orders"],
    }
    shown = _graph(lab).stdout
    assert f"The page: {lab.context.url('server', '/graph')}" in shown


def test_a_column_is_traced_back_to_its_origin(lab: Lab) -> None:
    shown = _graph(lab, "--column", "warehouse sums total").stdout.splitlines()
    assert shown == [
        "warehouse sums total",
        "← warehouse default/orders price   (aggregation, by a-sum)",
        "   ← kafka orders price   (identity, by load)",
        "      ← postgres shop.public.orders price   (identity, by z-source)",
    ]


def test_no_such_dataset_and_not_known_yet_are_two_answers(lab: Lab) -> None:
    for column, code, answer in (
        ("warehouse sums nothing", 2, "warehouse sums has no column nothing"),
        ("warehouse nothing price", 2, "lineage knows no dataset warehouse nothing"),
        ("warehouse default/bids price", 1, "columns of warehouse default/bids are not known yet"),
    ):
        refused = _graph(lab, "--column", column)
        assert refused.returncode == code
        assert answer in refused.stderr
    first = _graph(lab, "--column", "postgres shop.public.orders price")
    assert first.stdout.splitlines() == ["postgres shop.public.orders price"]
    assert _graph(lab, "--column", "nothing").returncode == 2
