"""SQLite behind the store's verbs."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import threading
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import lru_cache
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headwater.errors import UsageError
from headwater.server.store.database import (
    MOVE_HEAD,
    STEP,
    Connection,
    DamagedError,
    Row,
    StoreError,
    StoreUnavailableError,
    UnstorableError,
    upsert_sql,
)
from headwater.server.store.database.schema import BASE, DIALECTS, TABLES, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["SqliteConnection", "SqliteDatabase", "sqlite_path", "unopened"]

_ABOUT_THE_DATA = (sqlite3.DataError, sqlite3.IntegrityError)
_DAMAGED = ("malformed", "not a database", "bad database", "disk I/O error: corrupt")
PREFIX = "sqlite:///"
SPARE = 16 * 1024 * 1024
"""Free bytes of the disk below which health reports it as full."""

# Without an adapter for their types, which gives them back as they are, the module looks for one and
# makes an error of finding none, for each such value that is written.
sqlite3.register_adapter(bytes, getattr(bytes, "__bytes__", bytes))
sqlite3.register_adapter(type(None), dict[None, None]().get)


@lru_cache(1_024)
def _with_marks(sql: str, size: int, width: int) -> str:
    """A statement for a list of so many keys: of values, or of tuples of so many values."""
    if not width:
        return sql.replace("{in}", ",".join("?" * size))
    mark = "(" + ",".join("?" * width) + ")"
    return sql.replace("{in}", "VALUES " + ",".join([mark] * size))


class SqliteConnection:
    """A connection to an SQLite file."""

    holds = "{}.name LIKE ? ESCAPE '\\'"
    _upserts: dict[str, str] = {
        t.name: upsert_sql(t, f"VALUES ({', '.join('?' * len(t.columns))})")
        for t in TABLES.values()
        if t.name not in BASE
    } | {
        name: f"UPDATE {base} SET ({', '.join(TABLES[name].moving)})"  # noqa: S608
        f" = ({', '.join(f'?{i}' for i in range(2, 2 + len(TABLES[name].moving)))}) WHERE id = ?1"
        for name, base in BASE.items()
    }

    def __init__(
        self, path: str, *, readonly: bool = False, damage: list[str] | None = None
    ) -> None:
        self._damage = damage if damage is not None else []
        try:
            self.raw = sqlite3.connect(
                path,
                isolation_level=None,
                check_same_thread=False,
                cached_statements=512,
                timeout=30,
            )
            self.raw.execute("PRAGMA journal_mode = WAL")
            self.raw.execute("PRAGMA synchronous = FULL")
            self.raw.execute(f"PRAGMA cache_size = {-8_000 if readonly else -24_000}")
            self.raw.execute("PRAGMA temp_store = MEMORY")
            self.raw.execute("PRAGMA wal_autocheckpoint = 4000")
            if readonly:
                self.raw.execute("PRAGMA query_only = ON")
        except sqlite3.Error as error:
            if isinstance(failure := self._failed(error), DamagedError):
                raise failure from error
            raise StoreError(f"cannot open the SQLite store {path}: {error}") from error

    def sought(self, text: str) -> str:
        return "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"

    def listed(self, sql: str, keys: list[Any]) -> tuple[str, list[Any]]:
        # Padded to a power of two, so that few distinct statements need preparing.
        size = 1 << (len(keys) - 1).bit_length()
        if size > len(keys):
            keys = keys + [keys[-1]] * (size - len(keys))
        if isinstance(keys[0], tuple):
            return _with_marks(sql, size, len(keys[0])), list(chain.from_iterable(keys))
        return _with_marks(sql, size, 0), keys

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        try:
            return self.raw.execute(sql, params).fetchall()
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from error

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        try:
            return self.raw.execute(sql, params).rowcount
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from error

    def upsert(self, table: Table, rows: Sequence[Row]) -> None:
        try:
            self.raw.executemany(self._upserts[table.name], rows)
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from error

    def append_log(self, records: Sequence[Row], seq: int, chain: bytes) -> None:
        self.upsert(TABLES["log"], records)
        self.run(MOVE_HEAD, (seq, chain))

    def columns(self, table: str) -> list[str]:
        return [row[1] for row in self.all(f"PRAGMA table_info({table})")]

    def each(self, sql: str) -> Iterator[list[Row]]:
        try:
            cursor = self.raw.execute(sql)
            while rows := cursor.fetchmany(STEP):
                yield rows
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from error

    def fill(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        marks = ", ".join("?" * len(columns))
        sql = f"INSERT INTO {table} ({', '.join(columns)}) VALUES ({marks})"  # noqa: S608
        try:
            self.raw.executemany(sql, rows)
        except sqlite3.DatabaseError as error:
            raise self._failed(error) from error

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        if self.raw.in_transaction:
            self.run("ROLLBACK")

    def discard(self) -> None:
        self.rollback()

    def script(self, sql: str) -> None:
        filled = sql.format(**DIALECTS[SqliteDatabase.dialect])
        for statement in filled.split(";\n"):
            if statement.strip():
                self.run(statement)

    def close(self) -> None:
        self.raw.close()

    def announce(self, seq: int, changes: list[dict[str, Any]]) -> None:
        """No other process writes to the file, so there is none to notify."""

    def thorough(self) -> None:
        self.all("PRAGMA secure_delete = ON")

    def tidy(self) -> None:
        # Freed pages, and freed cells of others, still hold what earlier changes left there: rows
        # are rewritten all the time. Only a rewritten file has none of it.
        try:
            self.run("PRAGMA temp_store = FILE")  # a copy of the file does not fit into memory
            self.run("VACUUM")
            self.run("PRAGMA temp_store = MEMORY")
            ((busy, _, _),) = self.all("PRAGMA wal_checkpoint(TRUNCATE)")
        except StoreError as error:
            raise type(error)(
                f"it is deleted, but not overwritten: {error.message}; {_VACUUM}"
            ) from error
        if busy:
            raise StoreUnavailableError(f"it is deleted, but readers hold the file; {_VACUUM}")

    def together(self) -> AbstractContextManager[Any]:
        return nullcontext()

    def _failed(self, error: sqlite3.Error) -> StoreError:
        text = str(error)
        if any(sign in text for sign in _DAMAGED):
            if not self._damage:
                self._damage.append(text)
            return DamagedError(f"the SQLite file is damaged: {text}")
        if isinstance(error, _ABOUT_THE_DATA):
            return UnstorableError(f"SQLite cannot store this: {error}")
        if isinstance(error, (sqlite3.ProgrammingError, sqlite3.InternalError)):
            return StoreError(f"SQLite refuses the statement: {error}")
        return StoreUnavailableError(f"the SQLite store does not answer: {error}")


_VACUUM = "when there is room, stop the server and run VACUUM on the file"


def sqlite_path(url: str) -> Path:
    """The file of a store's URL."""
    path = unquote(url.removeprefix(PREFIX))
    if not url.startswith(PREFIX) or not path:
        raise UsageError(
            f"{url} names no file", hint="sqlite:///FILE, sqlite:////ROOT/FILE, or the path alone"
        )
    return Path(path).expanduser()


def unopened(path: Path, error: OSError) -> StoreError:
    """The error of a file that the machine does not let us make or open."""
    return StoreError(
        f"cannot open the SQLite store {path}: {error}",
        hint="name a file in a folder that you may write to: --store FILE",
    )


class SqliteDatabase:
    """SQLite in WAL mode with synchronous=FULL: what is committed is on the disk."""

    dialect = "sqlite"

    def __init__(self, url: str) -> None:
        self.url = url
        path = sqlite_path(url)
        try:
            path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            # SQLite gives its write-ahead log the same permissions as the file.
            os.close(os.open(path, os.O_CREAT | os.O_RDWR, 0o600))
        except OSError as error:
            raise unopened(path, error) from error
        self.path = str(path)
        self._file = self._identity()
        self._damage: list[str] = []
        self._idle: list[SqliteConnection] = []
        self._lock = threading.Lock()

    def writer(self) -> Connection:
        return SqliteConnection(self.path, damage=self._damage)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or SqliteConnection(self.path, readonly=True, damage=self._damage)
        try:
            connection.run("BEGIN")
            yield connection
        finally:
            connection.rollback()
            with self._lock:
                self._idle.append(connection)

    def watch(self, publish: Callable[[int, list[dict[str, Any]]], None]) -> bool:
        return False

    def lead(self) -> bool:
        return True

    def tend(self) -> None:
        """Nothing to do: plans follow the indexes, whatever is in the tables."""

    def size(self) -> int:
        files = (Path(self.path + end) for end in ("", "-wal"))
        return sum(file.stat().st_size for file in files if file.exists())

    def trouble(self) -> str | None:
        if self._damage:
            return (
                f"the SQLite file is damaged ({self._damage[0]}): stop the server, keep a copy of"
                " the file, and restore a backup of it"
            )
        if self._identity() != self._file:
            return (
                "another file, or none, is where the SQLite file was: what is written goes to the"
                " file that was removed and is gone when the server stops. Export the events"
                " (GET /api/v2/events) before you stop it, then restore a backup"
            )
        free = shutil.disk_usage(Path(self.path).parent).free
        if free < SPARE:
            return f"its disk is full ({free:,} bytes are free): make room"
        return None

    def _identity(self) -> tuple[int, int] | None:
        try:
            found = Path(self.path).stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def inspect(self) -> None:
        # A connection of its own: others hold pages in memory as they were before the damage.
        with contextlib.suppress(DamagedError):
            connection = SqliteConnection(self.path, readonly=True, damage=self._damage)
            with contextlib.closing(connection):
                ((found,),) = connection.all("PRAGMA quick_check(1)")
            if found != "ok":
                self._damage.append(str(found).replace("\n", " "))

    def close(self) -> None:
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
