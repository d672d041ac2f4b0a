"""SQLite behind the store's verbs."""

from __future__ import annotations

import sqlite3
import threading
from contextlib import AbstractContextManager, contextmanager, nullcontext
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import unquote

from headwater.server.store.database import (
    Connection,
    Row,
    StoreError,
    StoreUnavailableError,
    upsert_sql,
)
from headwater.server.store.schema import BASE, DIALECTS, TABLES, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["SqliteConnection", "SqliteDatabase"]


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

    def __init__(self, path: str, *, readonly: bool = False) -> None:
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
            raise StoreError(f"cannot open the SQLite store {path}: {error}") from error

    def sought(self, text: str) -> str:
        return "%" + text.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_") + "%"

    def listed(self, sql: str, keys: list[Any]) -> tuple[str, list[Any]]:
        # Padded to a power of two, so that few distinct statements need preparing.
        size = 1 << (len(keys) - 1).bit_length()
        keys = keys + [keys[-1]] * (size - len(keys))
        if isinstance(keys[0], tuple):
            mark = "(" + ",".join("?" * len(keys[0])) + ")"
            values = list(chain.from_iterable(keys))
            return sql.replace("{in}", "VALUES " + ",".join([mark] * size)), values
        return sql.replace("{in}", ",".join("?" * size)), keys

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        try:
            return self.raw.execute(sql, params).fetchall()
        except sqlite3.OperationalError as error:
            raise _unavailable(error) from error

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        try:
            return self.raw.execute(sql, params).rowcount
        except sqlite3.OperationalError as error:
            raise _unavailable(error) from error

    def upsert(self, table: Table, rows: Sequence[Row]) -> None:
        try:
            self.raw.executemany(self._upserts[table.name], rows)
        except sqlite3.OperationalError as error:
            raise _unavailable(error) from error

    def begin(self) -> None:
        self.run("BEGIN IMMEDIATE")

    def commit(self) -> None:
        self.run("COMMIT")

    def rollback(self) -> None:
        if self.raw.in_transaction:
            self.run("ROLLBACK")

    def script(self, sql: str) -> None:
        filled = sql.format(**DIALECTS[SqliteDatabase.dialect])
        for statement in filled.split(";\n"):
            if statement.strip():
                self.run(statement)

    def close(self) -> None:
        self.raw.close()

    def announce(self, seq: int, changes: list[dict[str, Any]]) -> None:
        """Nobody else writes to the file, so there is nobody to tell."""

    def thorough(self) -> None:
        self.all("PRAGMA secure_delete = ON")

    def tidy(self) -> None:
        self.all("PRAGMA wal_checkpoint(TRUNCATE)")

    def together(self) -> AbstractContextManager[Any]:
        return nullcontext()


def _unavailable(error: sqlite3.Error) -> StoreUnavailableError:
    return StoreUnavailableError(f"the SQLite store does not answer: {error}")


class SqliteDatabase:
    """SQLite in WAL mode with synchronous=FULL: what is committed is on the disk."""

    dialect = "sqlite"

    def __init__(self, url: str) -> None:
        self.url = url
        path = Path(unquote(url.removeprefix("sqlite:///"))).expanduser()
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = str(path)
        self._idle: list[SqliteConnection] = []
        self._lock = threading.Lock()

    def writer(self) -> Connection:
        return SqliteConnection(self.path)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with self._lock:
            connection = self._idle.pop() if self._idle else None
        connection = connection or SqliteConnection(self.path, readonly=True)
        try:
            connection.run("BEGIN")
            yield connection
        finally:
            connection.rollback()
            with self._lock:
                self._idle.append(connection)

    def watch(self, tell: Callable[[int, list[dict[str, Any]]], None]) -> bool:
        return False

    def lead(self) -> bool:
        return True

    def tend(self) -> None:
        """Nothing to do: plans follow the indexes, whatever is in the tables."""

    def close(self) -> None:
        with self._lock:
            for connection in self._idle:
                connection.close()
            self._idle.clear()
