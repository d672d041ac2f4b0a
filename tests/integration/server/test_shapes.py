"""Every answer has the fields, of the types, that a real Marquez gave (tests/fixtures/marquez)."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from .making import dataset, event, facet, run_id

if TYPE_CHECKING:
    from .conftest import Client

SHAPES: dict[str, Any] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "marquez" / "shapes.json").read_text()
)
DB = "postgres://db:5432"
SPACE = quote(DB, safe="")
DATASET = f"/api/v1/namespaces/{SPACE}/datasets/gold"
JOB = "/api/v1/namespaces/jobs/jobs/two"
RUN = f"/api/v1/jobs/runs/{run_id(2)}"
GOLD = quote(f"dataset:{DB}:gold", safe="")
CALLS = {
    "column_lineage_404": "/api/v1/column-lineage?nodeId=dataset%3Anope%3Anope",
    "column_lineage_dataset": f"/api/v1/column-lineage?nodeId={GOLD}&depth=1",
    "column_lineage_field_down": "/api/v1/column-lineage?nodeId="
    + quote(f"datasetField:{DB}:gold:amount", safe="") + "&depth=1&withDownstream=true",
    "column_lineage_job": "/api/v1/column-lineage?nodeId=job%3Ajobs%3Atwo&depth=1",
    "dataset": DATASET,
    "dataset_404": f"/api/v1/namespaces/{SPACE}/datasets/nope",
    "dataset_versions": DATASET + "/versions?limit=2",
    "datasets": f"/api/v1/namespaces/{SPACE}/datasets?limit=2",
    "events": "/api/v1/events/lineage?limit=1",
    "job": JOB,
    "job_404": "/api/v1/namespaces/jobs/jobs/nope",
    "job_runs": JOB + "/runs?limit=2",
    "job_versions": JOB + "/versions?limit=2",
    "jobs": "/api/v1/namespaces/jobs/jobs?limit=2&offset=0",
    "jobs_all": "/api/v1/jobs?limit=2",
    "lineage_404": "/api/v1/lineage?nodeId=dataset%3Anope%3Anope",
    "lineage_bad_nodeid": "/api/v1/lineage?nodeId=zzz",
    "lineage_dataset": f"/api/v1/lineage?nodeId={GOLD}&depth=1",
    "lineage_job": "/api/v1/lineage?nodeId=job%3Ajobs%3Atwo&depth=1",
    "lineage_run_node": f"/api/v1/lineage?nodeId=run%3A{run_id(2)}",
    "namespace": "/api/v1/namespaces/jobs",
    "namespace_404": "/api/v1/namespaces/nope",
    "namespaces": "/api/v1/namespaces?limit=3",
    "run": RUN,
    "run_404": f"/api/v1/jobs/runs/{run_id(99)}",
    "run_facets": RUN + "/facets?type=run",
    "run_job_facets": RUN + "/facets?type=job",
    "runlineage_upstream": f"/api/v1/runlineage/upstream?runId={run_id(2)}&depth=2",
    "search": "/api/v1/search?q=gold&limit=3",
    "search_dataset_filter": "/api/v1/search?q=gold&filter=DATASET&sort=NAME&limit=2",
    "source": f"/api/v1/sources/{SPACE}",
    "sources": "/api/v1/sources?limit=2",
    "stats_datasets": "/api/v1/stats/datasets?period=DAY&timezone=UTC",
    "stats_jobs": "/api/v1/stats/jobs?period=DAY&timezone=UTC",
    "stats_lineage-events": "/api/v1/stats/lineage-events?period=DAY&timezone=UTC",
    "stats_sources": "/api/v1/stats/sources?period=DAY&timezone=UTC",
    "tags": "/api/v1/tags",
}  # fmt: skip


def table(name: str, *sources: str) -> dict[str, Any]:
    kinds = (("id", "int"), ("amount", "double"))
    fields = [{"name": n, "type": t, "description": "a column"} for n, t in kinds]
    facets = {
        "schema": facet(fields=fields),
        "dataSource": facet(name=DB, uri="postgres://db:5432/shop"),
    }
    if sources:
        facets["columnLineage"] = facet(
            fields={
                n: {"inputFields": [{"namespace": DB, "name": s, "field": n} for s in sources]}
                for n, _ in kinds
            }
        )
    return dataset(name, DB, **facets)


def load(client: Client) -> None:
    facets = {
        "sql": facet(query="INSERT INTO gold SELECT 1"),
        "jobType": facet(processingType="BATCH", integration="SPARK", jobType="JOB"),
    }
    engine = {"processing_engine": facet(version="4.1", name="spark")}
    for n, job, sources, target in ((1, "one", ["raw"], "silver"), (2, "two", ["silver", "x"], "gold"),
                                    (3, "three", ["gold"], "report")):  # fmt: skip
        ends: dict[str, Any] = {
            "inputs": [
                {**table(s), "inputFacets": {"dataQualityMetrics": facet(rowCount=3)}}
                for s in sources
            ],
            "outputs": [table(target, *sources)],
        }
        for state, second in (("START", 10 * n), ("COMPLETE", 10 * n + 5)):
            made = event(state, second, run=n, job=job, job_facets=facets, run_facets=engine)
            client.post({**made, **ends})
    client.call("PUT", "/api/v1/tags/PII", json={"description": "personal"})


def merged(a: Any, b: Any) -> Any:
    if a is None or b is None:
        return b if a is None else a
    if isinstance(a, dict) and isinstance(b, dict):
        return {k: merged(a.get(k), b.get(k)) for k in {*a, *b}}
    if isinstance(a, list) and isinstance(b, list):
        return a + b
    return b


KINDS: dict[str, Any] = {"string": str, "number": (int, float), "boolean": bool}


def lacks(ours: Any, theirs: Any, path: str = "$") -> list[str]:
    """Where an answer of ours does not fit the shape of theirs."""
    if theirs == "null" or (ours is None and path.rpartition(".")[2] in OPTIONAL):
        return []
    if isinstance(theirs, dict):
        if not isinstance(ours, dict):
            return [f"{path} is no object"]
        return [
            fault
            for key, shape in theirs.items()
            for fault in (
                lacks(ours[key], shape, f"{path}.{key}") if key in ours else [f"{path}.{key}"]
            )
        ]
    if isinstance(theirs, list):
        if not isinstance(ours, list):
            return [f"{path} is no list"]
        one: Any = None
        for item in ours:
            one = merged(one, item)
        return lacks(one, theirs[0], f"{path}[]") if ours and theirs else []
    return [] if isinstance(ours, KINDS[theirs]) else [f"{path} is not a {theirs}: {ours!r}"]


OPTIONAL = {"description", "producedByRunId", "version"}


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Any:
    from headwater.server.store import open_store

    from .conftest import Client

    client = Client(open_store(f"sqlite:///{tmp_path_factory.mktemp('shapes')}/a.db"))
    load(client)
    yield client
    client.close()


@pytest.mark.parametrize("name", CALLS)
def test_the_answer_has_marquez_shape(loaded: Client, name: str) -> None:
    response = loaded.call("GET", CALLS[name])
    assert response.status_code == SHAPES[name]["status"], response.text
    assert lacks(response.json(), SHAPES[name]["body"]) == []
    if response.status_code == 200 and "404" not in name:
        assert response.json()


def test_one_version_has_the_shape_of_the_list(loaded: Client) -> None:
    found = loaded.get(DATASET + "/versions")["versions"][0]["version"]
    answer = loaded.get(f"{DATASET}/versions/{found}")
    assert lacks(answer, SHAPES["dataset_version"]["body"]) == []
    version = loaded.get(JOB)["currentVersion"]
    assert (
        lacks(
            loaded.get(f"{JOB}/versions/{version}"), SHAPES["job_versions"]["body"]["versions"][0]
        )
        == []
    )


def test_marquez_page_searches_through_the_beta_routes(loaded: Client) -> None:
    jobs = loaded.get("/api/v2beta/search/jobs", q="TW")
    (hit,) = jobs["hits"]
    assert (hit["name"], hit["namespace"], hit["eventType"]) == ("two", "jobs", "COMPLETE")
    assert (hit["run_id"], hit["facets"]["sql"]["query"][:6]) == (run_id(2), "INSERT")
    assert jobs["highlights"] == [{"name": ["two"]}]
    (hit,) = loaded.get("/api/v2beta/search/datasets", q="gold")["hits"]
    assert hit["run_id"] == run_id(2)
    assert [f["name"] for f in hit["facets"]["schema"]["fields"]] == ["id", "amount"]
    assert loaded.get("/api/v2beta/search/datasets", q="100%")["hits"] == []
    assert loaded.call("GET", "/api/v2beta/search/jobs").status_code == 400
