"""Computes the projection again from the log, and checks the log's chain on the way."""

from __future__ import annotations

import hashlib
import struct
import sys
from typing import TYPE_CHECKING

import msgspec

from headwater.server.store.database import NEW_EPOCH, TamperedError
from headwater.server.store.keep import checkpoint
from headwater.server.store.keep.log_columns import check_facets, check_links, columns_of
from headwater.server.store.write import commands
from headwater.server.store.write.incoming.prepared import AHEAD
from headwater.server.store.write.projection import Projection
from headwater.server.store.write.session import SHARES_RUNS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.store.database import ReadConnection, Row
    from headwater.server.store.keep.log_columns import RecordColumns
    from headwater.server.store.store import Store
    from headwater.server.store.write.incoming.prepared import PreparedEvent

__all__ = ["ahead", "export", "project", "rebuild", "verify"]

STEP = 512
HOUR = 3_600_000_000
Record = tuple[int, int, int, int, int, bytes, bytes, bytes, "int | None", "int | None"]
Link = tuple[int, int, int, bytes, bytes, "Record | None"]


def records(
    store: Store, after: int = 0, connection: ReadConnection | None = None
) -> Iterator[list[Record]]:
    """The log in order, some at a time: seq, kind, at, time, type, hash, chain, body, job, run."""
    connection = connection or store.connection
    store.read_dictionaries(connection)
    sql = (
        "SELECT seq, kind, at, time, type, hash, chain, dictionary, body, job, run FROM log"
        " WHERE seq > ? ORDER BY seq LIMIT ?"
    )
    while rows := connection.all(sql, (after, STEP)):
        for row in rows:
            _check_types(row)
        yield [
            (
                *row[:5],
                bytes(row[5]),
                bytes(row[6]),
                store.packer.unpack(row[7], bytes(row[8])),
                *row[9:],
            )
            for row in rows
        ]
        after = rows[-1][0]


def _check_types(row: Row) -> None:
    """Refuse a record with a value of another type: SQLite takes any for any column."""
    numbers, texts = (*row[:5], row[7]), (row[5], row[6], row[8])
    if not (
        all(isinstance(one, int) for one in numbers)
        and all(isinstance(one, (bytes, memoryview)) for one in texts)
        and all(one is None or isinstance(one, int) for one in row[9:])
    ):
        raise _changed(f"record {row[0]} holds a value of another type")


def verify(store: Store, connection: ReadConnection | None = None) -> int:
    """Check that no record of the log was changed, left out or moved; answers how many there are.

    So too that records stand under the job and run that they name, and that facets have their hash.
    While a server writes to the store, `connection` has to be one that sees one moment of it.
    """
    connection = connection or store.connection
    count = _check_log(store, connection, links=True)
    check_facets(store, connection)
    return count


def _check_log(store: Store, connection: ReadConnection, *, links: bool) -> int:
    found = checkpoint.latest(connection)
    after, chain = (found.base, found.base_chain) if found else (0, bytes(32))
    count, expected, linked = 0, after, _Linked(connection, found.seq if found else 0)
    for seq, kind, at, digest, link, record in _links(store, after, connection):
        chain = hashlib.sha256(chain + digest + struct.pack(">qqb", seq, at, kind)).digest()
        expected += 1
        if chain != link or seq != expected:
            raise _changed(f"record {seq} does not follow from the one before")
        # A deletion ends with a checkpoint, so none has happened since the last one.
        if record is None and (found is None or seq > found.seq):
            raise _changed(f"record {seq} was taken out, and no deletion did it")
        if record is not None:
            of_body = _check_record(record)
            count += 1
            if links:
                linked.add((seq, of_body, *record[8:]))
        if found and seq == found.seq and chain != found.chain:
            raise TamperedError(f"the checkpoint at record {seq} does not fit the log")
    linked.check()
    if found and expected < found.seq:
        raise _changed(f"it ends at record {expected}, before the checkpoint at {found.seq}")
    ((seq, head),) = connection.all("SELECT seq, chain FROM head WHERE id = 1")
    if (seq, bytes(head)) != (expected, chain):
        raise _changed(f"it ends at record {expected}, not {seq}")
    return count


def _check_record(record: Record) -> RecordColumns:
    seq, kind, _, time, event_type, digest, _, body, _, _ = record
    of_body = columns_of(kind, digest, body)
    if of_body is None:
        raise _changed(f"the body of record {seq} has another hash")
    for column, stored, expected in (
        ("time", time, of_body.time),
        ("type", event_type, of_body.type),
    ):
        if stored != expected:
            raise _changed(f"the {column} of record {seq} is not the one in its body")
    return of_body


class _Linked:
    """Records whose job and run are still to be looked up, some at a time."""

    def __init__(self, connection: ReadConnection, kept: int) -> None:
        self._connection = connection
        self._kept = kept
        self._held: list[tuple[int, RecordColumns, int | None, int | None]] = []

    def add(self, record: tuple[int, RecordColumns, int | None, int | None]) -> None:
        """Take one more."""
        self._held.append(record)
        if len(self._held) == STEP:
            self.check()

    def check(self) -> None:
        """Look up those held."""
        check_links(self._connection, self._held, self._kept)
        self._held.clear()


def _changed(how: str) -> TamperedError:
    return TamperedError(
        f"the log was changed: {how}", hint="keep a copy of the store, and restore a backup of it"
    )


def _links(store: Store, after: int, connection: ReadConnection) -> Iterator[Link]:
    """Every link of the chain in order, those whose record was deleted too."""
    sql = "SELECT seq, kind, at, hash, chain FROM tombstone WHERE seq > ? ORDER BY seq"
    tombstones = iter([(*r[:3], bytes(r[3]), bytes(r[4]), None) for r in connection.all(sql, (after,))])  # fmt: skip
    tombstone = next(tombstones, None)
    for group in records(store, after, connection):
        for record in group:
            seq, kind, at, _, _, digest, chain, *_ = record
            while tombstone is not None and tombstone[0] < seq:
                yield tombstone
                tombstone = next(tombstones, None)
            yield seq, kind, at, digest, chain, record
    while tombstone is not None:
        yield tombstone
        tombstone = next(tombstones, None)


def rebuild(store: Store) -> int:
    """Recompute everything from the last checkpoint and the log after it, in one commit.

    Answers how many records it took.
    """
    count, limits = 0, store.limits
    # What the log holds was taken in under the limits of its day.
    everything = dict.fromkeys(("name", "values", "datasets"), sys.maxsize)
    store.limits = msgspec.structs.replace(limits, **everything)
    try:
        store.begin()
        # Under which job and run a record stands is computed again, as the facets are.
        _check_log(store, store.connection, links=False)
        for table in checkpoint.PROJECTED:
            store.connection.run(f"DELETE FROM {table}")  # noqa: S608  (names of our own tables)
        store.forget()
        found = checkpoint.latest(store.connection)
        if found is not None:
            checkpoint.restore(store, found)
        else:
            for name in ("claims_since", SHARES_RUNS):
                store.connection.run("DELETE FROM setting WHERE name = ?", (name,))
            store.session.floor = 0
        store.session.log_end = found.seq if found else 0
        for group in records(store, store.session.log_end):
            _replay(store, group)
            count += len(group)
        # Numbers may stand for others now: whoever keeps some has to read them again.
        store.connection.run(NEW_EPOCH)
        store.connection.commit()
    except BaseException:
        store.abandon()
        raise
    finally:
        store.limits = limits
        store.forget()
    return count


def project(
    store: Store, projection: Projection, kind: int, at: int, body: bytes
) -> tuple[tuple[int | None, int | None], PreparedEvent | None]:
    """Apply a record of a log to the working set; answers the ids of its job and run, and the event."""
    if kind:
        return commands.apply(store, projection, msgspec.json.decode(body)), None
    item = store.reader.prepare(body)
    store.session.load([item])
    return projection.apply(item, at), item


def _replay(store: Store, group: list[Record]) -> None:
    projection = Projection(store.session)
    for seq, kind, at, time, event_type, _, _, body, *_ in group:
        ids, _ = project(store, projection, kind, at, body)
        if not kind:
            store.session.count(time // HOUR, event_type)
        store.connection.run("UPDATE log SET job = ?, run = ? WHERE seq = ?", (*ids, seq))
        store.session.log_end = seq
    store.session.flush()
    store.session.trim()
    store.reader.trim()


def ahead(store: Store) -> int:
    """How many events have a time so far ahead that their arrival counts, which no export has."""
    sql = f"SELECT count(*) FROM log WHERE kind = 0 AND time > at + {AHEAD}"  # noqa: S608
    ((count,),) = store.connection.all(sql)
    return int(count)


def export(store: Store) -> Iterator[bytes]:
    """Every event as it was sent, one line each."""
    for group in records(store):
        for record in group:
            if not record[1]:
                body = record[7]
                yield body if b"\n" not in body else msgspec.json.format(body, indent=-1)
