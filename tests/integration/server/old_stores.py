"""Stores of earlier releases, kept as SQLite files, opened by this one on either kind of database."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from headwater.server.store import Store, open_store
from headwater.server.store.database.postgres import PostgresDatabase
from headwater.server.store.database.schema import MIGRATIONS
from headwater.server.store.database.sqlite import SqliteConnection

if TYPE_CHECKING:
    from headwater.server.store.database import Connection

KEPT = Path(__file__).parents[2] / "fixtures" / "server"


def open_kept(file: Path, url: str, folder: Path) -> Store:
    """A copy of a kept store at an address, brought up to date by opening it."""
    copied = folder / file.name
    shutil.copy(file, copied)
    if url.startswith("sqlite"):
        return open_store(f"sqlite:///{copied}")
    source = SqliteConnection(str(copied))
    target = PostgresDatabase(url)
    connection = target.writer()
    connection.script("CREATE TABLE migration (version {int} PRIMARY KEY)")
    for step in MIGRATIONS[: source.all("SELECT max(version) FROM migration")[0][0]]:
        connection.script(step)
    copy_rows(source, connection)
    source.close()
    target.close()
    return open_store(url)


def copy_rows(source: Connection, target: Connection) -> None:
    tables = [row[0] for row in source.all("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        if table == "head":
            target.run("DELETE FROM head")
        names = [row[1] for row in source.all(f"PRAGMA table_info({table})")]
        marks = ", ".join("?" * len(names))
        for row in source.all(f"SELECT * FROM {table}"):
            target.run(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", row)
