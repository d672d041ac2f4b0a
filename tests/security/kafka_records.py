"""Records that no client library writes: a produce request of Kafka's protocol, byte by byte."""

from __future__ import annotations

import socket
import struct
import zlib
from typing import NamedTuple

import zstandard

from headwater.lab.waiting import wait_until

__all__ = ["GZIP", "ZSTD", "Record", "produce"]

GZIP, ZSTD = 1, 4
NOT_YET = (3, 5, 6)
"""Errors of the protocol: unknown topic, no leader, not the leader."""


class Record(NamedTuple):
    """One record; header keys are bytes, because Kafka does not look whether they are text."""

    value: bytes | None
    headers: tuple[tuple[bytes, bytes], ...] = ()


def _table() -> list[int]:
    found = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
        found.append(crc)
    return found


_CASTAGNOLI = _table()


def _crc32c(data: bytes) -> int:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CASTAGNOLI[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ 0xFFFFFFFF


def _varint(number: int) -> bytes:
    number = number << 1 ^ number >> 63
    found = bytearray()
    while number > 0x7F:
        found.append(number & 0x7F | 0x80)
        number >>= 7
    found.append(number)
    return bytes(found)


def _sized(data: bytes | None) -> bytes:
    return _varint(-1) if data is None else _varint(len(data)) + data


def _record(place: int, record: Record) -> bytes:
    headers = b"".join(_sized(key) + _sized(value) for key, value in record.headers)
    body = b"\0" + _varint(0) + _varint(place) + _sized(None) + _sized(record.value)
    return _sized(body + _varint(len(record.headers)) + headers)


def _batch(records: list[Record], codec: int) -> bytes:
    body = b"".join(_record(place, record) for place, record in enumerate(records))
    if codec == GZIP:
        packer = zlib.compressobj(9, wbits=31)
        body = packer.compress(body) + packer.flush()
    elif codec == ZSTD:
        body = zstandard.ZstdCompressor(level=3).compress(body)
    last, now = len(records) - 1, 1_767_225_600_000
    rest = struct.pack(">hiqqqhii", codec, last, now, now, -1, -1, -1, len(records)) + body
    return struct.pack(">qiibI", 0, len(rest) + 9, -1, 2, _crc32c(rest)) + rest


def produce(bootstrap: str, topic: str, records: list[Record], codec: int = 0) -> None:
    """Write records as one batch to partition 0; asserts that the broker took them."""
    batch = _batch(records, codec)
    name = topic.encode()
    request = struct.pack(">hhih", 0, 7, 1, -1)  # Produce, version 7: the first with zstd
    request += struct.pack(">hhiih", -1, -1, 30_000, 1, len(name)) + name
    request += struct.pack(">iii", 1, 0, len(batch)) + batch
    host, _, port = bootstrap.rpartition(":")

    def answered() -> int:
        with socket.create_connection((host, int(port)), timeout=30) as connection:
            connection.sendall(struct.pack(">i", len(request)) + request)
            answer = connection.makefile("rb")
            (size,) = struct.unpack(">i", answer.read(4))
            body = answer.read(size)
        # Correlation, one topic with its name, one partition with its number, then the error.
        return int(struct.unpack_from(">h", body, 4 + 4 + 2 + len(name) + 4 + 4)[0])

    errors: list[int] = []

    def settled() -> bool:
        errors.append(answered())
        return errors[-1] not in NOT_YET

    # A topic that was just made may not be known, or not be led, at once.
    wait_until(settled, seconds=60, what=f"a leader of {topic}", interval=0.1)
    error = errors[-1]
    assert error == 0, f"the broker refuses the batch: error {error}"
