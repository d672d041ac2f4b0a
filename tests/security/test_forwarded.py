"""Headers of a proxy from whoever is none, trailers, and addresses below a root path.

Connections from 127.0.0.1 are those of a trusted proxy, connections from 127.0.0.2 are strangers.
"""

from __future__ import annotations

import json
import socket
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from tests.integration.server.conftest import Process
from tests.integration.server.making import event
from tests.security.attacks import MB, Cost, alive, answer, ended, first_quick

if TYPE_CHECKING:
    from collections.abc import Iterator

PROXY, STRANGER = "127.0.0.1", "127.0.0.2"
ROOT = "/tools/lineage"
BATCH = f"[{json.dumps(event('START', 0))}]"
READ, WRITE, EVENT = "/api/v2/overview", "/api/v2/events", "/api/v1/lineage"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Process]:
    folder = tmp_path_factory.mktemp("forwarded")
    (folder / "tokens").write_text("producers\n")
    options = ("--trusted-proxies", PROXY, "--user-header", "X-Forwarded-User", "--user-role", "ann=admin",
               "--user-role", "bob=read", "--user-role", "none", "--root-path", ROOT,
               "--token-file", str(folder / "tokens"))  # fmt: skip
    started = Process(f"sqlite:///{folder}/headwater.db", folder / "log", *options)
    yield started
    started.stop()


def head(
    server: Process, address: str, target: str, *lines: str, body: str | None = None
) -> list[bytes]:
    """The words of the answer to one request, which is sent as it is written."""
    method = "GET" if body is None else "POST"
    if not any(line.lower().startswith("host") for line in lines):
        lines = (f"Host: 127.0.0.1:{server.port}", *lines)
    if body is not None and "Transfer-Encoding: chunked" not in lines:
        lines = (*lines, f"Content-Length: {len(body)}")
    sent = "\r\n".join((f"{method} {target} HTTP/1.1", *lines, "Connection: close", "", body or ""))
    with socket.create_connection(
        ("127.0.0.1", server.port), 20, source_address=(address, 0)
    ) as connection:
        connection.sendall(sent.encode("latin-1"))
        return answer(connection).split()


def code(server: Process, address: str, target: str, *lines: str, body: str | None = None) -> int:
    """The status of the answer to one request."""
    return int(head(server, address, target, *lines, body=body)[1])


def codes(server: Process, address: str, *lines: str) -> set[int]:
    """What a question, a batch and an event are answered, with and without the root path."""
    return {
        code(server, address, root + path, *lines, body=body)
        for root in ("", ROOT)
        for path, body in ((READ, None), (WRITE, BATCH), (EVENT, BATCH[1:-1]))
    }


SPOOFED: tuple[tuple[str, ...], ...] = (
    ("X-Forwarded-User: ann",),
    ("x-FORWARDED-user: ann",),
    ("X-Forwarded-User: ann", "X-Forwarded-User: ann"),
    ("X-Forwarded-User: ann", "X-Forwarded-For: 127.0.0.1"),
    ("X-Forwarded-User: ann", "X-Forwarded-For: 127.0.0.1", "x-forwarded-for: 127.0.0.1, 127.0.0.1"),
    ("X-Forwarded-User: ann", "Forwarded: for=127.0.0.1;by=127.0.0.1;host=localhost;proto=https"),
    ("X-Forwarded-User: ann", "X-Real-IP: 127.0.0.1", "X-Client-IP: 127.0.0.1", "True-Client-IP: 127.0.0.1"),
    ("X-Forwarded-User: ann", "Via: 1.1 127.0.0.1", "X-Forwarded-Host: localhost", "X-Forwarded-Port: 1"),
    ("X-Original-URL: /api/v2/health", "X-Rewrite-URL: /api/v2/health", "X-Forwarded-Prefix: /api/v2/health"),
    ("X-Remote-User: ann", "Remote-User: ann", "X-Forwarded-Email: ann", "X-Forwarded-Preferred-Username: ann"),
)  # fmt: skip


def test_a_stranger_who_writes_a_proxys_headers_is_a_stranger(server: Process) -> None:
    assert codes(server, PROXY, "X-Forwarded-User: ann") == {200, 201}
    for lines in SPOOFED:
        assert codes(server, STRANGER, *lines) == {401}, lines
    # What is no HTTP at all is refused before anyone looks who it may be.
    for broken in (
        "X-Forwarded-User : ann",
        "X-Forwarded-User\t: ann",
        "X-A: b\r\n X-Forwarded-User: ann",
    ):
        assert codes(server, STRANGER, broken) <= {400, 401}, broken


def test_a_proxy_names_one_person_by_one_header_or_nobody(server: Process) -> None:
    for lines in (
        ("X-Forwarded-User: ann", "x-forwarded-USER: bob"),
        ("X-Forwarded-User: bob", "X-Forwarded-User: ann"),
        ("X-Forwarded-User:", "X-Forwarded-User: ann"),
        ("X_Forwarded_User: ann",),
        ("X-Forwarded-User: " + "a" * 300,),
        ("Connection: X-Forwarded-User", "Forwarded: for=ann", "X-Forwarded-For: ann"),
        ("Authorization: Bearer wrong", "X-Forwarded-User: ann"),
    ):
        assert codes(server, PROXY, *lines) == {401}, lines
    twice = ("Authorization: Bearer wrong", "Authorization: Bearer producers")
    assert codes(server, PROXY, *twice) == {400}
    # These are names of somebody else, who has no role.
    for name in ("ANN", "ann, bob", "bob, ann", '"ann"', "ann;admin", "ann%00", "*", "ann=admin"):
        assert codes(server, PROXY, f"X-Forwarded-User: {name}") == {403}, name
    assert codes(server, PROXY, "X-Forwarded-User: bob") == {200, 403}


def test_what_follows_a_body_says_nothing_about_who_asks(server: Process) -> None:
    """Trailers stood among the headers, so they passed a proxy that takes its own header out."""
    for trailer in (
        "Authorization: Bearer producers",
        "X-Forwarded-User: ann",
        "authorization: bearer producers",
    ):
        for path, body in ((WRITE, BATCH), (ROOT + WRITE, BATCH), (EVENT, BATCH[1:-1])):
            chunked = f"{len(body):x}\r\n{body}\r\n0\r\n{trailer}\r\n\r\n"
            for address in (PROXY, STRANGER):
                found = code(server, address, path, "Transfer-Encoding: chunked", body=chunked)
                assert found == 401, (trailer, path, address)
    chunked = (
        f"{len(BATCH):x}\r\n{BATCH}\r\n0\r\nContent-Encoding: gzip\r\nX-Forwarded-User: bob\r\n\r\n"
    )
    lines = ("Transfer-Encoding: chunked", "X-Forwarded-User: ann")
    assert code(server, PROXY, WRITE, *lines, body=chunked) == 201


@pytest.mark.parametrize("path", first_quick([EVENT, WRITE]))
@pytest.mark.parametrize("line", [b"x-many: y\r\n" * 1_000, b"y" * 11_000])
def test_trailers_without_an_end_take_no_memory(server: Process, path: str, line: bytes) -> None:
    """100 MB of them, of a client without a token, took 1 GB; a single one took 14 s of CPU."""
    head = f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n[]\r\n0\r\nx: "
    with (
        Cost(server) as cost,
        socket.create_connection(("127.0.0.1", server.port), 20) as connection,
    ):
        connection.sendall(head.encode())
        with suppress(OSError):
            for _ in range(20 * MB // len(line)):
                connection.sendall(line)
        assert ended(connection, 9)
    assert cost.megabytes < 10
    assert cost.seconds < 2
    assert alive(server)


def test_no_way_of_writing_a_path_opens_what_is_below_the_root(server: Process) -> None:
    tricks = [
        ROOT + path
        for path in ("//api/v2/overview", "/./api/v2/overview", "/x/../api/v2/overview", "/%2e%2e/api/v2/overview",
                     "%2fapi%2fv2%2foverview", "/api/v2/health/../overview", "/api/v2/health%2f..%2foverview",
                     "/api/v2/overview;x=/api/v2/health", "/api/v2/overview%00", "/api/v2/overview#/api/v2/health",
                     ROOT + "/api/v2/overview", "/api/v2/overview?x=/api/v2/health", "\\api\\v2\\overview")
    ]  # fmt: skip
    tricks += [
        f"//{ROOT[1:]}{READ}", f"/tools//lineage{READ}", f"/tools%2flineage{READ}", f"/tools/./lineage{READ}",
        f"/TOOLS/lineage{READ}", f"/tools/lineages/..{READ}", f"http://localhost{ROOT}{READ}", f"http://localhost{READ}",
        f"http://evil.example{ROOT}{READ}", f"//evil.example{READ}", f"http://ann@localhost{ROOT}{READ}",
    ]  # fmt: skip
    for target in tricks:
        for address in (PROXY, STRANGER):
            found = head(server, address, target)
            # What is no route is the page, which anyone may load, or nothing.
            is_page = found[1] == b"200" and b"text/html;" in found
            assert is_page or found[1] in (b"400", b"401", b"404"), target
    for target in (
        f"http://localhost{ROOT}{WRITE}",
        f"http://localhost{EVENT}",
        f"{ROOT}/api/v1%2flineage",
        f"{ROOT}//api/v1/lineage",
    ):
        for address in (PROXY, STRANGER):
            assert code(server, address, target, body=BATCH[1:-1]) in (400, 401, 404, 405), target
    with_token = ("Authorization: Bearer producers",)
    assert code(server, STRANGER, f"http://localhost{ROOT}{READ}", *with_token) == 200
    assert code(server, STRANGER, ROOT + ROOT + READ, *with_token) == 404


def test_a_foreign_host_is_refused_however_it_is_given(server: Process) -> None:
    token = "Authorization: Bearer producers"
    for lines in (
        ("Host: evil.example",),
        ("Host: evil.example", "X-Forwarded-Host: localhost"),
        ("Host: evil.example", "Host: localhost"),
        ("Host: evil.example", "Forwarded: host=localhost"),
        ("Host: localhost.evil.example",),
        ("Host: localhost@evil.example",),
        ("Host: [::1].evil.example",),
        ("Host: localhost:evil.example",),
    ):
        for address in (PROXY, STRANGER):
            assert codes(server, address, *lines, token) <= {400, 403}, lines
