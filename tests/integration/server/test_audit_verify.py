"""`headwater audit verify` and `head`: a log that was tampered with is found out, on both stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.errors import UsageError
from headwater.server.store import Store, open_store
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.rebuild import rebuild
from headwater.server.store.keep.retention import retain

from .conftest import Client
from .making import dataset, event, run_id, schema

if TYPE_CHECKING:
    from pathlib import Path

RECORDS = 5


@pytest.fixture
def filled(store_url: str) -> str:
    store = open_store(store_url)
    fill(store, range(1, RECORDS + 1))
    store.close()
    return store_url


def fill(store: Store, numbers: range) -> None:
    bodies = [event("COMPLETE", n, run=n, job=f"job-{n}", outputs=[f"d{n}"]) for n in numbers]
    store.append([json.dumps(body).encode() for body in bodies])


def run(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["audit", *words])
    return result.exit_code, result.output


def tamper(url: str, *statements: str) -> None:
    store = open_store(url)
    store.connection.begin()
    for statement in statements:
        store.connection.run(statement)
    store.connection.commit()
    store.close()


def export(url: str, file: Path) -> str:
    code, text = run("head", "--store", url)
    assert code == 0, text
    file.write_text(text)
    return str(file)


def test_a_whole_log_is_whole(filled: str, tmp_path: Path) -> None:
    head = export(filled, tmp_path / "head.json")
    code, text = run("verify", "--store", filled, "--head", head, "--json")
    assert (code, json.loads(text)) == (
        0,
        {"intact": True, "seq": RECORDS, "records": RECORDS, "problem": None},
    )
    store = open_store(filled)
    fill(store, range(10, 13))
    store.close()
    assert run("verify", "--store", filled, "--head", head)[0] == 0


SWAP = (
    "UPDATE log SET seq = -2 WHERE seq = 2",
    "UPDATE log SET seq = 2 WHERE seq = 3",
    "UPDATE log SET seq = 3 WHERE seq = -2",
)
BURY = (
    (
        "INSERT INTO tombstone (seq, kind, at, hash, chain)"
        " SELECT seq, kind, at, hash, chain FROM log WHERE seq = 3"
    ),
    "DELETE FROM log WHERE seq = 3",
)
TAMPERINGS = {
    "altered": (
        ("UPDATE log SET body = (SELECT body FROM log WHERE seq = 2) WHERE seq = 3",),
        "the body of record 3 has another hash",
    ),
    "made unreadable": (("UPDATE log SET dictionary = 77 WHERE seq = 3",), "no dictionary 77"),
    "reordered": (SWAP, "record 2 does not follow"),
    "removed": (("DELETE FROM log WHERE seq = 3",), "record 4 does not follow"),
    "removed as if it was deleted": (BURY, "record 3 was taken out, and no deletion did it"),
    "cut": (("DELETE FROM log WHERE seq > 3",), "ends at record 3, not 5"),
    "dated otherwise": (
        ("UPDATE log SET time = time - 86400000000 WHERE seq = 3",),
        "the time of record 3 is not the one in its body",
    ),
    "given another type": (
        ("UPDATE log SET type = 0 WHERE seq = 3",),
        "the type of record 3 is not the one in its body",
    ),
    "put under another job": (
        ("UPDATE log SET job = (SELECT job FROM log WHERE seq = 2) WHERE seq = 3",),
        "record 3 stands under another job",
    ),
    "put under no job": (
        ("UPDATE log SET job = NULL WHERE seq = 3",),
        "record 3 stands under another job",
    ),
    "put under another run": (
        ("UPDATE log SET run = (SELECT run FROM log WHERE seq = 2) WHERE seq = 3",),
        "record 3 stands under another run",
    ),
    "put under no run": (
        ("UPDATE log SET run = 4711 WHERE seq = 3",),
        "record 3 stands under another run",
    ),
}


@pytest.mark.parametrize("how", TAMPERINGS)
def test_a_log_that_was_tampered_with_is_found_out(filled: str, how: str) -> None:
    statements, said = TAMPERINGS[how]
    tamper(filled, *statements)
    code, text = run("verify", "--store", filled, "--json")
    found = json.loads(text)
    assert (code, found["intact"]) == (5, False)
    assert said in found["problem"]


COMMANDS = (
    {"command": "namespace", "name": "jobs", "owner": "me"},
    {"command": "new_run", "namespace": "jobs", "name": "job-1", "run": run_id(90)},
    {"command": "run", "run": run_id(90), "state": "FAIL", "time": 1_800_000_000_000_000},
    {"command": "tagged", "kind": "job", "namespace": "jobs", "name": "job-2", "tag": "x", "on": True},
    {"command": "hide", "kind": "job", "namespace": "jobs", "name": "job-2"},
    {"command": "event", "event": event("COMPLETE", 40, run=91, job="by-hand"), "at": 1},
)  # fmt: skip


def by_hand(url: str) -> None:
    store = open_store(url)
    declared = event("COMPLETE", 50, job="declared", outputs=["d1"])
    alone = {**event("COMPLETE", 51), "dataset": {"namespace": "s3://lake", "name": "alone"}}
    for key in ("run", "eventType"):
        del declared[key], alone[key]
    del alone["job"]
    store.append([json.dumps(one).encode() for one in (declared, alone)])
    for command in COMMANDS:
        store.perform(command)
    store.close()


def test_every_kind_of_record_is_where_its_body_says(filled: str) -> None:
    by_hand(filled)
    last = RECORDS + 2 + len(COMMANDS)
    code, text = run("verify", "--store", filled, "--json")
    assert (code, json.loads(text)["records"]) == (0, last), text
    for seq in range(RECORDS + 1, last + 1):
        for column in ("time", "type", "job", "run"):
            was = read_one(filled, f"SELECT {column} FROM log WHERE seq = {seq}")
            tamper(filled, f"UPDATE log SET {column} = 4711 WHERE seq = {seq}")
            code, text = run("verify", "--store", filled, "--json")
            told = code == 5 and f"record {seq} " in json.loads(text)["problem"]
            # A tag of a task job is its parent's, whichever that was then.
            assert told or (column == "job" and seq == RECORDS + 6), (seq, column)
            put = "NULL" if was is None else was
            tamper(filled, f"UPDATE log SET {column} = {put} WHERE seq = {seq}")
    assert run("verify", "--store", filled)[0] == 0


def read_one(url: str, sql: str) -> int | None:
    store = open_store(url)
    ((value,),) = store.connection.all(sql)
    store.close()
    return None if value is None else int(value)


def test_rebuild_refuses_another_time_and_mends_another_job(filled: str) -> None:
    tamper(filled, "UPDATE log SET job = 1, run = 1 WHERE seq = 3")
    assert CliRunner().invoke(app, ["rebuild", "--store", filled]).exit_code == 0
    assert run("verify", "--store", filled)[0] == 0
    tamper(filled, "UPDATE log SET type = 0 WHERE seq = 3")
    assert "the type of record 3" in str(
        CliRunner().invoke(app, ["rebuild", "--store", filled]).exception
    )


def test_an_altered_facet_is_found_out_and_computed_again(filled: str) -> None:
    store = open_store(filled)
    body = event("COMPLETE", 60, run=60, outputs=[dataset("d", schema=schema("id", "name"))])
    store.append([json.dumps(body).encode()])
    store.close()
    number = read_one(filled, "SELECT max(id) FROM facet")
    tamper(
        filled,
        "UPDATE facet SET (dictionary, body) = (SELECT dictionary, body FROM log WHERE seq = 1)"
        f" WHERE id = {number}",
    )
    code, text = run("verify", "--store", filled, "--json")
    assert (code, f"facet {number} has another hash" in json.loads(text)["problem"]) == (5, True)
    assert CliRunner().invoke(app, ["rebuild", "--store", filled]).exit_code == 0
    assert run("verify", "--store", filled)[0] == 0


def test_a_run_that_was_let_go_of_is_no_tampering(store_url: str) -> None:
    store = open_store(store_url)
    fill(store, range(1, RECORDS + 1))
    store.append([json.dumps(event("COMPLETE", 70, run=70, job="job-1")).encode()])
    by_hand(store_url)
    ((cut,),) = store.connection.all("SELECT at FROM log WHERE seq = 6")
    # Runs are let go of by the time in their events, records by when they came.
    assert retain(store, cut).runs
    fill(store, range(1, 3))
    store.close()
    assert run("verify", "--store", store_url)[0] == 0
    store = open_store(store_url)
    purge(store, PurgeTarget("job", "jobs", "job-1"))
    store.close()
    code, text = run("verify", "--store", store_url)
    assert code == 0, text


def test_a_run_that_two_jobs_report_may_come_again_after_one_is_purged(store_url: str) -> None:
    store = open_store(store_url)

    def send(*bodies: dict[str, Any]) -> None:
        store.append([json.dumps(body).encode() for body in bodies])

    send(event("START", 1, run=1, job="first"), event("RUNNING", 2, run=1, job="second"))
    purge(store, PurgeTarget("job", "jobs", "first"))
    send(event("START", 3, run=2, job="third"))
    # The number that the run had belongs to no other: what is left of it is not shown as the other's.
    sql = "SELECT count(*) FROM log l JOIN run r ON r.id = l.run WHERE r.job <> l.job"
    assert store.connection.all(sql) == [(0,)]
    send(event("COMPLETE", 4, run=1, job="second"))
    for _ in range(2):
        store.close()
        code, text = run("verify", "--store", store_url)
        assert code == 0, text
        store = open_store(store_url)
        rebuild(store)
    store.close()


TRUNCATION = (
    "DELETE FROM log WHERE seq > 3",
    "UPDATE head SET seq = 3, chain = (SELECT chain FROM log WHERE seq = 3) WHERE id = 1",
)


@pytest.mark.parametrize(
    "column", ["kind", "at", "time", "type", "hash", "chain", "dictionary", "body", "job", "run"]
)
def test_a_value_of_another_type_is_a_change(tmp_path: Path, column: str) -> None:
    """SQLite keeps a text in a column of numbers or bytes; PostgreSQL would not."""
    url = f"sqlite:///{tmp_path}/x.db"
    store = open_store(url)
    fill(store, range(1, 4))
    store.close()
    tamper(url, f"UPDATE log SET {column} = 'other' WHERE seq = 2")
    code, text = run("verify", "--store", url)
    assert (code, "record 2 holds a value of another type" in " ".join(text.split())) == (5, True)


def test_a_log_cut_with_care_is_found_out_by_an_exported_head(filled: str, tmp_path: Path) -> None:
    early = export(filled, tmp_path / "head.json")
    tamper(filled, *TRUNCATION)
    assert run("verify", "--store", filled)[0] == 0  # nothing in the store itself tells
    code, text = run("verify", "--store", filled, "--head", early)
    assert (code, "the log was cut: it ends at record 3" in text) == (5, True)
    # Filled up again, the record of the head is another one.
    store = open_store(filled)
    fill(store, range(20, 26))
    store.close()
    code, text = run("verify", "--store", filled, "--head", early)
    assert (code, "the log was rewritten" in text) == (5, True)


def test_a_server_is_asked_for_the_record_of_a_head(
    filled: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    head = export(filled, tmp_path / "head.json")
    client = Client(open_store(filled))
    monkeypatch.setattr(
        "httpx.request",
        lambda method, url, timeout, **more: client.call(method, url, **more),
    )
    asked = ("--url", "http://server")
    try:
        assert json.loads(run("head", *asked)[1]) == json.loads(
            (tmp_path / "head.json").read_text()
        )
        assert run("verify", *asked, "--head", head)[0] == 0
        assert run("verify", *asked)[0] != 0  # a server has no more to be asked for
    finally:
        client.close()
    tamper(filled, *TRUNCATION)
    client = Client(open_store(filled))
    try:
        code, text = run("verify", *asked, "--head", head)
        assert (code, "the log was cut" in text) == (5, True)
        fill(client.store, range(30, 35))
        code, text = run("verify", *asked, "--head", head)
        assert (code, "the log was rewritten" in text) == (5, True)
    finally:
        client.close()


def test_what_was_deleted_by_right_is_no_tampering(filled: str, tmp_path: Path) -> None:
    head = export(filled, tmp_path / "head.json")
    store = open_store(filled)
    purge(store, PurgeTarget("job", "jobs", "job-2"))
    store.close()
    assert run("verify", "--store", filled, "--head", head)[0] == 0
    # A log that ends before its own checkpoint was cut, whatever its head says.
    tamper(filled, *TRUNCATION)
    code, text = run("verify", "--store", filled)
    assert (code, "before the checkpoint" in text) == (5, True)


def test_a_head_older_than_what_is_kept_cannot_be_checked(filled: str, tmp_path: Path) -> None:
    file = tmp_path / "head.json"
    export(filled, file)
    old = {**json.loads(file.read_text()), "seq": 2}
    store = open_store(filled)
    retain(store, 2**60)
    store.close()
    file.write_text(json.dumps(old))
    result = CliRunner().invoke(app, ["audit", "verify", "--store", filled, "--head", str(file)])
    assert "cannot be checked" in str(result.exception)


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"seq": 1, "chain": "zz"}', '{"seq": "1", "chain": ""}']
)
def test_what_is_no_head_is_refused(filled: str, tmp_path: Path, text: str) -> None:
    file = tmp_path / "head.json"
    file.write_text(text)
    result = CliRunner().invoke(app, ["audit", "verify", "--store", filled, "--head", str(file)])
    assert "is not a head of the log" in str(result.exception)


def test_no_store_is_made_where_there_is_none(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/none.db"
    for words in (("verify", "--store", url), ("head", "--store", url)):
        result = CliRunner().invoke(app, ["audit", *words])
        assert "there is no store" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


def test_a_store_that_is_not_there_is_a_wrong_request(tmp_path: Path) -> None:
    missing = CliRunner().invoke(app, ["audit", "verify", "--store", f"sqlite:///{tmp_path}/no.db"])
    assert isinstance(missing.exception, UsageError)
    assert missing.exception.exit_code == 2
