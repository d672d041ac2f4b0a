"""Programs that fork while they report lineage."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from headwater.lab.waiting import wait_until
from tests.properties import FULL

# Threads keep opening an outbox, as that of the sender does once, so that there is hardly a moment
# without a thread inside SQLite.
BUSY = """
import os, signal, sys, threading
import headwater
from headwater.emit import Outbox

def busy(path):
    while True:
        outbox = Outbox(path)
        outbox.note("topic", b"")
        outbox.forget_connection()

FORKS = int(sys.argv[1])
with headwater.run("parent"):
    for number in range(3):
        path = os.path.join(os.environ["HEADWATER_STATE_DIR"], f"busy{number}.db")
        threading.Thread(target=busy, args=(path,), daemon=True).start()
    for number in range(FORKS):
        child = os.fork()
        if not child:
            # A child that waits for ever is killed by this, whatever it waits in.
            signal.signal(signal.SIGALRM, signal.SIG_DFL)
            signal.alarm(30)
            with headwater.run(f"child {number}"):
                pass
            os._exit(0 if headwater.emit.journals.flush(20) else 1)
        ended = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert ended == 0, f"child {number} of {FORKS} ended with {ended}"
    os._exit(0)
"""

# The child leaves the block of its parent's run, by an exit that would make it FAIL.
LEAVES = """
import os, sys
import headwater

with headwater.run("parent") as run:
    child = os.fork()
    if not child:
        run.outputs("s3://of/the/child")
        sys.exit(3)
    os.waitpid(child, 0)
"""

# The child lives for as long as its standard input is open, the parent is killed.
OUTLIVES = """
import os, signal, sys
import headwater

with headwater.run("parent"):
    headwater.emit.journals.flush(20)
    if not os.fork():
        sys.stdin.read()
        os._exit(0)
    os.kill(os.getpid(), signal.SIGKILL)
"""

CLOSES = """
import os, sys
from headwater.emit import journals

def emitted(own):
    key = own.begin(RUN, {"eventType": "START"})
    own.end(key, RUN, {"eventType": "COMPLETE"})

RUN = "01a1e232-46c5-7db0-bbe3-16e3383f61c1"
own = journals.journal()
child = os.fork()
emitted(journals.journal())
if not child:
    sys.exit(0)
os.waitpid(child, 0)
left = [path.name for path in own.folder.glob("*.db")]
assert left == [own.path.name], left
"""

# What threads import after the journal is there, while they try to send an event.
IMPORTS = """
import json, sys, threading, time

names = []

def hook(event, details):
    if event == "import" and threading.current_thread() is not threading.main_thread():
        names.append((threading.current_thread().name, details[0]))

sys.addaudithook(hook)
from headwater.emit import journals
from headwater.emit.flow import DatasetRef, FlowReporter, FlowSample

own = journals.journal()
reporter = FlowReporter(own.destinations)
alive = {thread.name for thread in threading.enumerate()}
own.begin("01a1e232-46c5-7db0-bbe3-16e3383f61c1", {"eventType": "START", "job": {}})
sample = FlowSample("run", DatasetRef("n", "d"), "input", "2026-01-01T00:00:00Z")
flow = threading.Thread(target=reporter.post, args=([sample],), name="flow")
flow.start()
flow.join()
deadline = time.monotonic() + 60
while not own.flush(0) and not own._sender.problems and time.monotonic() < deadline:
    time.sleep(0.01)
print(json.dumps([name for thread, name in names if thread in alive | {"flow"}]))
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENLINEAGE")}
    return clean | {
        "OPENLINEAGE__TRANSPORT__TYPE": "file",
        "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(tmp_path / "events.ndjson"),
        "OPENLINEAGE__TRANSPORT__APPEND": "true",
        "HEADWATER_STATE_DIR": str(tmp_path / "state"),
    }


def run(program: str, environment: dict[str, str], *words: str) -> str:
    ended = subprocess.run(
        [sys.executable, "-c", program, *words],
        env=environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def told(environment: dict[str, str]) -> list[dict[str, Any]]:
    path = Path(environment["OPENLINEAGE__TRANSPORT__LOG_FILE_PATH"])
    return [json.loads(line) for line in path.read_text().splitlines()]


def test_a_child_forked_at_any_moment_can_report(environment: dict[str, str]) -> None:
    forks = 40 if FULL else 6
    run(BUSY, environment | {"HEADWATER_WATCHDOG": "off"}, str(forks))
    events = [event for event in told(environment) if "child" in event["job"]["name"]]
    assert Counter(event["eventType"] for event in events) == {"START": forks, "COMPLETE": forks}


def test_a_forked_child_closes_what_it_has_opened_itself(
    environment: dict[str, str], tmp_path: Path
) -> None:
    run(CLOSES, environment | {"HEADWATER_WATCHDOG": "off"})
    types = sorted(event["eventType"] for event in told(environment))
    assert types == ["COMPLETE", "COMPLETE", "START", "START"]
    assert not list((tmp_path / "state").rglob("*.db"))


def test_the_run_of_a_parent_is_not_ended_by_a_forked_child(environment: dict[str, str]) -> None:
    run(LEAVES, environment)
    events = told(environment)
    assert [event["eventType"] for event in events] == ["START", "COMPLETE"]
    assert not events[-1].get("outputs")


def test_a_child_that_lives_on_does_not_hide_that_its_parent_was_killed(
    environment: dict[str, str],
) -> None:
    program = subprocess.Popen(
        [sys.executable, "-c", OUTLIVES], env=environment, stdin=subprocess.PIPE
    )
    try:
        program.wait(60)
        wait_until(
            lambda: [event["eventType"] for event in told(environment)] == ["START", "ABORT"],
            seconds=120,
            what="ABORT while the child lives",
        )
    finally:
        assert program.stdin is not None
        program.stdin.close()


@pytest.mark.parametrize(
    "kind", ["async_http", *(pytest.param(k, marks=pytest.mark.full) for k in ("http", "file"))]
)
def test_threads_import_nothing(kind: str, environment: dict[str, str]) -> None:
    # A child that is forked while another thread imports a module can never import it.
    given = {"OPENLINEAGE__TRANSPORT__TYPE": kind, "OPENLINEAGE__TRANSPORT__URL": "http://[::1]:9"}
    found = run(IMPORTS, environment | {"HEADWATER_WATCHDOG": "off"} | given)
    assert json.loads(found) == []
