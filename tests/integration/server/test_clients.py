"""Real clients against a real server process."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest
from marquez_client import MarquezClient
from marquez_client.models import DatasetId, DatasetType, JobType
from openlineage.client import OpenLineageClient
from openlineage.client.event_v2 import (
    InputDataset,
    Job,
    OutputDataset,
    Run,
    RunEvent,
    RunState,
)
from openlineage.client.facet_v2 import DatasetFacet, schema_dataset
from openlineage.client.transport.http import HttpConfig, HttpTransport
from openlineage.client.uuid import generate_new_uuid

if TYPE_CHECKING:
    from collections.abc import Callable


@pytest.fixture
def server(launch: Callable[..., Any]) -> Any:
    return launch()


def test_openlineage_python_sends_and_marquez_python_reads(server: Any) -> None:
    config = HttpConfig.from_dict({"url": server.url, "compression": "gzip"})
    client = OpenLineageClient(transport=HttpTransport(config))
    columns = [schema_dataset.SchemaDatasetFacetFields(name="id", type="int")]
    facets: dict[str, DatasetFacet] = {"schema": schema_dataset.SchemaDatasetFacet(fields=columns)}
    run = str(generate_new_uuid())
    for state, time in ((RunState.START, "00"), (RunState.COMPLETE, "30")):
        client.emit(
            RunEvent(
                eventType=state,
                eventTime=f"2026-01-01T00:00:{time}.000000+00:00",
                run=Run(runId=run),
                job=Job(namespace="shop", name="load"),
                inputs=[InputDataset(namespace="postgres://db:5432", name="shop.public.orders")],
                outputs=[OutputDataset(namespace="s3://lake", name="orders", facets=facets)],
            )
        )
    marquez = MarquezClient(url=server.url)
    assert [n["name"] for n in marquez.list_namespaces()["namespaces"]] == [
        "postgres://db:5432",
        "s3://lake",
        "shop",
    ]
    job = marquez.get_job("shop", "load")
    assert (job["latestRun"]["id"], job["latestRun"]["state"]) == (run, "COMPLETED")
    table = marquez.get_dataset("s3://lake", "orders")
    assert [f["name"] for f in table["fields"]] == ["id"]
    assert marquez.get_job_run(run)["durationMs"] == 30_000
    assert len(marquez.list_datasets("s3://lake")["datasets"]) == 1
    versions = marquez.list_dataset_versions("s3://lake", "orders")["versions"]
    found = marquez.get_dataset_version("s3://lake", "orders", versions[0]["version"])
    assert found["createdByRun"]["id"] == run


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_marquez_python_writes(server: Any) -> None:
    marquez = MarquezClient(url=server.url)
    marquez.create_namespace("team", "ann", "a team")
    marquez.create_source("db", "POSTGRESQL", "postgres://db:5432/shop")
    made = marquez.create_dataset(
        namespace_name="team",
        dataset_name="orders",
        dataset_type=DatasetType.DB_TABLE,
        dataset_physical_name="public.orders",
        source_name="db",
        fields=[{"name": "id", "type": "INTEGER"}],
    )
    assert made["sourceName"] == "db"
    job = marquez.create_job(
        "team",
        "copy",
        JobType.BATCH,
        inputs=[DatasetId("team", "orders")],
    )
    assert job["inputs"] == [{"namespace": "team", "name": "orders"}]
    run = str(generate_new_uuid())
    marquez.create_job_run("team", "copy", run_id=run, nominal_start_time="2026-01-01T00:00:00Z")
    assert marquez.get_job_run(run)["nominalStartTime"] == "2026-01-01T00:00:00Z"
    assert marquez.mark_job_run_as_started(run)["state"] == "RUNNING"
    assert marquez.mark_job_run_as_failed(run)["state"] == "FAILED"
    assert [r["id"] for r in marquez.list_job_runs("team", "copy")["runs"]] == [run]
    assert marquez.tag_dataset("team", "orders", "PII")["tags"] == ["PII"]


def test_a_server_stops_in_order(server: Any) -> None:
    response = httpx.post(f"{server.url}/api/v1/lineage", content=_event(1))
    assert response.status_code == 201
    assert server.stop() in (0, -15)


@pytest.mark.full
def test_kill_minus_nine_loses_nothing_acknowledged(server: Any) -> None:
    acknowledged: list[str] = []
    for round_number in range(3):
        kept: list[str] = []
        with httpx.Client(base_url=server.url) as http:
            for i in range(60):
                run = f"00000000-0000-4000-8000-{round_number:04d}{i:08d}"
                assert http.post("/api/v1/lineage", content=_event(i, run)).status_code == 201
                kept.append(run)
        server.kill()
        acknowledged += kept
        server.start()
        found = httpx.get(f"{server.url}/api/v1/events/lineage?limit=1000").json()
        runs = [e["run"]["runId"] for e in found["events"]]
        assert sorted(runs) == sorted(acknowledged)


def _event(second: int, run: str = "00000000-0000-4000-8000-000000000001") -> str:
    return json.dumps(
        {
            "eventType": "START",
            "eventTime": f"2026-01-01T00:00:{second:02d}Z",
            "producer": "https://example.com",
            "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/RunEvent",
            "run": {"runId": run},
            "job": {"namespace": "shop", "name": "load"},
            "outputs": [{"namespace": "s3://lake", "name": quote(f"t{second % 7}")}],
        }
    )
