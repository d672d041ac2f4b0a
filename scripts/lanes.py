"""Run a set of tests in lanes, several at once: most tests wait, and two cores wait together.

`python -m scripts.lanes unit`, `test` or `test-full`, then options for pytest. Each lane is a pytest of
its own with services of its own, so neither lane sees the other's. Tests that hold the page to a
time run after all lanes have ended: beside a starting broker they would measure the broker.

Each line is printed with the name of its lane; the last lines are the failed tests, the closing line
of every pytest and the time that all of it took. Options that name a test file or folder select so little
that lanes do not pay: one pytest runs them.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

INTEGRATION = "tests/integration"
SPARK = f"{INTEGRATION}/spark"
UNIT = "tests/unit"
EMIT, CONNECT, PIPELINES = f"{UNIT}/emit", f"{UNIT}/connect", f"{UNIT}/pipelines"
SERVER, SECURITY = f"{INTEGRATION}/server", "tests/security"
QUICK = "not full and not soak and not timed"
FULL = "full and not soak and not timed"
Run = list[str]


def without(*paths: str) -> Run:
    return [f"--ignore={path}" for path in paths]


# Balanced by the time each takes on two idle cores. The last lane leaves out what the others name, so
# that a new folder is in a lane without being named here.
LANES: dict[str, dict[str, list[Run]]] = {
    "unit": {
        "emit": [["-m", QUICK, EMIT]],
        "connect": [["-m", QUICK, CONNECT]],
        "pipelines": [["-m", QUICK, PIPELINES]],
        "others": [["-m", QUICK, UNIT, *without(EMIT, CONNECT, PIPELINES)]],
    },
    "test": {
        "spark": [["-m", QUICK, SPARK]],
        "server": [["-m", QUICK, SERVER]],
        "unit": [["-m", QUICK, SECURITY, UNIT]],
        "others": [["-m", QUICK, *without(SPARK, SERVER, SECURITY, UNIT)]],
    },
    "test-full": {
        "quick+spark": [["-m", QUICK], ["-m", FULL, SPARK]],
        "long": [["-m", FULL, *without(SPARK)]],
    },
}
ALONE: dict[str, Run] = {
    "test": ["-m", "timed and not full and not soak"],
    "test-full": ["-m", "timed and not soak"],
}
CLOSING = re.compile(r"\d+ (?:passed|failed|errors?|deselected)\b.* in \d")
FAILED = re.compile(r"(?:FAILED|ERROR) \S+::")
NOTHING_COLLECTED = 5  # pytest's code when a selection leaves a lane without tests: no failure


class Lane(threading.Thread):
    """One lane: its pytest runs, one after the other."""

    interrupted = threading.Event()

    def __init__(self, kind: str, name: str, runs: list[Run], options: list[str]) -> None:
        super().__init__(name=name)
        self.kind = kind.removeprefix("test-")
        self.runs = runs
        self.options = options
        self.codes: list[int] = []
        self.failed: list[str] = []
        self.closing: list[str] = []

    def run(self) -> None:
        for run in self.runs:
            if self.interrupted.is_set():
                return
            last = "ended without a closing line"
            with subprocess.Popen(
                [sys.executable, "-m", "pytest", *run, *self.options],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
                env={**os.environ, "HEADWATER_TESTS": self.kind},
            ) as process:
                for line in process.stdout or ():
                    last = line.strip() if CLOSING.search(line) else last
                    if FAILED.match(line):
                        self.failed.append(f"{self.name:>11} | {line.strip()}")
                    print(f"{self.name:>11} | {line}", end="", flush=True)
            self.codes.append(process.returncode)
            self.closing.append(f"{self.name:>11} | {last}")


def in_lanes(kind: str, options: list[str]) -> int:
    began = time.monotonic()
    lanes = [Lane(kind, name, runs, options) for name, runs in LANES[kind].items()]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    if kind in ALONE:
        lanes.append(Lane(kind, "alone", [ALONE[kind]], options))
        lanes[-1].start()
        lanes[-1].join()
    for lane in lanes:  # once more: the lanes' outputs are mixed above
        print(*lane.failed, *lane.closing, sep="\n")
    codes = {code for lane in lanes for code in lane.codes}
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    failed = bool(codes - {0, NOTHING_COLLECTED}) or codes == {NOTHING_COLLECTED}
    print(f"{'failed' if failed else 'all passed'} in {minutes} min {seconds} s")
    return 1 if failed else 0


def main(kind: str, *options: str) -> int:
    if any(Path(option.partition("::")[0]).exists() for option in options):
        everything = " and ".join(["not soak", *([] if kind == "test-full" else ["not full"])])
        command = [sys.executable, "-m", "pytest", "-m", everything, *options]
        return subprocess.run(command, check=False).returncode
    try:
        return in_lanes(kind, list(options))
    except KeyboardInterrupt:  # every pytest got it too, and stops its services before it ends
        Lane.interrupted.set()
        for thread in threading.enumerate():
            if isinstance(thread, Lane):
                thread.join()
        return 130


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
