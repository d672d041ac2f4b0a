"""What keeps a lake small, clean and right beside its stream: maintenance, purges and repairs."""

from __future__ import annotations

import os
import time
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from headwater.lake import tables
from headwater.lake.projection import LogRecord
from tests.integration.server.making import columns, dataset, event, schema

if TYPE_CHECKING:
    from headwater.server.store import Store

    from .local import LocalLake

pytestmark = [pytest.mark.full, pytest.mark.timeout(900)]
AT = 1_767_225_600_000_000
DAY = 86_400_000_000


def estate(count: int) -> list[bytes]:
    """A job that reads what another one writes, or something else, by turns."""
    made = []
    for n in range(count):
        out = dataset("b", schema=schema("id", f"c{n}"), columnLineage=columns(id=("a", "id")))
        made += [
            event("COMPLETE", 10 * n, run=2 * n, job="load", inputs=["a"], outputs=[out]),
            event("COMPLETE", 10 * n + 5, run=2 * n + 1, job="report",
                  inputs=["b" if n % 2 else "other"], outputs=["c"]),
        ]  # fmt: skip
    return [msgspec.json.encode(one) for one in made]


def records(bodies: list[bytes], at: int = AT) -> list[LogRecord]:
    return [LogRecord(0, at + n * 1_000, body) for n, body in enumerate(bodies)]


def stored_edges(store: Store) -> list[Any]:
    rows = store.connection.all(
        "SELECT j.name, d.name, e.direction, e.since, e.until FROM edge e"
        " JOIN job j ON j.id = e.job JOIN dataset d ON d.id = e.dataset"
    )
    return sorted(map(tuple, rows), key=repr)


def maintain(local: LocalLake, *arguments: str) -> dict[str, Any]:
    import lake_maintain

    given = ["--catalog", "folder", "--namespace", local.namespace, *arguments]
    done = lake_maintain.maintain(local.spark, lake_maintain.arguments().parse_args(given))
    return {one.table: one for one in done}


def test_many_files_become_few_and_nothing_else_changes(local: LocalLake, store: Store) -> None:
    bodies = estate(4)
    for n, body in enumerate(bodies):
        local.take(records([body], AT + n * 1_000_000))
        store.append([body])
    again = bodies[:3]
    local.take(records(again, AT + DAY))
    local.settle()
    now = int(time.time() * 1_000_000)
    local.take(records(again[:1], now))
    local.settle()
    before = {table.name: local.rows(table) for table in tables.TABLES}
    stray = local.folder / "events" / "data" / "stray.parquet"
    stray.write_bytes(b"left by a task that was killed")
    os.utime(stray, (time.time() - 4 * 86_400,) * 2)

    done = maintain(local, "--keep-snapshots", "1", "--older-than", "0s")
    events = done["events"]
    # The repetition of today may still be joined by others: its day is not over.
    assert events.removed == len(again)
    left = local.rows(tables.EVENTS)
    assert sorted(row["kafka_offset"] for row in left) == [*range(len(bodies)), len(bodies) + 3]
    assert {name: rows for name, rows in before.items() if name != "events"} == {
        table.name: local.rows(table) for table in tables.TABLES if table is not tables.EVENTS
    }
    assert events.files < events.files_before
    assert {one.snapshots for one in done.values() if one.files} == {1}
    assert events.snapshots_expired >= len(bodies)
    assert (events.orphans, stray.exists()) == (1, False)
    assert local.edges() == stored_edges(store)

    # A program that starts anew still knows what the lake has, though all that said so is gone.
    anew = local.again()
    anew._offset -= 1
    anew.take(records(again[:1], now))
    assert len(local.rows(tables.EVENTS)) == len(left)
    quiet = maintain(local, "--keep-snapshots", "1", "--older-than", "0s")
    assert [one.removed for one in quiet.values()] == [0] * len(tables.TABLES)
    # And the stream goes on.
    fresh = estate(6)[-2:]
    anew.take(records(fresh, now + 1))
    anew.settle()
    store.append(fresh)
    assert local.edges() == stored_edges(store)


def test_rows_that_two_programs_appended_stand_once_again(local: LocalLake, store: Store) -> None:
    """A repair beside the stream may have computed the same job, from the same events or from fewer."""
    bodies = estate(3)
    local.take(records(bodies[:-1]))
    local.settle()
    edges = local.spark.table(local.lake.name(tables.EDGES))
    ended = edges.where("direction = 'input'").withColumn("valid_to", edges["valid_from"])
    for copies in (edges, ended):
        copies.localCheckpoint().writeTo(local.lake.name(tables.EDGES)).append()
    local.take([*records(bodies[-1:]), *records(bodies[:1])])
    local.settle()
    store.append(bodies)
    assert local.edges() == stored_edges(store)


def test_a_table_of_an_earlier_release_is_brought_up_to_date(local: LocalLake) -> None:
    import lake_store

    name = local.lake.name(tables.RUNS)
    local.spark.sql(
        f"ALTER TABLE {name} UNSET TBLPROPERTIES"
        f" ('{lake_store.VERSION}', 'write.merge.isolation-level')"
    )
    local.again()
    assert local.lake.table_property(tables.RUNS, lake_store.VERSION) == str(lake_store.NEWEST)
    assert local.lake.table_property(tables.RUNS, "write.merge.isolation-level") == "snapshot"
    edges = local.lake.name(tables.EDGES)
    local.spark.sql(f"ALTER TABLE {edges} DROP COLUMN stated")
    local.lake.note(tables.EDGES, lake_store.VERSION, "4")
    local.again()
    assert "stated" in local.spark.table(edges).columns
    local.lake.note(tables.RUNS, lake_store.VERSION, str(lake_store.NEWEST + 1))
    with pytest.raises(SystemExit, match="newer release"):
        local.again()


def test_a_step_changes_only_the_tables_that_it_is_for(
    local: LocalLake, monkeypatch: pytest.MonkeyPatch
) -> None:
    import lake_store

    newest = lake_store.NEWEST + 1
    monkeypatch.setattr(lake_store, "NEWEST", newest)
    only_runs = lake_store.Step("ADD COLUMN note string", (tables.RUNS,))
    monkeypatch.setitem(lake_store.STEPS, newest, only_runs)
    local.again()
    having = [
        table.name
        for table in tables.TABLES
        if "note" in local.spark.table(local.lake.name(table)).columns
    ]
    assert having == ["runs"]
    for table in tables.TABLES:
        assert local.lake.table_property(table, lake_store.VERSION) == str(newest)
