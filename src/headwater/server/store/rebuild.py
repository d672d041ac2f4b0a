"""Computes the projection anew from the log, and checks the log's chain on the way."""

from __future__ import annotations

import hashlib
import struct
from typing import TYPE_CHECKING

import msgspec

from headwater.server.store import commands
from headwater.server.store.database import StoreError
from headwater.server.store.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.store.store import Store

__all__ = ["export", "rebuild", "verify"]

PROJECTED = (
    "namespace", "source", "dataset", "job", "run", "facet", "facet_change", "edge", "column_map",
    "column_link", "dataset_version", "job_version", "alias", "cluster", "event_count", "tag",
    "tag_use",
)  # fmt: skip
STEP = 512
HOUR = 3_600_000_000
Record = tuple[int, int, int, int, int, bytes, bytes, bytes]


def records(store: Store, after: int = 0) -> Iterator[list[Record]]:
    """The log in order, some at a time: seq, kind, at, time, type, hash, chain and body."""
    store.read_dictionaries(store.connection)
    sql = (
        "SELECT seq, kind, at, time, type, hash, chain, dictionary, body FROM log"
        " WHERE seq > ? ORDER BY seq LIMIT ?"
    )
    while rows := store.connection.all(sql, (after, STEP)):
        yield [
            (*row[:5], bytes(row[5]), bytes(row[6]), store.packer.unpack(row[7], bytes(row[8])))
            for row in rows
        ]
        after = rows[-1][0]


def verify(store: Store) -> int:
    """Check that no record of the log was changed, left out or moved; answers how many there are."""
    checkpoint = store.connection.all("SELECT seq, chain FROM checkpoint ORDER BY seq DESC LIMIT 1")
    after, chain = (checkpoint[0][0], bytes(checkpoint[0][1])) if checkpoint else (0, bytes(32))
    count = 0
    for group in records(store, after):
        for seq, kind, at, _, _, digest, link, _ in group:
            chain = hashlib.sha256(chain + digest + struct.pack(">qqb", seq, at, kind)).digest()
            if chain != link:
                raise StoreError(
                    f"the log was changed: record {seq} does not follow from the one before"
                )
            count += 1
    return count


def rebuild(store: Store) -> int:
    """Recompute everything the log amounts to, in one commit; answers how many records it took."""
    count = 0
    try:
        store.begin()
        verify(store)
        for table in PROJECTED:
            store.connection.run(f"DELETE FROM {table}")  # noqa: S608  (names of our own tables)
        store.forget()
        for group in records(store):
            _replay(store, group)
            count += len(group)
        store.connection.commit()
    except BaseException:
        store.abandon()
        raise
    return count


def _replay(store: Store, group: list[Record]) -> None:
    projection, touched = Projection(store.session), []
    for seq, kind, _, time, event_type, _, _, body in group:
        if kind:
            ids = commands.apply(store, projection, msgspec.json.decode(body))
        else:
            item = store.parts.prepare(body)
            store.session.load([item])
            ids = projection.apply(item)
            store.session.count(time // HOUR, event_type)
        touched.append((*ids, seq))
    store.session.flush()
    store.session.trim()
    store.parts.trim()
    for row in touched:
        store.connection.run("UPDATE log SET job = ?, run = ? WHERE seq = ?", row)


def export(store: Store) -> Iterator[bytes]:
    """Every event as it was sent, one line each."""
    for group in records(store):
        for record in group:
            if not record[1]:
                body = record[7]
                yield body if b"\n" not in body else msgspec.json.format(body, indent=-1)
