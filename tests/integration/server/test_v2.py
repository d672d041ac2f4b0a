"""Headwater's own questions: time lines, schemas over time, freshness, evidence, aliases, the log."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from headwater.lineage.openlineage.events import iso

from .making import at, columns, dataset, event, facet, run_id, schema

if TYPE_CHECKING:
    from .conftest import Client

LAKE = quote("s3://lake", safe="")
JOB = "/api/v2/jobs/jobs/load"


def of(name: str, *rest: str) -> str:
    return "/".join(["/api/v2/datasets", LAKE, name, *rest])


def paged(client: Client, path: str, key: str, cursor: str = "before", **query: Any) -> list[Any]:
    found: list[Any] = []
    page = client.get(path, **query)
    for _ in range(100):
        found += page[key]
        if page["next"] is None:
            assert not page["truncated"]
            return found
        page = client.get(path, **{**query, cursor: page["next"]})
    raise AssertionError("the pages have no end")


def test_a_jobs_runs_stand_on_a_time_line(client: Client) -> None:
    size = facet(rowCount=10, size=500, fileCount=2)
    for n in range(1, 8):
        made = {**dataset("b"), "outputFacets": {"outputStatistics": size}}
        client.post(
            event("START", n * 60, run=n, inputs=["a"], outputs=[made]),
            event("COMPLETE", n * 60 + 5, run=n),
        )
    broken = {"errorMessage": facet(message="no space", programmingLanguage="JAVA", stackTrace="x")}
    client.post(event("START", 900, run=8), event("FAIL", 903, run=8, run_facets=broken))
    runs = paged(client, f"{JOB}/runs", "runs", limit=3)
    assert [r["id"] for r in runs] == [run_id(n) for n in range(8, 0, -1)]
    assert (runs[0]["state"], runs[0]["error"], runs[0]["durationMs"]) == (
        "FAILED", "no space", 3_000,
    )  # fmt: skip
    assert runs[1]["written"] == {"datasets": 1, "rows": 10, "bytes": 500, "files": 2}
    assert runs[1]["read"] == {"datasets": 1, "rows": None, "bytes": None, "files": None}


def test_a_datasets_runs_are_those_that_touched_it(client: Client) -> None:
    for n in range(1, 6):
        client.post(event("START", n, run=n, job="writer", outputs=["b"] if n % 2 else ["c"]))
        client.post(event("START", n, run=n + 10, job="reader", inputs=["b"]))
    runs = paged(client, of("b", "runs"), "runs", limit=2)
    assert len(runs) == 8
    assert {(r["job"]["name"], *r["directions"]) for r in runs} == {
        ("writer", "output"), ("reader", "input"),
    }  # fmt: skip
    assert len(paged(client, of("b", "runs"), "runs", direction="output")) == 3


def test_one_run_tells_its_family(client: Client) -> None:
    other = {"job": {"namespace": "jobs", "name": "before"}, "run": {"runId": run_id(7)}}
    said = {
        "parent": facet(
            run={"runId": run_id(9)},
            job={"namespace": "jobs", "name": "dag"},
            root={"run": {"runId": run_id(9)}, "job": {"namespace": "jobs", "name": "dag"}},
        ),
        "jobDependencies": facet(upstream=[other], downstream=[{"job": 3}]),
    }
    client.post(event("START", 0, run_facets=said))
    found = client.get(f"/api/v2/runs/{run_id(1)}")
    assert found["parent"] == {"namespace": "jobs", "name": "dag", "run": run_id(9)}
    assert found["root"] == found["parent"]
    assert found["dependencies"] == {
        "upstream": [{"namespace": "jobs", "name": "before", "run": run_id(7)}],
        "downstream": [],
    }
    assert found["facets"]["parent"]["job"]["name"] == "dag"


def test_schema_versions_are_told_apart(client: Client) -> None:
    for n, names in enumerate(("id", "id x", "id x", "id"), 1):
        client.post(event("START", n, run=n, outputs=[dataset("b", schema=schema(*names.split()))]))
    found = paged(client, of("b", "history"), "versions", limit=2)
    assert [[f["name"] for f in v["fields"]] for v in found] == [["id"], ["id", "x"], ["id"]]
    assert (found[0]["compatible"], found[1]["compatible"]) == (False, True)
    (change,) = found[0]["changes"]
    assert (change["kind"], change["column"]) == ("removed", "x")
    assert "readers still ask for it" in change["breaks"]
    between = client.get(of("b", "schema", "diff"), **{"from": at(1), "to": at(2)})
    assert [c["text"] for c in between["changes"]] == ["x was added (int)"]
    assert client.call("GET", of("b", "schema", "diff")).status_code == 400


def now(minutes: float) -> str:
    return iso(time.time_ns() // 1000 + int(minutes * 60_000_000))


def test_a_stale_dataset_names_the_job_to_blame(client: Client) -> None:
    def ran(state: str, minutes: float, **kwargs: Any) -> None:
        client.post({**event(state, 0, **kwargs), "eventTime": now(minutes)})

    ran("START", -30, run=1, job="ingest", inputs=["raw"], outputs=["bronze"])
    ran("START", -30, run=2, job="clean", inputs=["bronze"], outputs=["silver"])
    assert client.get(of("silver", "freshness"))["verdict"] == "live"
    ran("FAIL", -20, run=1, job="ingest")
    found = client.get(of("silver", "freshness"))
    (cause,) = found["causes"]
    assert (found["verdict"], found["since"]) == ("stale", cause["since"])
    assert cause["job"] == {"namespace": "jobs", "name": "ingest"}
    assert (cause["trouble"], cause["distance"], cause["root"]) == ("failed", 3, True)
    ran("START", -19, run=3, job="ingest")
    ran("FAIL", -18, run=3, job="ingest")
    assert client.get(of("silver", "freshness"))["since"] == found["since"]
    ran("START", -1, run=4, job="ingest")
    assert client.get(of("silver", "freshness"))["verdict"] == "live"


def test_two_moments_are_compared(client: Client) -> None:
    client.post(
        event("START", 10, run=1, inputs=["a"], outputs=[dataset("b", schema=schema("id"))]),
        event("COMPLETE", 20, run=1),
        event("START", 30, run=2, inputs=["a"], outputs=["c"]),
        event("START", 40, run=3, job="other", inputs=[dataset("a", schema=schema("x"))]),
        event("COMPLETE", 50, run=2),
    )
    query = {"node": "job:jobs:load", "from": at(15), "to": at(60)}
    found = client.get("/api/v2/graph/diff", **query)
    assert found["appeared"] == ["dataset:s3://lake:c", "job:jobs:other"]
    assert found["vanished"] == ["dataset:s3://lake:b"]
    assert {"origin": "job:jobs:load", "destination": "dataset:s3://lake:c"} in found["added"]
    assert found["removed"] == [{"origin": "job:jobs:load", "destination": "dataset:s3://lake:b"}]


def test_an_edge_has_its_evidence(client: Client) -> None:
    ends = {side: {"namespace": "s3://lake", "name": name}
            for side, name in (("input", "a"), ("output", "b"))}  # fmt: skip
    proof = [{"source": "config key", "detail": "topics", "observed": False}]
    said = {"headwater_evidence": facet(edges=[{**ends, "columns": True, "evidence": proof}])}
    client.post(event("START", 0, inputs=["a"], outputs=["b"], job_facets=said))
    edge = {"origin": "dataset:s3://lake:a", "destination": "job:jobs:load"}
    found = client.get("/api/v2/evidence", **edge)
    assert found["current"]
    assert found["intervals"] == [{"since": "2026-01-01T00:00:00Z", "until": None}]
    assert [run["id"] for run in found["runs"]] == [run_id(1)]
    assert found["evidence"] == [{**proof[0], "with": ends["output"], "columns": True}]
    wrong = {"origin": edge["destination"], "destination": edge["origin"]}
    assert client.call("GET", "/api/v2/evidence", params=wrong).status_code == 404
    assert client.call("GET", "/api/v2/evidence").status_code == 400


def test_evidence_is_of_the_dataset_it_names_and_of_no_other_of_that_name(client: Client) -> None:
    spaces = ("kafka://a:9092", "kafka://b:9092")
    target = {"namespace": "s3://lake", "name": "orders"}
    proof = {
        space: [{"source": "config key", "detail": space, "observed": False}] for space in spaces
    }
    edges = [{"input": {"namespace": space, "name": "orders"}, "output": target,
              "columns": True, "evidence": proof[space]} for space in spaces]  # fmt: skip
    named = [{"namespace": space, "name": "orders", "field": "id"} for space in spaces]
    mapped = dataset("orders", columnLineage=facet(fields={"id": {"inputFields": named}}))
    client.post(event("START", 0, inputs=[dataset("orders", space) for space in spaces], outputs=[mapped],
                      job_facets={"headwater_evidence": facet(edges=edges)}))  # fmt: skip
    node = "dataset:s3://lake:orders"
    found = client.get("/api/v2/columns", node=f"datasetField:{node.partition(':')[2]}:id")["edges"]
    assert {one["source"]["namespace"]: one["evidence"] for one in found} == proof
    traced = client.get("/api/v2/trace", node=node, direction="up")["edges"]
    assert {one["origin"]: one["evidence"] for one in traced} == {
        **{f"dataset:{space}:orders": proof[space] for space in spaces},
        "job:jobs:load": [item for space in spaces for item in proof[space]],
    }


def test_two_datasets_have_the_jobs_between_them(client: Client) -> None:
    mapped = dataset("b", columnLineage=columns(id=("a", "id")))
    client.post(event("START", 0, inputs=["a", "c"], outputs=[mapped]))
    client.post(event("START", 1, run=2, job="plain", inputs=["a"], outputs=["b"]))
    ends = {"origin": "dataset:s3://lake:a", "destination": "dataset:s3://lake:b"}
    found = client.get("/api/v2/evidence", **ends)
    assert [(j["job"]["name"], j["basis"]) for j in found["jobs"]] == [
        ("load", "columnLineage"), ("plain", "all"),
    ]  # fmt: skip
    # The job reads it, but says that nothing of it reaches this output.
    unrelated = {**ends, "origin": "dataset:s3://lake:c"}
    assert client.call("GET", "/api/v2/evidence", params=unrelated).status_code == 404


def test_an_alias_is_declared_by_hand(client: Client) -> None:
    client.post(event("START", 0, run=1, job="w", outputs=["b"]))
    client.post(event("START", 0, run=2, job="r", inputs=[dataset("view", "trino://t:1")]))
    names = {
        "alias": {"namespace": "trino://t:1", "name": "view"},
        "dataset": {"namespace": "s3://lake", "name": "b"},
    }
    assert client.call("POST", "/api/v2/aliases", json=names).status_code == 201
    graph = client.get("/api/v2/map", node="job:jobs:w")
    assert "job:jobs:r" in {node["id"] for node in graph["nodes"]}
    assert client.get("/api/v2/aliases")["aliases"] == [names]
    for bad, code in (
        ({**names, "alias": names["dataset"]}, 422),
        ({"alias": 1, "dataset": 2}, 422),
        ({**names, "dataset": {"namespace": "no", "name": "such"}}, 404),
    ):
        assert client.call("POST", "/api/v2/aliases", json=bad).status_code == code


def test_the_log_is_narrowed_and_read_both_ways(client: Client) -> None:
    for n in range(1, 5):
        job = f"j{n % 2}"
        client.post(event("START", n, run=n, job=job), event("COMPLETE", n + 10, run=n, job=job))
    client.call("PUT", "/api/v1/tags/pii", json={})

    def seqs(**query: Any) -> list[int]:
        return [r["seq"] for r in client.get("/api/v2/events", **query)["records"]]

    assert seqs() == list(range(1, 10))
    assert seqs(type="complete,command") == [2, 4, 6, 8, 9]
    assert seqs(run=run_id(2)) == [3, 4]
    assert seqs(job="job:jobs:j1", type="START") == [1, 5]
    assert seqs(since=at(12), until=at(14)) == [4, 6]
    page = client.get("/api/v2/events", before=2**40, limit=4)
    assert [r["seq"] for r in page["records"]] == [9, 8, 7, 6]
    assert page["more"]
    assert seqs(before=page["next"]) == [5, 4, 3, 2, 1]
    assert not client.get("/api/v2/events", after=9)["more"]
    for bad in ({"type": "NONE"}, {"job": "dataset:a:b"}, {"before": 3, "after": 2}):
        assert client.call("GET", "/api/v2/events", params=bad).status_code == 400


@pytest.mark.parametrize("cursor", ["x", "1", "1.x", "9" * 19 + ".1", "1.2.3", "\u0663.\u0661"])
def test_a_cursor_that_is_none_is_refused(client: Client, cursor: str) -> None:
    client.post(event("START", 0))
    answer = client.call("GET", f"{JOB}/runs", params={"before": cursor})
    assert answer.status_code == 400
    assert answer.json()["problems"] == [
        {"field": "before", "problem": "not a cursor of an earlier page"}
    ]
