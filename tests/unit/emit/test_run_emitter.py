"""The sending side of a run, with a journal on disk."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from headwater.emit.journal import Journal
from headwater.emit.process.process_exit import COMPLETE
from headwater.emit.run_emitter import RunEmitter, given_seconds, new_run_id
from headwater.lineage.model import Ancestors, Job, Lineage, Run, RunRef

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "events.ndjson"


@pytest.fixture
def journal(file: Path) -> Iterator[Journal]:
    made = Journal({"type": "file", "log_file_path": str(file), "append": True})
    yield made
    made.close(5)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("2.5", 2.5), ("", 10.0), ("often", 10.0), ("0", 10.0), ("-1", 10.0), ("inf", 10.0)],
)
def test_a_time_that_is_none_counts_as_not_given(
    monkeypatch: pytest.MonkeyPatch, given: str, seconds: float
) -> None:
    monkeypatch.setenv("HEADWATER_FLOW_SECONDS", given)
    assert given_seconds("HEADWATER_FLOW_SECONDS", 10.0) == seconds


def test_a_wrong_variable_does_not_keep_a_program_from_starting() -> None:
    environment = {**os.environ, "HEADWATER_FLOW_SECONDS": "often"}
    subprocess.run(
        [sys.executable, "-c", "import headwater.spark"], check=True, timeout=60, env=environment
    )


def told(journal: Journal, file: Path) -> list[dict[str, Any]]:
    assert journal.flush(10)
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def test_facets_that_are_not_wanted_are_left_out_whoever_adds_them(
    journal: Journal, file: Path
) -> None:
    above = RunRef("n", "above", new_run_id())
    life = RunEmitter(
        journal,
        Job("n", "j", "BATCH", "PYTHON", "JOB", 300),
        Run(new_run_id(), Ancestors(above, above)),
        frozenset({"sql", "headwater_streaming"}),
    )
    life.start()
    life.lineage = Lineage(sql="select secret")
    life.running({"headwater_streaming": {}})
    life.end(COMPLETE)
    events = told(journal, file)
    assert [event["eventType"] for event in events] == ["START", "RUNNING", "COMPLETE"]
    for event in events:
        assert set(event["run"]["facets"]) <= {"parent", "headwater_end"}
        assert set(event["job"]["facets"]) == {"jobType"}


def test_a_start_that_could_not_be_kept_is_followed_by_no_end(
    journal: Journal, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> str:
        raise sqlite3.OperationalError("database or disk is full")

    life = RunEmitter(journal, Job("n", "j"), Run(new_run_id()))
    with monkeypatch.context() as patch:
        patch.setattr(journal, "begin", full)
        with pytest.raises(sqlite3.OperationalError):
            life.start()
    assert not life.end(COMPLETE)
    assert told(journal, file) == []
    life.start()
    assert life.end(COMPLETE)
    assert [event["eventType"] for event in told(journal, file)] == ["START", "COMPLETE"]
