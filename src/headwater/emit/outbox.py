"""A durable queue of events, written in the same transaction as the state of their producer.

Each event is kept once for every destination it was emitted to and leaves that destination's queue
when the destination has taken it, so that a process killed at any instant goes on where it stopped:
what was decided is sent at least once, byte for byte the same, in the order in which it was decided.
An event is never sent to a destination it was not emitted to. One that its destination refuses for
good stays in the outbox, with the reason, until somebody retries or drops it.
"""

from __future__ import annotations

import logging
import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.emit.database import convert_cursors, open_database
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from headwater.emit.database import OutboxConnection

log = logging.getLogger(__name__)

# A server that refuses everything must not fill the disk: of more, the oldest are dropped.
REFUSED_KEPT = 1_000
# A note on a topic that nobody takes any more, as that of a cluster's former address, would stay for ever.
NOTES_KEPT = 1_000


class OutboxInUseError(HeadwaterError):
    """Another process writes to this outbox, or has taken it over."""


class Pending(NamedTuple):
    """An event that a destination has not taken yet."""

    seq: int
    run: str
    body: bytes


class RefusedByDestination(NamedTuple):
    """An event that its destination refused for good, when and why."""

    seq: int
    destination: str
    run: str
    body: bytes
    reason: str
    at: int
    """Seconds since 1970; 0 where an earlier version did not record it."""


class Transaction:
    """What one step of a producer changes: its state and the events that report it."""

    def __init__(self, connection: OutboxConnection, destinations: Sequence[str]) -> None:
        self._db = connection
        self._destinations = destinations
        self.events = 0

    def append(self, run: str, body: bytes) -> None:
        """Queue an event of a run for every destination that is registered now."""
        if not self._destinations:
            raise HeadwaterError("an event cannot be queued before a destination is registered")
        for name in self._destinations:
            self._db.query(
                "INSERT INTO emit_queue (destination, run, body) VALUES (?, ?, ?)",
                [name, run, body],
            )
        self.events += 1

    def put(self, key: str, value: bytes) -> None:
        """Remember something of the producer's state."""
        self._db.query(
            "INSERT INTO emit_state (key, value) VALUES (?, ?)"
            " ON CONFLICT (key) DO UPDATE SET value = excluded.value",
            [key, value],
        )

    def remove(self, key: str) -> None:
        """Forget something of the producer's state."""
        self._db.query("DELETE FROM emit_state WHERE key = ?", [key])


class OutboxChange(NamedTuple):
    """One step of a run: its events, and the state of its producer after them (None: none)."""

    key: str
    state: bytes | None
    events: Sequence[tuple[str, bytes]]
    """Run ids and bodies, in the order to be sent."""


class Outbox:
    """The queue and the state of one producer; one process at a time writes to it."""

    def __init__(self, url: str) -> None:
        self._database = open_database(url)
        self.shown = self._database.shown
        self._writer: OutboxConnection | None = None
        self._writing = threading.RLock()
        self._locals = threading.local()
        self._woken: list[Callable[[], None]] = []
        self._destinations: tuple[str, ...] = ()
        self._dropped = 0

    def lead(self, *, create: bool = True) -> bool:
        """Become the writer; False while another process is, without `create` also where nothing is left."""
        with self._writing:
            if self._writer is None:
                self._writer = self._database.acquire(create=create)
                if self._writer is not None:
                    convert_cursors(self._writer)
                    self._destinations = tuple(self.destinations(active=True))
            return self._writer is not None

    def wait_to_lead(self, stop: threading.Event, interval: float = 1.0) -> bool:
        """Wait until this process is the writer; False when asked to stop before."""
        while not stop.is_set():
            if self.lead():
                return True
            stop.wait(interval)
        return False

    @property
    def leads(self) -> bool:
        """Whether this process is the writer, as far as it knows."""
        return self._writer is not None

    @contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """One step: all of it is on disk at the end, or none of it."""
        with self._writing:
            if self._writer is None:
                raise OutboxInUseError(f"{self.shown}: not the writer")
            try:
                with self._writer.atomic():
                    step = Transaction(self._writer, self._destinations)
                    yield step
            except Exception as error:
                self._check_writer(error)
                raise
        if step.events:
            for wake in self._woken:
                wake()

    def commit(self, changes: Iterable[OutboxChange]) -> None:
        """Write events and the state after them: all of it is on disk at the end, or none."""
        with self.transaction() as step:
            for change in changes:
                for run, body in change.events:
                    step.append(run, body)
                if change.state is None:
                    step.remove(change.key)
                else:
                    step.put(change.key, change.state)

    def _check_writer(self, error: Exception) -> None:
        assert self._writer is not None
        try:
            self._writer.query("SELECT 1")
        except Exception:  # noqa: BLE001
            self._writer = None
            raise OutboxInUseError(
                f"{self.shown}: the connection that held the lock is lost"
            ) from error

    def on_event(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there is something new to send."""
        self._woken.append(wake)

    def state(self, prefix: str = "") -> dict[str, bytes]:
        """What the producer remembered, by key."""
        rows = self._read(
            "SELECT key, value FROM emit_state WHERE substr(key, 1, ?) = ?", [len(prefix), prefix]
        )
        return {str(key): bytes(value) for key, value in rows}

    def register(self, destinations: Mapping[str, str]) -> None:
        """Set where events go from now on: how each destination is shown, by its name.

        What waits for a destination that is not among them stays, for it alone, and is sent when it
        is registered again.
        """
        db = self._connection()
        with db.atomic():
            db.query("UPDATE emit_destination SET active = 0")
            for name, shown in destinations.items():
                db.query(
                    "INSERT INTO emit_destination (name, shown, active) VALUES (?, ?, 1)"
                    " ON CONFLICT (name) DO UPDATE SET shown = excluded.shown, active = 1",
                    [name, shown],
                )
            db.query(
                "DELETE FROM emit_destination WHERE active = 0"
                " AND name NOT IN (SELECT destination FROM emit_queue)"
            )
        self._destinations = tuple(destinations)

    def destinations(self, *, active: bool = False) -> dict[str, str]:
        """How each destination is shown, by its name; `active`: only those that new events go to."""
        rows = self._read("SELECT name, shown, active FROM emit_destination ORDER BY name")
        return {str(name): str(shown) for name, shown, on in rows if on or not active}

    def pending(self, destination: str, limit: int = 50) -> list[Pending]:
        """The next events a destination has to get, oldest first."""
        rows = self._read(
            "SELECT seq, run, body FROM emit_queue"
            " WHERE destination = ? AND refusal IS NULL ORDER BY seq LIMIT ?",
            [destination, limit],
        )
        return [Pending(int(seq), str(run), bytes(body)) for seq, run, body in rows]

    def sent(self, destination: str, seqs: Iterable[int]) -> None:
        """Take events out of the queue that their destination has taken."""
        db = self._connection()
        with db.atomic():
            for seq in seqs:
                db.query(
                    "DELETE FROM emit_queue WHERE destination = ? AND seq = ?", [destination, seq]
                )

    def refuse(self, destination: str, event: Pending, reason: str) -> None:
        """Set an event aside that its destination refuses, so that it blocks no other."""
        db = self._connection()
        with db.atomic():
            db.query(
                "UPDATE emit_queue SET refusal = ?, refused_at = ? WHERE destination = ? AND seq = ?",
                [reason, int(time.time()), destination, event.seq],
            )
            dropped = _drop_oldest(db)
        self._log_dropped(dropped)

    def refused(self) -> list[RefusedByDestination]:
        """Every event that was set aside, oldest first."""
        rows = self._read(
            "SELECT seq, destination, run, body, refusal, coalesce(refused_at, 0)"
            " FROM emit_queue WHERE refusal IS NOT NULL ORDER BY seq"
        )
        return [
            RefusedByDestination(int(seq), str(to), str(run), bytes(body), str(reason), int(at))
            for seq, to, run, body, reason, at in rows
        ]

    def refused_count(self) -> int:
        """How many events were set aside."""
        ((count,),) = self._read("SELECT count(*) FROM emit_queue WHERE refusal IS NOT NULL")
        return int(count)

    def keep_refused(
        self, destinations: Mapping[str, str], events: Iterable[RefusedByDestination]
    ) -> None:
        """Take over events that were refused while another outbox held them; repeating it is safe."""
        db = self._connection()
        with db.atomic():
            for name, shown in destinations.items():
                db.query(
                    "INSERT INTO emit_destination (name, shown, active) VALUES (?, ?, 0)"
                    " ON CONFLICT (name) DO NOTHING",
                    [name, shown],
                )
            for one in events:
                same = [one.destination, one.body]
                db.query(
                    "INSERT INTO emit_queue (destination, run, body, refusal, refused_at)"
                    " SELECT ?, ?, ?, ?, ? WHERE NOT EXISTS"
                    " (SELECT 1 FROM emit_queue WHERE destination = ? AND body = ?)",
                    [one.destination, one.run, one.body, one.reason, one.at, *same],
                )
            dropped = _drop_oldest(db)
        self._log_dropped(dropped)

    def _log_dropped(self, dropped: list[str]) -> None:
        """Log the first and each time that they are twice as many: it is a user's job whose log this is."""
        before = self._dropped
        self._dropped += len(dropped)
        if self._dropped.bit_length() > before.bit_length():
            log.warning(
                "more than %d refused events are kept: %d were dropped until now, the last of run %s;"
                " `headwater outbox list` shows the others",
                REFUSED_KEPT, self._dropped, dropped[-1],
            )  # fmt: skip

    def retry(self, seq: int) -> None:
        """Queue a refused event again, for the destination that refused it."""
        db = self._connection()
        with db.atomic():
            db.query("UPDATE emit_queue SET refusal = NULL, refused_at = NULL WHERE seq = ?", [seq])

    def drop(self, seq: int) -> None:
        """Delete a refused event for good."""
        db = self._connection()
        with db.atomic():
            db.query("DELETE FROM emit_queue WHERE seq = ? AND refusal IS NOT NULL", [seq])

    def waiting(self) -> dict[str, int]:
        """How many events have not been taken yet, by destination."""
        rows = self._read(
            "SELECT destination, count(*) FROM emit_queue WHERE refusal IS NULL"
            " GROUP BY destination"
        )
        return {str(name): int(count) for name, count in rows}

    def note(self, topic: str, body: bytes) -> None:
        """Leave a message for the writer, from any process."""
        db = self._connection()
        with db.atomic():
            db.query("INSERT INTO emit_note (topic, body) VALUES (?, ?)", [topic, body])
            db.query(
                "DELETE FROM emit_note WHERE id <="
                " (SELECT id FROM emit_note ORDER BY id DESC LIMIT 1 OFFSET ?)",
                [NOTES_KEPT],
            )

    def notes(self, topic: str) -> list[bytes]:
        """Take the messages left on a topic."""
        if not self._read("SELECT 1 FROM emit_note WHERE topic = ? LIMIT 1", [topic]):
            return []
        db = self._connection()
        with db.atomic():
            rows = db.query("SELECT id, body FROM emit_note WHERE topic = ? ORDER BY id", [topic])
            for number, _ in rows:
                db.query("DELETE FROM emit_note WHERE id = ?", [number])
        return [bytes(body) for _, body in rows]

    def drained(self, seconds: float, destinations: Iterable[str] | None = None) -> bool:
        """Wait until everything is sent to these destinations, or to all, at most so long."""
        names = None if destinations is None else set(destinations)
        deadline = time.monotonic() + seconds
        while any(names is None or name in names for name in self.waiting()):
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def close(self, remove: Callable[[], None] | None = None) -> None:
        """Let another process become the writer, after `remove` has deleted what is done."""
        with self._writing:
            if self._writer is not None:
                self._writer.close(remove)
                self._writer = None

    def _connection(self) -> OutboxConnection:
        found: OutboxConnection | None = getattr(self._locals, "connection", None)
        if found is None:
            found = self._locals.connection = self._database.connect()
        return found

    def forget_connection(self) -> None:
        """Drop this thread's own connection, after an error or at its end."""
        found: OutboxConnection | None = getattr(self._locals, "connection", None)
        self._locals.connection = None
        if found is not None:
            with suppress(Exception):
                found.close()

    def _read(self, sql: str, values: Any = ()) -> list[tuple[Any, ...]]:
        try:
            return self._connection().query(sql, values)
        except Exception:
            self.forget_connection()
            raise


def _drop_oldest(db: OutboxConnection) -> list[str]:
    """Drop the refused events beyond those that are kept; the run of each."""
    over = db.query(
        "SELECT seq FROM emit_queue WHERE refusal IS NOT NULL ORDER BY seq DESC LIMIT 1 OFFSET ?",
        [REFUSED_KEPT],
    )
    if not over:
        return []
    which = "FROM emit_queue WHERE refusal IS NOT NULL AND seq <= ?"
    dropped = db.query(f"SELECT run {which} ORDER BY seq", over[0])
    db.query(f"DELETE {which}", over[0])
    return [str(run) for (run,) in dropped]
