"""Every operation of a running server, asked by everyone, and by an admin with hostile values."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx
import pytest

from headwater.server.http.auth import create_token, list_tokens, revoke_token
from headwater.server.store import open_store
from tests.integration.server.test_openapi import example_events

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from tests.integration.server.conftest import Process

ROLES = {"read": {"read", "admin"}, "write": {"write", "admin"}, "admin": {"admin"}}


class Guarded:
    """A server with tokens of every role, and what its description lists."""

    def __init__(self, launch: Callable[..., Process], url: str) -> None:
        store = open_store(url)
        self.tokens = {role: create_token(store, role, role) for role in ROLES}
        self.limited = create_token(store, "limited", "read", ["other"])
        self.revoked = create_token(store, "gone", "admin")
        for token in list_tokens(store.connection):
            if token.name == "gone":
                revoke_token(store, token.id)
        store.close()
        self.server = launch(url)
        self.http = httpx.Client(base_url=self.server.url, timeout=60, trust_env=False)
        self.admin = {"authorization": f"Bearer {self.tokens['admin']}"}
        for event in example_events():
            sent = self.http.post("/api/v1/lineage", json=event, headers=self.admin)
            assert sent.status_code == 201, sent.text
        document = self.http.get("/api/v2/openapi.json", headers=self.admin).json()
        self.operations = [
            (method.upper(), path, one)
            for path, methods in document["paths"].items()
            for method, one in methods.items()
        ]

    def code(self, method: str, path: str, headers: dict[str, Any], **more: Any) -> int:
        with self.http.stream(method, path, headers=headers, **more) as found:
            if found.headers.get("content-type") == "text/event-stream":
                return found.status_code  # it has no end
            assert "traceback" not in found.read().decode(errors="replace").lower()
            return found.status_code


@pytest.fixture
def guarded(launch: Callable[..., Process], store_url: str) -> Iterator[Guarded]:
    made = Guarded(launch, store_url)
    yield made
    made.http.close()


def filled(path: str, value: str) -> str:
    return re.sub(r"\{\w+\}", quote(value, safe=""), path)


def test_every_operation_is_closed_to_everyone_but_its_role(guarded: Guarded) -> None:
    admin = guarded.tokens["admin"]
    wrong = ("x", guarded.revoked, admin[:-1], admin + "x", admin.upper(), f"{admin} {admin}")
    strangers: list[dict[str, str]] = [
        *({"authorization": f"Bearer {one}"} for one in wrong),
        {}, {"authorization": "Bearer"}, {"authorization": admin}, {"authorization": f"Basic {admin}"}, {"cookie": f"token={admin}"},
        {"x-authorization": f"Bearer {admin}"}, {"x-forwarded-for": "127.0.0.1"}, {"x-forwarded-user": "admin"},
        {"x-original-url": "/api/v2/health"}, {"x-http-method-override": "GET"},
    ]  # fmt: skip
    assert len(guarded.operations) > 80
    for method, path, one in guarded.operations:
        role, address = one["x-role"], filled(path, "nothing-of-it")
        if role == "none":
            continue
        for headers in strangers:
            code = guarded.code(method, f"{address}?token={admin}", headers, content=b"{}")
            assert code == 401, (method, path, headers, code)
        for held, token in (*guarded.tokens.items(), ("read", guarded.limited)):
            may = {"authorization": f"Bearer {token}"}
            if held not in ROLES[role]:
                assert guarded.code(method, address, may, content=b"{}") == 403, (
                    method,
                    path,
                    held,
                )


def test_a_path_written_otherwise_opens_nothing(guarded: Guarded) -> None:
    for path in ("/api/v2/jobs", "/api/v1/jobs", "/api/v2/metrics", "/api/v1/namespaces"):
        for odd in (
            path.replace("/api", "//api"), path.replace("/api", "/./api"), path.replace("/api", "/x/../api"),
            path.replace("a", "%61", 1), path.replace("/v", "%2fv"), path + "/", path + "//", path + ";x=y", path + "%00",
            path.upper(), path.replace("/api", "/api/v2/health/../.."), path + "?x#y", "/headwater" + path,
        ):  # fmt: skip
            for method in ("GET", "HEAD", "POST", "OPTIONS"):
                code = guarded.code(method, odd, {})
                # What is no route is the page, which anyone may load, or nothing.
                assert code in (400, 401, 403, 404, 405, 415) or _is_page(guarded, method, odd), (
                    odd,
                    code,
                )


def _is_page(guarded: Guarded, method: str, path: str) -> bool:
    found = guarded.http.request(method, path)
    return not found.content or "<title>Headwater" in found.text


HOSTILE = (
    "\0", "\x1b[2J", "\u202e\u2066", "\ud7ff\U0010ffff", "%00", "'; DROP TABLE log; --", '" OR 1=1', "a" * 1_025,
    "ä" * 600, "../../../etc/passwd", "${jndi:ldap://x}", "{{7*7}}", "<script>", ":" * 900, "9" * 400, "-1", "1e309",
    "dataset:", "dataset::", "job:shop:", "*", "%", "_", "\\", "NaN", "0001-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z",
)  # fmt: skip
BODIES = (
    b"", b"{", b"null", b"[]", b"7", b'"x"', b"\xff\xfe", b"[" * 5_000, b'{"a":' * 5_000, b'{"\\u0000":"\\u0000"}',
    b'{"name":"\\ud800","description":{"x":[]},"namespace":7,"events":{},"samples":[[]],"nodes":null,"force":"yes"}',
    b'{"name":"x","name":"y"}', b"9" * 5_000, b"-0e999", json.dumps({"namespace": "\0", "name": "\0"}).encode(),
)  # fmt: skip


def test_hostile_values_and_bodies_are_nobodys_fault_but_the_clients(guarded: Guarded) -> None:
    failed = []
    for method, path, one in guarded.operations:
        named = [p["name"] for p in one["parameters"] if p["in"] == "query"]
        for i, value in enumerate(HOSTILE):
            body = {"content": BODIES[i % len(BODIES)]} if "requestBody" in one else {}
            values = {} if "\0" in value and i % 2 else dict.fromkeys(named, value)
            code = guarded.code(method, filled(path, value), guarded.admin, params=values, **body)
            if code >= 500:
                failed.append((method, path, value, code))
    assert not failed
    for last in ("9" * 18, "9" * 19, "-1", "\xb2", "\xbd", "1e9", "0x1", "\xff" * 99):
        sent = {"last-event-id": last.encode("latin-1")}
        code = guarded.code("GET", "/api/v2/live", {**guarded.admin, **sent})
        assert code in (200, 400), (last, code)
    health = guarded.http.get("/api/v2/health").json()
    assert health["status"] == "ok", health
