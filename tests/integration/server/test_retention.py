"""Letting go: old runs, single jobs and datasets; what is left can be checked and rebuilt."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from datetime import datetime, timezone
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from headwater.server.alerts.conditions import Conditions
from headwater.server.alerts.rules import read_rules
from headwater.server.alerts.watch import _written
from headwater.server.store import Store, open_store
from headwater.server.store.database import StoreError
from headwater.server.store.database.schema import LATEST
from headwater.server.store.keep.checkpoint import PROJECTED, latest
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import export, rebuild, verify
from headwater.server.store.keep.retention import retain
from headwater.server.store.view import Bodies, View
from headwater.server.store.write.commands import COMMANDS, NoSuchError
from tests.security.attacks import eventually

from .conftest import Client
from .making import columns, dataset, event, facet, run_id, schema
from .old_stores import KEPT, open_kept

if TYPE_CHECKING:
    from collections.abc import Callable

NEW_DATABASES = True  # what another test left in the catalogs' files would be found


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


def test_what_was_let_go_is_not_new_when_it_is_sent_again(store: Store) -> None:
    old = run_of(1)
    send(store, *old, *run_of(2))
    retain(store, time.time_ns() // 1000)
    before = projection(store)
    again = store.append([json.dumps(e).encode() for e in old])
    assert all(r.duplicate and r.seq for r in again)
    assert projection(store) == before
    # What nobody had heard of is taken in, however old: another job, or a time before the first.
    send(store, *run_of(3, job="late"), event("START", 50, run=4, job="load"))
    assert rebuild(store) == 3


def mentions(store: Store, text: str) -> list[str]:
    """Where the text can still be read: tables, packed bodies, dictionaries, the database's files."""
    found = ["projection"] if text in repr(projection(store)) else []
    for table in ("log", "facet"):
        for dictionary, packed in store.connection.all(f"SELECT dictionary, body FROM {table}"):
            if text.encode() in store.packer.unpack(dictionary, bytes(packed)):
                found.append(table)
    for (data,) in store.connection.all("SELECT data FROM dictionary"):
        if text.encode() in bytes(data):
            found.append("dictionary")
    if store.database.dialect == "sqlite":
        file = Path(store.database.url.removeprefix("sqlite:///"))
        parts = (file, file.with_name(file.name + "-wal"))
        found += [p.name for p in parts if p.exists() and text.encode() in p.read_bytes()]
    else:
        found += files_of_postgres(store, text)
    return found


def files_of_postgres(store: Store, text: str) -> list[str]:
    """The tables and indexes, statistics and other catalogs too, that have the text in their files."""
    connection = store.connection
    connection.run("CHECKPOINT")
    sql = (
        "SELECT relname, pg_relation_filepath(oid) FROM pg_class"
        " WHERE relkind IN ('r', 'i', 't') AND pg_relation_filepath(oid) ~ '^base/'"
    )
    # A logical replication slot, of Debezium for one, keeps dead rows of catalogs until it moves on.
    held = connection.all("SELECT 1 FROM pg_replication_slots WHERE catalog_xmin IS NOT NULL")
    spared = ("pg_statistic", "pg_toast_2619") if held else ()
    listed = (
        "SELECT 1 FROM pg_stats WHERE strpos(coalesce(most_common_vals::text, '')"
        " || coalesce(histogram_bounds::text, ''), ?) > 0"
    )
    found = ["pg_stats"] if connection.all(listed, (text,)) else []
    for name, path in connection.all(sql):
        if name in spared:
            continue
        rows = connection.all("SELECT pg_read_binary_file(?, 0, 1000000000, true)", (path,))
        if rows[0][0] and text.encode() in bytes(rows[0][0]):
            found.append(name)
    return found


TARGETS = {
    "dataset": [
        PurgeTarget("dataset", "s3://lake", "hunter2_out"),
        PurgeTarget("job", "jobs", "hunter2"),
    ],
    "job": [
        PurgeTarget("job", "jobs", "hunter2"),
        PurgeTarget("dataset", "s3://lake", "hunter2_out"),
    ],
    "namespace": [
        PurgeTarget("namespace", "hunter2"),
        PurgeTarget("dataset", "s3://lake", "hunter2_out"),
    ],
}


@pytest.mark.parametrize("kind", TARGETS)
def test_what_is_deleted_is_gone_for_good(store: Store, kind: str) -> None:
    # The facets of the last events have the highest numbers; a schema does not name its dataset.
    gone = run_of(2, job="hunter2", column="hunter2_column")
    gone[-1]["outputs"][0]["facets"]["dataSource"] = facet(name="hunter2_db", uri="s3://hunter2")
    if kind == "namespace":
        for sent in gone:
            sent["job"]["namespace"] = "hunter2"
    # Enough of them for a dictionary, which is made from events as they were sent.
    send(store, *(e for n in range(40) for e in run_of(n + 10, job=f"kept{n % 5}")), *gone)
    if store.database.dialect == "postgresql":
        store.connection.run("ANALYZE")
    assert {"dictionary", "projection"} <= set(mentions(store, "hunter2"))
    assert len(mentions(store, "hunter2")) > 3
    first, second = TARGETS[kind]
    assert purge(store, first).records == 2
    purge(store, second)
    assert mentions(store, "hunter2") == []
    assert verify(store) == 82
    assert all(r.duplicate for r in store.append([json.dumps(e).encode() for e in gone]))
    before = projection(store)
    assert rebuild(store) == 0
    assert projection(store) == before
    send(store, *run_of(3, job="kept"))
    for target in (first, second):
        with pytest.raises(NoSuchError):
            purge(store, target)
    # Nor does letting the rest go make them new again.
    retain(store, time.time_ns() // 1000)
    assert all(r.duplicate for r in store.append([json.dumps(e).encode() for e in gone]))
    assert mentions(store, "hunter2") == []
    reopened = open_store(store.database.url)
    assert len(list(export(reopened))) == len(list(export(store)))
    reopened.close()


@pytest.mark.parametrize("target", [PurgeTarget("dataset", "s3://hunter2", "a/b"), PurgeTarget("namespace", "s3://hunter2")])  # fmt: skip
def test_the_address_of_what_is_deleted_is_in_no_text_of_others(
    store: Store, target: PurgeTarget
) -> None:
    """The events went, and the error message that one of them had brought stayed with its run."""
    failed = facet(message="no s3://hunter2/a/b: gone", stackTrace="at s3://hunter2/a/b")
    query = facet(query="SELECT * FROM parquet.`s3://hunter2/a/b`")
    like = facet(message="no s3://lake/a/b, s3://lake2/a/b")
    of_others = {"errorMessage": like}
    send(
        store,
        event("FAIL", 1, inputs=[dataset("a/b", "s3://hunter2")], outputs=["kept"],
              run_facets={"errorMessage": failed}, job_facets={"sql": query}),
        event("FAIL", 2, run=2, job="other", inputs=["kept"], run_facets=of_others),
    )  # fmt: skip
    purge(store, target)
    if target.kind == "dataset":  # the namespace itself is not deleted
        purge(store, PurgeTarget("namespace", "s3://hunter2"))
    assert mentions(store, "hunter2") == []
    held = [store.packer.unpack(d, bytes(b)) for d, b in store.connection.all("SELECT dictionary, body FROM facet")]  # fmt: skip
    assert [body for body in held if b"s3://lake2/a/b" in body]


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("no s3://b/a", True), ("('s3://b/a')", True), ("s3://b/a.", True), ("s3://b/a.v2", False),
        ("s3://b/a/part-1", False), ("s3://b/a-2", False), ("s3://b-2/a", False), ("a", False),
    ],
)  # fmt: skip
def test_an_address_in_a_text_names_one_dataset(text: str, told: bool) -> None:
    body = json.dumps({"message": text}).encode()
    assert PurgeTarget("dataset", "s3://b", "a").told(body) == told


DECLARED = {
    "eventTime": "2026-01-01T00:00:00Z",
    "producer": "https://example.org",
    "schemaURL": "https://openlineage.io/spec/2-0-2/OpenLineage.json#/$defs/DatasetEvent",
    "dataset": {"namespace": "hunter2", "name": "other"},
}
GIVEN: dict[str, dict[str, Any]] = {
    "event": {"event": DECLARED},
    "run": {"run": run_id(1), "state": "ABORT", "time": 1},
    "new_run": {"namespace": "hunter2", "name": "load", "run": run_id(2)},
    "namespace": {"name": "hunter2", "owner": "me"},
    "source": {"name": "hunter2", "type": "S3", "url": "s3://x"},
    "hide": {"kind": "dataset", "namespace": "hunter2", "name": "t"},
    "tag": {"name": "pii"},
    "tagged": {"kind": "dataset", "namespace": "hunter2", "name": "t", "tag": "pii", "on": True},
    "alias": {"namespace": "s3://lake", "name": "kept", "alias": ["hunter2", "x"], "by": "doctor"},
    "unalias": {"namespace": "s3://lake", "name": "kept", "alias": ["hunter2", "x"]},
    "retain": {"before": 0},
    "purge": {"kind": "job", "digest": "0"},
}


def test_every_command_that_names_what_is_deleted_goes_with_it(store: Store) -> None:
    assert GIVEN.keys() == COMMANDS.keys(), "a command to try, in the order in which it is given"
    sent = event("START", 1, run=1, outputs=[dataset("kept"), dataset("t", "hunter2")])
    sent["job"]["namespace"] = "hunter2"
    send(store, sent, event("START", 1, run=3, outputs=["kept"]))
    for name, rest in GIVEN.items():
        store.perform({"command": name, **rest})
    named = sum("hunter2" in str(rest) for rest in GIVEN.values())
    assert purge(store, PurgeTarget("namespace", "hunter2")).records == 1 + named
    assert mentions(store, "hunter2") == []


def test_what_was_the_only_thing_leaves_nothing_behind(store: Store) -> None:
    for number in range(3):  # one name alone is in no histogram
        started = event("START", 0, run=number, job=f"hunter2-{number}")
        started["job"]["namespace"] = "hunter2"
        send(store, started)
    if store.database.dialect == "postgresql":
        store.connection.run("ANALYZE")
        assert "pg_stats" in mentions(store, "hunter2")
    purge(store, PurgeTarget("namespace", "hunter2"))
    assert mentions(store, "hunter2") == []
    send(store, *run_of(3, job="kept"))


@pytest.mark.parametrize("store_url", ["postgresql"], indirect=True)
def test_a_transaction_that_began_before_keeps_nothing_of_it(store: Store) -> None:
    send(store, *run_of(1, job="hunter2", column="hunter2_column"), *run_of(2, job="kept"))
    store.connection.run("ANALYZE")
    holds, ends = threading.Event(), threading.Event()

    def hold() -> None:
        with store.database.reading() as connection:
            connection.all("SELECT 1 FROM pg_class")  # no lock on a table of ours, but a snapshot
            holds.set()
            ends.wait(10)

    reader = threading.Thread(target=hold)
    reader.start()
    holds.wait(10)
    release = threading.Timer(1, ends.set)
    release.start()
    purge(store, PurgeTarget("job", "jobs", "hunter2"))
    purge(store, PurgeTarget("dataset", "s3://lake", "hunter2_out"))
    reader.join()
    assert mentions(store, "hunter2") == []


def test_deleting_leaves_namesakes_alone(store: Store) -> None:
    send(store, *run_of(1, job="load"), event("START", 300, run=2, job="other", inputs=["load"]))
    assert purge(store, PurgeTarget("job", "jobs", "load")).records == 2
    seen = View(store.connection, Bodies(store.packer))
    assert seen.dataset("s3://lake", "load") is not None
    assert len(list(export(store))) == 1


def test_a_dictionary_of_a_failed_commit_is_not_used(store: Store) -> None:
    def full(*_: Any) -> None:
        raise OSError("no space is left")

    events = [json.dumps(e).encode() for n in range(40) for e in run_of(n, job=f"j{n}")]
    with pytest.raises(OSError, match="no space"):
        store.append(events, full)
    assert store.connection.all("SELECT count(*) FROM dictionary") == [(0,)]
    store.append(events[:10])
    reopened = open_store(store.database.url)
    assert sorted(export(reopened)) == sorted(events[:10])
    reopened.close()


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


@pytest.fixture
def first(store_url: str, tmp_path: Path) -> Store:
    """A database of the first schema, opened by this release."""
    return open_kept(KEPT / "first.db", store_url, tmp_path)


def test_a_database_of_the_first_release_is_brought_up_to_date(first: Store) -> None:
    assert first.connection.all("SELECT max(version) FROM migration") == [(LATEST,)]
    assert verify(first) == 17
    seen = View(first.connection, Bodies(first.packer))
    job = seen.job("jobs", "load")
    assert job is not None
    assert len(job.state.open) == 3
    sql = f"SELECT name FROM job WHERE {seen.connection.holds.format('job')}"
    assert seen.all(sql, (seen.connection.sought("LOA"),)) == [("load",)]
    send(first, *run_of(20), event("START", 900, run=21, job="stream", outputs=["new"]))
    again = json.dumps(event("START", 900, run=21, job="stream", outputs=["new"])).encode()
    assert first.append([again])[0].duplicate
    assert rebuild(first) == 20
    assert seen.dataset("hive://h", "db.alone") is not None
    assert retain(first, time.time_ns() // 1000).events == 20
    assert rebuild(first) == 0
    assert run_id(1) not in b"".join(export(first)).decode()
    first.close()


def test_what_another_process_deletes_comes_back_from_no_memory(store: Store) -> None:
    """Neither as a sample of flow nor in the dictionary that is made from the last bodies."""
    client = Client(store)
    client.app.background.clear()
    try:
        client.post(*run_of(2, job="hunter2"))
        now = datetime.now(timezone.utc)
        sample = {"run": run_id(2), "time": now.isoformat(), "direction": "output",
                  "dataset": {"namespace": "s3://lake", "name": "hunter2_out"}}  # fmt: skip
        sent = client.call("POST", "/api/v2/flow", json={"samples": [sample]})
        assert sent.status_code == 202, sent.text
        other = open_store(store.database.url)
        for target in TARGETS["dataset"]:
            purge(other, target)
        other.close()
        client.app.flow.flush(store, now.timestamp())
        client.post(*(e for n in range(40) for e in run_of(n + 100)))
        assert store.connection.all("SELECT 1 FROM dictionary")
        assert store.connection.all("SELECT dataset_name FROM flow") == []
        assert mentions(store, "hunter2") == []
    finally:
        client.close()


def on_writer(client: Client, work: Callable[[Store], Any]) -> Any:
    async def done() -> Any:
        return await client.app.ingest.perform(work)

    return asyncio.run_coroutine_threadsafe(done(), client._loop).result(60)


def test_an_incident_found_before_a_deletion_is_not_written_after_it(
    client: Client, tmp_path: Path
) -> None:
    file = tmp_path / "alerts.toml"
    file.write_text(
        '[channels.none]\ncommand = ["true"]\n[rules.fails]\nwhen = "run-failed"\nto = ["none"]\n'
    )
    conditions = Conditions(read_rules(file))

    def found(number: int) -> tuple[Any, ...]:
        now = time.time_ns() // 1000
        changes, _, epoch = conditions.evaluate(client.app, now)
        assert len(changes.write) == number
        return conditions.rules, changes, now, epoch

    def write(*given: Any) -> Any:
        return on_writer(client, lambda store: _written(store, *given))

    assert write(*found(0))
    for name, number in (("hunter2", 1), ("kept", 2)):
        failed = event("FAIL", 0, run=number, job=name)
        client.post({**failed, "eventTime": datetime.now(timezone.utc).isoformat()})
    changes = found(2)
    on_writer(client, lambda store: purge(store, PurgeTarget("job", "jobs", "hunter2")))
    assert not write(*changes)
    assert mentions(client.store, "hunter2") == []
    assert write(*found(1))
    assert len(client.store.connection.all("SELECT 1 FROM incident")) == 1


def test_what_is_made_after_a_deletion_is_found(client: Client) -> None:
    client.post(*run_of(1), *run_of(2, job="gone"))
    found = client.get("/api/v2/search", q="out")["results"]
    assert {one["name"] for one in found} == {"load_out", "gone_out"}
    for kind, namespace, name in (("dataset", "s3://lake", "gone_out"), ("job", "jobs", "gone")):
        body = {"kind": kind, "namespace": namespace, "name": name, "confirm": name}
        assert client.call("POST", "/api/v2/purge", json=body).status_code == 200
    client.post(*run_of(3, job="new"))
    eventually(lambda: len(client.get("/api/v2/search", q="new_out")["results"]) == 1, 10)
