"""Letting go: old runs, single jobs and datasets; what is left can be checked and rebuilt."""

from __future__ import annotations

import json
import shutil
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.server.store import Store, open_store
from headwater.server.store.checkpoint import PROJECTED, latest
from headwater.server.store.commands import NoSuchError
from headwater.server.store.database import StoreError
from headwater.server.store.purge import purge
from headwater.server.store.rebuild import export, rebuild, verify
from headwater.server.store.retention import retain
from headwater.server.store.schema import LATEST, MIGRATIONS
from headwater.server.store.view import Bodies, View

from .making import columns, dataset, event, run_id, schema

if TYPE_CHECKING:
    from headwater.server.store.database import Connection

FIRST = Path(__file__).parents[2] / "fixtures" / "server" / "first.db"


def send(store: Store, *events: dict[str, Any]) -> None:
    for receipt in store.append([json.dumps(e).encode() for e in events]):
        assert receipt.error is None
        assert not receipt.duplicate


def run_of(number: int, job: str = "load", column: str = "id") -> list[dict[str, Any]]:
    out = dataset(f"{job}_out", schema=schema(column), columnLineage=columns(id=("in", "id")))
    return [event(state, number * 100 + i, run=number, job=job, inputs=["in"], outputs=[out])
            for i, state in enumerate(("START", "COMPLETE"))]  # fmt: skip


def projection(store: Store) -> dict[str, list[Any]]:
    """Everything the store has worked out, in an order of its own."""
    found = {}
    for table in PROJECTED:
        rows = store.connection.all(f"SELECT * FROM {table}")
        found[table] = sorted([[bytes(v) if isinstance(v, memoryview) else v for v in row] for row in rows], key=repr)  # fmt: skip
    return found


def aged(store: Store) -> int:
    """Four runs, the first three of them old; the moment that parts old from new."""
    send(store, *run_of(1), *run_of(2), *run_of(3, column="other"))
    moment = time.time_ns() // 1000
    send(store, *run_of(4, column="other"), event("START", 500, run=5, job="live", inputs=["in"]))
    return moment


def test_old_runs_and_events_go_and_the_graph_stays(store: Store) -> None:
    moment = aged(store)
    edges = store.connection.all("SELECT job, dataset, direction FROM edge WHERE until IS NULL")
    dropped = retain(store, moment)
    assert (dropped.events, dropped.runs) == (6, 3)
    assert [len(list(export(store))), verify(store)] == [3, 4]
    left = store.connection.all("SELECT job, dataset, direction FROM edge WHERE until IS NULL")
    assert sorted(left) == sorted(edges)
    seen = View(store.connection, Bodies(store.packer))
    out = seen.dataset("s3://lake", "load_out")
    assert out is not None
    sql = "SELECT facet FROM facet_change WHERE kind = 0 AND entity = ? AND name = 'schema'"
    history = [row[0] for row in store.connection.all(sql, (out.id,))]
    assert len(history) == 2
    assert len(seen.bodies(history)) == 2
    assert retain(store, moment).events == 0


def test_what_is_left_is_rebuilt_from_the_checkpoint(store: Store) -> None:
    retain(store, aged(store))
    send(store, *run_of(6), *run_of(7, job="other"))
    store.perform({"command": "tag", "name": "pii"})
    before = projection(store)
    assert rebuild(store) == 5
    assert projection(store) == before
    send(store, *run_of(8))
    assert verify(store) == 11


def test_nothing_to_let_go_writes_nothing(store: Store) -> None:
    send(store, *run_of(1))
    assert retain(store, 0) == (0, 0, 0)
    assert latest(store.connection) is None
    assert verify(store) == 2


@pytest.mark.parametrize("kind", ["dataset", "job"])
def test_what_is_deleted_is_gone_for_good(store: Store, kind: str) -> None:
    kept = run_of(1, job="kept")
    gone = run_of(2, job="hunter2")
    send(store, *kept, *gone)
    name, namespace = ("hunter2_out", "s3://lake") if kind == "dataset" else ("hunter2", "jobs")
    assert purge(store, kind, namespace, name) == 2
    if kind == "job":
        purge(store, "dataset", "s3://lake", "hunter2_out")
    else:
        purge(store, "job", "jobs", "hunter2")
    assert "hunter2" not in repr(projection(store))
    for table in ("log", "facet"):
        for dictionary, packed in store.connection.all(f"SELECT dictionary, body FROM {table}"):
            assert b"hunter2" not in store.packer.unpack(dictionary, bytes(packed))
    assert verify(store) == 4
    assert all(r.duplicate for r in store.append([json.dumps(e).encode() for e in gone]))
    before = projection(store)
    assert rebuild(store) == 0
    assert projection(store) == before
    send(store, *run_of(3, job="kept"))
    with pytest.raises(NoSuchError):
        purge(store, kind, namespace, name)


CHANGES = {
    "body": "UPDATE log SET body = (SELECT body FROM log WHERE seq = 2) WHERE seq = 1",
    "hash": "UPDATE log SET hash = chain WHERE seq = 2",
    "left out": "DELETE FROM log WHERE seq = 2",
    "cut off": "DELETE FROM log WHERE seq = 3",
    "moved": "UPDATE log SET at = at + 1 WHERE seq = 3",
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_log_is_found_out(store: Store, change: str) -> None:
    send(store, *run_of(1), event("START", 0, run=9))
    assert verify(store) == 3
    store.connection.run(CHANGES[change])
    with pytest.raises(StoreError, match="the log was changed"):
        verify(store)
    with pytest.raises(StoreError):
        rebuild(store)


def copy(source: Connection, target: Connection) -> None:
    tables = [row[0] for row in source.all("SELECT name FROM sqlite_master WHERE type = 'table'")]
    for table in tables:
        if table == "head":
            target.run("DELETE FROM head")
        names = [row[1] for row in source.all(f"PRAGMA table_info({table})")]
        marks = ", ".join("?" * len(names))
        for row in source.all(f"SELECT * FROM {table}"):
            target.run(f"INSERT INTO {table} ({', '.join(names)}) VALUES ({marks})", row)


@pytest.fixture
def first(store_url: str, tmp_path: Path) -> Store:
    """A database of the first release, opened by this one."""
    file = tmp_path / "first.db"
    shutil.copy(FIRST, file)
    if store_url.startswith("sqlite"):
        return open_store(f"sqlite:///{file}")
    from headwater.server.store.postgres import PostgresDatabase
    from headwater.server.store.sqlite import SqliteConnection

    target = PostgresDatabase(store_url)
    connection = target.writer()
    connection.script("CREATE TABLE migration (version {int} PRIMARY KEY)")
    connection.script(MIGRATIONS[0])
    copy(SqliteConnection(str(file)), connection)
    target.close()
    return open_store(store_url)


def test_a_database_of_the_first_release_is_brought_up_to_date(first: Store) -> None:
    assert first.connection.all("SELECT max(version) FROM migration") == [(LATEST,)]
    assert verify(first) == 17
    seen = View(first.connection, Bodies(first.packer))
    job = seen.job("jobs", "load")
    assert job is not None
    assert len(job.state.open) == 3
    send(first, *run_of(20), event("START", 900, run=21, job="stream", outputs=["new"]))
    again = json.dumps(event("START", 900, run=21, job="stream", outputs=["new"])).encode()
    assert first.append([again])[0].duplicate
    assert rebuild(first) == 20
    assert seen.dataset("hive://h", "db.alone") is not None
    assert retain(first, time.time_ns() // 1000).events == 20
    assert rebuild(first) == 0
    assert run_id(1) not in b"".join(export(first)).decode()
    first.close()
