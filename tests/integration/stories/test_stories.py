"""Every story on one running demo, and the demo's own end by Ctrl-C."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

import pytest

from headwater.lab import process
from headwater.lab.demo.connectors import CONNECTORS
from headwater.lab.demo.lineage_client import LineageClient
from headwater.lab.demo.run import STREAMS
from headwater.lab.demo.verdict import CENTRE, DEPTH, JOBS, Judge
from headwater.lab.lab import Lab
from headwater.lab.stories import STORIES

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

pytestmark = [pytest.mark.full, pytest.mark.timeout(820)]

HEADWATER = [sys.executable, "-m", "headwater"]
START_SECONDS = 600.0
# The first one again at the end: what the others did must not have spoilt it.
ORDER = ["late", "poison", "schema-change", "cancel", "misaligned", "history", "outage", "poison"]


class Running:
    """`headwater demo` in a terminal of its own."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lab = Lab(folder / "lab")
        self._log = (folder / "demo.log").open("wb")
        self.process = subprocess.Popen(
            [*HEADWATER, "demo", "--home", str(self.lab.home.root), "--no-open"],
            cwd=folder,
            env={**os.environ, "CI": "true"},
            stdout=self._log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )

    def said(self) -> str:
        return (self.folder / "demo.log").read_text(errors="replace")

    def wait(self) -> None:
        deadline = time.monotonic() + START_SECONDS
        while "Orders go on until Ctrl-C" not in self.said():
            assert self.process.poll() is None, self.said()[-3000:]
            assert time.monotonic() < deadline, self.said()[-3000:]
            time.sleep(0.5)

    def story(self, *words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [*HEADWATER, "lab", "story", *words, "--home", str(self.lab.home.root)],
            env={**os.environ, "CI": "true"},
            capture_output=True,
            text=True,
            timeout=800,
            check=False,
        )


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """The demo, once everything was seen."""
    made = Running(tmp_path_factory.mktemp("stories"))
    try:
        made.wait()
        yield made
    finally:
        if made.process.poll() is None:
            made.process.send_signal(signal.SIGINT)
            made.process.wait(120)
        made.lab.reset()


def test_the_page_opens_on_all_jobs_with_records_moving(demo: Running) -> None:
    judge = Judge(demo.lab.context)
    assert judge.page() in demo.said()
    shown = judge.lineage.get("/api/v2/map", node=judge.lineage.node(CENTRE), depth=DEPTH)
    jobs = {node["name"] for node in shown["nodes"] if node["kind"] == "job"}
    assert set(JOBS) <= jobs
    assert _connected(shown, judge.lineage.node(CENTRE)) >= {f"job:shop:{name}" for name in JOBS}
    moving = {flow["dataset"]["name"] for flow in judge.lineage.get("/api/v2/flow")["flow"]}
    assert {"orders", "bids", "supplier-stats"} <= moving


@pytest.mark.parametrize(("number", "name"), list(enumerate(ORDER)))
def test_lineage_shows_it_and_all_is_put_back(demo: Running, number: int, name: str) -> None:
    assert set(ORDER) == set(STORIES), number
    words = ["--seconds", "20"] if name == "outage" else []
    done = demo.story(name, "--json", *words)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr
    told = json.loads(done.stdout)
    assert told["ok"]
    assert told["reason"] is None
    assert len(told["checks"]) >= 5
    assert all(check["ok"] for check in told["checks"])
    assert all(look["url"].startswith("http://127.0.0.1:") for look in told["look"])
    assert bool(told["text"]) is (name in ("misaligned", "history"))
    lineage = LineageClient(demo.lab.context)
    states = {job: lineage.latest(job)["state"] for job in (*CONNECTORS, *STREAMS)}
    assert set(states.values()) == {"RUNNING"}, states


def test_ctrl_c_ends_everything_in_order(demo: Running) -> None:
    demo.process.send_signal(signal.SIGINT)
    assert demo.process.wait(120) == 0, demo.said()[-3000:]
    assert process.find(demo.lab.home.root) == {}
    demo.lab.up(["server"])
    lineage = LineageClient(demo.lab.context)
    assert lineage.running() == []
    ends = {job: lineage.latest(job)["state"] for job in (*CONNECTORS, *STREAMS)}
    assert set(ends.values()) == {"ABORTED"}, ends
    overview = lineage.get("/api/v2/overview")
    assert overview["jobs"]["STOPPED"] >= len(ends), overview["jobs"]
    # A batch job that was under way did not get to its end, which is worth a look; so may one of its actions.
    aborted = [job["name"] for job in overview["troubles"]["jobs"] if job["state"] == "ABORTED"]
    assert len(overview["troubles"]["jobs"]) == len(aborted)
    programs = {name.partition(".")[0] for name in aborted}
    assert programs <= {"supplier_stats", "supplier-stats-export"}


def _connected(shown: dict[str, Any], start: str) -> set[str]:
    """What can be reached from a node along the edges, whichever way they go."""
    seen, queue = {start}, [start]
    while queue:
        here = queue.pop()
        for edge in shown["edges"]:
            ends = {edge["origin"], edge["destination"]}
            if here in ends:
                fresh = ends - seen
                seen |= fresh
                queue += fresh
    return seen
