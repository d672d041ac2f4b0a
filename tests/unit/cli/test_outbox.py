"""`headwater outbox` over the outboxes of programs and of an agent."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from headwater.cli.main import _run
from headwater.emit import Outbox, destinations
from headwater.emit.journal import REFUSED_FILE

if TYPE_CHECKING:
    from pathlib import Path

RUN = "01a1e232-46c5-7db0-bbe3-16e3383f61c1"


def event(job: str) -> bytes:
    return json.dumps(
        {
            "eventType": "START",
            "eventTime": "2026-01-01T00:00:00.000000Z",
            "run": {"runId": RUN, "facets": {"conf": {"fs.s3a.secret.key": "hunter2"}}},
            "job": {"namespace": "shop", "name": job},
        }
    ).encode()


def fill(path: Path, name: str, shown: str, job: str, reason: str) -> None:
    """An outbox with one event that was refused and one that waits."""
    path.parent.mkdir(parents=True, exist_ok=True)
    outbox = Outbox(str(path))
    assert outbox.lead()
    outbox.register({name: shown})
    with outbox.transaction() as step:
        step.append(RUN, event(job))
    outbox.refuse(name, outbox.pending(name)[0], reason)
    with outbox.transaction() as step:
        step.append(RUN, event("waits"))
    outbox.close()
    outbox.forget_connection()


@pytest.fixture
def took(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where this shell's destination writes; its program's and the agent's outboxes are filled."""
    file = tmp_path / "events.ndjson"
    monkeypatch.setenv("HEADWATER_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__TYPE", "file")
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__LOG_FILE_PATH", str(file))
    monkeypatch.setenv("OPENLINEAGE__TRANSPORT__APPEND", "true")
    (here,) = destinations()
    program = tmp_path / "state" / "outbox" / "0123" / REFUSED_FILE
    fill(program, here.name, here.shown, "orders", "HTTP 422: job.name")
    agent = tmp_path / "state" / "connect.db"
    fill(agent, "http:b", "http http://b/api/v1/lineage", "sink", "HTTP 400: see http://u:pw@b/")
    return file


def listed(capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    capsys.readouterr()
    assert _run(["outbox", "list", "--json"], debug=False) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


def ids(capsys: pytest.CaptureFixture[str]) -> dict[str, str]:
    return {one["job"]: one["id"] for one in listed(capsys)["refused"]}


def test_list_shows_what_was_refused_and_what_waits(
    took: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found = listed(capsys)
    refused = {one["job"]: one for one in found["refused"]}
    assert set(refused) == {"orders", "sink"}
    assert refused["orders"] | {"id": "", "refusedAt": ""} == {
        "id": "",
        "destination": f"file {took}",
        "reason": "HTTP 422: job.name",
        "refusedAt": "",
        "namespace": "shop",
        "job": "orders",
        "run": RUN,
        "eventType": "START",
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "outbox": str(took.parent / "state" / "outbox" / "0123" / REFUSED_FILE),
    }
    assert "pw" not in refused["sink"]["reason"]
    assert {(one["destination"], one["events"]) for one in found["waiting"]} == {
        (f"file {took}", 1),
        ("http http://b/api/v1/lineage", 1),
    }
    assert _run(["outbox", "list"], debug=False) == 0
    assert "HTTP 422: job.name" in capsys.readouterr().out


def test_show_prints_the_event_without_its_secrets(
    took: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wanted = ids(capsys)["orders"]
    assert _run(["outbox", "show", wanted], debug=False) == 0
    text = capsys.readouterr().out
    assert "reason: HTTP 422: job.name" in text
    assert "hunter2" not in text
    assert _run(["outbox", "show", wanted, "--json"], debug=False) == 0
    text = capsys.readouterr().out
    assert "hunter2" not in text
    assert json.loads(text)["event"]["job"]["name"] == "orders"
    assert _run(["outbox", "show", "nosuch-1"], debug=False) == 4


def test_retry_sends_to_the_same_destination(
    took: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert _run(["outbox", "retry"], debug=False) == 2
    assert _run(["outbox", "retry", "--all", "--json"], debug=False) == 0
    names = [json.loads(line)["job"]["name"] for line in took.read_text().splitlines()]
    assert sorted(names) == ["orders", "waits"]  # the agent's own go elsewhere, and wait for it
    found = listed(capsys)
    assert found["refused"] == []
    assert [(one["destination"], one["events"]) for one in found["waiting"]] == [
        ("http http://b/api/v1/lineage", 2)
    ]


def test_drop_asks_and_deletes(
    took: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = ids(capsys)["sink"]
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    assert _run(["outbox", "drop", wanted], debug=False) == 1
    assert set(ids(capsys)) == {"orders", "sink"}
    assert _run(["outbox", "drop", wanted, "--yes"], debug=False) == 0
    assert set(ids(capsys)) == {"orders"}
    assert sum(one["events"] for one in listed(capsys)["waiting"]) == 2


def test_the_state_of_an_agent_can_be_named(
    tmp_path: Path, took: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path / "other.db"
    fill(other, "http:c", "http http://c", "elsewhere", "HTTP 413")
    capsys.readouterr()
    assert _run(["outbox", "list", "--json", "--state", str(other)], debug=False) == 0
    jobs = {one["job"] for one in json.loads(capsys.readouterr().out)["refused"]}
    assert jobs == {"orders", "elsewhere"}


def test_what_a_server_answered_steers_no_terminal(
    took: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "state" / "outbox" / "4567" / REFUSED_FILE
    fill(place, "http:c", "http://c", "job[/]\x1b[2J", "no\nforged\x1b]52;c;x\x07[/]")
    assert _run(["outbox", "list"], debug=False) == 0
    listed = capsys.readouterr().out
    _run(["outbox", "list", "--json"], debug=False)
    rows = json.loads(capsys.readouterr().out)["refused"]
    (wanted,) = [row["id"] for row in rows if row["destination"] == "http://c"]
    assert _run(["outbox", "show", wanted], debug=False) == 0
    for said in (listed, capsys.readouterr().out):
        assert "\x1b" not in said
        assert "\x07" not in said
        assert "no\\nforged\\x1b]52;c;x" in said
