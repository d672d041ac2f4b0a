"""The commands around a store, run as a person runs them."""

from __future__ import annotations

import json
import re
import time
from typing import TYPE_CHECKING

import pytest
import typer
from typer.testing import CliRunner

from headwater.cli.server import register
from headwater.cli.server.store_options import seconds as _seconds
from headwater.errors import NotFoundError, UsageError
from headwater.server.store import open_store
from headwater.server.store.database import StoreError

from .making import event

if TYPE_CHECKING:
    from pathlib import Path

app = typer.Typer()
register(app)


def run(*arguments: str, code: int = 0) -> str:
    result = CliRunner().invoke(app, list(arguments))
    assert result.exit_code == code, result.output
    return result.output


def test_events_go_from_store_to_store(tmp_path: Path) -> None:
    first, second = f"sqlite:///{tmp_path}/a.db", f"sqlite:///{tmp_path}/b.db"
    lines = [json.dumps(event("START", n, run=n, outputs=["b"])) for n in range(300)]
    (tmp_path / "in.ndjson").write_text("\n".join(lines))
    assert "300 accepted" in run("events", "import", str(tmp_path / "in.ndjson"), "--store", first)
    run("events", "export", str(tmp_path / "out.ndjson"), "--store", first)
    assert (tmp_path / "out.ndjson").read_text().splitlines() == lines
    run("events", "import", str(tmp_path / "out.ndjson"), "--store", second)
    again = run("events", "import", str(tmp_path / "out.ndjson"), "--store", second, "--json")
    assert json.loads(again) == {"accepted": 0, "duplicates": 300, "refused": 0}
    assert "300 records read" in run("rebuild", "--store", second)


def test_an_export_says_of_which_events_the_arrival_counts_and_a_backup_keeps_it(
    tmp_path: Path,
) -> None:
    store, file = f"sqlite:///{tmp_path}/a.db", str(tmp_path / "out.ndjson")
    ahead = time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime(time.time() + 3600))
    sent = [event("START", 1), {**event("RUNNING", 2), "eventTime": ahead}]
    (tmp_path / "in").write_text("\n".join(map(json.dumps, sent)))
    run("events", "import", str(tmp_path / "in"), "--store", store)
    assert "1 of them have a time more than five minutes ahead" in run(
        "events", "export", file, "--store", store
    )
    run("store", "backup", str(tmp_path / "kept"), "--store", store)
    other = f"sqlite:///{tmp_path}/b.db"
    run("store", "restore", str(tmp_path / "kept"), "--store", other)

    def arrivals(url: str) -> list[tuple[int, ...]]:
        opened = open_store(url)
        try:
            return opened.connection.all("SELECT seq, time, at FROM log ORDER BY seq")
        finally:
            opened.close()

    assert arrivals(store) == arrivals(other)


def test_a_bad_line_is_named_and_the_others_are_taken(tmp_path: Path) -> None:
    (tmp_path / "in").write_text(json.dumps(event("START", 0)) + "\n{}\n")
    output = run(
        "events", "import", str(tmp_path / "in"), "--store", f"sqlite:///{tmp_path}/a.db", code=1
    )
    assert "line 2: eventTime: is missing" in output
    assert "1 accepted" in output


def test_a_store_of_another_kind_is_a_wrong_request() -> None:
    result = CliRunner().invoke(app, ["rebuild", "--store", "mysql://db/lineage"])
    assert isinstance(result.exception, UsageError), result.output


@pytest.mark.parametrize("url", ["sqlite://", "sqlite:///", "sqlite://a.db", "sqlite:a.db", ""])
def test_a_store_s_url_that_names_no_file_is_refused(
    url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    for command in (["token", "create", "spark"], ["token", "list"], ["server", "--port", "0"]):
        result = CliRunner().invoke(app, [*command, "--store", url])
        assert isinstance(result.exception, UsageError), result.output
        assert result.exception.hint
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "command",
    [
        ["rebuild"],
        ["events", "export", "events.ndjson"],
        ["token", "list"],
        ["token", "revoke", "3f9a1c22"],
        ["purge", "job", "jobs", "j", "--yes"],
    ],
)
def test_what_reads_a_store_does_not_make_one(
    command: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(app, [*command, "--store", "mistyped.db"])
    assert "there is no store" in str(result.exception)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("file", ["text.db", "text.db/x.db"])
def test_a_server_that_cannot_have_its_store_prints_no_address(
    file: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "text.db").write_text("this is no database, and no folder either")
    result = CliRunner().invoke(app, ["server", "--port", "0", "--store", str(tmp_path / file)])
    assert isinstance(result.exception, StoreError), result.output
    assert result.exception.hint
    assert "headwater server on" not in result.output + capfd.readouterr().err


def test_a_postgresql_that_is_away_is_one_line_with_a_hint() -> None:
    result = CliRunner().invoke(app, ["rebuild", "--store", "postgresql://127.0.0.1:9/x"])
    assert isinstance(result.exception, StoreError)
    assert "cannot connect to PostgreSQL" in result.exception.message
    assert not re.search(r"[\n\t]", result.exception.message)
    assert "--store" in str(result.exception.hint)


def test_a_plain_path_is_a_store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run("token", "create", "spark", "--store", "a b%20.db")
    assert (tmp_path / "a b%20.db").is_file()
    assert "spark" in run("token", "list", "--store", str(tmp_path / "a b%20.db"))
    run("store", "move", "--store", "a b%20.db", "--to", "b.db")
    assert "spark" in run("token", "list", "--store", f"sqlite:///{tmp_path}/b.db")


def test_tokens_are_shown_once(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    secret = run("token", "create", "spark", "--role", "write", "--store", store).strip()
    (found,) = json.loads(run("token", "list", "--store", store, "--json"))
    assert (found["name"], found["role"], found["revoked"]) == ("spark", "write", None)
    assert secret not in run("token", "list", "--store", store)
    run("token", "revoke", found["id"], "--store", store)
    assert "revoked" in run("token", "list", "--store", store)
    again = CliRunner().invoke(app, ["token", "revoke", found["id"], "--store", store])
    assert isinstance(again.exception, NotFoundError)
    assert b"hw_" not in (tmp_path / "a.db").read_bytes()
    limit = ["--role", "read", "--namespaces", "shop, team-*", "--store", store]
    run("token", "create", "page", *limit)
    assert "only shop, team-*" in run("token", "list", "--store", store)
    assert json.loads(run("token", "list", "--store", store, "--json"))[-1]["namespaces"] == [
        "shop",
        "team-*",
    ]
    refused = CliRunner().invoke(
        app, ["token", "create", "x", "--namespaces", "a", "--store", store]
    )
    assert "--role read" in str(getattr(refused.exception, "hint", ""))


@pytest.mark.parametrize(
    ("text", "seconds"), [("90d", 7_776_000), ("12h", 43_200), ("45s", 45), ("10", 10)]
)
def test_durations(text: str, seconds: float) -> None:
    assert _seconds(text, "--keep") == seconds
    for wrong in ("soon", "0", "0d"):
        with pytest.raises(UsageError, match="--keep"):
            _seconds(wrong, "--keep")


def test_a_job_is_deleted_for_good_only_when_that_is_meant(tmp_path: Path) -> None:
    store = f"sqlite:///{tmp_path}/a.db"
    lines = [json.dumps(event("START", n, run=n, job=f"j{n}", outputs=["t"])) for n in range(3)]
    (tmp_path / "in").write_text("\n".join(lines))
    run("events", "import", str(tmp_path / "in"), "--store", store)
    asked = CliRunner().invoke(app, ["purge", "job", "jobs", "j1", "--store", store])
    assert isinstance(asked.exception, UsageError)
    assert "--yes" in str(asked.exception.hint)
    gone = run("purge", "job", "jobs", "j1", "--store", store, "--yes", "--json")
    assert json.loads(gone) == {"records": 1, "jobs": 1, "datasets": 0}
    assert "3 datasets" not in run("purge", "namespace", "s3://lake", "--store", store, "--yes")
    assert "0 records" in run("rebuild", "--store", store)
    missing = CliRunner().invoke(app, ["purge", "job", "jobs", "j1", "--store", store, "--yes"])
    assert "not found" in str(missing.exception)
    assert getattr(missing.exception, "exit_code", 0) == 4
    away = ["purge", "dataset", "a", "b", "--url", "http://127.0.0.1:9", "--yes"]
    assert "does not answer" in str(CliRunner().invoke(app, away).exception)
