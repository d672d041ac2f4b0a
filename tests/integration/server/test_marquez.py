"""Where Marquez is wrong, and the shapes its clients rely on."""

from __future__ import annotations

import random
from itertools import permutations
from typing import Any
from urllib.parse import quote

import pytest

from .conftest import Client, dataset_url, job_url
from .making import columns, dataset, event, facet, run_id, schema


def edges(client: Client, node: str, depth: int = 20) -> set[tuple[str, str]]:
    graph = client.get("/api/v1/lineage", nodeId=node, depth=depth)["graph"]
    return {(e["origin"], e["destination"]) for n in graph for e in n["outEdges"]}


def ends(client: Client, name: str) -> tuple[set[str], set[str]]:
    job = client.get(job_url(name))
    return {d["name"] for d in job["inputs"]}, {d["name"] for d in job["outputs"]}


def state(client: Client, run: int = 1) -> str:
    found: str = client.get(f"/api/v1/jobs/runs/{run_id(run)}")["state"]
    return found


def test_edges_show_from_the_first_event(client: Client) -> None:
    client.post(event("START", 0, inputs=["a"], outputs=["b"]))
    assert edges(client, "job:jobs:load") == {
        ("dataset:s3://lake:a", "job:jobs:load"),
        ("job:jobs:load", "dataset:s3://lake:b"),
    }


def test_an_event_without_datasets_erases_nothing(client: Client) -> None:
    streaming = {"jobType": facet(processingType="STREAMING", integration="SPARK")}
    client.post(
        event("START", 0, inputs=["a"], outputs=["b"], job_facets=streaming),
        event("RUNNING", 10, job_facets=streaming),
        event("RUNNING", 20, inputs=[], outputs=[], job_facets=streaming),
        event("COMPLETE", 30, job_facets=streaming),
    )
    assert ends(client, "load") == ({"a"}, {"b"})
    assert client.get(job_url("load"))["type"] == "STREAM"


def test_a_late_start_does_not_reopen_a_run(client: Client) -> None:
    client.post(event("COMPLETE", 10), event("START", 0))
    assert state(client) == "COMPLETED"
    client.post(event("RUNNING", 20))
    assert state(client) == "COMPLETED"


def test_live_runs_and_the_last_finished_one_hold_the_edges(client: Client) -> None:
    client.post(
        event("START", 0, run=1, outputs=["b"]),
        event("START", 1, run=2, outputs=["c"]),
    )
    assert ends(client, "load")[1] == {"b", "c"}
    client.post(event("COMPLETE", 10, run=1))
    assert ends(client, "load")[1] == {"b", "c"}
    client.post(event("COMPLETE", 11, run=2))
    assert ends(client, "load")[1] == {"c"}
    client.post(event("START", 20, run=3, outputs=["d"]))
    assert ends(client, "load")[1] == {"c", "d"}


def test_job_type_needs_no_job_type(client: Client) -> None:
    client.post(
        event("START", 0, job_facets={"jobType": facet(processingType="BATCH", integration="X")})
    )
    assert client.get(job_url("load"))["labels"] == ["X"]


def test_a_field_without_a_type_is_one_field(client: Client) -> None:
    untyped = facet(fields=[{"name": "x"}, {"name": "y", "type": "int"}])
    client.post(
        event("START", 0, outputs=[dataset("b", schema=untyped)]),
        event("COMPLETE", 1, outputs=[dataset("b", schema=untyped)]),
    )
    fields = client.get(dataset_url("b"))["fields"]
    assert [(f["name"], f["type"]) for f in fields] == [("x", None), ("y", "int")]


def test_the_current_version_of_a_job_resolves(client: Client) -> None:
    client.post(event("START", 0, outputs=["b"]))
    version = client.get(job_url("load"))["currentVersion"]
    found = client.get(job_url("load", "versions", version))
    assert found["version"] == version
    assert found["outputs"] == [{"namespace": "s3://lake", "name": "b"}]
    assert [v["version"] for v in client.get(job_url("load", "versions"))["versions"]] == [version]


def test_symlinks_link(client: Client) -> None:
    hive = {"namespace": "hive://meta:9083", "name": "db.b", "type": "TABLE"}
    client.post(
        event("START", 0, job="write", outputs=[dataset("b", symlinks=facet(identifiers=[hive]))]),
        event("START", 1, run=2, job="read", inputs=[dataset("db.b", "hive://meta:9083")]),
    )
    assert edges(client, "job:jobs:write") == {
        ("job:jobs:write", "dataset:s3://lake:b"),
        ("dataset:s3://lake:b", "job:jobs:read"),
    }
    assert client.get(dataset_url("db.b", namespace="hive://meta:9083"))["name"] == "db.b"
    # A job's inputs are the datasets that the graph joins it to, in lists and beside its edges.
    shown = [{"namespace": "s3://lake", "name": "b"}]
    graph = client.get("/api/v1/lineage", nodeId="job:jobs:read")["graph"]
    assert [one["data"]["inputs"] for one in graph if one["id"] == "job:jobs:read"] == [shown]
    listed = client.get("/api/v1/namespaces/jobs/jobs")["jobs"]
    assert {one["name"]: one["inputs"] for one in listed} == {"write": [], "read": shown}
    assert client.get(job_url("read"))["inputs"] == shown


def test_a_symlink_declared_late_links_too(client: Client) -> None:
    hive = {"namespace": "hive://meta:9083", "name": "db.b", "type": "TABLE"}
    client.post(
        event("START", 1, run=2, job="read", inputs=[dataset("db.b", "hive://meta:9083")]),
        event("START", 0, job="write", outputs=[dataset("b", symlinks=facet(identifiers=[hive]))]),
    )
    assert ("dataset:s3://lake:b", "job:jobs:read") in edges(client, "job:jobs:write")


def test_the_addresses_of_one_cluster_are_one(client: Client) -> None:
    one = facet(clusterId="c1", bootstrap=["k1:9092", "k2:9092"])
    client.post(
        event(
            "START",
            0,
            job="write",
            outputs=[dataset("t", "kafka://k1:9092", headwater_cluster=one)],
        ),
        event(
            "START",
            1,
            run=2,
            job="read",
            inputs=[dataset("t", "kafka://k2:9092", headwater_cluster=one)],
        ),
        event("START", 2, run=3, job="other", inputs=[dataset("t", "kafka://k3:9092")]),
    )
    assert edges(client, "job:jobs:write") == {
        ("job:jobs:write", "dataset:kafka://k1:9092:t"),
        ("dataset:kafka://k1:9092:t", "job:jobs:read"),
    }


def test_spellings_of_one_store_are_one(client: Client) -> None:
    client.post(
        event("START", 0, job="write", outputs=[dataset("b", "s3a://lake")]),
        event("START", 1, run=2, job="read", inputs=[dataset("b", "s3://lake")]),
    )
    assert len(edges(client, "job:jobs:write")) == 2
    assert client.get(dataset_url("b", namespace="s3a://lake"))["namespace"] == "s3a://lake"


@pytest.mark.parametrize("order", list(permutations(["s3a://lake", "s3n://lake", "s3://lake"])))
@pytest.mark.parametrize("batch", [True, False])
def test_of_spellings_the_one_that_openlineage_names_is_shown(
    client: Client, order: tuple[str, ...], batch: bool
) -> None:
    sent = [
        event("START", n, run=n, job=f"j{n}", outputs=[dataset("b", space, schema=schema("c"))])
        for n, space in enumerate(order, 1)
    ]
    for some in [sent] if batch else [[one] for one in sent]:
        client.post(*some)
    assert edges(client, "dataset:s3://lake:b") == {
        (f"job:jobs:j{n}", "dataset:s3://lake:b") for n in (1, 2, 3)
    }
    for space in order:
        shown = client.get(f"/api/v2/datasets/{quote(space, safe='')}/b")
        assert (shown["namespace"], len(shown["aliases"])) == ("s3://lake", 2)
    listed = client.get("/api/v2/aliases")["aliases"]
    assert {one["dataset"]["namespace"] for one in listed} <= {"s3://lake"}


@pytest.mark.parametrize("seed", range(4))
def test_any_order_gives_one_graph(client: Client, seed: int) -> None:
    sent = [
        event("START", 0, run=1, inputs=["a"], outputs=["b"]),
        event("RUNNING", 5, run=1, inputs=["a"], outputs=["b", "c"]),
        event("COMPLETE", 10, run=1),
        event("START", 12, run=2, inputs=["a"], outputs=["d"]),
        event("FAIL", 20, run=2),
        event("START", 30, run=3, inputs=["e"]),
    ]
    random.Random(seed).shuffle(sent)
    client.post(*sent, *sent[:3])
    assert ends(client, "load") == ({"a", "e"}, {"d"})
    assert [state(client, n) for n in (1, 2, 3)] == ["COMPLETED", "FAILED", "RUNNING"]
    assert client.get("/api/v1/events/lineage")["totalCount"] == 6


def test_a_run_reads_as_marquez_shows_it(client: Client) -> None:
    stats = facet(rowCount=5)
    client.post(
        event(
            "START", 0, inputs=["a"], outputs=["b"], run_facets={"odd": facet(x=[1, {"y": None}])}
        ),
        event(
            "COMPLETE", 60, outputs=[{**dataset("b"), "outputFacets": {"outputStatistics": stats}}]
        ),
    )
    run = client.get(f"/api/v1/jobs/runs/{run_id(1)}")
    assert (run["startedAt"], run["endedAt"], run["durationMs"]) == (
        "2026-01-01T00:00:00Z",
        "2026-01-01T00:01:00Z",
        60_000,
    )
    (output,) = run["outputDatasetVersions"]
    assert output["datasetVersionId"]["name"] == "b"
    assert output["facets"] == {"outputStatistics": stats}
    assert run["facets"] == {"odd": facet(x=[1, {"y": None}])}
    assert (
        client.get(f"/api/v1/jobs/runs/{run_id(1)}/facets", type="run")["facets"] == run["facets"]
    )
    assert client.get(job_url("load", "runs"))["runs"][0]["id"] == run_id(1)
    version = output["datasetVersionId"]["version"]
    made = client.get(dataset_url("b", "versions", version))
    assert made["createdByRun"]["id"] == run_id(1)


def test_columns_are_walked_both_ways(client: Client) -> None:
    client.post(
        event("START", 0, job="one", inputs=[dataset("a", schema=schema("x"))],
              outputs=[dataset("b", schema=schema("y"), columnLineage=columns(y=("a", "x")))]),
        event("START", 1, run=2, job="two", inputs=["b"],
              outputs=[dataset("c", schema=schema("z"), columnLineage=columns(z=("b", "y")))]),
    )  # fmt: skip

    def found(node: str, **query: Any) -> set[str]:
        graph = client.get("/api/v1/column-lineage", nodeId=node, **query)["graph"]
        return {n["id"].removeprefix("datasetField:s3://lake:") for n in graph}

    assert found("datasetField:s3://lake:c:z") == {"c:z", "b:y", "a:x"}
    assert found("datasetField:s3://lake:c:z", depth=1) == {"c:z", "b:y"}
    assert found("datasetField:s3://lake:a:x", withDownstream="true") == {"c:z", "b:y", "a:x"}
    assert found("dataset:s3://lake:b") == {"b:y", "a:x"}
    assert found("job:jobs:two") == {"c:z", "b:y", "a:x"}


def test_upstream_runs(client: Client) -> None:
    client.post(
        event("START", 0, run=1, job="one", outputs=["b"]),
        event("COMPLETE", 1, run=1, job="one"),
        event("START", 2, run=2, job="two", inputs=["b"], outputs=["c"]),
    )
    runs = client.get("/api/v1/runlineage/upstream", runId=run_id(2))["runs"]
    assert [r["run"]["id"] for r in runs] == [run_id(2), run_id(1)]
    assert runs[0]["inputs"][0]["producedByRunId"] == run_id(1)


def test_lists_search_and_counts(client: Client) -> None:
    client.post(
        event("START", 0, inputs=["Raw_Orders"], outputs=["b"]),
        event("START", 1, run=2, job="other"),
    )
    assert [n["name"] for n in client.get("/api/v1/namespaces")["namespaces"]] == [
        "jobs",
        "s3://lake",
    ]
    assert client.get("/api/v1/namespaces/jobs/jobs")["totalCount"] == 2
    assert len(client.get("/api/v1/jobs", limit=1)["jobs"]) == 1
    assert client.get("/api/v1/jobs", lastRunStates="FAILED")["totalCount"] == 0
    assert client.get("/api/v1/namespaces/s3%3A%2F%2Flake/datasets")["totalCount"] == 2
    assert client.get("/api/v1/sources")["sources"][0]["name"] == "s3://lake"
    (hit,) = client.get("/api/v1/search", q="raw_o")["results"]
    assert hit["nodeId"] == "dataset:s3://lake:Raw_Orders"
    assert client.get("/api/v1/search", q="%")["results"] == []
    assert client.get("/api/v1/stats/jobs", period="DAY")[-1]["count"] == 2
    assert client.get("/api/v1/tags")["tags"] == []
    assert len(client.get("/api/v1/stats/lineage-events", period="WEEK")) == 7


ORDERS, REST, CITY = "ÄRA_Orders\\100%", "éra_rest", "İstanbul"


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("ÄRA_oRDERS", [ORDERS]),
        ("ära", []),
        ("Éra", []),
        ("éRA", [REST]),
        ("s\\100%", [ORDERS]),
        ("a_o", [ORDERS]),
        ("axo", []),
        ("i̇st", []),
        ("İSTAN", [CITY]),
        ("RA_", [ORDERS, REST]),
    ],
)
def test_search_knows_the_case_of_the_letters_from_a_to_z_alone(
    client: Client, text: str, found: list[str]
) -> None:
    client.post(event("START", 0, outputs=[ORDERS, REST, CITY]))
    for path, hits in (("/api/v1/search", "results"), ("/api/v2beta/search/datasets", "hits")):
        names = [hit["name"] for hit in client.get(path, q=text)[hits]]
        assert sorted(names) == sorted(found), path


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("/api/v1/namespaces/nope", "Namespace 'nope' not found."),
        ("/api/v1/namespaces/jobs/jobs/nope", "Job 'nope' not found."),
        ("/api/v1/namespaces/jobs/datasets/nope", "Dataset 'nope' not found."),
        (f"/api/v1/jobs/runs/{run_id(9)}", f"Run '{run_id(9)}' not found."),
        ("/api/v1/lineage?nodeId=dataset:nope:nope", "Dataset 'nope' not found."),
        ("/api/v1/lineage?nodeId=zzz", "HTTP 404 Not Found"),
        ("/api/v1/column-lineage?nodeId=dataset:nope:nope", "Could not find node"),
        ("/api/v1/nowhere", "HTTP 404 Not Found"),
    ],
)
def test_what_is_not_there_is_said_as_marquez_says_it(
    client: Client, path: str, message: str
) -> None:
    client.post(event("START", 0))
    response = client.call("GET", path)
    assert response.status_code == 404
    assert response.json() == {"code": 404, "message": message}


def test_names_are_data(client: Client) -> None:
    name = "'; DROP TABLE job; -- \" % _ \\ é 日本 <b>"
    client.post(event("START", 0, job=name, outputs=[name]))
    assert client.get(job_url(name))["name"] == name
    assert client.get(dataset_url(name))["name"] == name
    assert client.get("/api/v1/search", q=name)["totalCount"] == 2
    assert len(edges(client, f"job:jobs:{name}")) == 1


def test_logins_in_names_go_no_further(client: Client) -> None:
    client.post(event("START", 0, inputs=[dataset("shop.orders", "mongodb://ann:secret@db:27017")]))
    (found,) = client.get(job_url("load"))["inputs"]
    assert found == {"namespace": "mongodb://db:27017", "name": "shop.orders"}
    spaces = (
        client.call("GET", "/api/v1/namespaces").text + client.call("GET", "/api/v1/sources").text
    )
    assert "secret" not in spaces
