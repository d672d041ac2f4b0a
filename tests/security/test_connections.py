"""What a connection can cost before anyone knows who it is."""

from __future__ import annotations

import contextlib
import json
import time
from typing import TYPE_CHECKING

import httpx
import pytest

from tests.integration.server.conftest import Process
from tests.integration.server.making import event
from tests.security.attacks import (
    Cost,
    alive,
    answer,
    connected,
    ended,
    eventually,
    first_quick,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

BODY = json.dumps(event("START", 0)).encode()


def post(path: str, length: int, *headers: str) -> bytes:
    lines = [f"POST {path} HTTP/1.1", "host: localhost", f"content-length: {length}", *headers]
    return "\r\n".join([*lines, "", ""]).encode()


@pytest.fixture(scope="module")
def closed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    """A server that needs a token."""
    folder = tmp_path_factory.mktemp("closed")
    (folder / "tokens").write_text("right\n")
    options = ("--no-page", "--token-file", str(folder / "tokens"))
    server = Process(f"sqlite:///{folder}/headwater.db", folder / "server.log", *options)
    yield server
    server.stop()


HEADS = {
    "many headers": [b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n", b"x-a: %s\r\n" % (b"a" * 8_000)],
    "one header": [b"GET /api/v1/jobs HTTP/1.1\r\nx-a: ", b"a" * 8_000],
    "an address": [b"GET /api/v1/jobs?x=", b"a" * 8_000],
    "a name of a header": [b"GET / HTTP/1.1\r\n", b"a" * 8_000],
}  # fmt: skip


@pytest.mark.parametrize("kind", HEADS)
def test_a_head_that_does_not_end_is_cut(closed: Process, kind: str) -> None:
    first, more = HEADS[kind]
    with Cost(closed) as cost, connected(closed, first) as connection:
        with contextlib.suppress(OSError):
            for _ in range(5_000):
                connection.sendall(more)
        assert ended(connection, 5)
    assert cost.megabytes < 10
    assert alive(closed)


def test_a_head_over_the_limit_is_431_and_one_below_it_is_not(
    launch: Callable[..., Process],
) -> None:
    server = launch(None, "--no-page", "--header-limit", "4000")
    for size, code in ((3_000, 200), (5_000, 431), (100_000, 431)):
        head = b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\nx: %s\r\n\r\n" % (b"a" * size)
        with connected(server, head) as connection:
            found = answer(connection)
            assert found.startswith(b"HTTP/1.1 %d " % code) or (size > 50_000 and not found), found
    with connected(server, post("/api/v1/lineage", len(BODY)) + BODY) as connection:
        # A body of any length is no part of the head.
        assert answer(connection).startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize("path", ["/api/v1/lineage", "/api/v2/events", "/api/v1/tags/x"])
def test_a_token_is_checked_before_the_body_is_sent(closed: Process, path: str) -> None:
    method = post(path, 5_000_000, "authorization: Bearer wrong")
    if "tags" in path:
        method = method.replace(b"POST", b"PUT")
    with connected(closed, method) as connection:
        assert answer(connection).startswith(b"HTTP/1.1 401")


@pytest.mark.parametrize("path", ["/api/v1/lineage", "/api/v2/events"])
def test_bodies_of_strangers_are_not_kept(closed: Process, path: str) -> None:
    with Cost(closed) as cost, contextlib.ExitStack() as held:
        for _ in range(30):
            head = post(path, 9_000_000, "authorization: Bearer wrong")
            held.enter_context(connected(closed, head + b"x" * 3_000_000))
    assert cost.megabytes < 30
    assert alive(closed)


def test_a_refused_body_leaves_the_connection_usable(closed: Process) -> None:
    with connected(closed, post("/api/v1/lineage", len(BODY)) + BODY) as connection:
        assert answer(connection).startswith(b"HTTP/1.1 401")
        connection.sendall(post("/api/v1/lineage", len(BODY), "authorization: Bearer right") + BODY)
        assert answer(connection).startswith(b"HTTP/1.1 201")


@pytest.mark.parametrize("path", ["/api/v1/lineage", "/api/v2/events", "/api/v2/flow"])
def test_a_length_over_the_limit_is_413_before_anything_is_sent(
    launch: Callable[..., Process], path: str
) -> None:
    server = launch(None, "--no-page", "--body-limit", "1000", "--batch-limit", "1000")
    for length in (1_001, 10**12, 10**40):
        with connected(server, post(path, length)) as connection:
            found = answer(connection)
            # The parser itself refuses a length of more than 64 bits.
            assert found.startswith((b"HTTP/1.1 413", b"HTTP/1.1 400")), found


@pytest.mark.parametrize("path", first_quick(["/api/v1/lineage", "/api/v2/events"]))
def test_bodies_in_flight_have_one_limit(launch: Callable[..., Process], path: str) -> None:
    server = launch(None, "--no-page", "--bodies-limit", "20000000")
    with Cost(server) as cost, contextlib.ExitStack() as held:
        half = post(path, 9_000_001) + b"x" * 8_000_000
        connections = [held.enter_context(connected(server, half)) for _ in range(12)]
        answers = []
        for connection in connections:
            connection.settimeout(0.5)
            answers.append(answer(connection)[:12])
        assert b"HTTP/1.1 503" in answers
        assert answers.count(b"") in (1, 2)
    assert cost.megabytes < 60
    # What they held is free again as soon as they are gone.
    eventually(lambda: httpx.post(f"{server.url}{path}", content=BODY).status_code == 201)


@pytest.mark.parametrize(
    "sent",
    first_quick([b"", b"\r\n", b"GET /api/v1/jobs HTTP/1.1\r\nhost: loc", post("/api/v1/lineage", 1_000) + b"{",
     post("/api/v2/events", 1_000) + b"[", post("/api/v1/lineage", 1_000, "expect: 100-continue"),
     b"POST /api/v2/events HTTP/1.1\r\nhost: a\r\ntransfer-encoding: chunked\r\n\r\n1\r\n[\r\n"]),
    ids=["nothing", "empty lines", "half a head", "half an event", "half a batch", "continue", "chunks"],
)  # fmt: skip
def test_a_client_that_sends_slowly_is_cut_off(launch: Callable[..., Process], sent: bytes) -> None:
    server = launch(None, "--no-page", "--request-timeout", "1")
    with connected(server, sent) as connection:
        began = time.monotonic()
        while time.monotonic() - began < 15:
            connection.settimeout(0.3)
            with contextlib.suppress(TimeoutError, OSError):
                if b"100 Continue" not in (found := connection.recv(65_536)):
                    assert found == b"" or found.startswith(b"HTTP/1.1 4")
                    break
            with contextlib.suppress(OSError):
                connection.sendall(sent[-1:] if sent[-1:] in (b"\n", b"c") else b"")
        assert time.monotonic() - began < 12
    assert alive(server)


@pytest.mark.full
def test_a_steady_client_gets_the_time_it_needs(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page", "--request-timeout", "1")
    padding = b" " * 40_000
    with connected(server, post("/api/v1/lineage", 6 * len(padding) + len(BODY))) as connection:
        for _ in range(6):
            time.sleep(0.6)
            connection.sendall(padding)
        connection.sendall(BODY)
        assert answer(connection).startswith(b"HTTP/1.1 201")


def test_connections_of_one_client_are_counted(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page", "--client-connections", "5")
    head = b"GET /api/v2/health HTTP/1.1\r\nhost: localhost\r\n\r\n"
    for _ in range(3):  # those that are gone do not count
        with contextlib.ExitStack() as held:
            found = [held.enter_context(connected(server, head)) for _ in range(9)]
            codes = [answer(connection)[9:12] for connection in found]
            # The server may not have noticed yet that the one before them is gone.
            assert codes.count(b"200") in (4, 5)
            assert codes.count(b"503") >= 1
            assert codes.count(b"200") + codes.count(b"503") + codes.count(b"") == 9
        eventually(lambda: alive(server))


@pytest.mark.full
def test_all_connections_are_counted(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page", "--connections", "3")
    with contextlib.ExitStack() as held:
        found = [held.enter_context(connected(server)) for _ in range(4)]
        assert answer(found[3]).startswith(b"HTTP/1.1 503")
    eventually(lambda: alive(server))


def test_requests_that_wait_behind_another_are_few(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page")
    head = b"GET /api/v1/jobs HTTP/1.1\r\nhost: localhost\r\n\r\n"
    with Cost(server) as cost, connected(server, head * 50_000) as connection:
        assert ended(connection, 20)
    assert cost.megabytes < 20
    with connected(server, head * 8) as connection:
        found = b""
        while found.count(b"HTTP/1.1 200") < 8:
            part = connection.recv(65_536)
            assert part
            found += part
