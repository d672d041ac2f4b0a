"""`headwater lab graph` on a real lineage server."""

from __future__ import annotations

import json
import sys
import uuid
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.cli.main import main
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


class Graph:
    """The command in this process: of a process for each call, starting it is most."""

    def __init__(
        self, lab: Lab, capsys: pytest.CaptureFixture[str], patch: pytest.MonkeyPatch
    ) -> None:
        self.lab = lab
        self.capsys = capsys
        self.patch = patch

    def __call__(self, *words: str) -> tuple[int, str, str]:
        """Exit code, output and errors of `headwater lab graph`."""
        home = str(self.lab.home.root)
        self.patch.setattr(sys, "argv", ["headwater", "lab", "graph", "--home", home, *words])
        with pytest.raises(SystemExit) as end:
            main()
        assert isinstance(end.value.code, int)
        return (end.value.code, *self.capsys.readouterr())


@pytest.fixture
def graph(lab: Lab, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Graph:
    return Graph(lab, capsys, monkeypatch)


def test_jobs_come_in_the_order_data_takes(lab: Lab, graph: Graph) -> None:
    drawn = json.loads(graph("--json")[1])
    assert [job["job"] for job in drawn] == ["z-source", "load", "a-sum"]
    assert drawn[1] == {
        "job": "load",
        "state": "RUNNING",
        "reads": ["kafka orders"],
        "writes": ["warehouse default/bids", "warehouse default/orders"],
    }
    assert f"The page: {lab.context.url('server', '/graph')}" in graph()[1]
