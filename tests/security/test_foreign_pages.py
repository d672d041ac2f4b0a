"""What a page of another site makes a browser send changes nothing."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any

import httpx
import pytest

from headwater.server.http.hosts import Hosts
from tests.integration.server.making import event

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.server.conftest import Client, Process

CHANGES: tuple[tuple[str, str, Any], ...] = (
    ("POST", "/api/v1/lineage", event("START", 0)), ("POST", "/api/v2/events", []),
    ("POST", "/api/v2/flow", []), ("PUT", "/api/v1/tags/x", {}),
    ("PUT", "/api/v1/namespaces/x", {}),
)  # fmt: skip
FOREIGN = (
    {"sec-fetch-site": "cross-site"},
    {"sec-fetch-site": "same-site"},
    {"sec-fetch-site": "cross-site", "origin": "http://server"},
    {"origin": "https://evil.example"},
    {"origin": "http://server.evil.example"},
    {"origin": "http://server:81"},
    {"origin": "null"},
    {"origin": "http://[bad"},
)
OWN: tuple[dict[str, str], ...] = (
    {},
    {"sec-fetch-site": "same-origin", "origin": "http://server"},
    {"sec-fetch-site": "none"},
    {"origin": "http://server"},
    {"origin": "http://SERVER"},
)


def codes(client: Client, headers: dict[str, str]) -> set[int]:
    return {
        client.call(method, path, headers=headers, content=json.dumps(body)).status_code
        for method, path, body in CHANGES
    }


def test_only_the_servers_own_page_may_change_anything(client: Client) -> None:
    for headers in FOREIGN:
        assert codes(client, headers) == {403}, headers
        assert client.call("GET", "/api/v1/jobs", headers=headers).status_code == 200
    assert client.get("/api/v2/health")["events"] == 0
    for own in OWN:
        assert max(codes(client, own)) < 300, own


def test_no_operation_but_reading_is_left_out(client: Client) -> None:
    described = client.get("/api/v2/openapi.json")["paths"]
    asked = {
        (method.upper(), re.sub(r"{[^}]+}", "x", path))
        for path, methods in described.items()
        for method in methods.keys() & {"post", "put", "delete", "patch"}
    }
    assert {(method, path) for method, path, _ in CHANGES} <= asked
    assert len(asked) > 25
    for method, path in asked:
        for headers in FOREIGN:
            found = client.call(method, path, headers=headers, content="{}")
            assert found.status_code == 403, (method, path, headers)


def test_a_name_the_server_goes_by_is_its_own(client: Client) -> None:
    client.app.hosts = Hosts(["server", "lineage.example"])
    assert max(codes(client, {"origin": "https://lineage.example"})) < 300
    for other in ("https://other.example", "https://lineage.example:80.other.example"):
        assert codes(client, {"origin": other}) == {403}


@pytest.mark.parametrize("kind", ["text/plain", "Text/Plain; charset=utf-8", "multipart/form-data"])
def test_forms_are_refused(client: Client, kind: str) -> None:
    assert codes(client, {"content-type": kind}) == {415}
    assert client.get("/api/v2/health")["events"] == 0


def test_the_short_way_in_refuses_them_too(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page")
    body = json.dumps(event("START", 0))
    own = f"http://127.0.0.1:{server.port}"
    cases: list[tuple[dict[str, str], int]] = [
        ({"origin": "https://evil.example"}, 403), ({"sec-fetch-site": "same-site"}, 403),
        ({"content-type": "text/plain"}, 415), ({"origin": own}, 201),
        ({"content-type": "application/json"}, 201),
    ]  # fmt: skip
    for headers, code in cases:
        answer = httpx.post(f"{server.url}/api/v1/lineage", content=body, headers=headers)
        assert answer.status_code == code, headers
