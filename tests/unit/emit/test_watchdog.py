"""Journals and watchdogs: what one process leaves, another says."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pytest

from headwater.emit import Outbox, RefusedError, journal
from headwater.emit.journal import Journal, settle
from headwater.emit.process.watchdog import Watchdog
from headwater.lab.waiting import wait_until
from headwater.lineage.model import Job, Lineage, Run
from headwater.lineage.openlineage.events import EventType
from headwater.lineage.openlineage.writer import Writer, stamp

if TYPE_CHECKING:
    from pathlib import Path

RUN = "01a1e232-46c5-7db0-bbe3-16e3383f61c1"


@pytest.fixture
def told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HEADWATER_STATE_DIR", str(tmp_path / "state"))
    return tmp_path / "events.ndjson"


def config(told: Path) -> dict[str, Any]:
    return {"type": "file", "log_file_path": str(told), "append": True}


def body(kind: EventType, moment: float = 1.0e9) -> dict[str, Any]:
    time = datetime.fromtimestamp(moment, timezone.utc)
    return Writer("urn:test").run_event(kind, time, Job("n", "j"), Run(RUN), Lineage())


def types(told: Path) -> list[str]:
    return [json.loads(line)["eventType"] for line in told.read_text().splitlines()]


def test_a_journal_that_is_done_leaves_nothing(told: Path) -> None:
    own = Journal(config(told))
    key = own.begin(RUN, body(EventType.START))
    own.emit(key, RUN, body(EventType.RUNNING))
    own.end(key, RUN, body(EventType.COMPLETE))
    assert own.close(10)
    assert types(told) == ["START", "RUNNING", "COMPLETE"]
    assert not list(own.folder.glob("*.db*"))


def test_an_open_run_is_not_forgotten(told: Path) -> None:
    own = Journal(config(told))
    own.begin(RUN, body(EventType.START))
    assert not own.close(10)
    assert settle(own.path, config(told), 10, "killed")
    assert types(told) == ["START", "ABORT"]
    last = json.loads(told.read_text().splitlines()[-1])
    assert last["run"]["facets"]["headwater_end"]["reason"] == "killed"
    assert not own.path.exists()


def test_refused_events_outlive_the_outbox_of_their_process(
    told: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Journal(config(told))
    (to,) = own.destinations

    def refuse(_: bytes) -> None:
        raise RefusedError("HTTP 422: no")

    send, to.send = to.send, refuse
    key = own.begin(RUN, body(EventType.START))
    assert own.flush(10)
    to.send = send
    own.end(key, RUN, body(EventType.COMPLETE))
    assert own.close(10)
    kept = own.folder / "refused.db"
    assert list(own.folder.glob("*.db")) == [kept]
    outbox = Outbox(str(kept))
    (one,) = outbox.refused()
    assert (one.run, one.reason) == (RUN, "HTTP 422: no")
    outbox.retry(one.seq)
    outbox.forget_connection()
    assert settle(kept, config(told), 10, "inferred")
    assert sorted(types(told)) == ["COMPLETE", "START"]
    assert kept.exists()


def test_a_process_that_lives_is_left_alone(told: Path) -> None:
    own = Journal(config(told))
    own.begin(RUN, body(EventType.START))
    probe = (
        "import sys; from pathlib import Path; from headwater.emit.journal import settle;"
        f" print(settle(Path({str(own.path)!r}), {config(told)!r}, 5, 'inferred'))"
    )
    ended = subprocess.run(
        [sys.executable, "-c", probe], capture_output=True, text=True, check=True
    )
    assert ended.stdout.strip() == "False"
    assert own.path.exists()
    own.close(5)


def test_an_end_is_never_before_what_was_said_last() -> None:
    late = body(EventType.RUNNING, 2.0e9)
    assert journal.abort(late, 1.0e9, "inferred")["eventTime"] == stamp(
        datetime.fromtimestamp(2.0e9, timezone.utc)
    )


def test_a_dismissed_watchdog_says_nothing(told: Path) -> None:
    own = Journal(config(told))
    key = own.begin(RUN, body(EventType.START))
    watchdog = Watchdog(own)
    own.end(key, RUN, body(EventType.COMPLETE))
    watchdog.dismiss(own.close(10))
    assert types(told) == ["START", "COMPLETE"]


def test_a_watchdog_survives_signals_to_its_process_group(told: Path) -> None:
    program = (
        "import os, signal, time\n"
        "from headwater.emit import journals\n"
        f"own = journals.journal({config(told)!r})\n"
        f"own.begin({RUN!r}, {body(EventType.START)!r})\n"
        "own.flush(10)\n"
        "os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", program], start_new_session=True)
    # It stops once START has left its outbox: killed before, the watchdog would send START again.
    os.waitid(os.P_PID, process.pid, os.WSTOPPED)
    assert types(told) == ["START"]
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    wait_until(lambda: types(told) == ["START", "ABORT"], seconds=120, what="ABORT")


def test_a_watchdog_that_is_gone_keeps_no_other_journal_from_its_end(
    told: Path, tmp_path: Path
) -> None:
    other = tmp_path / "other.ndjson"
    program = (
        "import os, signal\n"
        "from headwater.emit import journals\n"
        f"for told in ({config(told)!r}, {config(other)!r}):\n"
        "    own = journals.journal(told)\n"
        f"    key = own.begin({RUN!r}, {body(EventType.START)!r})\n"
        f"    own.end(key, {RUN!r}, {body(EventType.COMPLETE)!r})\n"
        "first = next(iter(journals._open.values()))[1]\n"
        "os.kill(first.pid, signal.SIGKILL)\n"
        "first._child.wait(10)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, timeout=60)
    # Its own process has said everything, not a watchdog after it.
    assert types(told) == types(other) == ["START", "COMPLETE"]
    assert not list((tmp_path / "state").rglob("*.db"))
