"""The proxy before a service without logins: who passes, and what arrives."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import textwrap
import threading
from base64 import b64encode
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any

import httpx
import msgspec
import psutil
import pytest

from headwater.lab import ports, process
from headwater.lab.login_proxy import LoginProxy, LoginProxyConfig
from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

LOGIN = ("lab", "pass:word")
# Answers with what it was asked, so that a test can see what passed the proxy.
ECHO = textwrap.dedent(
    """
    import json, sys
    from http.server import BaseHTTPRequestHandler, HTTPServer

    class Echo(BaseHTTPRequestHandler):
        def do_any(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0)).decode()
            said = json.dumps([self.command, self.path, body, dict(self.headers.items())]).encode()
            self.send_response(409 if self.path == "/refused" else 200)
            self.send_header("X-Said", "yes")
            if self.path == "/cookie":
                self.send_header("Set-Cookie", "theirs=1; Path=/")
            self.send_header("Content-Length", str(len(said)))
            self.end_headers()
            self.wfile.write(said)
        do_GET = do_POST = do_PUT = do_DELETE = do_any

    HTTPServer(("127.0.0.1", int(sys.argv[1])), Echo).serve_forever()
    """
)


class Gated:
    """A proxy in a process of its own, before a service that says what it was asked."""

    def __init__(self, folder: Path) -> None:
        self.port = ports.free()
        self.behind = ports.free({self.port})
        config = LoginProxyConfig(
            port=self.port,
            behind=f"http://127.0.0.1:{self.behind}",
            users=dict([LOGIN]),
            argv=[sys.executable, "-c", ECHO, str(self.behind)],
        )
        file = folder / "gate.json"
        file.write_bytes(msgspec.json.encode(config))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "headwater.lab.login_proxy", str(file)]
        )
        self.http = httpx.Client(base_url=f"http://127.0.0.1:{self.port}", trust_env=False)
        wait_until(
            lambda: ports.accepts(self.port) and ports.accepts(self.behind),
            seconds=120,
            what="the proxy",
        )

    @property
    def service(self) -> psutil.Process:
        (found,) = psutil.Process(self.process.pid).children()
        return found


class Heard:
    """A service that notes what it is asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_PUT(self) -> None:
                asked.append(self.path)
                self.send_response(200)
                self.end_headers()

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_port}"

    def __enter__(self) -> None:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Gated]:
    made = Gated(tmp_path)
    service = made.service
    yield made
    made.http.close()
    process.end([service])
    made.process.wait(10)


def test_only_a_login_passes(gated: Gated) -> None:
    for wrong in (None, ("lab", "wrong"), ("other", LOGIN[1]), ("lab", "")):
        answer = gated.http.get("/subjects", auth=wrong)
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Basic")
    assert gated.http.get("/", headers={"authorization": f"Bearer {LOGIN[1]}"}).status_code == 401
    assert gated.http.get("/subjects", auth=LOGIN).status_code == 200


def test_what_passes_arrives_whole_and_without_the_login(gated: Gated) -> None:
    gated.http.auth = httpx.BasicAuth(*LOGIN)
    answer = gated.http.put("/a%2Fb/c?deleted=true&n=%C3%A4", content="ünï", headers={"x-tag": "1"})
    method, path, body, headers = answer.json()
    assert (method, path, body) == ("PUT", "/a%2Fb/c?deleted=true&n=%C3%A4", "ünï")
    lowered = {name.lower(): value for name, value in headers.items()}
    assert lowered["x-tag"] == "1"
    assert "authorization" not in lowered
    assert answer.headers["x-said"] == "yes"
    # A body whose length nobody announced, as Java's client sends one.
    assert gated.http.post("/", content=iter([b"in ", b"parts"])).json()[2] == "in parts"
    assert gated.http.delete("/refused").status_code == 409


def test_half_a_request_does_not_pass() -> None:
    behind = Heard()
    headers = [(b"authorization", b"Basic " + b64encode(":".join(LOGIN).encode()))]
    scope = {"method": "PUT", "raw_path": b"/mode", "query_string": b"", "headers": headers}
    parts: list[dict[str, Any]] = [
        {"type": "http.request", "body": b'{"mode": "READ', "more_body": True},
        {"type": "http.disconnect"},
    ]

    async def receive() -> dict[str, Any]:
        return parts.pop(0)

    async def send(_message: dict[str, Any]) -> None:
        raise AssertionError("its client has gone")

    with behind:
        asyncio.run(LoginProxy(behind.url, dict([LOGIN]))(scope, receive, send))
        assert not parts
        assert behind.asked == []


def test_gate_and_service_end_together(gated: Gated) -> None:
    gated.process.terminate()
    gated.process.wait(10)
    assert not ports.accepts(gated.behind)
    assert not ports.accepts(gated.port)


def test_a_gate_does_not_outlive_its_service(gated: Gated) -> None:
    gated.service.kill()
    assert gated.process.wait(10) != 0
    assert not ports.accepts(gated.port)
