"""What other servers get wrong, line by line, and this one does not."""

from __future__ import annotations

import json
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote
from uuid import UUID

import httpx
import pytest

from .conftest import dataset_url, job_url
from .making import at, dataset, event, facet, run_id

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Client, Process

ROOT = Path(__file__).parents[3]
KAFKA = "kafka://k1:9092"


@pytest.mark.parametrize(
    "run",
    [
        "f81d4fae-7dec-11d0-a765-00a0c91e6bf6",
        "6fa459ea-ee8a-3ca4-894e-db77e160355e",
        "16fd2706-8baf-433b-82eb-8c7fada847da",
        "886313e1-3b8a-5372-9b90-0c9aee199e5d",
        "0190a5b6-3b1e-7000-8000-000000000000",
        "0190A5B6-3B1E-7000-8000-00000000000A",
    ],
)
def test_any_version_of_a_uuid_is_a_run(client: Client, run: str) -> None:
    client.post({**event("START", 0), "run": {"runId": run}})
    assert client.get(f"/api/v1/jobs/runs/{run}")["id"] == str(UUID(run))


def test_a_job_event_and_a_dataset_event_are_taken(client: Client) -> None:
    client.post(
        {"eventTime": at(0), "job": {"namespace": "jobs", "name": "static"},
         "inputs": [dataset("a")], "outputs": [dataset("b")]},
        {"eventTime": at(0), "dataset": dataset("lonely", documentation=facet(description="hm"))},
    )  # fmt: skip
    found = client.get(job_url("static"))
    assert ([d["name"] for d in found["inputs"]], found["latestRun"]) == (["a"], None)
    assert client.get(dataset_url("lonely"))["description"] == "hm"


def test_a_missing_event_type_and_words_in_lower_case_are_taken(client: Client) -> None:
    made = event("START", 0, job_facets={"jobType": facet(processingType="streaming",
                                                          integration="spark")})  # fmt: skip
    client.post({k: v for k, v in made.items() if k != "eventType"})
    client.post({**event("running", 1), "eventType": "running"})
    assert client.get(job_url("load"))["type"] == "STREAM"
    assert client.get(f"/api/v1/jobs/runs/{run_id(1)}")["state"] == "RUNNING"


@pytest.mark.parametrize("name", ["system.events", "sys.orders", "a.system.b", "SYSTEM", "sys"])
def test_names_with_system_in_them_stay(client: Client, name: str) -> None:
    client.post(event("START", 0, inputs=[dataset(name, KAFKA)], outputs=["b"]))
    found = client.get(job_url("load"))
    assert [d["name"] for d in found["inputs"]] == [name]
    node = f"dataset:{KAFKA}:{name}"
    graph = client.get("/api/v1/lineage", nodeId=node)["graph"]
    assert node in {n["id"] for n in graph}


def test_names_that_differ_in_case_are_two(client: Client) -> None:
    client.post(event("START", 0, run=1, outputs=["Orders"]))
    client.post(event("START", 0, run=2, job="LOAD", outputs=["orders"]))
    space = quote("s3://lake", safe="")
    found = client.get(f"/api/v1/namespaces/{space}/datasets")["datasets"]
    assert [d["name"] for d in found] == ["Orders", "orders"]
    assert [d["name"] for d in client.get(job_url("LOAD"))["outputs"]] == ["orders"]


def test_facets_nobody_knows_are_kept_as_they_came(client: Client) -> None:
    odd = facet(nested={"deep": [1, 2.5, None, {"ü": "\U0001f30a"}]}, number=1e300)
    client.post(
        event(
            "START", 0, outputs=[dataset("b", odd=odd)], job_facets={"odd": odd},
            run_facets={"odd": odd},
        )
    )  # fmt: skip
    for path in (dataset_url("b"), job_url("load"), f"/api/v1/jobs/runs/{run_id(1)}"):
        assert client.get(path)["facets"]["odd"] == odd


def test_a_stream_without_a_recent_event_still_has_its_lineage(client: Client) -> None:
    kind = {"jobType": facet(processingType="STREAMING", integration="SPARK")}
    client.post(event("START", 0, inputs=["a"], outputs=["b"], job_facets=kind))
    graph = client.get("/api/v2/map", node="dataset:s3://lake:a")
    assert len(graph["edges"]) == 2
    later = client.get("/api/v2/map", node="dataset:s3://lake:a", at="now")
    assert len(later["edges"]) == 2
    before = client.get("/api/v2/map", node="dataset:s3://lake:a", at="2025-01-01T00:00:00Z")
    assert before["edges"] == []


def test_depth_goes_beyond_ten_and_counts_jobs(client: Client) -> None:
    lines = [
        json.dumps(event("START", n, run=n, job=f"j{n}", inputs=[f"d{n}"], outputs=[f"d{n + 1}"]))
        for n in range(40)
    ]
    assert client.call("POST", "/api/v2/events", content="\n".join(lines)).status_code == 201

    def reached(depth: int) -> int:
        graph: list[Any] = client.get("/api/v1/lineage", nodeId="job:jobs:j0", depth=depth)["graph"]
        return sum(1 for node in graph if node["type"] == "JOB")

    assert [reached(depth) for depth in (0, 1, 10, 25, 39)] == [1, 2, 11, 26, 40]


def test_a_spark_job_without_a_parent_costs_nobody_anything(client: Client) -> None:
    spark = {"jobType": facet(processingType="BATCH", integration="SPARK", jobType="SQL_JOB")}
    made = [event("START", n, run=n, job=f"app.j{n}", job_facets=spark) for n in range(3)]
    made[1]["run"]["facets"] = {"parent": facet(job={"namespace": "n"}, run=None)}
    answer = client.call("POST", "/api/v2/events", content=json.dumps(made)).json()
    statuses = [result["status"] for result in answer["results"]]
    assert (statuses[0], statuses[2]) == (201, 201)
    assert statuses[1] in (201, 422)


def test_a_run_of_any_month_is_kept(client: Client) -> None:
    for n, year in enumerate((1999, 2024, 2026), 1):
        client.post({**event("START", 0, run=n), "eventTime": f"{year}-07-31T00:00:00+02:00"})
    assert client.get(job_url("load", "runs"))["totalCount"] == 3


def test_tags_and_owners_that_producers_send_are_shown(client: Client) -> None:
    marks = facet(
        tags=[
            {"key": "pii", "value": "true", "source": "USER"},
            {"key": "team", "value": "orders"},
            {"key": "secret", "value": "", "field": "id"},
        ]
    )
    owners = facet(owners=[{"name": "team:orders", "type": "MAINTAINER"}])
    fields = facet(fields=[{"name": "id", "type": "int"}])
    made = dataset("b", tags=marks, ownership=owners, schema=fields)
    client.post(event("START", 0, outputs=[made], job_facets={"tags": marks, "ownership": owners}))
    client.call("POST", dataset_url("b", "tags", "pii"))
    found = client.get(dataset_url("b"))
    assert found["tags"] == ["pii", "team=orders"]
    assert found["fields"][0]["tags"] == ["secret"]
    assert found["facets"]["ownership"]["owners"] == owners["owners"]
    assert client.get(job_url("load"))["tags"] == ["pii", "secret", "team=orders"]


def test_the_server_starts_as_it_is_installed(
    tmp_path: Path, launch: Callable[..., Process], monkeypatch: pytest.MonkeyPatch
) -> None:
    command = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("headwater-*.whl")
    installed = tmp_path / "installed"
    with zipfile.ZipFile(wheel) as packed:
        packed.extractall(installed)
    # What is installed must be enough: nothing of the source tree is beside it.
    monkeypatch.setenv("PYTHONPATH", str(installed))
    where = [sys.executable, "-c", "import headwater; print(headwater.__file__)"]
    assert (
        str(installed) in subprocess.run(where, capture_output=True, text=True, check=True).stdout
    )
    server = launch()
    built = (ROOT / "src" / "headwater" / "server" / "page" / "index.html").exists()
    assert httpx.get(server.url).status_code == (200 if built else 404)
    for path in ("/api/docs", "/api/v2/openapi.json"):
        assert httpx.get(server.url + path).status_code == 200
    assert httpx.post(f"{server.url}/api/v1/lineage", json=event("START", 0)).status_code == 201
