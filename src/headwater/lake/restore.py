"""A server's store rebuilt from the lake's records: its log, record for record, and its graph."""

from __future__ import annotations

import itertools
from typing import TYPE_CHECKING

import msgspec

from headwater.errors import UsageError
from headwater.server.store.keep.rebuild import project
from headwater.server.store.write.commands import NoSuchError
from headwater.server.store.write.projection import Projection

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lake.projection import LogRecord
    from headwater.server.store import Store

__all__ = ["restore"]

STEP = 512


class _RestoredCommand(msgspec.Struct):
    command: str
    time: int | None = None


_command = msgspec.json.Decoder(_RestoredCommand).decode


def restore(store: Store, records: Iterable[LogRecord]) -> int:
    """Fill an empty store in one commit; answers how many records its log has.

    The log of one server that the lake has whole becomes the same log, down to the head of its hash
    chain: a record's place and moment are part of it.
    """
    waiting = iter(records)
    store.begin()
    try:
        if store.log.seq:
            raise UsageError("the store is not empty", hint="name a new one with --store")
        while some := list(itertools.islice(waiting, STEP)):
            projection = Projection(store.session)
            for record in some:
                _take(store, projection, record)
            store.log.flush()
            store.session.trim()
            store.reader.trim()
        store.connection.commit()
    except BaseException:
        store.abandon()
        raise
    return store.log.seq


def _take(store: Store, projection: Projection, record: LogRecord) -> None:
    kind, at, body, _ = record
    read = _command(body) if kind else None
    if read is not None and read.command == "purge":
        raise UsageError(
            "something was purged from the server since, so records of its log are missing",
            hint="restore a backup of the store instead",
        )
    try:
        (job, run), item = project(store, projection, kind, at, body)
    except NoSuchError:
        return  # about what came from another log, or from none
    if read is not None:
        store.log.append_command(body, at, read.time or at, job, run)
    else:
        assert item is not None
        store.log.seq += 1
        store.log.append_event(item, store.log.seq, at, job, run)
