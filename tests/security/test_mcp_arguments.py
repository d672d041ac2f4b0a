"""What a caller of `headwater mcp --http` may send: wrong types, deep and huge JSON, made-up sessions."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest

from headwater.cli.mcp.size import MOST
from headwater.cli.mcp.tools import TOOLS
from headwater.lab import ports
from headwater.lab.waiting import wait_until
from tests.integration.server.conftest import Process
from tests.security.attacks import Cost

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

BOTH = {"accept": "application/json, text/event-stream", "content-type": "application/json"}


class Assistant(NamedTuple):
    """A running `headwater mcp --http`, before a server of its own."""

    port: int
    process: subprocess.Popen[bytes]
    log: Path
    http: httpx.Client

    def post(self, body: bytes, **headers: str) -> httpx.Response:
        return self.http.post("/mcp", content=body, headers={**BOTH, **headers})

    def call(self, tool: Any, arguments: Any) -> httpx.Response:
        asked = {"name": tool, "arguments": arguments}
        sent = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": asked}
        return self.post(json.dumps(sent).encode())

    def answers(self) -> bool:
        return "result" in self.post(LIST).json()


LIST = b'{"jsonrpc":"2.0","id":1,"method":"tools/list"}'


@pytest.fixture(scope="module")
def mcp(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Assistant]:
    folder = tmp_path_factory.mktemp("mcp")
    server = Process(f"sqlite:///{folder}/headwater.db", folder / "server.log")
    port = ports.free()
    words = ["mcp", "--http", str(port), "--url", server.url]
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "headwater", *words], stdout=log, stderr=log
        )
    http = httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False)
    try:
        wait_until(lambda: ports.accepts(port), seconds=120, what="headwater mcp")
        yield Assistant(port, started, folder / "log", http)
    finally:
        http.close()
        started.terminate()
        started.wait(20)
        server.stop()


VALUES: tuple[Any, ...] = (
    None, True, 7, -1, 1e308, "", " ", "\0", "\ud800", "x" * 4_001, "ä" * 4_000, ":" * 4_000, [], {}, [[]],
    {"$ref": "#"}, ["x"] * 1_000, "../../etc/passwd", "dataset:", "job::", "{namespace}", "%00", "9" * 400,
    "http://127.0.0.1:9/", "\r\nHost: evil.example\r\n\r\n",
)  # fmt: skip


def test_no_value_of_a_parameter_is_more_than_a_wrong_question(mcp: Assistant) -> None:
    with Cost(mcp) as cost:
        for number, tool in enumerate(TOOLS.values()):
            # Each tool takes some of the values, and each value is taken by some tool.
            for value in VALUES[number % 8 :: 8]:
                arguments = {one.name: value for one in tool.parameters}
                found = mcp.call(tool.name, arguments)
                assert found.status_code in (200, 400), (tool.name, value, found.text)
                said = found.json()
                assert len(found.content) < 2 * MOST, (tool.name, value)
                assert "headwater mcp failed" not in found.text, (tool.name, value, found.text)
                if "result" in said and tool.parameters:
                    assert said["result"]["isError"] or "page" in found.text, (tool.name, value)
    assert cost.megabytes < 60
    assert mcp.answers()


NESTED = (
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"text":'
)
BODIES = (
    b"", b"{", b"null", b"[]", b"[1]", b"7", b'"x"', b"\xff\xfe", b"NaN", b"[" * 200_000, b'{"a":' * 40_000,
    b"[" + LIST + b"]", b"[" + b",".join([LIST] * 2_000) + b"]",
    NESTED + b"[" * 100_000 + b"]" * 100_000 + b"}}}", NESTED + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"}}}",
    NESTED + b'"' + b"x" * 250_000 + b'"}}}', NESTED + b'"x","text":"y"}}}', NESTED + b"9" * 200_000 + b"}}}",
    NESTED + b"[" * 400 + b"]" * 400 + b"}}}", b'{"jsonrpc":"1.0","id":1,"method":"tools/list"}', b'{"jsonrpc":"2.0","id":{},"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}', b'{"jsonrpc":"2.0","id":1,"method":"\\u0000"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":{},"arguments":7}}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"9","capabilities":7,"clientInfo":[]}}',
    b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}',
    b'{"jsonrpc":"2.0","id":1,"result":{}}', b'{"jsonrpc":"2.0","id":1,"method":"resources/read","params":{"uri":"file:///etc/passwd"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"completion/complete"}', b'{"jsonrpc":"2.0","id":1,"method":"logging/setLevel"}',
    b'{"jsonrpc":"2.0","id":"\\ud800","method":"tools/list"}', b'{"jsonrpc":"2.0","id":["\\ud800"],"method":"tools/list"}',
    b'{"jsonrpc":"2.0","id":1,"method":"\\ud800"}', b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"\\ud800","arguments":{}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"\\ud800","capabilities":{},"clientInfo":{"name":"\\ud800","version":"\\ud800"}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"find","arguments":{"text":"x"},"_meta":{"progressToken":"\\ud800"}}}',
)  # fmt: skip


def test_a_body_that_is_no_question_is_the_callers_fault(mcp: Assistant) -> None:
    with Cost(mcp) as cost:
        for body in BODIES:
            found = mcp.post(body)
            assert found.status_code < 500, (body[:99], found.text[:300])
            assert "root:" not in found.text
            assert len(found.content) < 2 * MOST, body[:99]
    assert cost.megabytes < 60
    assert cost.seconds < 10
    assert mcp.answers()
    log = mcp.log.read_text(errors="replace")
    assert len(log.splitlines()) == 1, log  # where it answers


def test_a_session_that_was_made_up_is_none(mcp: Assistant) -> None:
    for name in ("x", "0" * 32, "../x", "x" * 8_000, "{}"):
        found = mcp.post(LIST, **{"mcp-session-id": name, "last-event-id": "9" * 5_000})
        assert found.status_code in (200, 400, 404), (name[:20], found.text)
    for name, code in (("mcp-protocol-version", 400), ("host", 421), ("origin", 403)):
        for value in ("evil.example", f"localhost:{mcp.port}.evil.example", "null", "http://[bad"):
            assert mcp.post(LIST, **{name: value}).status_code == code, (name, value)
    # A stream to listen on would hold one of few connections, and nothing is ever sent on it.
    with mcp.http.stream("GET", "/mcp", headers=BOTH) as listening:
        assert listening.status_code == 405
    for method in ("PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"):
        found = mcp.http.request(method, "/mcp", headers=BOTH)
        assert 400 <= found.status_code < 500, method
