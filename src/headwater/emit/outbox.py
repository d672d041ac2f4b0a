"""A durable queue of events, written in the same transaction as the state of their producer.

An event leaves the outbox when every destination has taken it, so that a process killed at any
instant goes on where it stopped: what was decided is sent at least once, byte for byte the same,
in the order in which it was decided.
"""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.emit.database import open_database
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from headwater.emit.database import Connection

PARKED_KEPT = 1_000


class HeldError(HeadwaterError):
    """Another process writes to this outbox, or has taken it over."""


class Pending(NamedTuple):
    """An event that a destination has not taken yet."""

    seq: int
    run: str
    body: bytes


class Parked(NamedTuple):
    """An event that a destination refused for good, and why."""

    seq: int
    destination: str
    reason: str
    body: bytes


class Transaction:
    """What one step of a producer changes: its state and the events that say so."""

    def __init__(self, connection: Connection) -> None:
        self._db = connection
        self.events = 0

    def append(self, run: str, body: bytes) -> None:
        """Queue an event of a run."""
        self._db.query("INSERT INTO emit_event (run, body) VALUES (?, ?)", [run, body])
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


class Outbox:
    """The queue and the state of one producer; one process at a time writes to it."""

    def __init__(self, url: str) -> None:
        self._database = open_database(url)
        self.shown = self._database.shown
        self._writer: Connection | None = None
        self._writing = threading.RLock()
        self._locals = threading.local()
        self._woken: list[Callable[[], None]] = []

    def lead(self) -> bool:
        """Become the writer; False while another process is."""
        with self._writing:
            if self._writer is None:
                self._writer = self._database.acquire()
            return self._writer is not None

    def wait_to_lead(self, stop: threading.Event, interval: float = 1.0) -> bool:
        """Wait until this process is the writer; False when told to stop before."""
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
                raise HeldError(f"{self.shown}: not the writer")
            try:
                with self._writer.atomic():
                    step = Transaction(self._writer)
                    yield step
            except Exception as error:
                self._check_writer(error)
                raise
        if step.events:
            for wake in self._woken:
                wake()

    def _check_writer(self, error: Exception) -> None:
        assert self._writer is not None
        try:
            self._writer.query("SELECT 1")
        except Exception:  # noqa: BLE001
            self._writer = None
            raise HeldError(f"{self.shown}: the connection that held the lock is lost") from error

    def on_event(self, wake: Callable[[], None]) -> None:
        """Call `wake` whenever there is something new to send."""
        self._woken.append(wake)

    def state(self, prefix: str = "") -> dict[str, bytes]:
        """What the producer remembered, by key."""
        rows = self._read(
            "SELECT key, value FROM emit_state WHERE substr(key, 1, ?) = ?", [len(prefix), prefix]
        )
        return {str(key): bytes(value) for key, value in rows}

    def register(self, destinations: Iterable[str]) -> None:
        """Say where events go; a new destination gets what is still here, one gone is forgotten."""
        names = list(destinations)
        db = self._connection()
        with db.atomic():
            known = {str(row[0]) for row in db.query("SELECT destination FROM emit_cursor")}
            for name in known - set(names):
                db.query("DELETE FROM emit_cursor WHERE destination = ?", [name])
            for name in sorted(set(names) - known):
                db.query("INSERT INTO emit_cursor (destination, seq) VALUES (?, 0)", [name])

    def pending(self, destination: str, limit: int = 50) -> list[Pending]:
        """The next events a destination has to get, oldest first."""
        rows = self._read(
            "SELECT seq, run, body FROM emit_event WHERE seq >"
            " (SELECT seq FROM emit_cursor WHERE destination = ?) ORDER BY seq LIMIT ?",
            [destination, limit],
        )
        return [Pending(int(seq), str(run), bytes(body)) for seq, run, body in rows]

    def sent(self, destination: str, seq: int) -> None:
        """A destination has taken everything up to this event."""
        db = self._connection()
        with db.atomic():
            self._advance(db, destination, seq)

    def park(self, destination: str, event: Pending, reason: str) -> None:
        """Put an event aside that its destination refuses, so that it blocks no other."""
        db = self._connection()
        with db.atomic():
            db.query(
                "INSERT INTO emit_parked (seq, destination, reason, body) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (seq, destination) DO NOTHING",
                [event.seq, destination, reason, event.body],
            )
            db.query(
                "DELETE FROM emit_parked WHERE seq <= (SELECT max(seq) FROM emit_parked) - ?",
                [PARKED_KEPT],
            )
            self._advance(db, destination, event.seq)

    def _advance(self, db: Connection, destination: str, seq: int) -> None:
        db.query(
            "UPDATE emit_cursor SET seq = ? WHERE destination = ? AND seq < ?",
            [seq, destination, seq],
        )
        db.query("DELETE FROM emit_event WHERE seq <= (SELECT min(seq) FROM emit_cursor)")

    def parked(self) -> list[Parked]:
        """Every event put aside, oldest first."""
        rows = self._read("SELECT seq, destination, reason, body FROM emit_parked ORDER BY seq")
        return [Parked(int(a), str(b), str(c), bytes(d)) for a, b, c, d in rows]

    def waiting(self) -> int:
        """How many events some destination has not taken yet."""
        return int(self._read("SELECT count(*) FROM emit_event")[0][0])

    def note(self, topic: str, body: bytes) -> None:
        """Leave word for the writer, from any process."""
        db = self._connection()
        with db.atomic():
            db.query("INSERT INTO emit_note (topic, body) VALUES (?, ?)", [topic, body])

    def notes(self, topic: str) -> list[bytes]:
        """Take the words left on a topic."""
        if not self._read("SELECT 1 FROM emit_note WHERE topic = ? LIMIT 1", [topic]):
            return []
        db = self._connection()
        with db.atomic():
            rows = db.query("SELECT id, body FROM emit_note WHERE topic = ? ORDER BY id", [topic])
            for number, _ in rows:
                db.query("DELETE FROM emit_note WHERE id = ?", [number])
        return [bytes(body) for _, body in rows]

    def drained(self, seconds: float) -> bool:
        """Wait until everything is sent, at most so long."""
        deadline = time.monotonic() + seconds
        while self.waiting():
            if time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True

    def close(self) -> None:
        """Let another process become the writer."""
        with self._writing:
            if self._writer is not None:
                self._writer.close()
                self._writer = None

    def _connection(self) -> Connection:
        found: Connection | None = getattr(self._locals, "connection", None)
        if found is None:
            found = self._locals.connection = self._database.connect()
        return found

    def forget_connection(self) -> None:
        """Drop this thread's own connection, after an error or at its end."""
        found: Connection | None = getattr(self._locals, "connection", None)
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
