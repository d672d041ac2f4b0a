"""Checkpoints: the whole projection as it stood at one record, so that older records can be deleted."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
import zstandard

from headwater.server.store.database import DamagedError
from headwater.server.store.database.schema import CLAIM_PERIODS, TABLES
from headwater.server.store.write import named_parents
from headwater.server.store.write.claim_periods import WHOLE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.store.database import Connection, ReadConnection
    from headwater.server.store.store import Store

__all__ = ["PROJECTED", "Checkpoint", "latest", "restore", "write"]

PROJECTED = (
    "namespace", "source", "dataset", "job", "run", "facet", "facet_change", "edge", "column_map",
    "column_link", "dataset_version", "job_version", "alias", "cluster", "event_count", "tag",
    "tag_use", "fold", "claim", "schema_end", "joined", "deletion",
    "named_parent",
)  # fmt: skip
STEP = 10_000
_PLAIN = {
    "tag": (("name", "description"), ("name",)),
    "tag_use": (("kind", "entity", "field", "tag", "time"), ("kind", "entity", "field", "tag")),
}


class Checkpoint(NamedTuple):
    """The record whose projection is kept, and the last record before those still in the log."""

    seq: int
    chain: bytes
    base: int
    base_chain: bytes
    tombstones: list[str]


def latest(connection: ReadConnection) -> Checkpoint | None:
    """The newest checkpoint."""
    sql = "SELECT seq, chain, state FROM checkpoint ORDER BY seq DESC LIMIT 1"
    for seq, chain, state in connection.all(sql):
        base, base_chain, tombstones = msgspec.msgpack.decode(bytes(state))
        return Checkpoint(seq, bytes(chain), base, base_chain, tombstones)
    return None


def write(store: Store, reason: str, base: tuple[int, bytes], tombstones: list[str]) -> None:
    """Keep the projection as it stands in the open transaction; older checkpoints go."""
    connection = store.connection
    connection.run("DELETE FROM checkpoint_part")
    connection.run("DELETE FROM checkpoint")
    ((seq, chain),) = connection.all("SELECT seq, chain FROM head WHERE id = 1")
    state = msgspec.msgpack.encode((*base, tombstones))
    connection.run(
        "INSERT INTO checkpoint (seq, chain, at, reason, state) VALUES (?, ?, ?, ?, ?)",
        (seq, bytes(chain), time.time_ns() // 1000, reason, state),
    )
    pack = zstandard.ZstdCompressor(level=3).compress
    sql = "INSERT INTO checkpoint_part (checkpoint, number, name, body) VALUES (?, ?, ?, ?)"
    for number, (name, rows) in enumerate(_rows(connection), 1):
        connection.run(sql, (seq, number, name, pack(msgspec.msgpack.encode(rows))))


def _rows(connection: Connection) -> Iterator[tuple[str, list[tuple[Any, ...]]]]:
    for name in PROJECTED:
        columns, key = _shape(name)
        sql = (
            f"SELECT {', '.join(columns)} FROM {name} ORDER BY {', '.join(key)}"  # noqa: S608
            " LIMIT ? OFFSET ?"
        )
        start = 0
        while rows := connection.all(sql, (STEP, start)):
            yield name, rows
            start += len(rows)


def _shape(name: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    if name in _PLAIN:
        return _PLAIN[name]
    return tuple(TABLES[name].columns), TABLES[name].key


def _unpacked(body: bytes) -> list[tuple[Any, ...]]:
    try:
        rows = msgspec.msgpack.decode(zstandard.ZstdDecompressor().decompress(body))
    except (zstandard.ZstdError, msgspec.DecodeError) as error:
        raise DamagedError(
            f"the store is damaged: its checkpoint cannot be read: {error}"
        ) from None
    return [tuple(row) for row in rows]


def restore(store: Store, checkpoint: Checkpoint) -> None:
    """Put the kept projection in the place of the present one, which must be empty."""
    connection = store.connection
    sql = "SELECT number FROM checkpoint_part WHERE checkpoint = ? ORDER BY number"
    restored = set()
    for (number,) in connection.all(sql, (checkpoint.seq,)):
        sql = "SELECT name, body FROM checkpoint_part WHERE checkpoint = ? AND number = ?"
        ((name, body),) = connection.all(sql, (checkpoint.seq, number))
        rows = _unpacked(bytes(body))
        restored.add(name)
        if name in TABLES:
            if name == "claim":  # of an earlier release without the parts
                width = len(TABLES[name].columns)
                rows = [(*row, WHOLE)[:width] for row in rows]
            connection.upsert(TABLES[name], rows)
            continue
        columns, _ = _shape(name)
        marks = ", ".join("?" * len(columns))
        for row in rows:
            connection.run(f"INSERT INTO {name} ({', '.join(columns)}) VALUES ({marks})", row)  # noqa: S608
    # A checkpoint may be of an earlier release.
    connection.script(CLAIM_PERIODS)
    if "named_parent" not in restored:
        named_parents.fill(store)
