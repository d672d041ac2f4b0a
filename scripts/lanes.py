"""Run every test in two lanes at once: most of them wait, and two cores wait together.

Each lane starts services of its own, so neither sees the other's. What a lane prints is shown
with its name before it; the last lines tell how each of them ended, and how long the whole took.
"""

from __future__ import annotations

import re
import subprocess
import sys
import threading
import time

SPARK = "tests/integration/spark"
# Balanced by their time on two cores: Spark's matrices take as long as all other long tests.
LANES = {
    "quick+spark": [["-m", "not full"], ["-m", "full", SPARK]],
    "long": [["-m", "full", f"--ignore={SPARK}"]],
}
VERDICT = re.compile(r"\d+ (?:passed|failed|errors?|deselected)\b.* in \d")
NOTHING_COLLECTED = 5  # pytest's code when a selection leaves a lane without tests: no failure


class Lane(threading.Thread):
    """One lane: its pytest runs, one after the other."""

    def __init__(self, name: str, runs: list[list[str]], options: list[str]) -> None:
        super().__init__(name=name)
        self.runs = runs
        self.options = options
        self.code = 0
        self.ends: list[str] = []

    def run(self) -> None:
        for run in self.runs:
            last = ""
            with subprocess.Popen(
                [sys.executable, "-m", "pytest", *run, *self.options],
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
                errors="replace",
            ) as process:
                for line in process.stdout or ():
                    last = line.strip() if VERDICT.search(line) else last
                    print(f"{self.name:>11} | {line}", end="", flush=True)
            if process.returncode not in (0, NOTHING_COLLECTED):
                self.code = process.returncode
            self.ends.append(f"{self.name:>11} | {' '.join(run)}: {last}")


def main(options: list[str]) -> int:
    began = time.monotonic()
    lanes = [Lane(name, runs, options) for name, runs in LANES.items()]
    for lane in lanes:
        lane.start()
    for lane in lanes:
        lane.join()
    print("\n".join(end for lane in lanes for end in lane.ends))
    minutes, seconds = divmod(round(time.monotonic() - began), 60)
    failed = any(lane.code for lane in lanes)
    print(f"{'failed' if failed else 'all passed'} in {minutes} min {seconds} s")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
