"""`headwater audit verify` and `head`: a log that was tampered with is found out, on both stores."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.errors import UsageError
from headwater.server.store import Store, open_store
from headwater.server.store.keep.purge import PurgeTarget, purge
from headwater.server.store.keep.retention import retain

from .conftest import Client
from .making import event

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
}


@pytest.mark.parametrize("how", TAMPERINGS)
def test_a_log_that_was_tampered_with_is_found_out(filled: str, how: str) -> None:
    statements, said = TAMPERINGS[how]
    tamper(filled, *statements)
    code, text = run("verify", "--store", filled, "--json")
    found = json.loads(text)
    assert (code, found["intact"]) == (5, False)
    assert said in found["problem"]


TRUNCATION = (
    "DELETE FROM log WHERE seq > 3",
    "UPDATE head SET seq = 3, chain = (SELECT chain FROM log WHERE seq = 3) WHERE id = 1",
)


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
