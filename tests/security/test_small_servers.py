"""The servers beside the server: the gate before the lab's registry, and `headwater mcp --http`."""

from __future__ import annotations

import socket
import subprocess
import sys
from base64 import b64encode
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

import httpx
import pytest

from headwater.lab import ports, process
from headwater.lab.waiting import wait_until
from headwater.server.http import bounded_uvicorn
from tests.security.attacks import MB, Cost, answer, connected, ended, first_quick
from tests.unit.lab.test_lab_login_proxy import LOGIN, Gated

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECRET = "hw_a-token-of-its-own"
BASIC = b64encode(":".join(LOGIN).encode()).decode()


class Small(NamedTuple):
    """A small server: where it is, its process, what opens it, and a path of its own."""

    port: int
    process: Any
    login: str
    path: str

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def head(self, method: str = "POST", *lines: str) -> bytes:
        first = (f"{method} {self.path} HTTP/1.1", f"Host: 127.0.0.1:{self.port}", *lines)
        return "\r\n".join((*first, "", "")).encode("latin-1")

    def refuses(self) -> bool:
        return httpx.post(self.url, content=b"{}", trust_env=False).status_code == 401


def gate(folder: Path) -> Iterator[Small]:
    made = Gated(folder)
    service = made.service
    yield Small(made.port, made.process, f"Basic {BASIC}", "/subjects")
    made.http.close()
    process.end([service])
    made.process.wait(10)


def mcp(folder: Path) -> Iterator[Small]:
    token = folder / "token"
    token.write_text(SECRET)
    port = ports.free()
    # It asks the server only when a tool is called, which no stranger can.
    words = [
        "mcp",
        "--http",
        str(port),
        "--url",
        "http://127.0.0.1:9",
        "--http-token-file",
        str(token),
    ]
    with (folder / "log").open("wb") as log:
        started = subprocess.Popen(
            [sys.executable, "-m", "headwater", *words], stdout=log, stderr=log
        )
    try:
        wait_until(lambda: ports.accepts(port), seconds=120, what="headwater mcp")
        yield Small(port, started, f"Bearer {SECRET}", "/mcp")
    finally:
        started.terminate()
        started.wait(20)


@pytest.fixture(params=first_quick([gate, mcp]), ids=["gate", "mcp"])
def small(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Small]:
    yield from request.param(tmp_path)


@pytest.fixture
def gated(tmp_path: Path) -> Iterator[Small]:
    yield from gate(tmp_path)


@pytest.mark.parametrize("line", first_quick([b"x-many: y\r\n", b"y", b""]))
def test_a_head_without_an_end_takes_no_memory(small: Small, line: bytes) -> None:
    sent = small.head()[:-2] + line * (40 * MB // max(len(line), 1) if line else 0)
    sent = sent if line else b"GET /" + b"a" * 40 * MB
    with Cost(small) as cost, connected(small, sent) as connection:
        assert ended(connection, 20)
    assert cost.megabytes < 10
    assert small.refuses()


def test_a_body_of_a_stranger_is_not_kept_and_has_an_end(small: Small) -> None:
    with Cost(small) as cost, ExitStack() as open_ones:
        for _ in range(20):
            connection = open_ones.enter_context(connected(small))
            connection.settimeout(1)
            connection.sendall(small.head("POST", f"Content-Length: {10 * MB}"))
            with suppress(OSError):  # it is not read
                connection.sendall(b"x" * 5 * MB)
    assert cost.megabytes < 20
    assert small.refuses()


def test_slow_clients_are_cut_off(small: Small) -> None:
    starts = (b"", b"GET / HT", small.head()[:-2], small.head("POST", f"Authorization: {small.login}",
              "Content-Length: 9"))  # fmt: skip
    with ExitStack() as open_ones:
        slow = [open_ones.enter_context(connected(small, start)) for start in starts]
        for connection in slow:
            assert ended(connection, 3 * bounded_uvicorn.SECONDS)


def test_connections_have_a_limit_and_go(small: Small) -> None:
    with ExitStack() as open_ones:
        for _ in range(300):
            with suppress(OSError):
                open_ones.enter_context(connected(small, b"GET"))
        assert small.process.poll() is None
    wait_until(lambda: _asked(small) == 401, seconds=30, what="the others to be gone")


def _asked(small: Small) -> int:
    try:
        return httpx.get(small.url, trust_env=False).status_code
    except httpx.HTTPError:
        return 0


WRONG = (
    "Basic", "Basic ", "Bearer", "Bearer ", "Basic \xff", "Bearer \xff\xfe", "Basic " + "A" * 9_000,
    "Digest username=lab", f"Basic {BASIC[:-2]}", f"Basic {BASIC}=", f"Basic  {BASIC}", f"Bearer {BASIC}",
    f"Bearer {SECRET}x", f"Bearer  {SECRET}", f"Basic {SECRET}", SECRET,
)  # fmt: skip


def test_only_the_whole_login_opens_it(small: Small) -> None:
    for wrong in WRONG:
        for head in (
            small.head("POST", f"Authorization: {wrong}", "Content-Length: 0"),
            # Of two, neither counts for the other.
            small.head("POST", f"Authorization: {small.login}", f"Authorization: {wrong}", "Content-Length: 0"),
            small.head("GET", f"Proxy-Authorization: {small.login}", f"X-Forwarded-Authorization: {small.login}"),
        ):  # fmt: skip
            with connected(small, head) as connection:
                assert answer(connection).split()[1] in (b"400", b"401"), wrong


SMUGGLED = b"GET /stolen HTTP/1.1\r\nHost: x\r\n\r\n"


def test_a_request_within_a_request_is_none_of_its_own(small: Small) -> None:
    inner = SMUGGLED.decode()
    for lines, body in (
        (("Content-Length: 4", f"Content-Length: {len(SMUGGLED)}"), inner),
        (("Transfer-Encoding: chunked", "Transfer-Encoding: identity"), f"0\r\n\r\n{inner}"),
        (("Transfer-Encoding: xchunked", "Content-Length: 0"), f"0\r\n\r\n{inner}"),
        (("Content-Length: +4",), inner), (("Content-Length: 0x4",), inner), (("Content-Length : 4",), inner),
        (("X: y\r\n\tTransfer-Encoding: chunked\rX: z",), inner), (("X: a\0b",), inner),
    ):  # fmt: skip
        head = small.head("POST", f"Authorization: {small.login}", *lines)
        with connected(small, head + body.encode()) as connection:
            found = answer(connection)
            assert found.split()[1] in (b"400", b"501"), (lines, found)
            assert ended(connection, 10)


def test_no_other_protocol_is_spoken(small: Small) -> None:
    upgrade = ("Connection: Upgrade", "Upgrade: websocket", "Sec-WebSocket-Version: 13",
               "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==")  # fmt: skip
    with connected(small, small.head("GET", *upgrade)) as connection:
        assert answer(connection).split()[1] == b"401"
    with connected(
        small, small.head("GET", *upgrade, f"Authorization: {small.login}")
    ) as connection:
        assert int(answer(connection).split()[1]) not in (101, 500)
    for first in (b"CONNECT 127.0.0.1:9 HTTP/1.1\r\nHost: x\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
                  b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", b"\x16\x03\x01" + bytes(99)):  # fmt: skip
        with connected(small, first) as connection:
            assert answer(connection).split()[1] in (b"400", b"401", b"404"), first
    assert small.refuses()


def test_the_gate_passes_a_path_on_as_it_is_and_nowhere_else(gated: Small) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        elsewhere = f"127.0.0.1:{other.getsockname()[1]}"
        for path in ("//" + elsewhere + "/x", "/a/../b", "/%2e%2e/x", "/%", "/a%00b", "/a;b=c?d&e#f", "/" + "a" * 9_000,
                     "/@" + elsewhere, f"/?url=http://{elsewhere}"):  # fmt: skip
            found = passed(gated, path)
            assert found.split()[1] == b"200", (path, found)
            with_path = httpx.Response(200, content=found.partition(b"\r\n\r\n")[2]).json()[1]
            assert with_path == (path if not path.startswith("//") else path[1:]), path
        for path in (f"http://{elsewhere}/x", "*", "x", "@" + elsewhere):
            assert passed(gated, path).split()[1] == b"400", path
        other.settimeout(0)
        with pytest.raises(BlockingIOError):
            other.accept()


def passed(small: Small, path: str, method: str = "GET", *lines: str) -> bytes:
    head = small._replace(path=path).head(method, f"Authorization: {small.login}", "Connection: close", *lines)  # fmt: skip
    found = b""
    with connected(small, head) as connection, suppress(OSError):
        while part := connection.recv(65_536):
            found += part
    return found


def test_the_gate_bounds_what_it_passes_on(gated: Small) -> None:
    headers = {"authorization": gated.login}
    with httpx.Client(trust_env=False, timeout=60, headers=headers) as client, Cost(gated) as cost:
        assert client.post(gated.url, content=b"x" * MB).status_code == 200
        assert client.post(gated.url, content=iter([b"x" * MB] * 20)).status_code == 413
    assert cost.megabytes < 40
    for method in ("TRACE", "PURGE", "A" * 200):
        assert passed(gated, "/subjects", method).split()[1] in (b"400", b"501"), method
    assert gated.refuses()


def test_what_the_service_sets_for_one_is_not_sent_for_another(gated: Small) -> None:
    assert b"set-cookie" in passed(gated, "/cookie").lower()
    assert b"cookie" not in passed(gated, "/subjects").lower()
    assert b'"cookie": "own=1"' in passed(gated, "/subjects", "GET", "Cookie: own=1").lower()
