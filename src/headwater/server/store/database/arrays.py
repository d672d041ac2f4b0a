"""Columns of values as PostgreSQL's binary arrays, packed here since rows are written in bulk."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

from psycopg.adapt import Dumper
from psycopg.pq import Format

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import psycopg

__all__ = ["pack", "register"]

_head = struct.Struct(">iiiii").pack
_eight = struct.Struct(">iq").pack
_size = struct.Struct(">i").pack
_NULL = _size(-1)


class _Bigints(bytes):
    """A packed bigint[]."""


class _Texts(bytes):
    """A packed text[]."""


class _Blobs(bytes):
    """A packed bytea[]."""


def _bigint(value: int) -> bytes:
    return _eight(8, value)


def _text(value: str) -> bytes:
    data = value.encode()
    return _size(len(data)) + data


def _blob(value: bytes) -> bytes:
    return _size(len(value)) + value


_KINDS: dict[str, tuple[type[bytes], int, int, Callable[[Any], bytes]]] = {
    "bigint": (_Bigints, 20, 1016, _bigint),
    "text": (_Texts, 25, 1009, _text),
    "bytea": (_Blobs, 17, 1001, _blob),
}


def pack(kind: str, values: Sequence[Any]) -> bytes:
    """The values of one column as an array parameter."""
    made, element, _, write = _KINDS[kind]
    parts = [_NULL if value is None else write(value) for value in values]
    return made(_head(1, 1, element, len(parts), 1) + b"".join(parts))


class _Packed(Dumper):
    format = Format.BINARY

    def dump(self, obj: bytes) -> bytes:
        return bytes(obj)


def register(connection: psycopg.Connection[Any]) -> None:
    """Teach a connection to send packed arrays."""
    for made, _, oid, _ in _KINDS.values():
        dumper = type(f"{made.__name__}Dumper", (_Packed,), {"oid": oid})
        connection.adapters.register_dumper(made, dumper)
