"""Taking another server over through Marquez's API.

No Marquez runs here: a server of ours stands in for it, for it answers in Marquez's shapes
(test_shapes.py holds it to those of a real one).
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import httpx
import pytest
from typer.testing import CliRunner

from headwater.errors import HeadwaterError
from headwater.server.ingest.marquez import Marquez

from .conftest import dataset_url, job_url
from .making import dataset, event, run_id, schema
from .test_command import app, run

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from .conftest import Process


@pytest.fixture
def marquez(launch: Callable[..., Process]) -> Process:
    """A server with events, many of them of one moment, and things set by hand."""
    server = launch(None, "--no-page")
    made = [
        event("START", n // 130, run=n, outputs=[dataset("b", schema=schema("id"))])
        for n in range(420)
    ]
    lines = "\n".join(json.dumps(one) for one in made)
    assert httpx.post(f"{server.url}/api/v2/events", content=lines).status_code == 201
    for method, path, body in (
        ("PUT", "/api/v1/tags/pii", {"description": "personal"}),
        ("POST", dataset_url("b", "tags", "pii"), None),
        ("POST", dataset_url("b", "fields", "id", "tags", "key"), None),
        ("POST", job_url("load", "tags", "nightly"), None),
        ("PUT", "/api/v1/namespaces/jobs", {"ownerName": "team", "description": "all jobs"}),
        ("PUT", "/api/v1/sources/shop", {"type": "POSTGRESQL", "connectionUrl": "jdbc:x"}),
    ):
        assert httpx.request(method, server.url + path, json=body).is_success
    return server


def test_a_marquez_is_taken_over(
    marquez: Process, launch: Callable[..., Process], tmp_path: Path
) -> None:
    target = f"sqlite:///{tmp_path}/new.db"
    command = ["events", "import", "--marquez", marquez.url, "--store", target, "--json"]
    first = json.loads(run(*command))
    assert (first["accepted"], first["duplicates"], first["refused"]) == (420, 0, 0)
    assert first["settings"] >= 6
    again = json.loads(run(*command))
    assert again == {"accepted": 0, "duplicates": 420, "refused": 0, "settings": 0}
    server = launch(target, "--no-page")

    def both(path: str) -> list[Any]:
        return [httpx.get(url + path).json() for url in (marquez.url, server.url)]

    old, new = both("/api/v1/events/lineage?limit=1000")
    assert sorted(map(json.dumps, old["events"])) == sorted(map(json.dumps, new["events"]))
    for path, keys in (
        (dataset_url("b"), ("tags", "fields", "facets", "type", "sourceName")),
        (job_url("load"), ("tags", "outputs", "type", "facets")),
        ("/api/v1/namespaces/jobs", ("ownerName", "description")),
        ("/api/v1/sources/shop", ("type", "connectionUrl")),
        ("/api/v1/tags", ("tags",)),
    ):
        one, other = both(path)
        assert [one[k] for k in keys] == [other[k] for k in keys]


def test_pages_cut_by_time_hold_every_event_once(marquez: Process) -> None:
    source = Marquez(marquez.url)
    for size in (60, 130, 131, 1_000):
        found = [json.loads(e)["run"]["runId"] for page in source.events(size) for e in page.events]
        assert sorted(found) == [run_id(n) for n in range(420)]
    source.close()


def test_who_is_no_marquez_is_told(tmp_path: Path, marquez: Process) -> None:
    target = ["--store", f"sqlite:///{tmp_path}/new.db"]
    for url, said in (
        ("http://127.0.0.1:9", "does not answer"),
        (f"{marquez.url}/nowhere", "answered 404"),
        (f"{marquez.url}/api/v2/health#", "does not answer as Marquez does"),
        ("nowhere", "does not answer"),
    ):
        found = CliRunner().invoke(app, ["events", "import", "--marquez", url, *target])
        assert isinstance(found.exception, HeadwaterError)
        assert said in str(found.exception)
    for arguments in ([], ["x", "--marquez", marquez.url]):
        found = CliRunner().invoke(app, ["events", "import", *arguments, *target])
        assert "either FILE or --marquez" in str(found.exception)


def test_a_run_is_aborted_from_the_command_line(marquez: Process) -> None:
    answer = run("runs", "abort", run_id(3), "--url", marquez.url, "--json")
    assert json.loads(answer) == {"run": run_id(3), "state": "ABORTED"}
    for wrong, said, code in ((run_id(999), "not found", 4), ("x/y", "is not a UUID", 2)):
        failed = CliRunner().invoke(app, ["runs", "abort", wrong, "--url", marquez.url]).exception
        assert isinstance(failed, HeadwaterError)
        assert (said in failed.message, failed.exit_code) == (True, code)
    found = CliRunner().invoke(app, ["runs", "abort", run_id(1), "--url", "http://127.0.0.1:9"])
    assert "does not answer" in str(found.exception)
