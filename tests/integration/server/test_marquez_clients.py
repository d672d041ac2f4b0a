"""What Marquez's own clients rely on beyond the shape of an answer, on both stores.

The web page breaks on an empty list of runs and on events without a run; the Java client throws on
types and locations that it does not know.
"""

from __future__ import annotations

from typing import Any

import pytest

from headwater.lineage.openlineage.repairs import (
    NAMED_RUN,
    NO_OBJECT,
    NO_ZONE,
    OTHER_TYPE,
    to_run_uuid,
)
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild, verify

from .conftest import Client, dataset_url, job_url
from .making import at, columns, dataset, event, facet, run_id, schema

SPEC = "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/"


def job_event(job: str, **ends: Any) -> dict[str, Any]:
    made = event("START", 1, job=job, **ends)
    del made["run"], made["eventType"]
    return {**made, "schemaURL": SPEC + "JobEvent"}


def dataset_event(**facets: Any) -> dict[str, Any]:
    return {
        "eventTime": at(2), "producer": "https://example.com/p", "schemaURL": SPEC + "DatasetEvent",
        "dataset": dataset("alone", **facets),
    }  # fmt: skip


def runs_of(job: dict[str, Any]) -> list[str] | None:
    return None if job["latestRuns"] is None else [run["id"] for run in job["latestRuns"]]


def test_a_job_carries_its_ten_latest_runs_or_null(client: Client) -> None:
    for n in range(12):
        client.post(event("START", 2 * n, run=n), event("COMPLETE", 2 * n + 1, run=n))
    client.post(job_event("declared", inputs=["a"], outputs=["b"]))
    newest = [run_id(n) for n in range(11, 1, -1)]
    for path in ("/api/v1/jobs", "/api/v1/namespaces/jobs/jobs"):
        found = {job["name"]: job for job in client.get(path)["jobs"]}
        assert runs_of(found["load"]) == newest
        assert found["load"]["latestRun"] == found["load"]["latestRuns"][0]
        assert (found["declared"]["latestRun"], runs_of(found["declared"])) == (None, None)
    assert runs_of(client.get(job_url("load"))) == newest
    assert runs_of(client.get(job_url("declared"))) is None


def test_latest_runs_show_what_changed_since_they_were_asked_for(client: Client) -> None:
    def shown() -> list[tuple[str, int]]:
        (job,) = client.get("/api/v1/jobs")["jobs"]
        assert job["latestRun"] == job["latestRuns"][0]
        return [(run["state"], len(run["inputDatasetVersions"])) for run in job["latestRuns"]]

    client.post(event("START", 1, run=1, inputs=["a", "b"]), event("START", 2, run=2))
    assert shown() == [("RUNNING", 0), ("RUNNING", 2)]
    client.post(event("COMPLETE", 3, run=1))
    assert shown() == [("RUNNING", 0), ("COMPLETED", 2)]
    purge(client.store, PurgeTarget("dataset", "s3://lake", "a"))
    assert shown() == [("RUNNING", 0), ("COMPLETED", 1)]


def test_many_jobs_have_each_their_runs(client: Client) -> None:
    for n in range(120):
        client.post(event("START", n, run=n, job=f"j{n}"))
    jobs = client.get("/api/v1/jobs", limit=1000)["jobs"]
    assert [(job["name"], runs_of(job)) for job in jobs] == [
        (f"j{n}", [run_id(n)]) for n in range(119, -1, -1)
    ]


def test_jobs_of_a_namespace_come_newest_first(client: Client) -> None:
    client.post(*(event("START", n, run=n, job=job) for n, job in enumerate("bca")))
    client.post(event("COMPLETE", 9, run=0, job="b"))
    names = [job["name"] for job in client.get("/api/v1/namespaces/jobs/jobs")["jobs"]]
    assert names == ["b", "a", "c"]
    page = client.get("/api/v1/namespaces/jobs/jobs", limit=1, offset=1)
    assert ([job["name"] for job in page["jobs"]], page["totalCount"]) == (["a"], 3)


def test_events_are_those_of_runs(client: Client) -> None:
    client.post(event("START", 0), job_event("declared", outputs=["b"]), dataset_event())
    found = client.get("/api/v1/events/lineage")
    assert ([e["run"]["runId"] for e in found["events"]], found["totalCount"]) == ([run_id(1)], 1)


@pytest.mark.parametrize(
    ("processing", "shown"),
    [("BATCH", "BATCH"), ("STREAMING", "STREAM"), ("STREAM", "STREAM"), ("SERVICE", "SERVICE"),
     ("NONE", "BATCH"), ("streaming", "STREAM"), (None, "BATCH")],
)  # fmt: skip
def test_a_job_has_a_type_that_marquez_knows(
    client: Client, processing: str | None, shown: str
) -> None:
    kind = {"jobType": facet(processingType=processing, integration="X")} if processing else {}
    client.post(event("START", 0, job_facets=kind, outputs=["b"]))
    nodes = client.get("/api/v1/lineage", nodeId="job:jobs:load")["graph"]
    assert {n["data"]["type"] for n in nodes if n["type"] == "JOB"} == {shown}
    assert client.get("/api/v1/jobs")["jobs"][0]["type"] == shown
    assert client.get(job_url("load"))["type"] == shown
    assert client.get("/api/v2beta/search/jobs", q="load")["hits"][0]["type"] == shown


@pytest.mark.parametrize(
    ("namespace", "declared", "shown", "own"),
    [
        ("s3://lake", None, "DB_TABLE", "FILE"),
        ("s3://lake", "FILE", "DB_TABLE", "FILE"),
        ("s3://lake", "MODEL", "DB_TABLE", "MODEL"),
        ("kafka://k:9092", None, "STREAM", "STREAM"),
        ("kafka://k:9092", "TOPIC", "STREAM", "STREAM"),
        ("postgres://db:5432", "VIEW", "DB_TABLE", "DB_TABLE"),
    ],
)
def test_a_dataset_has_a_type_that_marquez_knows(
    client: Client, namespace: str, declared: str | None, shown: str, own: str
) -> None:
    kind = {"datasetType": facet(datasetType=declared)} if declared else {}
    client.post(event("START", 0, outputs=[dataset("b", namespace, **kind)]))
    one = client.get(dataset_url("b", namespace=namespace))
    nodes = client.get("/api/v1/lineage", nodeId="job:jobs:load")["graph"]
    (version,) = client.get(dataset_url("b", "versions", namespace=namespace))["versions"]
    assert {n["data"]["type"] for n in nodes if n["type"] == "DATASET"} == {shown}
    assert (one["type"], version["type"]) == (shown, shown)
    assert ("schemaLocation" in one) == (shown == "STREAM")
    page = dataset_url("b", namespace=namespace).replace("/v1/namespaces/", "/v2/datasets/")
    assert client.get(page.replace("/datasets/b", "/b"))["type"] == own


def test_put_keeps_the_type_and_the_physical_name(client: Client) -> None:
    body = {
        "type": "STREAM", "physicalName": "shop.orders.v1", "sourceName": "kafka",
        "schemaLocation": "http://registry:8081/schemas/ids/5", "fields": [{"name": "id"}],
    }  # fmt: skip
    made = client.call("PUT", dataset_url("orders", namespace="shop"), json=body)
    assert made.status_code == 200, made.text
    for one in (made.json(), client.get(dataset_url("orders", namespace="shop"))):
        assert {k: one[k] for k in ("type", "physicalName", "schemaLocation")} == {
            k: body[k] for k in ("type", "physicalName", "schemaLocation")
        }
    client.call("PUT", dataset_url("t", namespace="shop"), json={"type": "DB_TABLE"})
    one = client.get(dataset_url("t", namespace="shop"))
    assert (one["type"], one["physicalName"]) == ("DB_TABLE", "t")
    client.post(event("START", 5, outputs=[dataset("orders", "shop", schema=schema("id"))]))
    one = client.get(dataset_url("orders", namespace="shop"))
    assert (one["type"], one["physicalName"]) == ("STREAM", "shop.orders.v1")


def test_the_parent_of_a_job_is_filled_in(client: Client) -> None:
    def child(name: str, parent: str | None, run: int) -> dict[str, Any]:
        named = {"namespace": "jobs", "name": parent}
        facets = {"parent": facet(run={"runId": run_id(99)}, job=named)} if parent else {}
        return event("START", run, run=run, job=name, run_facets=facets, outputs=["b"])

    client.post(
        child("app.write", "app", 1), child("alone", None, 2), child("dag.task", "dag.task", 3)
    )
    found = {job["name"]: job for job in client.get("/api/v1/jobs")["jobs"]}
    told = {n: (j["parentJobName"], j["simpleName"]) for n, j in found.items()}
    assert told == {
        "app.write": ("app", "write"), "alone": (None, "alone"), "dag.task": ("dag", "task"),
    }  # fmt: skip
    graph = client.get("/api/v1/lineage", nodeId="job:jobs:app.write")["graph"]
    data = {n["data"]["name"]: n["data"] for n in graph}
    assert data["app.write"]["parentJobName"] == "app"


@pytest.mark.parametrize(
    ("url", "shown"),
    [("https://git.example/a.py", True), ("git@git.example:shop/jobs.git", False), ("", False)],
)
def test_a_location_is_one_that_java_reads(client: Client, url: str, shown: bool) -> None:
    client.post(
        event("START", 0, job_facets={"sourceCodeLocation": facet(type="git", url=url)}),
    )
    assert client.get(job_url("load"))["location"] == (url if shown else None)
    assert client.get("/api/v2/jobs/jobs/load")["location"] == url


def test_dates_are_taken_beside_moments(client: Client) -> None:
    client.post(event("START", 0, job="sort", outputs=["orders"]))
    for query, count in (
        ({"after": "2020-01-01"}, 2), ({"before": "2020-01-01"}, 0), ({"after": "2026-01-02"}, 0),
        ({"after": "2025-12-31T23:00:00+00:00"}, 2), ({"before": "2026-01-02"}, 2),
    ):  # fmt: skip
        assert client.get("/api/v1/search", q="or", **query)["totalCount"] == count, query
    for wrong in ("2020-13-01", "2020-1-1", "soon"):
        assert client.call("GET", f"/api/v1/search?q=b&after={wrong}").status_code == 400


def test_what_names_an_unknown_field_is_404(client: Client) -> None:
    nested = facet(fields=[{"name": "o", "fields": [{"name": "p"}]}, {"name": "id"}])
    client.post(
        event("START", 0, inputs=["a"],
              outputs=[dataset("b", schema=nested, columnLineage=columns(id=("a", "x")))]),
    )  # fmt: skip
    for field, code in (("id", 201), ("o.p", 201), ("nope", 404)):
        url = dataset_url("b", "fields", field, "tags", "PII")
        assert client.call("POST", url).status_code == code, field
        assert client.call("DELETE", url).status_code == (200 if code == 201 else 404), field
    missing = client.call("POST", dataset_url("b", "fields", "nope", "tags", "PII")).json()
    assert missing["message"] == "Field 'nope' not found for dataset 'b'."
    assert client.call("POST", dataset_url("no", "fields", "id", "tags", "X")).status_code == 404
    for node, code in (
        ("b:id", 200), ("b:o.p", 200), ("a:x", 200), ("b:nope", 404), ("a:nope", 404),
    ):  # fmt: skip
        path = f"/api/v1/column-lineage?nodeId=datasetField:s3://lake:{node}"
        assert client.call("GET", path).status_code == code, node


@pytest.mark.parametrize("path", ["/api/v1/lineage", "/api/v1/column-lineage"])
@pytest.mark.parametrize("query", ["", "?nodeId=", "?depth=3"])
def test_lineage_needs_a_node(client: Client, path: str, query: str) -> None:
    assert client.call("GET", path + query).status_code == 400


@pytest.mark.parametrize(
    ("path", "allowed"),
    [
        ("/api/v1/lineage", "GET, HEAD, OPTIONS, POST"),
        ("/api/v1/namespaces/jobs", "DELETE, GET, HEAD, OPTIONS, PUT"),
        (f"/api/v1/jobs/runs/{run_id(1)}/start", "OPTIONS, POST"),
    ],
)
def test_options_lists_the_methods(client: Client, path: str, allowed: str) -> None:
    answer = client.call("OPTIONS", path)
    assert (answer.status_code, answer.headers["allow"]) == (200, allowed)
    assert client.call("OPTIONS", "/api/v1/nowhere").status_code == 404
    assert client.call("PATCH", path).status_code == 405


def test_events_that_marquez_forgives_are_taken_and_counted(client: Client) -> None:
    loose = event("START", 0, outputs=[dataset("b", schema=schema("id"), odd=5)])
    loose["run"]["runId"] = "nightly-42"
    loose["eventTime"] = "2026-01-01T00:00:00"
    client.post(loose, loose, {**loose, "eventType": "SKIPPED"})
    assert client.get("/api/v2/health")["assumed"] == {
        NAMED_RUN: 2, NO_ZONE: 2, NO_OBJECT: 2, OTHER_TYPE: 1,
    }  # fmt: skip
    doubts = [f for f in client.get("/api/v2/doctor")["findings"] if f["kind"] == "assumed"]
    assert sorted(f["count"] for f in doubts) == [1, 2, 2, 2]
    reasons = (NAMED_RUN, NO_ZONE, NO_OBJECT, OTHER_TYPE)
    assert all(sum(reason in f["text"] for f in doubts) == 1 for reason in reasons)
    named = str(to_run_uuid("nightly-42"))
    for name in (named, "nightly-42"):
        run = client.get(f"/api/v1/jobs/runs/{name}")
        assert (run["id"], run["state"]) == (named, "RUNNING")
        assert run["startedAt"] == "2026-01-01T00:00:00Z"
    assert client.call("GET", "/api/v1/jobs/runs/nightly-43").status_code == 404
    assert set(client.get(dataset_url("b"))["facets"]) == {"schema"}
    sent = client.get("/api/v1/events/lineage")["events"]
    assert {(e["eventType"], e["eventTime"], e["run"]["runId"]) for e in sent} == {
        ("START", "2026-01-01T00:00:00Z", named), ("OTHER", "2026-01-01T00:00:00Z", named),
    }  # fmt: skip
    metrics = client.call("GET", "/api/v2/metrics").text
    assert f'headwater_assumed_total{{reason="{OTHER_TYPE}"}} 1' in metrics
    assert (verify(client.store), rebuild(client.store)) == (2, 2)
    assert client.get(f"/api/v1/jobs/runs/{named}")["state"] == "RUNNING"
