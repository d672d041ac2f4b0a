"""What Marquez's web page asks for, and what it does with each field of the answers.

`fixtures/marquez/web_page.json` was recorded from the page of Marquez 0.51, built from its source
and driven in a browser against a server with the events below. Each path of an answer has what the
page found there without failing (a kind of value, `null`, `undefined`, an `empty list`) and the
methods it called on a list. Met with anything else, the page may go blank: it reduces `latestRuns`
without a start and reads `run.runId` of every event.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import UUID

import pytest

from headwater.server.store import open_store

from .conftest import Client
from .making import at, columns, dataset, event, facet

if TYPE_CHECKING:
    from collections.abc import Iterator

RECORDED: list[dict[str, Any]] = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "marquez" / "web_page.json").read_text()
)
KAFKA, LAKE, DB = "kafka://broker:9092", "s3://lake", "postgres://db:5432"
STREAM = {"jobType": facet(processingType="STREAMING", integration="KAFKA_CONNECT", jobType="SINK")}
REPORT = {
    "jobType": facet(processingType="BATCH", integration="SPARK", jobType="JOB"),
    "sql": facet(query="select day, sum(price) from orders_landing group by day"),
    "documentation": facet(description="Totals a day"),
    "sourceCodeLocation": facet(type="git", url="git@example.com:shop/jobs.git"),
}


def table(namespace: str, name: str, *fields: str, **facets: Any) -> dict[str, Any]:
    if fields:
        listed = [{"name": f, "type": "int", "description": "a column"} for f in fields]
        facets["schema"] = facet(fields=listed)
    return dataset(name, namespace, **facets)


def mapped(source: tuple[str, str], **fields: str) -> dict[str, Any]:
    made = columns(**{out: (source[1], field) for out, field in fields.items()})
    for one in made["fields"].values():
        one["inputFields"][0]["namespace"] = source[0]
    return made


def sent(state: str, second: int, run: int, job: str, **rest: Any) -> dict[str, Any]:
    made = event(state, second, job=job, **rest)
    made["run"]["runId"] = str(UUID(int=run))
    made["job"]["namespace"] = "shop"
    return made


def load(client: Client) -> None:
    """Two streams into one sink, a report of twelve runs, and what has no run, no end or no name."""
    orders, bids = table(KAFKA, "orders", "id", "price"), table(KAFKA, "bids", "id", "bid")
    for n, (out, origin) in enumerate(((orders, "shop.orders"), (bids, "shop.bids"))):
        ends = {"inputs": [table(DB, origin, "id")], "outputs": [out], "job_facets": STREAM}
        name = f"source-{out['name']}"
        client.post(
            sent("START", n, 100 + n, name, **ends), sent("RUNNING", 9, 100 + n, name, **ends)
        )
    landing = table(LAKE, "orders_landing", "id", "price",
                    columnLineage=mapped((KAFKA, "orders"), id="id", price="price"))  # fmt: skip
    landed = table(LAKE, "bids", "id", "bid", columnLineage=mapped((KAFKA, "bids"), id="id"))
    parent = {"parent": facet(run={"runId": str(UUID(int=999))}, job={"namespace": "shop", "name": "connect"})}  # fmt: skip
    client.post(sent("START", 20, 200, "sink", inputs=[orders, bids], outputs=[landing, landed],
                     job_facets=STREAM, run_facets=parent))  # fmt: skip
    assertions = facet(assertions=[{"assertion": "not_null", "success": True, "column": "id"}])
    read = {**landing, "inputFacets": {"dataQualityAssertions": assertions}}
    daily = table(LAKE, "daily", "day", "total",
                  columnLineage=mapped((LAKE, "orders_landing"), total="price"))  # fmt: skip
    written = {**daily, "outputFacets": {"outputStatistics": facet(rowCount=3, size=99)}}
    for n in range(12):
        ends = {"inputs": [read], "outputs": [written], "job_facets": REPORT}
        failed = {"errorMessage": facet(message="boom", programmingLanguage="python")}
        state, facets = ("FAIL", failed) if n == 5 else ("COMPLETE", {})
        client.post(
            sent("START", 100 + 10 * n, 300 + n, "report", **ends),
            sent(state, 105 + 10 * n, 300 + n, "report", run_facets=facets, **ends),
        )
    declared = sent("START", 400, 1, "declared", inputs=[daily], outputs=[table(LAKE, "out", "a")])
    del declared["run"], declared["eventType"]
    named = sent("START", 410, 402, "named-run", job_facets={"bad": 5})
    named["run"]["runId"], named["eventTime"] = "nightly-42", "2026-01-01T00:07:00"
    alone = {"eventTime": at(420), "producer": "p", "dataset": table(LAKE, "alone", "a", "b")}
    client.post(sent("ABORT", 400, 400, "aborted", inputs=[daily]), declared, named, alone,
                sent("SKIPPED", 405, 401, "odd", outputs=[table(LAKE, "odd_out")]))  # fmt: skip
    body = {"type": "STREAM", "physicalName": "v1", "sourceName": "s", "fields": [{"name": "x"}]}
    for method, path, content in (
        ("PUT", "/api/v1/tags/PII", {"description": "personal data"}),
        ("PUT", "/api/v1/namespaces/shop/datasets/manual", body),
        ("POST", "/api/v1/namespaces/s3%3A%2F%2Flake/datasets/daily/tags/PII", None),
        ("POST", "/api/v1/namespaces/shop/jobs/report/tags/PII", None),
    ):
        assert client.call(method, path, json=content).status_code in (200, 201)


@pytest.fixture(scope="module")
def loaded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    client = Client(open_store(f"sqlite:///{tmp_path_factory.mktemp('page')}/a.db"))
    load(client)
    yield client
    client.close()


MISSING = object()


def values(answer: Any, path: str) -> list[Any]:
    """What an answer has at a path such as `$.jobs[].latestRuns`; MISSING where a key is not there.

    `[JOB]` stands for the items of that type.
    """
    found = [answer]
    for key in path.removeprefix("$").replace("[", ".[").split(".")[1:]:
        if key.startswith("["):
            items = [item for value in found if isinstance(value, list) for item in value]
            found = [item for item in items if key == "[]" or item["type"] == key[1:-1]]
        else:
            found = [v.get(key, MISSING) for v in found if isinstance(v, dict)]
    return found


def kind(value: Any) -> str:
    if value is MISSING or value is None:
        return "undefined" if value is MISSING else "null"
    if isinstance(value, list):
        return "list" if value else "empty list"
    kinds = {bool: "boolean", str: "string", int: "number", float: "number", dict: "object"}
    return kinds[type(value)]


@pytest.mark.parametrize("call", RECORDED, ids=lambda call: call["request"][:60])
def test_the_page_finds_what_it_reads(loaded: Client, call: dict[str, Any]) -> None:
    response = loaded.call("GET", call["request"])
    assert response.status_code == 200, response.text
    answer, faults = response.json(), []
    for path, uses in call["reads"].items():
        found = {kind(value) for value in values(answer, path)}
        known = {use for use in uses if not use.startswith(".")}
        if "list" in known and ".reduce" not in uses:
            known.add("empty list")
        if known and not found <= known:
            faults.append(f"{path}: {sorted(found - known)}, the page knows {sorted(known)}")
        if known - {"undefined", "null", "empty list"} and not found & known:
            faults.append(f"{path}: nothing there")
    assert faults == []


def test_the_pages_that_went_blank_are_recorded() -> None:
    """The dashboard reduces runs without a start, and the list of events reads each run."""
    calls = {call["request"].partition("?")[0]: call["reads"] for call in RECORDED}
    runs = calls["/api/v1/jobs"]["$.jobs[].latestRuns"]
    assert (".reduce" in runs, "null" in runs, "empty list" in runs) == (True, True, False)
    assert calls["/api/v1/events/lineage"]["$.events[].run.runId"] == ["string"]
