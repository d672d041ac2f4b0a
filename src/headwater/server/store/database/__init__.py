"""A connection to a database, with the few verbs the store is written in.

SQL is written once, with `?` for values. What differs between SQLite and PostgreSQL is here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol
from urllib.parse import urlsplit

from headwater.errors import HeadwaterError, UsageError
from headwater.server.store.database.schema import LATEST, MIGRATIONS, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from contextlib import AbstractContextManager

__all__ = [
    "Connection",
    "DamagedError",
    "Database",
    "ReadConnection",
    "StoreError",
    "StoreUnavailableError",
    "TamperedError",
    "UnstorableError",
    "check_url",
    "open_database",
]

Row = tuple[Any, ...]
CHUNK = 512
STEP = 2_000
"""Rows of a long answer that are read at a time."""


class StoreError(HeadwaterError):
    """The store cannot be opened or used as asked."""


class StoreUnavailableError(StoreError):
    """The store cannot take or give data at the moment; trying again later may help."""


class DamagedError(StoreUnavailableError):
    """The database's file is not what the database wrote."""

    def __init__(self, message: str) -> None:
        super().__init__(
            message,
            hint="stop the server, keep a copy of the file, and restore a backup of it",
        )


class TamperedError(StoreError):
    """The log is not as it was written: a record was changed, moved or taken out."""


class UnstorableError(StoreError):
    """The database refuses the data itself; sending the same again can never help."""


MOVE_HEAD = "UPDATE head SET seq = ?, chain = ? WHERE id = 1"
NEW_EPOCH = "UPDATE head SET epoch = epoch + 1 WHERE id = 1"
"""For names that are gone and numbers that stand for others: who holds some has to read again."""


class ReadConnection(Protocol):
    """The verbs a query is made of."""

    holds: str
    """What is true where the name in the table `{}` holds a text, whatever its case from A to Z."""

    def sought(self, text: str) -> str:
        """The text as `holds` wants it."""
        ...

    def listed(self, sql: str, keys: list[Any]) -> tuple[str, list[Any]]:
        """A query whose `{in}` stands for a list of keys, and the values that fill it."""
        ...

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        """Every row of the answer."""
        ...

    def rollback(self) -> None:
        """Roll the transaction back, or end the read snapshot."""
        ...


class Connection(ReadConnection, Protocol):
    """The verbs a query or a write is made of."""

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        """Carry out a statement; the number of rows it touched."""
        ...

    def upsert(self, table: Table, rows: Sequence[Row]) -> None:
        """Write rows by their key, in one go."""
        ...

    def append_log(self, records: Sequence[Row], seq: int, chain: bytes) -> None:
        """Write the last records of the log, and its head."""
        ...

    def columns(self, table: str) -> list[str]:
        """The columns of a table that are written, not computed by the database."""
        ...

    def each(self, sql: str) -> Iterator[list[Row]]:
        """The rows of a long answer, some at a time."""
        ...

    def fill(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Put rows into a table that has none of them."""
        ...

    def begin(self) -> None:
        """Start a transaction that no other writer can overlap."""
        ...

    def commit(self) -> None:
        """Make the transaction durable."""
        ...

    def discard(self) -> None:
        """Forget the transaction after a failure, and all state of the connection with it."""
        ...

    def close(self) -> None:
        """Let go of the database."""
        ...

    def script(self, sql: str) -> None:
        """Carry out statements that take no values."""
        ...

    def announce(self, seq: int, changes: list[dict[str, Any]]) -> None:
        """Notify the other servers on this database of what the open transaction changes."""
        ...

    def thorough(self) -> None:
        """See to it that what is deleted from now on cannot be read from the file."""
        ...

    def tidy(self) -> None:
        """Let go of what the database keeps of earlier moments, as far as it can be done now."""
        ...

    def together(self) -> AbstractContextManager[Any]:
        """Send the statements within it without waiting for each; the end waits for all."""
        ...


def one(connection: ReadConnection, sql: str, params: Sequence[Any] = ()) -> Row | None:
    """The first row of the answer, if there is one."""
    rows = connection.all(sql, params)
    return rows[0] if rows else None


def within(
    connection: ReadConnection, sql: str, keys: Iterable[Any], params: Sequence[Any] = ()
) -> list[Row]:
    """The rows of a query whose `{in}` stands for a list of keys, asked in chunks.

    Keys may be tuples. `params` are the values that stand before the list. Where the list stands
    several times, so do the values before it.
    """
    wanted = list(keys)
    rows: list[Row] = []
    for start in range(0, len(wanted), CHUNK):
        filled, values = connection.listed(sql, wanted[start : start + CHUNK])
        rows += connection.all(filled, [*params, *values] * sql.count("{in}"))
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

    def watch(self, publish: Callable[[int, list[dict[str, Any]]], None]) -> bool:
        """Receive every commit of every server; False where a store has only one server."""
        ...

    def lead(self) -> bool:
        """Whether this server is the one that looks after the store for all of them."""
        ...

    def tend(self) -> None:
        """Do what the store needs now and then to answer well; called by the one that leads."""
        ...

    def trouble(self) -> str | None:
        """What is wrong with the store although it answers, and what to do."""
        ...

    def size(self) -> int:
        """The bytes that it takes on its disk."""
        ...

    def inspect(self) -> None:
        """Check the whole store for damage, however long it takes; `trouble` reports it."""
        ...

    def close(self) -> None:
        """Let go of every connection."""
        ...


def upsert_sql(table: Table, source: str) -> str:
    """The statement that writes rows of a table by their key."""
    columns = ", ".join(table.columns)
    action = "NOTHING"
    if table.moving:
        action = "UPDATE SET " + ", ".join(f"{c} = excluded.{c}" for c in table.moving)
    return (
        f"INSERT INTO {table.name} ({columns}) {source} "
        f"ON CONFLICT ({', '.join(table.key)}) DO {action}"
    )


def check_url(url: str) -> None:
    """Refuse the address of a store of another kind, or of no file."""
    scheme = urlsplit(url).scheme
    if scheme == "sqlite":
        from headwater.server.store.database.sqlite import sqlite_path

        sqlite_path(url)
    elif scheme not in ("postgresql", "postgres"):
        raise UsageError(
            f"the store {scheme or url!r} is not known",
            hint="use sqlite:///FILE or postgresql://USER@HOST/DATABASE",
        )


def open_database(url: str) -> Database:
    """The database behind `sqlite:///FILE` or `postgresql://…`, brought to the newest schema."""
    check_url(url)
    database: Database
    if url.startswith("sqlite:"):
        from headwater.server.store.database.sqlite import SqliteDatabase

        database = SqliteDatabase(url)
    else:
        from headwater.server.store.database.postgres import PostgresDatabase

        database = PostgresDatabase(url)
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
    finally:
        connection.close()
