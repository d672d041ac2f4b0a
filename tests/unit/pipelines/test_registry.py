"""The pipeline's calls to a schema registry: logins, and what is said when one is refused."""

from __future__ import annotations

import base64
import json
import ssl
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from typing import TYPE_CHECKING

import httpx
import pytest
import registry

from tests.unit.connect.certificates import Authority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BASIC = f"Basic {base64.b64encode(b'ann:p:1').decode()}"
NAMES = tuple(f"SCHEMA_REGISTRY_{name}" for name in ("USER_INFO", "TOKEN", "CA", "CERT", "KEY"))


class Gate(HTTPServer):
    """A registry that asks for a login, as the lab's own cannot."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.wanted = ""
        self.schemas: dict[str, list[str]] = {}


class _Handler(BaseHTTPRequestHandler):
    server: Gate

    def do_GET(self) -> None:
        subject, _, version = self.path.removeprefix("/api/subjects/").partition("/versions")
        known = self.server.schemas.get(subject)
        if version:
            number = int(version.strip("/"))
            self._answer(200, {"id": 10 + number, "schema": (known or [])[number - 1]})
        elif known is None:
            self._answer(404, {"error_code": 40401})
        else:
            self._answer(200, list(range(1, len(known) + 1)))

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["content-length"])))
        subject = self.path.removeprefix("/api/subjects/").removesuffix("/versions")
        known = self.server.schemas.setdefault(subject, [])
        if body["schema"] not in known:
            known.append(body["schema"])
        self._answer(200, {"id": 11 + known.index(body["schema"])})

    def _answer(self, code: int, body: object) -> None:
        if self.server.wanted and self.headers.get("authorization") != self.server.wanted:
            code, body = 401, {"message": "secret p:1 is wrong"}
        self.send_response(code)
        self.end_headers()
        self.wfile.write(json.dumps(body).encode())

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture
def gate(monkeypatch: pytest.MonkeyPatch) -> Iterator[Gate]:
    for name in NAMES:
        monkeypatch.delenv(name, raising=False)
    with Gate() as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server
        server.shutdown()
        thread.join()


def url(gate: Gate, scheme: str = "http") -> str:
    return f"{scheme}://127.0.0.1:{gate.server_port}/api/"


def test_a_schema_is_made_known_once_and_found_again(gate: Gate) -> None:
    first = registry.register(url(gate), "totals", {"type": "string"})
    assert first == registry.register(url(gate), "totals", {"type": "string"})
    second = registry.register(url(gate), "totals", {"type": "bytes"})
    assert registry.writers(url(gate), "totals") == [first, second]
    assert first.id != second.id


def test_a_topic_without_a_schema_is_named(gate: Gate) -> None:
    with pytest.raises(SystemExit, match="no schema of topic a/b: one comes with"):
        registry.writers(url(gate), "a/b")


@pytest.mark.parametrize(
    ("name", "value", "wanted"),
    [
        ("SCHEMA_REGISTRY_USER_INFO", "ann:p:1", BASIC),
        ("SCHEMA_REGISTRY_TOKEN", "t0ken", "Bearer t0ken"),
    ],
)
def test_a_login_comes_from_the_environment(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, name: str, value: str, wanted: str
) -> None:
    gate.wanted = wanted
    with pytest.raises(SystemExit, match=r"refuses the login \(401\): set SCHEMA_REGISTRY") as told:
        registry.register(url(gate), "totals", {"type": "string"})
    assert "p:1" not in str(told.value)
    monkeypatch.setenv(name, value)
    assert registry.register(url(gate), "totals", {"type": "string"}).id == 11


def test_a_registry_is_trusted_by_a_file_and_shown_a_certificate(
    gate: Gate, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    ours = Authority(tmp_path, "ours")
    server, client = ours.issue("server"), ours.issue("client")
    asking = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(ours.pem))
    asking.load_cert_chain(server.cert, server.key)
    asking.verify_mode = ssl.CERT_REQUIRED
    gate.socket = asking.wrap_socket(gate.socket, server_side=True)

    def register() -> int:
        return registry.register(url(gate, "https"), "totals", {"type": "string"}).id

    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        register()
    monkeypatch.setenv("SCHEMA_REGISTRY_CA", str(ours.pem))
    with pytest.raises(httpx.HTTPError):  # it is trusted, and does not trust us
        register()
    monkeypatch.setenv("SCHEMA_REGISTRY_CERT", str(client.cert))
    monkeypatch.setenv("SCHEMA_REGISTRY_KEY", str(client.key))
    assert register() == 11
    both = tmp_path / "both.pem"
    both.write_bytes(client.key.read_bytes() + client.cert.read_bytes())
    monkeypatch.setenv("SCHEMA_REGISTRY_CERT", str(both))
    monkeypatch.delenv("SCHEMA_REGISTRY_KEY")
    assert register() == 11
    monkeypatch.setenv("SCHEMA_REGISTRY_CA", str(Authority(tmp_path, "others").pem))
    with pytest.raises(httpx.ConnectError, match="CERTIFICATE_VERIFY_FAILED"):
        register()
