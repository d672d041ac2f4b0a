"""Times that lie in a year of their own zone and in none of UTC: they once broke every list of jobs."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from headwater.server.api.openapi import document
from headwater.server.store import open_store
from tests.integration.server.conftest import Client
from tests.integration.server.making import dataset, event, facet, run_id

if TYPE_CHECKING:
    from collections.abc import Iterator

BEYOND = (
    "0001-01-01T00:00:00+14:00", "0001-01-01T00:00:00+00:01", "9999-12-31T23:59:59-01:00",
    "9999-12-31T23:59:59.999999-23:59",
)  # fmt: skip
WITHIN = ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "9999-12-31T23:59:59+14:00")
READS = (
    "/api/v1/jobs", "/api/v1/namespaces/jobs/jobs", "/api/v1/namespaces/jobs/jobs/load/runs",
    "/api/v1/namespaces/jobs/jobs/load", f"/api/v1/jobs/runs/{run_id(1)}", "/api/v2/jobs/jobs/load",
    "/api/v1/lineage?nodeId=dataset:s3://lake:out", "/api/v2/map", "/api/v2/overview",
    "/api/v2/trace?node=dataset:s3://lake:out", f"/api/v2/flow?run={run_id(1)}&since=0001-01-01",
)  # fmt: skip


def check_reads(client: Client) -> None:
    for path in READS:
        answer = client.call("GET", path)
        assert answer.status_code == 200, (path, answer.text)


def nominal(client: Client) -> tuple[Any, Any]:
    run = client.get(f"/api/v1/jobs/runs/{run_id(1)}")
    return run["nominalStartTime"], run["nominalEndTime"]


@pytest.mark.parametrize("time", [*BEYOND, *WITHIN])
def test_a_nominal_time_breaks_no_read(client: Client, time: str) -> None:
    times = facet(nominalStartTime=time, nominalEndTime="2026-01-01T00:00:00Z")
    client.post(event("START", 0, outputs=["out"], run_facets={"nominalTime": times}))
    check_reads(client)
    start, end = nominal(client)
    assert (start is None, end) == (time in BEYOND, "2026-01-01T00:00:00Z")


def test_what_a_store_already_holds_breaks_no_read(store_url: str) -> None:
    """A run announced by hand: earlier versions kept what they had read as it was."""
    client = Client(open_store(store_url))
    beyond = [-62_135_596_800_000_000 - 50_400_000_000, 253_402_300_799_000_000 + 3_600_000_000]
    client.post(event("START", 0, run=2, outputs=["out"]))
    command = {"command": "new_run", "namespace": "jobs", "name": "load", "run": run_id(1),
               "nominalStart": beyond[0], "nominalEnd": beyond[1], "args": None}  # fmt: skip
    client.store.perform(command)
    check_reads(client)
    assert nominal(client) == ("0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z")
    client.close()
    again = Client(open_store(store_url))
    check_reads(again)
    again.close()


@pytest.mark.parametrize("time", [*BEYOND, *WITHIN])
def test_the_time_of_an_event_is_refused(client: Client, time: str) -> None:
    for separator in ("T", " "):
        body = event("START", 0, outputs=["out"]) | {"eventTime": time.replace("T", separator)}
        for method in ("/api/v1/lineage", "/api/v2/events"):
            answer = client.call("POST", method, content=json.dumps(body))
            assert answer.status_code == 422, answer.text
            assert "lies before 1970 or in the future" in answer.text


@pytest.mark.parametrize("time", BEYOND)
def test_a_sample_of_such_a_time_is_refused_and_nothing_of_it_kept(
    client: Client, time: str
) -> None:
    client.post(event("START", 0, outputs=["out"]))
    named = {"namespace": "s3://lake", "name": "out"}
    sample = {"run": run_id(1), "time": "2026-01-01T00:00:00Z", "dataset": named,
              "direction": "output", "recordsPerSecond": 1.0}  # fmt: skip
    for odd in ({"time": time}, {"lastRecordAt": time}):
        sent = client.call("POST", "/api/v2/flow", json={"samples": [sample | odd]})
        assert sent.status_code == 422, sent.text
    client.app.flow.flush(client.store, 0)
    assert client.get("/api/v2/flow", run=run_id(1), since="0001-01-01")["flow"] == []
    check_reads(client)


def times(client: Client) -> Iterator[tuple[str, str, dict[str, str]]]:
    """Every parameter of a GET that is a time, with what else its route requires."""
    for path, methods in document(client.app)["paths"].items():
        parameters = methods.get("get", {}).get("parameters", ())
        named = {p["name"]: quote(p["example"], safe="") for p in parameters if p["in"] == "path"}
        asked = [p for p in parameters if p["in"] == "query"]
        required = {p["name"]: p.get("example", "2026-01-01") for p in asked if p["required"]}
        for one in asked:
            if one["schema"].get("format") == "date-time":
                yield path.format(**named), one["name"], required


@pytest.mark.parametrize("time", BEYOND)
def test_a_parameter_of_such_a_time_is_refused_by_its_name(client: Client, time: str) -> None:
    client.post(event("START", 0, outputs=[dataset("out")]))
    declared = list(times(client))
    assert len(declared) > 10
    for path, name, rest in declared:
        answer = client.call("GET", path, params={**rest, name: time})
        assert answer.status_code == 400, (path, name, answer.text)
        assert answer.json()["message"].startswith(f"{name}: "), answer.text
    marked = client.call("POST", f"/api/v1/jobs/runs/{run_id(1)}/complete", params={"at": time})
    assert marked.status_code == 400
    made = client.call(
        "POST", "/api/v1/namespaces/jobs/jobs/load/runs", json={"nominalStartTime": time}
    )
    assert (made.status_code, "nominalStartTime" in made.text) == (422, True)
    check_reads(client)
