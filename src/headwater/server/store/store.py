"""The store: the log and its projection, moved forward together, one commit for many events."""

from __future__ import annotations

import contextlib
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.openlineage.events import EventError, Limits, canonical
from headwater.lineage.openlineage.repairs import SHARED_RUN
from headwater.lineage.secrets import clean_value
from headwater.server.store.database import (
    Connection,
    Database,
    open_database,
    within,
)
from headwater.server.store.database.packing import Packer
from headwater.server.store.keep.retention import claims_since, retained
from headwater.server.store.write import commands, named_parents
from headwater.server.store.write.incoming.event_reader import EventReader
from headwater.server.store.write.incoming.name_limits import check_command
from headwater.server.store.write.log import UNKNOWN, Log
from headwater.server.store.write.projection import Projection
from headwater.server.store.write.session import WriteSession

if TYPE_CHECKING:
    from headwater.server.store.write.incoming.prepared import PreparedEvent

__all__ = ["Receipt", "Store", "open_store"]


class Receipt(msgspec.Struct, frozen=True):
    """What became of one event: its place in the log, or why it has none."""

    seq: int = 0
    duplicate: bool = False
    error: EventError | None = None
    failure: str | None = None


_KNOWN = (
    "WITH k (time, hash) AS ({in}) SELECT l.hash, l.seq FROM k JOIN log l"
    " ON l.time = k.time AND l.hash = k.hash"
)
_HEAD = "SELECT seq, epoch, chain FROM head WHERE id = 1"
_HEAD_AND_SAME = (
    "SELECT h.seq, h.epoch, h.chain, l.seq FROM head h LEFT JOIN log l ON l.time = ? AND l.hash = ?"
    " WHERE h.id = 1"
)
"""Most commits are of one event: both are asked at once, since an answer of PostgreSQL has to be waited for."""
UNTRIMMED = 128 * 1024
"""Bytes of events after which the working set is held to its bounds; after each event, that costs 1 %."""
STEP = 128
"""Events that are looked up together, and between which a commit may leave the others out."""
Also = Callable[[Connection, Sequence[Receipt]], None]
"""What else belongs into a commit; called with the receipts of the events in it."""


class Store:
    """One writer's view of a store. `append` is to be called by one thread at a time."""

    def __init__(self, database: Database, *, limits: Limits | None = None) -> None:
        self.database = database
        self.connection = database.writer()
        self.packer = Packer()
        self.session = WriteSession(self.connection, self.packer)
        self.log = Log(self.session)
        self.limits = limits or Limits()
        self.reader = EventReader(self.limits)
        self.on_change: Callable[[int, list[dict[str, Any]]], None] | None = None
        self.assumed: Counter[str] = Counter()
        """What was assumed of events taken in since the store was opened, by reason."""
        self.on_reset: Callable[[], None] | None = None
        """Called in the transaction that finds names deleted or numbered anew since the last one."""
        ((self.epoch,),) = self.connection.all("SELECT epoch FROM head WHERE id = 1")
        self._has_tombstones = False
        self._retained = 0
        self._untrimmed = 0
        self._least, self._until = sys.maxsize, 0.0

    def close(self) -> None:
        """Let go of the database."""
        self.connection.close()
        self.database.close()

    def append(
        self,
        bodies: Sequence[bytes | PreparedEvent],
        also: Also | None = None,
        *,
        least: int = sys.maxsize,
        turn: float = 0.0,
    ) -> list[Receipt]:
        """Take events in, in one commit; an event that must be refused does not touch the others.

        When this returns, every event with a receipt and no error is on the disk. What `also`
        writes stands in the same commit; if it raises, nothing is kept. Once they have taken `turn`
        seconds of CPU, the events beyond the first `least` are left out, and have no receipts.
        """
        self._least, self._until = least, 0.0
        if len(bodies) > least:
            self._until = time.thread_time() + turn
        self._trim(sum(len(body if isinstance(body, bytes) else body.raw) for body in bodies))
        self.packer.begin([body for body in bodies if isinstance(body, bytes)])
        try:
            return self._append(bodies, also)
        finally:
            self.packer.end()

    def _trim(self, size: int) -> None:
        """Hold the working set to its bounds now and then; events that are refused fill it too."""
        self._untrimmed += size
        if self._untrimmed > UNTRIMMED:
            self._untrimmed = 0
            self.session.trim()
            self.reader.trim()

    def _append(self, bodies: Sequence[bytes | PreparedEvent], also: Also | None) -> list[Receipt]:
        receipts: list[Receipt] = [Receipt()] * len(bodies)
        least = self._least
        group: list[tuple[int, PreparedEvent]] = []
        for i, body in enumerate(bodies):
            if i >= least and self._is_over():
                del receipts[i:]
                break
            try:
                read = self.reader.prepare(body) if isinstance(body, bytes) else body
                group.append((i, read))
            except EventError as error:
                # Its traceback would keep all that was decoded until the last one is answered.
                error.__traceback__ = error.__context__ = None
                receipts[i] = Receipt(error=error)
        if not group and also is None:
            return receipts
        try:
            with self.connection.together():
                changes = self._commit(group, receipts, also)
        except BaseException:
            self.abandon()
            raise
        if changes and self.on_change is not None:
            self.on_change(self.log.seq, changes)
        return receipts

    def _is_over(self) -> bool:
        """Whether this commit has no time left for events that need not be in it."""
        return time.thread_time() > self._until

    def abandon(self) -> None:
        """Undo an unfinished commit and start from what the database holds."""
        self.log.seq = UNKNOWN
        self.forget()
        self.connection.discard()

    def forget(self) -> None:
        """Drop what is held in memory; the database has it all."""
        self.session.forget()
        self.reader = EventReader(self.limits)

    def begin(self) -> None:
        """Open a transaction and make sure that no other server wrote since the last one."""
        self.connection.begin()
        self._follow(*self.connection.all(_HEAD)[0])

    def _follow(self, seq: int, epoch: int, chain: bytes) -> None:
        """Forget what is held in memory if somebody else moved the head of the log."""
        if epoch != self.epoch:
            self.log.seq = UNKNOWN
            self.packer.forget_samples()
            if self.on_reset is not None:
                self.on_reset()
            self.epoch = epoch
        if seq != self.log.seq:
            self.forget()
            self.log.seq, self.log.chain = seq, bytes(chain)
            self._has_tombstones = bool(self.connection.all("SELECT 1 FROM tombstone LIMIT 1"))
            self._retained = retained(self.connection)
            self.session.floor = max(self._retained, claims_since(self.connection))
            self.read_dictionaries(self.connection)

    def try_write(self) -> None:
        """Write and commit something that changes nothing; raises if the store cannot be written."""
        self.begin()
        self.connection.run("UPDATE head SET seq = seq WHERE id = 1")
        self.connection.commit()

    def read_dictionaries(self, connection: Any) -> None:
        """Know every stored dictionary, and none that was not kept."""
        rows = connection.all("SELECT id, data FROM dictionary")
        self.packer.follow([(number, bytes(data)) for number, data in rows])

    def _commit(
        self, group: list[tuple[int, PreparedEvent]], receipts: list[Receipt], also: Also | None
    ) -> list[dict[str, Any]]:
        reader, session = self.reader, self.session
        known = self._begin_with(group)
        if self.reader is not reader:
            group = [
                (i, msgspec.structs.replace(self.reader.prepare(item.raw), assumed=item.assumed))
                for i, item in group
            ]
        known |= self._already_expired(group)
        group = [(i, item) for i, item in group if self._new(i, item, known, receipts)]
        if group:
            projection = Projection(session)
            now = time.time_ns() // 1000
            for start in range(0, len(group), STEP):
                part = group[start : start + STEP]
                first, next_item = part[0]
                if start and first >= self._least and self._is_over():
                    del group[start:], receipts[first:]
                    self.log.seq = known[next_item.hash] - 1
                    break
                session.load([item for _, item in part])
                for i, item in part:
                    seq = known[item.hash]
                    job, run = projection.apply(item, now)
                    self.log.append_event(item, seq, now, job, run)
                    receipts[i] = Receipt(seq)
            self.log.flush()
            if also is not None:
                also(self.connection, receipts)
            self.connection.announce(self.log.seq, projection.changes)
            self.connection.commit()
            for _, item in group:
                if item.assumed:
                    self.assumed.update(item.assumed)
            if projection.shared_runs:
                self.assumed[SHARED_RUN] += projection.shared_runs
            return projection.changes
        if also is not None:
            also(self.connection, receipts)
            self.connection.commit()
        else:
            self.connection.rollback()
        return []

    def _begin_with(self, group: list[tuple[int, PreparedEvent]]) -> dict[bytes, int]:
        """Open a transaction; where events were taken in before, or deleted since, by their hash."""
        sent = [(item.time, item.hash) for _, item in group]
        if len(sent) == 1:
            self.connection.begin()
            ((*head, same),) = self.connection.all(_HEAD_AND_SAME, sent[0])
            self._follow(*head)
            rows = [] if same is None else [(sent[0][1], same)]
        else:
            self.begin()
            rows = within(self.connection, _KNOWN, sent)
        if self._has_tombstones:
            sql = "SELECT hash, seq FROM tombstone WHERE hash IN ({in})"
            rows += within(self.connection, sql, [digest for _, digest in sent])
        return {bytes(digest): seq for digest, seq in rows}

    def perform(self, command: dict[str, Any]) -> int:
        """Carry out one command and write it to the log, in one commit; its place in the log."""
        check_command(command, self.limits.name)
        try:
            self.begin()
            now = time.time_ns() // 1000
            record = {**clean_value(command), "at": now, "id": secrets.token_hex(8)}
            projection = Projection(self.session)
            job, run = commands.apply(self, projection, record)
            when = int(command.get("time") or now)
            self.log.append_command(canonical(record), now, when, job, run)
            self.log.flush()
            self.connection.announce(self.log.seq, projection.changes)
            self.connection.commit()
        except BaseException:
            self.abandon()
            raise
        if projection.shared_runs:
            self.assumed[SHARED_RUN] += projection.shared_runs
        if self.on_change is not None:
            self.on_change(self.log.seq, projection.changes)
        return self.log.seq

    @contextlib.contextmanager
    def changing(self, command: dict[str, Any]) -> Iterator[list[dict[str, Any]]]:
        """Do in one commit, with a record of it, what no event can express: deletions.

        What is put on the list it gives is published to listeners.
        """
        changes: list[dict[str, Any]] = []
        try:
            self.begin()
            now = time.time_ns() // 1000
            body = canonical({**command, "at": now, "id": secrets.token_hex(8)})
            self.log.append_command(body, now, now)
            self.log.flush()
            yield changes
            seq = self.log.seq
            self.connection.announce(seq, changes)
            self.connection.commit()
        except BaseException:
            self.abandon()
            raise
        self.log.seq = UNKNOWN
        if changes and self.on_change is not None:
            self.on_change(seq, changes)

    def _already_expired(self, group: list[tuple[int, PreparedEvent]]) -> dict[bytes, int]:
        """The events older than what is kept, of entities reported both before and after them.

        Retention has deleted them, or would at once; the last record that went stands for them.
        """
        old = [item for _, item in group if item.time < self._retained]
        if not old:
            return {}
        session = self.session
        session.load(old)
        ((first,),) = self.connection.all("SELECT min(seq) FROM log")
        found: dict[bytes, int] = {}
        for item in old:
            known = (
                session.jobs.get(item.job.key)
                if item.job is not None
                else session.datasets.get(item.datasets[0][1].key)
            )
            if known is not None and known.created <= item.time <= known.updated:
                found[item.hash] = max(1, (first or self.log.seq + 1) - 1)
        return found

    def _new(
        self, i: int, item: PreparedEvent, known: dict[bytes, int], receipts: list[Receipt]
    ) -> bool:
        seq = known.get(item.hash)
        if seq is not None:
            receipts[i] = Receipt(seq, duplicate=True)
            return False
        self.log.seq += 1
        known[item.hash] = self.log.seq
        return True


def open_store(url: str, *, limits: Limits | None = None) -> Store:
    """The store behind a URL, made if it does not exist."""
    store = Store(open_database(url), limits=limits)
    try:
        named_parents.complete(store)
    except BaseException:
        store.close()
        raise
    return store
