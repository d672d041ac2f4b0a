"""A job that carries several datasets side by side does not mix them, on both stores."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from .making import columns, dataset, event, facet, run_id

if TYPE_CHECKING:
    from .conftest import Client

ORDERS, BIDS = dataset("orders", "kafka://k:9092"), dataset("bids", "kafka://k:9092")
SPACE = "s3://lake"


def lineage(**pairs: list[dict[str, Any]]) -> dict[str, Any]:
    """The explicit `lineage` facet of a job: each output with its inputs."""
    return facet(
        entries=[
            {
                "namespace": SPACE, "name": output, "type": "DATASET",
                "inputs": [{"namespace": i["namespace"], "name": i["name"], "type": "DATASET"} for i in inputs],
            }
            for output, inputs in pairs.items()
        ]
    )  # fmt: skip


def mapped(source: dict[str, Any]) -> dict[str, Any]:
    made = columns(id=(source["name"], "id"))
    made["fields"]["id"]["inputFields"][0]["namespace"] = source["namespace"]
    return made


def load(client: Client, known: str) -> None:
    """A source for each topic, a sink that lands both, a report on what it lands of the orders."""
    facets = (
        {"lineage": lineage(orders_landing=[ORDERS], bids=[BIDS])} if known == "lineage" else {}
    )
    outputs = [dataset("orders_landing"), dataset("bids")]
    if known == "columnLineage":
        for output, source in zip(outputs, (ORDERS, BIDS), strict=True):
            output["facets"]["columnLineage"] = mapped(source)
    client.post(
        event("START", 0, run=1, job="orders-source", outputs=[ORDERS]),
        event("START", 1, run=2, job="bids-source", inputs=["shop.bids"], outputs=[BIDS]),
        event("FAIL", 2, run=2, job="bids-source"),
        event("START", 3, run=3, job="sink", inputs=[ORDERS, BIDS], outputs=outputs, job_facets=facets),
        event("START", 4, run=4, job="report", inputs=["orders_landing"], outputs=["daily"]),
    )  # fmt: skip


def drawn(client: Client, node: str) -> set[str]:
    """Names of the nodes around one, which both dialects agree on."""
    ours = {n["id"] for n in client.get("/api/v2/map", node=node, depth=9)["nodes"]}
    graph = client.get("/api/v1/lineage", nodeId=node)["graph"]
    assert {n["id"] for n in graph} == ours
    ids = {n["id"] for n in graph}
    for one in graph:
        for edge in (*one["inEdges"], *one["outEdges"]):
            assert {edge["origin"], edge["destination"]} <= ids
    return {name.rpartition(":")[2] if "9092" not in name else name[-6:] for name in ids}


APART = {"orders_landing", "sink", "orders-source", "orders", "report", "daily"}


@pytest.mark.parametrize("known", ["lineage", "columnLineage"])
def test_walks_keep_to_the_pairs(client: Client, known: str) -> None:
    load(client, known)
    assert drawn(client, f"dataset:{SPACE}:orders_landing") == APART
    around = client.get("/api/v2/map", node=f"dataset:{SPACE}:orders_landing")["nodes"]
    left_out = {n["name"]: n["more"] for n in around if n["name"] in ("sink", "orders")}
    nothing = {"upstream": 0, "downstream": 0}
    assert left_out == {"sink": nothing, "orders": nothing}
    below = drawn(client, f"dataset:{SPACE}:shop.bids")
    assert {"bids-source", "sink", "bids"} < below
    assert not {"orders_landing", "report", "daily", "orders-source"} & below
    fresh = client.get("/api/v2/datasets/s3%3A%2F%2Flake/orders_landing/freshness")
    stale = client.get("/api/v2/datasets/s3%3A%2F%2Flake/bids/freshness")
    assert (fresh["verdict"], stale["verdict"]) == ("live", "stale")
    affected = client.get("/api/v2/jobs/jobs/bids-source")["affected"]
    assert (affected["jobs"], affected["datasets"]) == (1, 2)
    origin, destination = "dataset:kafka://k:9092:orders", f"dataset:{SPACE}:bids"
    path = f"/api/v2/evidence?origin={origin}&destination={destination}"
    assert client.call("GET", path).status_code == 404


@pytest.mark.parametrize("known", ["lineage", "columnLineage", ""])
def test_the_runs_before_a_run_keep_to_the_pairs(client: Client, known: str) -> None:
    load(client, known)
    # What a job pairs since then counts for its later runs alone.
    client.post(
        event("COMPLETE", 5, run=3, job="sink"),
        event("START", 60, run=5, job="sink", inputs=[ORDERS, BIDS], outputs=["orders_landing", "bids"]),
    )  # fmt: skip
    before = {run_id(number) for number in ((4, 3, 1) if known else (4, 3, 2, 1))}
    found = client.get("/api/v1/runlineage/upstream", runId=run_id(4))["runs"]
    assert {one["run"]["id"] for one in found} == before
    reads = {one["run"]["id"]: [i["name"] for i in one["inputs"]] for one in found}
    assert reads[run_id(3)] == ["orders"] if known else ["orders", "bids"]
    assert len(client.get("/api/v1/runlineage/upstream", runId=run_id(4), depth=1)["runs"]) == 2
    # A run that is asked for itself is shown with all that it read.
    own = client.get("/api/v1/runlineage/upstream", runId=run_id(3))["runs"]
    assert {one["run"]["id"] for one in own} == {run_id(3), run_id(2), run_id(1)}


def test_where_no_pairs_are_known_all_feeds_all_and_is_marked(client: Client) -> None:
    load(client, "")
    assert {"bids-source", "bids", "shop.bids"} < drawn(client, f"dataset:{SPACE}:orders_landing")
    fresh = client.get("/api/v2/datasets/s3%3A%2F%2Flake/orders_landing/freshness")
    assert fresh["verdict"] == "stale"
    nodes = {n["id"]: n for n in client.get("/api/v2/map", node="job:jobs:sink")["nodes"]}
    sink, report = nodes["job:jobs:sink"], nodes["job:jobs:report"]
    assert (sink["pairs"], sink["assumed"]) == (None, True)
    assert (report["pairs"], report["assumed"]) == (None, False)


def test_the_map_has_the_pairs_of_a_job(client: Client) -> None:
    load(client, "lineage")
    nodes = {n["id"]: n for n in client.get("/api/v2/map", node="job:jobs:sink")["nodes"]}
    found = {(p["origin"], p["destination"]) for p in nodes["job:jobs:sink"]["pairs"]}
    assert found == {
        ("dataset:kafka://k:9092:orders", f"dataset:{SPACE}:orders_landing"),
        ("dataset:kafka://k:9092:bids", f"dataset:{SPACE}:bids"),
    }
    assert not nodes["job:jobs:sink"]["assumed"]


def test_an_input_that_no_facet_names_feeds_every_output(client: Client) -> None:
    load(client, "columnLineage")
    extra = [ORDERS, BIDS, "lookup"]
    client.post(event("RUNNING", 9, run=3, job="sink", inputs=extra))
    for table in ("orders_landing", "bids"):
        assert "lookup" in drawn(client, f"dataset:{SPACE}:{table}")
    nodes = {n["id"]: n for n in client.get("/api/v2/map", node="job:jobs:sink")["nodes"]}
    assert nodes["job:jobs:sink"]["assumed"]


def test_the_past_keeps_its_own_pairs(client: Client) -> None:
    load(client, "")
    told = {"lineage": lineage(orders_landing=[ORDERS], bids=[BIDS])}
    client.post(
        event("RUNNING", 60, run=3, job="sink", job_facets=told, inputs=[ORDERS, BIDS],
              outputs=["orders_landing", "bids"])
    )  # fmt: skip
    node = f"dataset:{SPACE}:orders_landing"

    def seen(**query: Any) -> set[str]:
        found = client.get("/api/v2/map", node=node, depth=9, **query)["nodes"]
        return {n["name"] for n in found}

    assert "bids-source" not in seen()
    assert "bids-source" in seen(at="2026-01-01T00:00:30Z")
