"""The two databases an outbox may live in, behind the few calls it makes."""

from __future__ import annotations

import contextlib
import fcntl
import os
import sqlite3
import threading
import weakref
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from headwater.emit.process.forks import IN_SQLITE
from headwater.errors import EnvironmentProblem, UsageError
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

SQLITE = """
CREATE TABLE IF NOT EXISTS emit_destination (
  name TEXT PRIMARY KEY, shown TEXT NOT NULL, active INTEGER NOT NULL);
CREATE TABLE IF NOT EXISTS emit_queue (
  seq INTEGER PRIMARY KEY AUTOINCREMENT, destination TEXT NOT NULL, run TEXT NOT NULL,
  body BLOB NOT NULL, refusal TEXT, refused_at INTEGER);
CREATE INDEX IF NOT EXISTS emit_queue_waiting ON emit_queue (destination, seq)
  WHERE refusal IS NULL;
CREATE TABLE IF NOT EXISTS emit_state (key TEXT PRIMARY KEY, value BLOB NOT NULL);
CREATE TABLE IF NOT EXISTS emit_note (
  id INTEGER PRIMARY KEY AUTOINCREMENT, topic TEXT NOT NULL, body BLOB NOT NULL);
"""
# The tables before each destination had a queue of its own: one row an event, one cursor a
# destination. An event without any cursor gets the empty destination, which nobody sends to.
FROM_CURSORS = """
INSERT INTO emit_destination (name, shown, active)
  SELECT destination, '', 1 FROM emit_cursor WHERE true ON CONFLICT (name) DO NOTHING;
INSERT INTO emit_queue (destination, run, body)
  SELECT coalesce(c.destination, ''), e.run, e.body FROM emit_event e
  LEFT JOIN emit_cursor c ON true WHERE c.seq IS NULL OR e.seq > c.seq ORDER BY e.seq;
INSERT INTO emit_queue (destination, run, body, refusal)
  SELECT destination, '', body, reason FROM emit_parked ORDER BY seq;
DROP TABLE emit_event; DROP TABLE emit_cursor; DROP TABLE emit_parked
"""
POSTGRES = (
    SQLITE.replace(
        "INTEGER PRIMARY KEY AUTOINCREMENT", "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY"
    )
    .replace("INTEGER", "BIGINT")
    .replace("BLOB", "BYTEA")
)
# A dead leader's host may not close its connection: these make the server notice in time.
KEEPALIVE = {
    "tcp_keepalives_idle": "5",
    "tcp_keepalives_interval": "4",
    "tcp_keepalives_count": "3",
    "tcp_user_timeout": "15000",
}


class OutboxConnection(Protocol):
    """One connection, used by one thread at a time."""

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run a statement and return its rows, if it has any."""

    def atomic(self) -> contextlib.AbstractContextManager[None]:
        """One transaction: on disk at the end, or undone."""

    def tables(self) -> set[str]:
        """The names of the tables there are."""

    def close(self, remove: Callable[[], None] | None = None) -> None:
        """Give the connection back; `remove` is called before another process can become the writer."""


class OutboxDatabase(Protocol):
    """Where an outbox lives."""

    shown: str

    def connect(self) -> OutboxConnection:
        """A new connection to a database that has the tables."""

    def acquire(self, *, create: bool = True) -> OutboxConnection | None:
        """Become the only writer: its connection, or None while another process is.

        Without `create` also None where there is no such database any more.
        """


def convert_cursors(connection: OutboxConnection) -> None:
    """Bring the tables of an earlier version into today's form; only the writer may."""
    if "emit_cursor" in connection.tables():
        with connection.atomic():
            for statement in filter(str.strip, FROM_CURSORS.split(";")):
                connection.query(statement)


def open_database(url: str) -> OutboxDatabase:
    """The database of a URL: a file's path, `sqlite:///path` or `postgresql://…`."""
    scheme = urlsplit(url).scheme
    if scheme in ("postgresql", "postgres"):
        return PostgresOutboxDatabase(url)
    if scheme == "sqlite":
        return SqliteOutboxDatabase(Path(unquote(url.split("://", 1)[1].removeprefix("/"))))
    if "://" in url:
        raise UsageError(
            f"{redact(url)}: not a place for state",
            hint="a file's path, sqlite:///PATH or postgresql://USER@HOST/DATABASE",
        )
    return SqliteOutboxDatabase(Path(url))


class SqliteOutboxDatabase:
    """A file; the writer holds a lock on another file beside it."""

    def __init__(self, path: Path) -> None:
        self.path = path.expanduser()
        self.shown = str(self.path)

    def connect(self) -> _Sqlite:
        try:
            if not self.path.exists():
                os.close(self._open(self.path))
            return _Sqlite(self.path)
        except (OSError, sqlite3.Error) as error:
            raise self._unusable(error) from error

    def acquire(self, *, create: bool = True) -> OutboxConnection | None:
        # The lock comes first: a database that nobody holds is removed by whoever finds it done, and what
        # is written to a removed one is lost.
        path = self.path.with_name(self.path.name + ".lock")
        try:
            lock = self._open(path)
        except OSError as error:
            raise self._unusable(error) from error
        try:
            if not _held(lock, path):
                return None
            if not create and not self.path.exists():
                path.unlink(missing_ok=True)
                return None
            connection = self.connect()
            connection.lock, lock = lock, -1
        finally:
            if lock >= 0:
                os.close(lock)
        _leading.add(connection)
        return connection

    def _open(self, path: Path) -> int:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        return os.open(path, os.O_CREAT | os.O_RDWR, 0o600)

    def _unusable(self, error: Exception) -> EnvironmentProblem:
        return EnvironmentProblem(
            f"{self.path}: cannot keep state there: {error}", hint="choose a file with --state"
        )


def _held(lock: int, path: Path) -> bool:
    """Whether the lock is ours now; False while another process holds it, or where it was just removed."""
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return os.path.samestat(os.fstat(lock), path.stat())
    except OSError:
        return False


class _Sqlite:
    def __init__(self, path: Path) -> None:
        self.lock: int | None = None
        with IN_SQLITE:
            self._db = sqlite3.connect(
                path, timeout=30, isolation_level=None, check_same_thread=False
            )
            self._db.execute("PRAGMA journal_mode=WAL")
            self._db.execute("PRAGMA synchronous=FULL")
            self._db.executescript(SQLITE)

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        with IN_SQLITE:
            return self._db.execute(sql, values).fetchall()

    @contextlib.contextmanager
    def atomic(self) -> Iterator[None]:
        with IN_SQLITE:
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield
            except BaseException:
                self._db.execute("ROLLBACK")
                raise
            self._db.execute("COMMIT")

    def tables(self) -> set[str]:
        return {row[0] for row in self.query("SELECT name FROM sqlite_master WHERE type = 'table'")}

    def close(self, remove: Callable[[], None] | None = None) -> None:
        try:
            with IN_SQLITE:
                self._db.close()
            if remove is not None:
                remove()
        finally:
            self.let_go()

    def let_go(self) -> None:
        """Let another process become the writer."""
        if self.lock is not None:
            os.close(self.lock)
            self.lock = None


_leading: weakref.WeakSet[_Sqlite] = weakref.WeakSet()


def _forked() -> None:
    # A child shares the lock: who waits for the writer's end would have to wait for the child's too.
    for connection in list(_leading):
        connection.let_go()


os.register_at_fork(after_in_child=_forked)


class PostgresOutboxDatabase:
    """A PostgreSQL database; the writer's connection holds an advisory lock.

    Writes go through the connection that holds the lock, so a leader that has lost it cannot write.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.shown = redact(url)
        self._made = False
        self._making = threading.Lock()

    def connect(self) -> OutboxConnection:
        try:
            import psycopg
        except ModuleNotFoundError as error:
            raise UsageError(
                "state in PostgreSQL needs psycopg, which is not installed",
                hint="pip install 'psycopg[binary]'",
            ) from error
        try:
            db = psycopg.connect(
                self.url,
                autocommit=True,
                connect_timeout=10,
                keepalives_idle=5,
                keepalives_interval=4,
                keepalives_count=3,
            )
        except psycopg.Error as error:
            raise EnvironmentProblem(
                f"{self.shown}: {redact(str(error).strip())}", hint="check --state"
            ) from None
        connection = _Postgres(db)
        with self._making:
            if not self._made:
                with connection.atomic():
                    connection.query("SELECT pg_advisory_xact_lock(?)", [_key("headwater.tables")])
                    for statement in filter(str.strip, POSTGRES.split(";")):
                        connection.query(statement)
                self._made = True
        return connection

    def acquire(self, *, create: bool = True) -> OutboxConnection | None:
        connection = self.connect()
        for name, value in KEEPALIVE.items():
            with contextlib.suppress(Exception):  # not every server lets a user set it
                connection.query(f"SET {name} = {value}")
        held = connection.query("SELECT pg_try_advisory_lock(?)", [_key("headwater.writer")])
        if not held[0][0]:
            connection.close()
            return None
        return connection


class _Postgres:
    def __init__(self, db: Any) -> None:
        self._db = db

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        cursor = self._db.execute(sql.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    def atomic(self) -> contextlib.AbstractContextManager[None]:
        transaction: contextlib.AbstractContextManager[None] = self._db.transaction()
        return transaction

    def tables(self) -> set[str]:
        rows = self.query(
            "SELECT tablename FROM pg_tables WHERE schemaname = ANY (current_schemas(false))"
        )
        return {row[0] for row in rows}

    def close(self, remove: Callable[[], None] | None = None) -> None:
        if remove is not None:
            remove()
        self._db.close()


def _key(name: str) -> int:
    return zlib.crc32(name.encode())
