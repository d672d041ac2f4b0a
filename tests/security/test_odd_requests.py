"""Requests that were 500 once, and what a server leaves lying around."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import pytest

from headwater.cli.main import _run
from headwater.cli.output import private_file
from headwater.server.api.openapi import document
from headwater.server.http.auth import create_token, list_tokens, revoke_token
from headwater.server.store import open_store
from tests.integration.server.making import dataset, event, facet
from tests.security.attacks import answer, connected, eventually, first_quick

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from tests.integration.server.conftest import Client, Process

BODIES = (
    b'{"description": "\xff\xfe"}', b'{"ownerName": "\xc3("}', b'"\xed\xa0\x80"', b"\xff",
    b'{"x": ' + b"[" * 100_000 + b"]" * 100_000 + b"}", b"[" * 100_000, b"[" * 50_000 + b"]" * 50_000,
)  # fmt: skip


def taking_bodies(client: Client) -> Iterator[tuple[str, str]]:
    """Every route that takes a body, with the names that its description has as examples."""
    for path, methods in document(client.app)["paths"].items():
        for method, one in methods.items():
            if "requestBody" in one:
                named = {p["name"]: p["example"] for p in one["parameters"] if p["in"] == "path"}
                yield (
                    method.upper(),
                    path.format(**{k: quote(v, safe="") for k, v in named.items()}),
                )


def test_what_is_no_text_or_too_deep_is_the_clients_fault(client: Client) -> None:
    asked = list(taking_bodies(client))
    assert len(asked) > 12
    for method, path in asked:
        for body in BODIES:
            answer = client.call(method, path, content=body)
            assert 400 <= answer.status_code < 500, (path, body[:20], answer.text[:200])
        lines = b"\n".join([b'{"a": "\xff"}', b"[" * 5_000 + b"]" * 5_000])
        assert client.call(method, path, content=lines).status_code < 500, path
    assert client.get("/api/v2/health")["status"] == "ok"


def test_a_credential_in_a_name_given_by_hand_is_no_error_of_the_server(client: Client) -> None:
    for name in ("postgres%3A%2F%2Fu%3Ahunter2%40h%2Fdb", "%5B%27password%3Dhunter2%27%5D"):
        bodies = {
            "tags": {"description": "password=hunter2"},
            "namespaces": {"ownerName": "password=hunter2"},
            "sources": {"type": "DB", "connectionUrl": "postgres://u:hunter2@h/db"},
            "namespaces/x/jobs": {"type": "BATCH"},
            "namespaces/x/datasets": {"fields": []},
        }
        for kind, body in bodies.items():
            answer = client.call("PUT", f"/api/v1/{kind}/{name}", json=body)
            assert answer.status_code < 500, (kind, answer.text)
        tag = client.call("PUT", f"/api/v1/tags/{name}", json={})
        assert tag.status_code == 200
        assert "hunter2" not in tag.text


def test_tags_that_are_no_array_are_refused(client: Client) -> None:
    path = "/api/v1/namespaces/x/datasets/y"
    for tags in (2**53, "pii", True, {"pii": 1}):
        for body in ({"tags": tags}, {"fields": [{"name": "id", "tags": tags}]}):
            assert client.call("PUT", path, json=body).status_code == 422, body
    assert client.call("PUT", path, json={"tags": ["pii"]}).status_code == 200


@pytest.mark.parametrize("size", [20, 999, 5_000])
def test_a_number_of_very_many_digits_is_no_error_of_the_server(client: Client, size: int) -> None:
    digits = "9" * size
    for path in ("/api/v1/jobs?limit=", "/api/v1/jobs?offset=", "/api/v2/events?after=",
                 "/api/v2/events?before=", "/api/v2/aliases?limit=", "/api/v2/flow?since="):  # fmt: skip
        assert client.call("GET", path + digits).status_code < 500, path


def test_a_huge_last_event_id_is_refused(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page")
    live = f"{server.url}/api/v2/live"
    assert httpx.get(live, headers={"last-event-id": "9" * 5_000}).status_code == 400
    assert httpx.get(live, params={"after": "9" * 5_000}).status_code == 400
    with httpx.stream("GET", live, headers={"last-event-id": "9" * 30}) as answer:
        assert answer.status_code == 200


OFFER = (
    "host: localhost\r\nconnection: Upgrade, HTTP2-Settings\r\nupgrade: h2c\r\n"
    "http2-settings: AAEAAEAAAAIAAAABAAMAAABkAAQBAAAAAAUAAEAA\r\ncontent-type: application/json\r\n"
)


def test_a_request_that_offers_http2_is_answered_as_what_it_is(
    launch: Callable[..., Process],
) -> None:
    """Java's HttpClient makes this offer with its first request on a connection."""
    server = launch(None, "--no-page")

    def posted(path: str, second: int, *, chunked: bool = False) -> tuple[bytes, bytes]:
        body = json.dumps(event("START", second, run=second)).encode()
        if chunked:
            size, body = "transfer-encoding: chunked", b"%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)
        else:
            size = f"content-length: {len(body)}"
        return f"POST {path} HTTP/1.1\r\n{OFFER}{size}\r\n\r\n".encode(), body

    def answers(connection: socket.socket, count: int) -> list[bytes]:
        found = b""
        while found.count(b"HTTP/1.1 ") < count:
            part = connection.recv(65536)
            assert part, found
            found += part
        return [one[:3] for one in found.split(b"HTTP/1.1 ")[1:]]

    with socket.create_connection(("127.0.0.1", server.port), timeout=30) as connection:
        for number, path in enumerate(("/api/v1/lineage", "/api/v2/events")):
            whole, apart = posted(path, 10 * number), posted(path, 10 * number + 1)
            connection.sendall(b"".join(whole))
            assert answers(connection, 1) == [b"201"]
            connection.sendall(apart[0])
            time.sleep(0.05)  # two packets, as Java sends them
            connection.sendall(apart[1])
            assert answers(connection, 1) == [b"201"]
            connection.sendall(b"".join(posted(path, 10 * number + 2, chunked=True)))
            assert answers(connection, 1) == [b"201"]
            pair = [part for n in (3, 4) for part in posted(path, 10 * number + n)]
            connection.sendall(b"".join(pair))
            assert answers(connection, 2) == [b"201"] * 2
        connection.sendall(f"GET /api/v2/health HTTP/1.1\r\n{OFFER}\r\n".encode())
        assert answers(connection, 1) == [b"200"]
    assert httpx.get(f"{server.url}/api/v2/health").json()["events"] == 10


def test_of_two_hosts_or_tokens_neither_counts(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page")
    body = json.dumps(event("START", 0)).encode()
    pairs = {
        "host": ("localhost", "evil.example"),
        "authorization": ("Bearer one", "Bearer two"),
    }
    for name, pair in pairs.items():
        for first, second in (pair, pair[::-1], (pair[0], pair[0])):
            for request, rest in (
                ("GET /api/v1/jobs", ""),
                ("POST /api/v1/lineage", f"content-length: {len(body)}\r\n"),
            ):
                host = "" if name == "host" else "host: localhost\r\n"
                head = f"{request} HTTP/1.1\r\n{host}{name}: {first}\r\n{name.upper()}: {second}\r\n{rest}\r\n"
                with connected(server, head.encode() + (body if rest else b"")) as connection:
                    assert answer(connection).split()[1] == b"400", head
    assert httpx.get(f"{server.url}/api/v2/health").json()["events"] == 0


def test_a_type_nested_as_deep_as_its_text_is_long_is_read(client: Client) -> None:
    """Types are compared where a dataset is read: it was an error of the server for good."""
    deep = "array<" * 20_000 + "integer" + ">" * 20_000
    for second, kind in enumerate((deep, deep.replace("integer", "long"))):
        fields = facet(fields=[{"name": "id", "type": kind}])
        client.post(event("COMPLETE", second, run=second, outputs=[dataset("o", schema=fields)]))
    o = "/api/v2/datasets/s3%3A%2F%2Flake/o"
    for path in (o, f"{o}/history", f"{o}/why", "/api/v2/overview", "/api/v2/doctor",
                 "/api/v2/columns?node=dataset:s3://lake:o"):  # fmt: skip
        assert client.call("GET", path).status_code == 200, path
    asked = {
        "node": "dataset:s3://lake:o",
        "changes": [{"kind": "retype", "column": "id", "type": deep}],
    }
    assert client.call("POST", "/api/v2/impact", json=asked).status_code < 500


def test_json_is_never_sniffed(client: Client) -> None:
    for path in ("/api/v1/jobs", "/api/v1/namespaces/none", "/api/v2/health", "/api/v2/graph"):
        assert client.call("GET", path).headers["x-content-type-options"] == "nosniff", path


def test_nor_is_what_the_short_way_in_answers(launch: Callable[..., Process]) -> None:
    server = launch(None, "--no-page")
    for body, code in (("{}", 422), ("{", 400)):  # what it takes has an empty answer
        found = httpx.post(f"{server.url}/api/v1/lineage", content=body)
        assert (found.status_code, found.headers["x-content-type-options"]) == (code, "nosniff")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_the_database_and_exports_are_their_owners_alone(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    folder = tmp_path / "new" / "folder"
    server = launch(f"sqlite:///{folder}/headwater.db")
    made = event("START", 0, outputs=["orders"])
    httpx.post(f"{server.url}/api/v1/lineage", json=made).raise_for_status()
    assert mode(folder) == 0o700
    assert {mode(file) for file in folder.iterdir()} == {0o600}
    exported = ["events", "export", "FILE", "--store", server.store]
    audited = ["audit", "orders", "--url", server.url, "--html", "FILE"]
    for words in (exported, audited):
        for before in (None, "of an earlier export" * 10_000):
            file = tmp_path / f"{words[0]}-{before is None}"
            if before is not None:
                file.write_text(before)
                file.chmod(0o644)
            assert _run([str(file) if w == "FILE" else w for w in words], debug=False) == 0
            assert mode(file) == 0o600
            assert "earlier" not in file.read_text()


def test_an_export_to_a_pipe_leaves_the_pipe_as_it_is(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    pipe.chmod(0o644)
    reading = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    with private_file(pipe) as written:
        written.write(b"x")
    assert os.read(reading, 10) == b"x"
    os.close(reading)
    assert mode(pipe) == 0o644


def test_a_second_server_on_one_file_is_refused(
    launch: Callable[..., Process], tmp_path: Path
) -> None:
    server = launch(None, "--no-page")
    command = [sys.executable, "-m", "headwater", "server", "--port", "0", "--store", server.store]
    second = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode != 0
    assert "another server has" in second.stderr
    assert "headwater server on http" not in second.stderr, "an address where nobody listens"
    create_token(open_store(server.store), "tools may still open it", "read")
    server.kill()
    server.start()


@pytest.mark.parametrize(
    "sent",
    first_quick(
        [
            b"POST /api/v1/lineage HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{",
            b"POST /api/v2/events HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n[",
            b"PUT /api/v1/tags/x HTTP/1.1\r\nhost: localhost\r\ncontent-length: 9\r\n\r\n{",
            b"GET /api/v1/jobs HTTP/1.1\r\nhost: loc",
            b"",
        ]
    ),
)
def test_a_request_half_sent_does_not_keep_a_server_that_stops(
    launch: Callable[..., Process], sent: bytes
) -> None:
    assert seconds_to_stop(launch(None, "--no-page"), sent) < 8  # its grace time is ten seconds


@pytest.mark.timed
def test_a_request_half_sent_keeps_a_server_that_stops_no_longer_than_3_seconds(
    launch: Callable[..., Process],
) -> None:
    sent = b"POST /api/v1/lineage HTTP/1.1\r\nhost: localhost\r\ncontent-length: 100\r\n\r\n{"
    assert seconds_to_stop(launch(None, "--no-page"), sent) <= 3


def seconds_to_stop(server: Process, sent: bytes) -> float:
    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(sent)
        time.sleep(0.3)
        began = time.monotonic()
        server.process.send_signal(signal.SIGTERM)
        server.process.wait(20)
        return time.monotonic() - began


def test_a_stream_ends_when_its_token_is_revoked(launch: Callable[..., Process]) -> None:
    assert seconds_of_a_revoked_stream(launch) < 15


@pytest.mark.full
@pytest.mark.timed
def test_a_stream_ends_within_5_seconds_when_its_token_is_revoked(
    launch: Callable[..., Process],
) -> None:
    assert seconds_of_a_revoked_stream(launch) <= 5


def seconds_of_a_revoked_stream(launch: Callable[..., Process]) -> float:
    server = launch(None, "--no-page")
    hand = open_store(server.store)
    token, other = create_token(hand, "reader", "read"), create_token(hand, "writer", "write")
    # The server reads tokens again every two seconds; with the first of them it asks for one.
    eventually(lambda: httpx.get(f"{server.url}/api/v1/jobs").status_code == 401)
    headers = {"authorization": f"Bearer {token}"}
    with httpx.stream("GET", f"{server.url}/api/v2/live", headers=headers, timeout=20) as answer:
        chunks = answer.iter_bytes()
        assert b"retry" in next(chunks)
        writer = {"authorization": f"Bearer {other}"}
        httpx.post(f"{server.url}/api/v1/lineage", content=json.dumps(event("START", 0)),
                   headers=writer).raise_for_status()  # fmt: skip
        assert b"event:" in next(chunks)
        (own,) = [t.id for t in list_tokens(hand.connection) if t.name == "reader"]
        revoke_token(hand, own)
        began = time.monotonic()
        for _ in chunks:
            pass
        took = time.monotonic() - began
    hand.close()
    return took
