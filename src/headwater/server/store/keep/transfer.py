"""Copies a whole store into an empty one, of the same kind or another, and proves it equal.

Everything goes: log, projection, checkpoints, tombstones, what was set by hand (tags, aliases, owners,
deletions), tokens and flow samples.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.server.store.database import StoreError
from headwater.server.store.database.schema import ALL_TABLES
from headwater.server.store.keep.chain import head_of
from headwater.server.store.keep.rebuild import verify

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from headwater.server.store.database import Connection, Database
    from headwater.server.store.store import Store

__all__ = ["Copied", "copy_store"]

_encode = msgspec.msgpack.encode


class Copied(NamedTuple):
    """What was copied, and the head of the log's chain, which both stores now have."""

    records: int
    rows: int
    seq: int
    chain: str


def copy_store(
    source: Database,
    target: Store,
    *,
    still: bool = False,
    progress: Callable[[int, int], None] | None = None,
) -> Copied:
    """Copy one moment of the source in one commit; nothing is kept of a copy that is not equal.

    `still` refuses a source that was written to meanwhile. `progress` is called with the rows done
    and the rows to do.
    """
    _check_empty(target.connection)
    try:
        target.begin()
        with source.reading() as reading:
            copied = _copy(reading, target, progress or _silent)
        if still:
            with source.reading() as reading:
                if head_of(reading)[0] != copied.seq:
                    raise StoreError(
                        "events came in while the store was copied; nothing was kept",
                        hint="stop the server of the old store and run this again",
                    )
        target.connection.commit()
    except BaseException:
        target.abandon()
        raise
    target.abandon()
    return copied


def _silent(_done: int, _total: int) -> None:
    pass


def _check_empty(connection: Connection) -> None:
    for table in ALL_TABLES:
        if table == "head":
            full = head_of(connection)[0] > 0
        else:
            full = bool(connection.all(f"SELECT 1 FROM {table} LIMIT 1"))  # noqa: S608
        if full:
            raise StoreError(
                f"the target is not empty: its table {table} has rows",
                hint="give a new SQLite file or an empty PostgreSQL database",
            )


def _copy(source: Connection, target: Store, progress: Callable[[int, int], None]) -> Copied:
    counts = {t: source.all(f"SELECT count(*) FROM {t}")[0][0] for t in ALL_TABLES}  # noqa: S608
    total, done = sum(counts.values()), 0
    written = target.connection
    for table in ALL_TABLES:
        columns = source.columns(table)
        sql = f"SELECT {', '.join(columns)} FROM {table}"  # noqa: S608
        written.run(f"DELETE FROM {table}")  # noqa: S608  (a new store has a head)
        sent = 0
        for rows in source.each(sql):
            plain = [_plain(row) for row in rows]
            sent = _add(sent, plain)
            written.fill(table, columns, plain)
            done += len(rows)
            progress(done, total)
        kept = 0
        for rows in written.each(sql):
            kept = _add(kept, map(_plain, rows))
        if kept != sent:
            raise StoreError(
                f"the copy of table {table} is not equal to it; nothing was kept",
                hint="run `headwater rebuild` on the old store, then try again",
            )
    # Read by its own connection: the chain, and every body against its hash.
    records = verify(target)
    seq, chain = head_of(written)
    if (seq, chain) != head_of(source):
        raise StoreError("the copy's chain does not end as the store's does; nothing was kept")
    return Copied(records, total, seq, chain.hex())


def _plain(row: Iterable[Any]) -> tuple[Any, ...]:
    return tuple(bytes(v) if isinstance(v, (memoryview, bytearray)) else v for v in row)


def _add(digest: int, rows: Iterable[tuple[Any, ...]]) -> int:
    """A digest of rows in which their order does not count: two stores may differ in it."""
    for row in rows:
        digest += int.from_bytes(hashlib.sha256(_encode(row)).digest(), "big")
    return digest % (1 << 256)
