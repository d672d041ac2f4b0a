"""Lineage by hand, in processes of its own, ended in every way."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pwd import getpwuid
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lab.waiting import wait_until

if TYPE_CHECKING:
    from pathlib import Path

PROGRAM = """
import os, pathlib, signal, sys, time
import headwater
from headwater.emit import Outbox

how = sys.argv[1]


def reported():
    # In the file and noted as sent, or kept for a file whose folder is not there yet.
    file = pathlib.Path(os.environ["OPENLINEAGE__TRANSPORT__LOG_FILE_PATH"])
    found = pathlib.Path(os.environ["HEADWATER_STATE_DIR"], "outbox").rglob("*.db")
    left = sum(count for path in found for count in Outbox(str(path)).waiting().values())
    if not file.parent.exists():
        return left >= 2
    return left == 0 and file.exists() and '"RUNNING"' in file.read_text()


with headwater.run("iceberg-ingestion", namespace="lab") as run:
    run.inputs("s3a://raw/orders/", schema={"price": "double"})
    run.outputs(("s3://warehouse", "orders"))
    run.columns("s3://warehouse/orders", {
        "total": [("s3://raw/orders", "price", "AGGREGATION"), ("s3://raw/orders", "at", "FILTER")],
    })
    if how in ("SIGTERM", "SIGINT", "SIGKILL"):
        while not reported():
            time.sleep(0.05)
        os.kill(os.getpid(), getattr(signal, how))
        time.sleep(10)
    if how == "raise":
        raise ValueError("secret=hunter2 no such file")
    if how == "exit":
        sys.exit(3)
    if how == "inner":
        with headwater.run("part", namespace="lab"):
            pass
"""
ENDS = {
    "end": ("COMPLETE", 0),
    "raise": ("FAIL", 1),
    "exit": ("FAIL", 3),
    "SIGTERM": ("ABORT", -15),
    "SIGINT": ("ABORT", None),
    "SIGKILL": ("ABORT", -9),
}


class Programs:
    """Runs the program and reads what it told."""

    def __init__(self, work: Path) -> None:
        self.work = work
        self.file = work / "events.ndjson"
        (work / "program.py").write_text(PROGRAM)

    def run(self, how: str, **environment: str) -> tuple[list[dict[str, Any]], int]:
        clean = {k: v for k, v in os.environ.items() if not k.startswith("OPENLINEAGE")}
        given = {
            "OPENLINEAGE__TRANSPORT__TYPE": "file",
            "OPENLINEAGE__TRANSPORT__LOG_FILE_PATH": str(self.file),
            "OPENLINEAGE__TRANSPORT__APPEND": "true",
            "HEADWATER_STATE_DIR": str(self.work / "state"),
        }
        argv = [sys.executable, str(self.work / "program.py"), how]
        ended = subprocess.run(
            argv, env=clean | given | environment, capture_output=True, timeout=60, check=False
        )
        return self.events(), ended.returncode

    def settled(self) -> list[dict[str, Any]]:
        outbox = self.work / "state" / "outbox"
        wait_until(lambda: not list(outbox.rglob("*.db")), seconds=120, what="an empty outbox")
        return self.events()

    def events(self) -> list[dict[str, Any]]:
        if not self.file.exists():
            return []
        return [json.loads(line) for line in self.file.read_text().splitlines()]


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    return Programs(tmp_path)


# A process each: one of each kind of end in the quick run. `test_process_exit.py` has all of them in short.
@pytest.mark.parametrize(
    "how",
    [
        pytest.param(how, marks=() if how in ("end", "SIGKILL") else pytest.mark.full)
        for how in ENDS
    ],
)
def test_one_life(programs: Programs, how: str) -> None:
    _, code = programs.run(how)
    told = programs.settled()
    expected, wanted = ENDS[how]
    assert wanted is None or code == wanted
    types = [event["eventType"] for event in told]
    assert types[0] == "START"
    assert types[-1] == expected
    assert set(types[1:-1]) <= {"RUNNING"}
    if how == "SIGKILL":  # lineage is reported while the run lives, not with its end
        assert types == ["START", "RUNNING", "ABORT"]
    assert len({event["run"]["runId"] for event in told}) == 1
    last = told[-1]
    assert [(d["namespace"], d["name"]) for d in last["inputs"]] == [("s3://raw", "orders")]
    sources = last["outputs"][0]["facets"]["columnLineage"]["fields"]["total"]["inputFields"]
    kinds = [(s["field"], s["transformations"][0]["type"]) for s in sources]
    assert kinds == [("price", "DIRECT"), ("at", "INDIRECT")]
    by = last["run"]["facets"]["headwater_end"].get("by")
    assert by == (getpwuid(os.getuid()).pw_name if how in ("SIGTERM", "SIGINT") else None)
    if expected == "FAIL":
        assert "hunter2" not in json.dumps(last)


def test_a_run_inside_a_run_has_it_as_parent(programs: Programs) -> None:
    parent = "01a1e232-46c5-7db0-bbe3-16e3383f61c1"
    told, _ = programs.run("inner", OPENLINEAGE_PARENT_ID=f"airflow/dag.task/{parent}")
    outer = next(e for e in told if e["job"]["name"] == "iceberg-ingestion")
    inner = next(e for e in told if e["job"]["name"] == "part")
    assert outer["run"]["facets"]["parent"]["run"]["runId"] == parent
    assert inner["run"]["facets"]["parent"]["run"]["runId"] == outer["run"]["runId"]
    assert inner["run"]["facets"]["parent"]["root"]["run"]["runId"] == parent


def test_what_a_process_left_is_sent_by_the_next(programs: Programs) -> None:
    programs.file = programs.work / "mounted later" / "events.ndjson"
    programs.run("SIGKILL", HEADWATER_WATCHDOG="off")
    assert programs.events() == []
    programs.file.parent.mkdir()
    programs.run("end")
    told = programs.settled()
    ends = [e for e in told if e["eventType"] in ("ABORT", "COMPLETE")]
    assert {e["eventType"] for e in ends} == {"ABORT", "COMPLETE"}
    left = next(e for e in ends if e["eventType"] == "ABORT")
    assert left["run"]["facets"]["headwater_end"]["inferred"] is True


def test_a_server_that_is_away_costs_the_program_little(programs: Programs) -> None:
    began = time.monotonic()
    away = {
        "OPENLINEAGE__TRANSPORT__TYPE": "http",
        "OPENLINEAGE__TRANSPORT__URL": "http://127.0.0.1:9",
    }
    _, code = programs.run("end", **away)
    assert code == 0
    assert time.monotonic() - began < 30
