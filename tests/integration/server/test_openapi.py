"""The API's description: whole, true, and safe to call by it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.server.api.openapi import document

from .making import columns, dataset, event, facet, schema

if TYPE_CHECKING:
    from collections.abc import Callable

    from .conftest import Client, Process

CHECKS = (
    "not_a_server_error,status_code_conformance,content_type_conformance,"
    "response_schema_conformance,unsupported_method"
)
DOCS = Path(__file__).parents[3] / "docs" / "api.md"

QUESTIONS = (
    "POST /api/v2/impact",
    "POST /api/v2/doctor/findings",
    "POST /api/v2/connectors/preview",
)
"""Calls with a body that change nothing."""


def shop(second: int, state: str, **kwargs: Any) -> dict[str, Any]:
    """An event of the job and datasets that the description gives as examples."""
    made = event(state, second, job="load", **kwargs)
    made["job"]["namespace"] = "shop"
    return made


def example_events() -> list[dict[str, Any]]:
    kind = {"jobType": facet(processingType="BATCH", integration="SPARK", jobType="JOB")}
    read = dataset("raw", schema=schema("id", "x"))
    wrote = dataset("orders", schema=schema("id"), columnLineage=columns(id=("raw", "id")))
    return [
        shop(0, "START", inputs=[read], outputs=[wrote], job_facets=kind),
        shop(9, "COMPLETE", inputs=[read], outputs=[wrote], job_facets=kind),
    ]


def calls(client: Client) -> dict[str, dict[str, Any]]:
    """Every call that is described, by method and path."""
    paths = document(client.app)["paths"]
    return {f"{m.upper()} {path}": one for path, ms in paths.items() for m, one in ms.items()}


def test_a_parameter_without_a_value_is_refused_unless_marquez_takes_it(client: Client) -> None:
    """A script whose time or name came out empty does not mean now, or the whole estate."""
    client.post(*example_events())
    refused = set()
    for call, one in calls(client).items():
        if not call.startswith("GET") or call.endswith("/live"):
            continue
        path = re.sub(r"\{\w+\}", "x", call.partition(" ")[2])
        asked = [p for p in one["parameters"] if p["in"] == "query"]
        needed = {p["name"]: p.get("example", "2026-01-01") for p in asked if p["required"]}
        for parameter in asked:
            if parameter["schema"].get("type") != "string":
                continue
            name = parameter["name"]
            answer = client.call("GET", path, params={**needed, name: ""})
            empty = answer.status_code == 400 and answer.json()["message"] == f"{name}: is empty"
            assert empty == ("minLength" in parameter["schema"]), (call, name, answer.text)
            if empty:
                refused.add((call.partition("?")[0], name))
            # A cursor is opaque, and handed back as it came.
            assert empty or "/v2/" not in call or name in ("before", "after"), (call, name)
    for name in ("node", "namespace", "at", "from", "to"):
        assert ("GET /api/v2/map", name) in refused
    assert client.get("/api/v1/search", q="load", namespace="", before="")["totalCount"] == 1


def test_every_route_is_described_and_every_description_is_a_route(client: Client) -> None:
    found, described = document(client.app), calls(client)
    routes = {f"{r.method} /{'/'.join(r.pattern)}" for r in client.app.router.routes}
    assert described.keys() == routes | {"POST /api/v1/lineage"}
    assert len({one["operationId"] for one in described.values()}) == len(described)
    for call, one in described.items():
        assert one["summary"], call
        asks = call.startswith("GET") or call in QUESTIONS
        assert asks or one["x-role"] in ("write", "admin"), call
        assert "requestBody" in one or not call.startswith("PUT"), call
    for path in found["paths"]:
        assert set(re.findall(r"\{(\w+)\}", path)) == {
            p["name"]
            for one in found["paths"][path].values()
            for p in one["parameters"]
            if p["in"] == "path"
        }


def test_the_handbook_names_every_call_of_our_own(client: Client) -> None:
    text = DOCS.read_text()
    for call in calls(client):
        method, path = call.split()
        if path.startswith("/api/v2/") or path == "/api/docs":
            written = path.replace("{namespace}", "{ns}").replace("{dataset}", "{name}")
            written = written.replace("{job}", "{name}")
            assert f"`{method} {written}`" in text, call


def test_the_readable_page_asks_nobody_else(client: Client) -> None:
    response = client.call("GET", "/api/docs")
    assert response.status_code == 200
    assert response.headers["content-type"] == "text/html; charset=utf-8"
    assert "script-src" not in response.headers["content-security-policy"]
    assert "default-src 'none'" in response.headers["content-security-policy"]
    assert not re.search(r"<script|https?://|<link|<img", response.text)
    assert all(path in response.text for path in ("/api/v1/lineage", "/api/v2/evidence"))


def make_up_calls(server: Process, folder: Path, examples: int, timeout: float | None) -> None:
    """Calls of every operation, as many as said, that schemathesis makes up from the description."""
    for made in example_events():
        assert httpx.post(f"{server.url}/api/v1/lineage", content=json.dumps(made)).is_success
    found = subprocess.run(
        [
            *(sys.executable, "-m", "schemathesis.cli", "run", f"{server.url}/api/v2/openapi.json"),
            *("--checks", CHECKS, "--phases", "examples,fuzzing", "--max-examples", str(examples)),
            *("--exclude-path", "/api/v2/live", "--seed", "7", "--no-shrink", "--no-color"),
            *("--suppress-health-check", "all", "--request-timeout", "10", "--warnings", "off"),
            *("--continue-on-failure", "--generation-database", "none"),
        ],
        check=False,
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=timeout,
        env={**os.environ, "PYTHONUTF8": "1"},
    )
    assert found.returncode == 0, found.stdout[-6_000:] + found.stderr[-2_000:]
    assert httpx.get(f"{server.url}/api/v2/health").json()["status"] == "ok"


@pytest.mark.full  # tests/security fuzzes every route in the quick tests
def test_calls_made_up_from_the_description_do_no_harm(
    launch: Callable[..., Process], store_url: str, tmp_path: Path
) -> None:
    make_up_calls(launch(store_url, "--no-page"), tmp_path, 3, 600)


@pytest.mark.soak
@pytest.mark.timeout(0)
def test_many_calls_made_up_from_the_description_do_no_harm(
    launch: Callable[..., Process], store_url: str, tmp_path: Path
) -> None:
    make_up_calls(launch(store_url, "--no-page"), tmp_path, 200, None)
