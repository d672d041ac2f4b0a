"""PostgreSQL behind the store's verbs."""

from __future__ import annotations

from contextlib import contextmanager
from functools import cache
from typing import TYPE_CHECKING, Any

import psycopg
from psycopg_pool import ConnectionPool

from headwater.server.store import arrays, listening
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

__all__ = ["PostgresDatabase"]

WRITER_LOCK = 0x4845_4144
LEADER_LOCK = 0x4845_4145
UNSEEN = 256 * 1024
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


_UPSERTS = {table.name: _unnest(table) for table in TABLES.values() if table.name not in BASE}
_UPSERTS |= {name: _update(name, base) for name, base in BASE.items()}


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except (psycopg.OperationalError, psycopg.InterfaceError) as error:
        raise StoreUnavailableError(f"PostgreSQL does not answer: {error}".strip()) from error


def _reader(raw: psycopg.Connection[Row]) -> None:
    arrays.register(raw)
    # Few statements are asked over and over with lists of keys: planning each anew, by the length
    # of its list, takes longer than carrying it out.
    raw.execute("SET plan_cache_mode = force_generic_plan")


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
            self._raw = psycopg.connect(self._url, autocommit=True, connect_timeout=5)
            arrays.register(self._raw)
        return self._raw

    def sought(self, text: str) -> str:
        # Of bytes, only the letters from A to Z have a small form: this is SQLite's rule.
        return text.encode(errors="replace").lower().decode()

    def listed(self, sql: str, keys: list[Any]) -> tuple[str, list[Any]]:
        # An array is one value however many keys it holds, so the statement is planned once.
        if isinstance(keys[0], tuple):
            columns = [arrays.pack("text", column) for column in zip(*keys, strict=True)]
            marks = ", ".join("?" * len(columns))
            return sql.replace("{in}", f"SELECT * FROM unnest({marks})"), columns  # noqa: S608
        kind = "bigint" if isinstance(keys[0], int) else "text"
        kind = "bytea" if isinstance(keys[0], bytes) else kind
        return sql.replace("IN ({in})", "= ANY(?)"), [arrays.pack(kind, keys)]

    def all(self, sql: str, params: Sequence[Any] = ()) -> list[Row]:
        with _errors():
            return self.raw.execute(_text(sql), params, binary=True).fetchall()

    def run(self, sql: str, params: Sequence[Any] = ()) -> int:
        with _errors():
            return self.raw.execute(_text(sql), params).rowcount

    def upsert(self, table: Table, rows: Sequence[Row]) -> None:
        if rows:
            if table.moving and len(rows) > 1:
                # One statement may not change a row twice; the last word stands.
                width = len(table.key)
                rows = list({row[:width]: row for row in rows}.values())
            kinds = table.columns.values()
            columns = list(map(arrays.pack, kinds, zip(*rows, strict=True)))
            with _errors():
                self.raw.execute(_UPSERTS[table.name], columns)

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

    def close(self) -> None:
        if self._raw is not None:
            self._raw.close()

    def announce(self, seq: int, changes: list[dict[str, Any]]) -> None:
        with _errors():
            for text in listening.messages(seq, changes):
                self.raw.execute("SELECT pg_notify(%s, %s)", (listening.CHANNEL, text))

    def thorough(self) -> None:
        """Nothing to set: a dead row goes with the next vacuum."""

    def tidy(self) -> None:
        with _errors():
            self.raw.execute("VACUUM log, facet, dictionary, checkpoint_part")

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
        self._listener: listening.Listener | None = None
        self._leading: psycopg.Connection[Row] | None = None
        try:
            psycopg.connect(url, connect_timeout=10).close()
        except psycopg.Error as error:
            raise StoreError(f"cannot connect to PostgreSQL: {error}".strip()) from error
        self._pool: ConnectionPool[psycopg.Connection[Row]] = ConnectionPool(
            url,
            min_size=0,
            max_size=8,
            open=True,
            kwargs={"autocommit": True},
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
            finally:
                connection.rollback()

    def watch(self, tell: Callable[[int, list[dict[str, Any]]], None]) -> bool:
        self._listener = listening.Listener(self.url, tell)
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
            raw = psycopg.connect(self.url, autocommit=True, connect_timeout=5)
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

    def close(self) -> None:
        if self._listener is not None:
            self._listener.stop()
        if self._leading is not None:
            self._leading.close()
            self._leading = None
        self._pool.close()
