"""A packed body is taken whole or not at all."""

from __future__ import annotations

import gzip
import json
import random
import time
import zlib
from typing import TYPE_CHECKING, Any

import httpx
import pytest
import zstandard

from headwater.server.http import HttpError
from headwater.server.http.inflate import inflate
from tests.integration.server.making import event
from tests.security.attacks import first_quick

if TYPE_CHECKING:
    from collections.abc import Callable

    from tests.integration.server.conftest import Client, Process

LIMIT = 1_000_000
zstd = zstandard.ZstdCompressor().compress
PACK: dict[str, Callable[[bytes], bytes]] = {"gzip": gzip.compress, "deflate": zlib.compress,
                                             "zstd": zstd}  # fmt: skip
SKIPPABLE = b"\x50\x2a\x4d\x18" + (4).to_bytes(4, "little") + b"abcd"


def refused(body: bytes, encoding: str, limit: int = LIMIT) -> int:
    with pytest.raises(HttpError) as error:
        inflate(body, encoding.encode(), limit)
    return error.value.code


def streamed(text: bytes) -> bytes:
    """zstd as a producer writes it that does not know the length, in many blocks."""
    packer = zstandard.ZstdCompressor(write_checksum=True).compressobj()
    parts = [
        packer.compress(text[i : i + 700]) + packer.flush(zstandard.COMPRESSOBJ_FLUSH_BLOCK)
        for i in range(0, len(text), 700)
    ]
    return b"".join(parts) + packer.flush()


@pytest.mark.parametrize("encoding", PACK)
def test_every_member_is_read(encoding: str) -> None:
    pack = PACK[encoding]
    texts = [random.Random(i).randbytes(i * 97) for i in range(30)]
    body = b"".join(map(pack, texts))
    assert inflate(body, encoding.encode(), LIMIT) == b"".join(texts)
    assert inflate(pack(b""), encoding.encode(), LIMIT) == b""


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("text", [b"x" * 5_000, random.Random(1).randbytes(5_000)],
                         ids=["even", "random"])  # fmt: skip
def test_a_body_cut_anywhere_is_refused(encoding: str, text: bytes) -> None:
    pack = PACK[encoding]
    one = pack(text)
    for body, whole in ((one, ()), (one + pack(text[::-1]), (len(one),))):
        for end in range(1, len(body), 1 if len(body) < 200 else 37):
            if end not in whole:
                assert refused(body[:end], encoding) == 400, end
        for end in range(len(body) - 12, len(body)):
            assert refused(body[:end], encoding) == 400, end


def test_a_cut_stream_of_many_blocks_is_refused() -> None:
    body = streamed(b"some lines\n" * 3_000)
    assert inflate(body, b"zstd", LIMIT) == b"some lines\n" * 3_000
    for end in range(1, len(body), 11):
        assert refused(body[:end], "zstd") == 400, end


@pytest.mark.parametrize("encoding", PACK)
@pytest.mark.parametrize("tail", [b"\0", b"{}", b"\x1f\x8b", b"\x28\xb5\x2f\xfd", b"garbage" * 99])
def test_what_lies_behind_the_body_is_refused(encoding: str, tail: bytes) -> None:
    assert refused(PACK[encoding](b"x" * 900) + tail, encoding) == 400


def test_skippable_frames_are_skipped() -> None:
    body = SKIPPABLE + zstd(b"a" * 10) + SKIPPABLE + zstd(b"b" * 10) + SKIPPABLE
    assert inflate(body, b"zstd", LIMIT) == b"a" * 10 + b"b" * 10
    assert refused(zstd(b"a") + SKIPPABLE[:-1], "zstd") == 400


@pytest.mark.parametrize("encoding", PACK)
def test_the_limit_holds_over_all_members(encoding: str) -> None:
    pack = PACK[encoding]
    body = pack(b"x" * 600_000) + pack(b"y" * 400_000)
    assert len(inflate(body, encoding.encode(), LIMIT)) == LIMIT
    assert refused(body + pack(b"z"), encoding) == 413
    assert refused(pack(bytes(200_000_000)), encoding) == 413


def test_very_many_members_cost_little() -> None:
    for encoding, member in (("gzip", gzip.compress(b"")), ("zstd", zstd(b""))):
        began = time.process_time()
        body = member * (2_000_000 // len(member))
        assert inflate(body, encoding.encode(), LIMIT) == b""
        assert time.process_time() - began < 2, encoding
    assert refused(gzip.compress(b"") * 100_001, "gzip") == 413


def test_encodings_are_named_in_any_case() -> None:
    for name in (b"GZIP", b"Gzip", b" gzip ", b"x-GZIP"):
        assert inflate(gzip.compress(b"x"), name, LIMIT) == b"x"
    assert inflate(zstd(b"x"), b"ZSTD", LIMIT) == b"x"
    assert inflate(b"x", b"Identity", LIMIT) == b"x"
    assert refused(gzip.compress(b"x"), "gzip,gzip") == 415
    assert refused(b"x", "br") == 415


def lines(first: int, count: int) -> bytes:
    found = [json.dumps(event("START", 0, run=first + i)) for i in range(count)]
    return "\n".join([*found, ""]).encode()


CALLS: list[tuple[str, str, Any]] = [
    ("POST", "/api/v1/lineage", event("START", 0)),
    ("POST", "/api/v2/events", [event("START", 0)]),
    ("POST", "/api/v2/flow", []),
    ("PUT", "/api/v1/tags/x", {"description": "text"}),
    ("PUT", "/api/v1/namespaces/x", {"ownerName": "text"}),
]


@pytest.mark.parametrize("encoding", PACK)
def test_every_route_refuses_a_cut_body_and_keeps_nothing(client: Client, encoding: str) -> None:
    headers = {"content-encoding": encoding.upper()}
    for method, path, value in CALLS:
        body = PACK[encoding](json.dumps(value).encode())
        for bad in (body[:-2], body + b"x"):
            answer = client.call(method, path, content=bad, headers=headers)
            assert answer.status_code == 400, (path, answer.text)
        assert client.get("/api/v2/health")["events"] == 0
    for method, path, value in CALLS:
        body = PACK[encoding](json.dumps(value).encode())
        assert client.call(method, path, content=body, headers=headers).status_code < 300, path


@pytest.mark.parametrize("encoding", first_quick(PACK))
def test_a_server_takes_every_line_of_every_member(
    launch: Callable[..., Process], encoding: str
) -> None:
    server, pack = launch(None, "--no-page"), PACK[encoding]
    headers = {"content-encoding": encoding}
    with httpx.Client(base_url=server.url, headers=headers) as http:
        body = pack(lines(0, 40)) + pack(lines(40, 60))
        half = http.post("/api/v2/events", content=body[: len(body) - 40])
        assert half.status_code == 400
        answer = http.post("/api/v2/events", content=body)
        assert (answer.status_code, answer.json()["accepted"]) == (201, 100)
        one = json.dumps(event("START", 1, run=500)).encode()
        two = pack(one[:90]) + pack(one[90:])
        assert http.post("/api/v1/lineage", content=two[:-1]).status_code == 400
        assert http.post("/api/v1/lineage", content=two).status_code == 201
        upper = {"content-encoding": encoding.upper()}
        three = pack(json.dumps(event("START", 2, run=501)).encode())
        assert http.post("/api/v1/lineage", content=three, headers=upper).status_code == 201
    assert httpx.get(f"{server.url}/api/v2/health").json()["events"] == 102
