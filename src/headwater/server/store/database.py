"""A connection to a database, with the few verbs the store is written in.

SQL is written once, with `?` for values. What differs between SQLite and PostgreSQL is here.
"""

from __future__ import annotations

import sqlite3
import threading
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import unquote, urlsplit

from headwater.errors import HeadwaterError
from headwater.server.store.schema import BASE, LATEST, MIGRATIONS, TABLES, Table

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

__all__ = ["Connection", "Database", "StoreError", "StoreUnavailableError", "open_database"]

Row = tuple[Any, ...]
CHUNK = 512


class StoreError(HeadwaterError):
    """The store cannot be opened or used as asked."""


class StoreUnavailableError(StoreError):
    """The store cannot take or give data at the moment; trying again later may help."""


class Connection(Protocol):
    """The verbs a query or a write is made of."""

    like: str
    """The operator that matches a pattern whatever the case of its letters."""

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Every row of the answer."""
        ...

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Carry out a statement; the number of rows it touched."""
        ...

    def upsert(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows by their key, in one go."""
        ...

    def begin(self) -> None:
        """Start a transaction that no other writer can overlap."""
        ...

    def commit(self) -> None:
        """Make the transaction durable."""
        ...

    def rollback(self) -> None:
        """Forget the transaction."""
        ...

    def script(self, sql: str) -> None:
        """Carry out statements that take no values."""
        ...

    def together(self) -> AbstractContextManager[Any]:
        """Send the statements within it without waiting for each; the end waits for all."""
        ...


def one(connection: Connection, sql: str, params: Sequence[Any] = ()) -> Row | None:
    """The first row of the answer, if there is one."""
    rows = connection.all(sql, params)
    return rows[0] if rows else None


def within(
    connection: Connection, sql: str, keys: Iterable[Any], params: Sequence[Any] = ()
) -> list[Row]:
    """The rows of a query whose `{in}` stands for a list of keys, asked in chunks.

    The list is padded to a power of two so that few distinct statements need preparing.
    Keys may be tuples. `params` are the values that stand before the list.
    """
    wanted = list(keys)
    rows: list[Row] = []
    for start in range(0, len(wanted), CHUNK):
        chunk = wanted[start : start + CHUNK]
        size = 1 << (len(chunk) - 1).bit_length()
        chunk += [chunk[-1]] * (size - len(chunk))
        if isinstance(chunk[0], tuple):
            mark = "(" + ",".join("?" * len(chunk[0])) + ")"
            marks = "VALUES " + ",".join([mark] * size)
            values = [value for key in chunk for value in key]
        else:
            marks = ",".join("?" * size)
            values = chunk
        rows += connection.all(sql.replace("{in}", marks), [*params, *values])
    return rows


class Database(Protocol):
    """A database that can be written through one connection and read through many."""

    url: str
    dialect: str

    def writer(self) -> Connection:
        """A connection for the one writer."""
        ...

    def reading(self) -> Any:
        """A context manager around a connection that sees one moment of the data."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...


def _upsert_sql(table: Table, source: str) -> str:
    columns = ", ".join(table.columns)
    action = "NOTHING"
    if table.moving:
        action = "UPDATE SET " + ", ".join(f"{c} = excluded.{c}" for c in table.moving)
    return (
        f"INSERT INTO {table.name} ({columns}) {source} "
        f"ON CONFLICT ({', '.join(table.key)}) DO {action}"
    )


class SqliteConnection:
    """A connection to an SQLite file."""

    like = "LIKE"
    _upserts: dict[str, str] = {
        t.name: _upsert_sql(t, f"VALUES ({', '.join('?' * len(t.columns))})")
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
        filled = sql.format(
            int="INTEGER", blob="BLOB", compact="WITHOUT ROWID", zero="zeroblob(32)"
        )
        for statement in filled.split(";\n"):
            if statement.strip():
                self.run(statement)

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

    def close(self) -> None:
        with self._lock:
            for connection in self._idle:
                connection.raw.close()
            self._idle.clear()


def open_database(url: str) -> Database:
    """The database behind `sqlite:///FILE` or `postgresql://…`, brought to the newest schema."""
    scheme = urlsplit(url).scheme
    database: Database
    if scheme == "sqlite":
        database = SqliteDatabase(url)
    elif scheme in ("postgresql", "postgres"):
        from headwater.server.store.postgres import PostgresDatabase

        database = PostgresDatabase(url)
    else:
        raise StoreError(
            f"the store {scheme or url!r} is not known",
            hint="use sqlite:///FILE or postgresql://USER@HOST/DATABASE",
        )
    migrate(database)
    return database


def migrate(database: Database) -> None:
    """Bring the database's schema to the newest version, one numbered step at a time."""
    connection = database.writer()
    connection.begin()
    try:
        connection.script("CREATE TABLE IF NOT EXISTS migration (version {int} PRIMARY KEY)")
        found = one(connection, "SELECT max(version) FROM migration")
        version = int(found[0] or 0) if found else 0
        if version > LATEST:
            raise StoreError(
                f"the store was written by a newer Headwater (schema {version}, known {LATEST})",
                hint="upgrade Headwater",
            )
        for number, sql in enumerate(MIGRATIONS[version:], version + 1):
            connection.script(sql)
            connection.run("INSERT INTO migration (version) VALUES (?)", (number,))
        connection.commit()
    except BaseException:
        connection.rollback()
        raise
