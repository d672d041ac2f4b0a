"""PostgreSQL behind the store's verbs."""

from __future__ import annotations

import time
from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg_pool import ConnectionPool

from headwater.server.store.database import (
    MOVE_HEAD,
    STEP,
    Connection,
    Row,
    StoreError,
    StoreUnavailableError,
    UnstorableError,
    arrays,
    notifications,
    upsert_sql,
)
from headwater.server.store.database.schema import ALL_TABLES, BASE, DIALECTS, TABLES, Table

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

__all__ = ["PostgresDatabase"]

WRITER_LOCK = 0x4845_4144
LEADER_LOCK = 0x4845_4145
UNSEEN = 256 * 1024
CONNECT: dict[str, Any] = {
    "connect_timeout": 5, "keepalives_idle": 10, "keepalives_interval": 5, "keepalives_count": 3,
    "tcp_user_timeout": 20_000,
}  # fmt: skip
"""A peer that vanished without closing its connection is noticed in half a minute, not two hours."""
WRITER = "SET lock_timeout = '4s'; SET idle_in_transaction_session_timeout = '60s'"
"""A server that waits for the writer's lock answers 503 in time; one that froze while it held the
lock loses it."""
READER = "SET plan_cache_mode = force_generic_plan; SET statement_timeout = '60s'"
READERS = 20.0
"""How long, in seconds, a purge waits for transactions that began before it."""
ASKED = (
    "namespace, dataset, job, run, facet, edge, column_map, column_link, log, dataset_version,"
    " job_version, facet_change"
)


@cache
def _text(sql: str) -> str:
    return sql.replace("?", "%s")


def _unnest(table: Table) -> str:
    arrays = ", ".join(f"%s::{kind}[]" for kind in table.columns.values())
    return upsert_sql(table, f"SELECT * FROM unnest({arrays})")  # noqa: S608


def _update(name: str, base: str) -> str:
    columns = TABLES[name].columns
    arrays = ", ".join(f"%s::{kind}[]" for kind in columns.values())
    moving = ", ".join(f"{c} = new.{c}" for c in TABLES[name].moving)
    return (
        f"UPDATE {base} SET {moving} FROM unnest({arrays}) AS new ({', '.join(columns)})"  # noqa: S608
        f" WHERE {base}.id = new.id"
    )


def _update_one(name: str, base: str) -> str:
    """As `_update` for one row; PostgreSQL plans a join with `unnest` at each use, this only once."""
    values = {column: f"(%s::{kind}[])[1]" for column, kind in TABLES[name].columns.items()}
    key = values.pop("id")
    moving = ", ".join(f"{column} = {value}" for column, value in values.items())
    return f"UPDATE {base} SET {moving} WHERE id = {key}"  # noqa: S608


_UPSERTS = {table.name: _unnest(table) for table in TABLES.values() if table.name not in BASE}
_UPSERTS |= {name: _update(name, base) for name, base in BASE.items()}
_ALONE = {name: _update_one(name, base) for name, base in BASE.items()}
_APPEND = f"WITH l AS ({_UPSERTS['log']}) {_text(MOVE_HEAD)}"


_ABOUT_THE_DATA = (psycopg.DataError, psycopg.IntegrityError, psycopg.errors.ProgramLimitExceeded)


def _packed(table: Table, rows: Sequence[Row]) -> list[bytes]:
    return list(map(arrays.pack, table.columns.values(), zip(*rows, strict=True)))


def _kind(key: Any) -> str:
    if isinstance(key, int):
        return "bigint"
    return "bytea" if isinstance(key, bytes) else "text"


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except _ABOUT_THE_DATA as error:
        raise UnstorableError(f"PostgreSQL cannot store this: {error}".strip()) from error
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreUnavailableError(f"PostgreSQL does not answer: {error}".strip()) from error
    except psycopg.Error as error:
        raise StoreError(f"PostgreSQL refuses the statement: {error}".strip()) from error


def _reader(raw: psycopg.Connection[Row]) -> None:
    arrays.register(raw)
    # Few statements are asked over and over with lists of keys: planning each again, by the length
    # of its list, takes longer than carrying it out.
    raw.execute(READER)


def _begin(raw: psycopg.Connection[Row]) -> None:
    # Shows at the same time whether the connection still stands.
    raw.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")


class PostgresConnection:
    """A connection that is opened when first used, and again after it was lost."""

    # LIKE and lower() cost more than reading the names does; in names that are kept in small
    # letters, by SQLite's rule, a text is found three times as fast.
    holds = "strpos({}.lowered, ?) > 0"

    def __init__(self, url: str, raw: psycopg.Connection[Row] | None = None) -> None:
        self._url = url
        self._raw = raw

    @property
    def raw(self) -> psycopg.Connection[Row]:
        if self._raw is None or self._raw.closed:
            self._raw = psycopg.connect(self._url, autocommit=True, **CONNECT)
            self._raw.execute(WRITER)
            arrays.register(self._raw)
        return self._raw

    def sought(self, text: str) -> str:
        # Of bytes, only the letters from A to Z have a small form: this is SQLite's rule.
        return text.encode(errors="replace").lower().decode()

    def listed(self, sql: str, keys: list[Any]) -> tuple[str, list[Any]]:
        # An array is one value however many keys it holds, so the statement is planned once.
        if isinstance(keys[0], tuple):
            columns = [arrays.pack(_kind(column[0]), column) for column in zip(*keys, strict=True)]
            marks = ", ".join("?" * len(columns))
            return sql.replace("{in}", f"SELECT * FROM unnest({marks})"), columns  # noqa: S608
        return sql.replace("IN ({in})", "= ANY(?)"), [arrays.pack(_kind(keys[0]), keys)]

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        with _errors():
            return self.raw.execute(_text(sql), params, binary=True).fetchall()

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        with _errors():
            return self.raw.execute(_text(sql), params).rowcount

    def upsert(self, table: Table, rows: Sequence[Row]) -> None:
        if rows:
            if table.moving and len(rows) > 1:
                # One statement may not change a row twice; the last value counts.
                width = len(table.key)
                rows = list({row[:width]: row for row in rows}.values())
            columns = _packed(table, rows)
            if len(rows) == 1 and table.name in _ALONE:
                sql, columns = _ALONE[table.name], [*columns[1:], columns[0]]
            else:
                sql = _UPSERTS[table.name]
            with _errors():
                self.raw.execute(sql, columns)

    def append_log(self, records: Sequence[Row], seq: int, chain: bytes) -> None:
        columns = _packed(TABLES["log"], records) if records else []
        with _errors():
            self.raw.execute(_APPEND if records else _text(MOVE_HEAD), [*columns, seq, chain])

    def columns(self, table: str) -> list[str]:
        return [name for name, _ in self._columns(table)]

    def _columns(self, table: str) -> list[Row]:
        sql = (
            "SELECT attname, atttypid::regtype::text FROM pg_attribute WHERE attrelid = %s::regclass"
            " AND attnum > 0 AND NOT attisdropped AND attgenerated = '' ORDER BY attnum"
        )
        with _errors():
            return self.raw.execute(sql, (table,)).fetchall()

    def each(self, sql: str) -> Iterator[list[Row]]:
        with _errors(), self.raw.cursor("each", binary=True) as cursor:
            cursor.execute(_text(sql))
            while rows := cursor.fetchmany(STEP):
                yield rows

    def fill(self, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        copied = f"COPY {table} ({', '.join(columns)}) FROM STDIN"
        with _errors(), self.raw.cursor() as cursor, cursor.copy(copied) as copy:
            for row in rows:
                copy.write_row(row)

    def begin(self) -> None:
        with _errors():
            self.raw.execute("BEGIN")
            self.raw.execute("SELECT pg_advisory_xact_lock(%s)", (WRITER_LOCK,))

    def commit(self) -> None:
        with _errors():
            self.raw.execute("COMMIT")

    def rollback(self) -> None:
        raw = self._raw
        if raw is None or raw.closed:
            return
        try:
            raw.execute("ROLLBACK")
        except psycopg.Error:
            raw.close()

    def discard(self) -> None:
        # After a failed pipeline psycopg (3.2, 3.3) takes statements for prepared that PostgreSQL
        # never prepared, and each later use of one fails: a new connection is the way out.
        self.close()
        self._raw = None

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()

    def announce(self, seq: int, changes: list[dict[str, Any]]) -> None:
        with _errors():
            for text in notifications.messages(seq, changes):
                self.raw.execute("SELECT pg_notify(%s, %s)", (notifications.CHANNEL, text))

    def thorough(self) -> None:
        """Nothing to set: a dead row goes with the next vacuum."""

    def tidy(self) -> None:
        # VACUUM alone leaves the bytes of dead rows in the pages; FULL rewrites the tables.
        # ANALYZE replaces the statistics, which list names, and those are a table themselves.
        try:
            with _errors():
                self.raw.execute("SET statement_timeout = 0")
                self.raw.execute("SET lock_timeout = '60s'")
                self._wait_for_readers()
                for table in ALL_TABLES:
                    self.raw.execute(f"VACUUM (FULL, ANALYZE) {table}")
                    self._analyze_empty(table)
                self._wait_for_readers()
                self.raw.execute("VACUUM (FULL) pg_catalog.pg_statistic")
        except StoreError as error:
            problem = f"it is deleted, but not overwritten: {error.message}"
            raise StoreUnavailableError(f"{problem}; run VACUUM (FULL, ANALYZE)") from error
        finally:
            self.discard()

    def _wait_for_readers(self) -> None:
        """Wait a while for those who still see what is dead by now: VACUUM keeps it for them."""
        ((now,),) = self.raw.execute("SELECT (txid_current() % 4294967296)::text").fetchall()
        sql = (
            "SELECT 1 FROM pg_stat_activity WHERE datname = current_database()"
            " AND pid <> pg_backend_pid() AND age(backend_xmin) > age(%s::text::xid) LIMIT 1"
        )
        deadline = time.monotonic() + READERS
        while self.raw.execute(sql, (now,)).fetchone() and time.monotonic() < deadline:
            time.sleep(0.05)

    def _analyze_empty(self, table: str) -> None:
        """Replace the statistics of an empty table, which ANALYZE would leave as they are."""
        with self.raw.transaction():
            self.raw.execute(f"LOCK TABLE {table} IN SHARE ROW EXCLUSIVE MODE")
            if self.raw.execute(f"SELECT 1 FROM {table} LIMIT 1").fetchone():  # noqa: S608
                return
            columns = self._columns(table)
            names = ", ".join(name for name, _ in columns)
            values = ", ".join("0" if kind == "bigint" else "''" for _, kind in columns)
            # Nobody else sees this row: it is gone when the transaction ends.
            self.raw.execute(f"INSERT INTO {table} ({names}) VALUES ({values})")  # noqa: S608
            self.raw.execute(f"ANALYZE {table}")
            self.raw.execute(f"DELETE FROM {table}")  # noqa: S608

    @contextmanager
    def together(self) -> Iterator[None]:
        with _errors(), self.raw.pipeline():
            yield

    def script(self, sql: str) -> None:
        with _errors():
            self.raw.execute(sql.format(**DIALECTS[PostgresDatabase.dialect]))


class PostgresDatabase:
    """PostgreSQL by URL; several servers may share it."""

    dialect = "postgresql"

    def __init__(self, url: str) -> None:
        self.url = url
        self._listener: notifications.CommitListener | None = None
        self._leading: psycopg.Connection[Row] | None = None
        try:
            psycopg.connect(url, connect_timeout=10).close()
        except psycopg.Error as error:
            lines = (line.strip() for line in str(error).splitlines())
            raise StoreError(
                f"cannot connect to PostgreSQL: {'; '.join(filter(None, lines))}",
                hint="check the address in --store; a password may come from PGPASSWORD or PGPASSFILE",
            ) from error
        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            url,
            min_size=0,
            max_size=8,
            open=True,
            kwargs={"autocommit": True, **CONNECT},
            configure=_reader,
            check=_begin,
            timeout=3,
        )

    def writer(self) -> Connection:
        return PostgresConnection(self.url)

    @contextmanager
    def reading(self) -> Iterator[Connection]:
        with _errors(), self._pool.connection() as raw:
            connection = PostgresConnection(self.url, raw)
            try:
                yield connection
            except (psycopg.Error, StoreError):
                connection.discard()  # the pool makes a new one in its place
                raise
            finally:
                connection.rollback()

    def watch(self, publish: Callable[[int, list[dict[str, Any]]], None]) -> bool:
        self._listener = notifications.CommitListener(self.url, publish)
        self._listener.start()
        return True

    def lead(self) -> bool:
        """Hold, or try to take, the lock that one server at a time can hold."""
        with _errors():
            if self._leading is not None:
                try:
                    self._leading.execute("SELECT 1")
                except psycopg.Error:
                    self._leading.close()
                    self._leading = None
                else:
                    return True
            raw = psycopg.connect(self.url, autocommit=True, **CONNECT)
            row = raw.execute("SELECT pg_try_advisory_lock(%s)", (LEADER_LOCK,)).fetchone()
            if row is not None and row[0]:
                self._leading = raw
                return True
            raw.close()
            return False

    def tend(self) -> None:
        """Gather statistics of tables that grew before PostgreSQL looked at them for the first time.

        It does so itself within a minute or more; without them it reads whole tables.
        """
        if self._leading is not None:
            with _errors():
                sql = (
                    "SELECT 1 FROM pg_class WHERE oid = ANY(%s::regclass[]) AND reltuples < 0"
                    " AND pg_relation_size(oid) > %s LIMIT 1"
                )
                if self._leading.execute(sql, (ASKED.split(", "), UNSEEN)).fetchone():
                    self._leading.execute(f"ANALYZE {ASKED}")

    def size(self) -> int:
        with self.reading() as connection:
            ((size,),) = connection.all("SELECT pg_database_size(current_database())")
        return int(size)

    def trouble(self) -> str | None:
        return None

    def inspect(self) -> None:
        """Nothing to do: PostgreSQL raises an error itself when it reads a damaged page."""

    def close(self) -> None:
        if self._listener is not None:
            self._listener.stop()
        if self._leading is not None:
            self._leading.close()
            self._leading = None
        self._pool.close()
