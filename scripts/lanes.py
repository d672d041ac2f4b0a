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
from itertools import chain
from pathlib import Path

TESTS = Path("tests")
INTEGRATION = "tests/integration"
UNIT = "tests/unit"
# Three lanes of about the same CPU: one more pytest takes a second or two to start and to import.
STARTED = [f"{UNIT}/{name}" for name in ("cli", "emit", "lab", "scripts")]
LARGE = [f"{UNIT}/{name}" for name in ("connect", "lake")]
SPARK = f"{INTEGRATION}/spark"
# The few quick tests of these share Spark's lane, its JVM and its lab; all of them are a lane of their own.
MORE_SPARK = [f"{INTEGRATION}/lake", f"{INTEGRATION}/pipelines"]
# All that needs a Connect cluster, or the registry: one lane starts them.
AGENT = [
    f"{INTEGRATION}/connect",
    f"{INTEGRATION}/lab/test_stack.py",
    f"{INTEGRATION}/lab/test_faults.py",
    f"{INTEGRATION}/server/test_impact_command.py",
]
SERVER = [f"{INTEGRATION}/server"]
# One lane starts a broker for what needs neither Spark nor Connect.
BROKER = [
    *(f"{INTEGRATION}/server/test_{name}.py" for name in ("forward", "kafka")),
    "tests/security/test_kafka.py",
]
# Most tests of the server wait: every second file runs in a second lane.
SERVER_FILES = sorted(
    str(path) for path in Path(*SERVER).glob("test_*.py") if str(path) not in (*AGENT, *BROKER)
)
SECURITY = "tests/security"
DEMO = [f"{INTEGRATION}/demo", f"{INTEGRATION}/stories"]
PAGE = "tests/browser"
QUICK = "not full and not soak and not timed"
FULL = "not soak and not timed"
Run = list[str]


def without(*paths: str) -> Run:
    return [f"--ignore={path}" for path in paths]


def besides(*named: str) -> Run:
    """Every folder with tests that is not named: a new one is in a lane without being named here."""
    folders = {path.parent for path in TESTS.rglob("test_*.py")}
    return sorted(
        str(path)
        for path in folders
        if not any(Path(one) in (path, *path.parents) for one in named)
    )


def everything(mark: str, *spark: str, **more: Run) -> dict[str, Run]:
    """All tests of a mark, what takes the most CPU apart and what needs the same services together.

    What is in more gets lanes of those names, with the folders given.
    """
    apart = [*spark, *chain.from_iterable(more.values())]
    return {
        "connect": ["-m", mark, *AGENT],
        "spark": ["-m", mark, *spark],
        "others": [
            "-m",
            mark,
            *BROKER,
            *besides(*apart, f"{INTEGRATION}/connect", *SERVER, SECURITY, UNIT, *DEMO, PAGE),
            *without(*AGENT),
        ],
        **{name: ["-m", mark, *folders] for name, folders in more.items()},
        "security": ["-m", mark, SECURITY, *without(*BROKER)],
        "demo": ["-m", mark, *DEMO],
        "server": ["-m", mark, *SERVER_FILES[::2]],
        "server-2": ["-m", mark, *SERVER_FILES[1::2]],
        "unit": ["-m", mark, UNIT],
        "page": ["-m", mark, PAGE],
    }


def alone(mark: str) -> Run:
    """The tests that run when all lanes have ended; other files are not even collected."""
    timed = [str(path) for path in TESTS.rglob("test_*.py") if "mark.timed" in path.read_text()]
    return ["-m", mark, *sorted(timed)]


LANES: dict[str, dict[str, Run]] = {
    "unit": {
        "processes": ["-m", QUICK, *STARTED],
        "connect": ["-m", QUICK, *LARGE],
        "others": ["-m", QUICK, UNIT, *without(*STARTED, *LARGE)],
    },
    "test": everything(QUICK, SPARK, *MORE_SPARK),
    "test-full": everything(FULL, SPARK, lake=MORE_SPARK),
}
# A test that hangs must not hold up the others. Six lanes on two cores slow one another down, and
# matrices and fault loops more than the rest; a test's own mark still wins.
HANGS = {"test-full": ["--timeout=900"]}
# Stacks that wait for one another take CPU meanwhile, and what is held to a time fails beside too many:
# there are few at once, the longest lanes first, so that the last ones end together.
AT_ONCE = {"test": 6, "test-full": 4}
ORDER = {
    "test": (
        "demo",
        "unit",
        "spark",
        "connect",
        "server-2",
        "security",
        "server",
        "page",
        "others",
    ),
    "test-full": (
        "spark",
        "demo",
        "security",
        "lake",
        "connect",
        "others",
        "server-2",
        "server",
        "unit",
    ),
}
# The demo's streams take CPU for as long as it lasts, beside all other lanes three times as long: the
# others wait for it, but for one that waits little.
FIRST = {"test": ("demo", "unit")}
ALONE = {"test": "timed and not full and not soak", "test-full": "timed and not soak"}
CLOSING = re.compile(r"\d+ (?:passed|failed|errors?|deselected)\b.* in \d")
FAILED = re.compile(r"(?:FAILED|ERROR) \S+::")
# Run before the lanes of these names: their drivers then start with half the CPU.
PREPARATION = dict.fromkeys(("demo", "spark"), "headwater.lab.files.class_archive")
NOTHING_COLLECTED = 5  # pytest's code when a selection leaves a lane without tests: no failure


class Lane(threading.Thread):
    """One lane: a pytest and its output."""

    def __init__(
        self, kind: str, name: str, run: Run, options: list[str], free: threading.Semaphore
    ) -> None:
        super().__init__(name=name)
        self.free = free
        self.kind = kind.removeprefix("test-")
        self.words = [*run, *options]
        self.code = 0
        self.failed: list[str] = []
        self.closing = f"{name:>11} | ended without a closing line"

    def run(self) -> None:
        try:
            self._run()
        finally:
            self.free.release()

    def _run(self) -> None:
        if module := PREPARATION.get(self.name):
            subprocess.run([sys.executable, "-m", module], check=False)
        with subprocess.Popen(
            [sys.executable, "-m", "pytest", *self.words],
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "HEADWATER_TESTS": self.kind},
        ) as process:
            for line in process.stdout or ():
                if CLOSING.search(line):
                    self.closing = f"{self.name:>11} | {line.strip()}"
                if FAILED.match(line):
                    self.failed.append(f"{self.name:>11} | {line.strip()}")
                print(f"{self.name:>11} | {line}", end="", flush=True)
            # Not process.wait(): this tells the CPU of the pytest and of all that it started and ended.
            _, status, used = os.wait4(process.pid, 0)
            self.code = process.returncode = os.waitstatus_to_exitcode(status)
        self.closing += f", {used.ru_utime + used.ru_stime:.0f} s of CPU"


def in_lanes(kind: str, options: list[str]) -> int:
    began = time.monotonic()
    options = [*HANGS.get(kind, []), *options]
    free = threading.Semaphore(AT_ONCE.get(kind, len(LANES[kind])))
    lanes = [Lane(kind, name, run, options, free) for name, run in LANES[kind].items()]
    order = {name: place for place, name in enumerate(ORDER.get(kind, ()))}
    lanes.sort(key=lambda lane: order.get(lane.name, len(order)))
    first = [lane for lane in lanes if lane.name in FIRST.get(kind, ())]
    for lane in lanes:
        if first and lane not in first:
            first[0].join()
        free.acquire()
        lane.start()
    for lane in lanes:
        lane.join()
    if kind in ALONE:
        lanes.append(Lane(kind, "alone", alone(ALONE[kind]), options, free))
        lanes[-1].start()
        lanes[-1].join()
    for lane in lanes:  # once more: the lanes' outputs are mixed above
        print(*lane.failed, lane.closing, sep="\n")
    codes = {lane.code for lane in lanes}
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    failed = bool(codes - {0, NOTHING_COLLECTED}) or codes == {NOTHING_COLLECTED}
    print(f"{'failed' if failed else 'all passed'} in {minutes} min {seconds} s")
    return 1 if failed else 0


def main(kind: str, *options: str) -> int:
    if any(Path(option.partition("::")[0]).exists() for option in options):
        mark = " and ".join(["not soak", *([] if kind == "test-full" else ["not full"])])
        command = [sys.executable, "-m", "pytest", "-m", mark, *options]
        return subprocess.run(command, check=False).returncode
    try:
        return in_lanes(kind, list(options))
    except KeyboardInterrupt:  # every pytest got it too, and stops its services before it ends
        for thread in threading.enumerate():
            if isinstance(thread, Lane):
                thread.join()
        return 130


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
