"""How quickly the lab starts and stops, and what memory it takes: `python bench/lab.py [--json]`.

It runs in a temporary home, on the loopback address alone. What is not in the download cache yet is
fetched before the clock starts.
"""

from __future__ import annotations

import argparse
import signal
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
from rich.console import Console
from rich.table import Table

from headwater.lab import process
from headwater.lab.files import fetch
from headwater.lab.files.artifacts import lock
from headwater.lab.lab import Lab
from headwater.lab.services import select

if TYPE_CHECKING:
    from collections.abc import Callable

START_SECONDS = 60.0
STOP_SECONDS = 15.0
MEMORY_MB = 1536.0


class Measured(msgspec.Struct):
    """One figure beside its target; a ratio of 1 or less meets it."""

    what: str
    value: float
    unit: str
    target: float
    ratio: float


def measured(what: str, value: float, unit: str, target: float) -> Measured:
    return Measured(what, round(value, 2), unit, target, round(value / target, 3))


def seconds(action: Callable[[], object]) -> float:
    began = time.monotonic()
    action()
    return time.monotonic() - began


def run(lab: Lab) -> list[Measured]:
    fetch.ensure(lab.context.cache, lock().select(select([])))
    cold = seconds(lab.up)
    memory = sum(row.memory or 0 for row in lab.status()) / (1 << 20)
    stop = seconds(lab.down)
    warm = seconds(lab.up)
    for leader in process.find(lab.home.root).values():
        leader.send_signal(signal.SIGKILL)
    again = seconds(lab.up)
    return [
        measured("start in a new home", cold, "s", START_SECONDS),
        measured("start again after a stop", warm, "s", START_SECONDS),
        measured("start again after kill -9 of all", again, "s", START_SECONDS),
        measured("stop", stop, "s", STOP_SECONDS),
        measured("memory of all services", memory, "MB", MEMORY_MB),
    ]


def table(figures: list[Measured]) -> Table:
    made = Table(title="headwater lab", title_justify="left")
    made.add_column("")
    for name in ("measured", "target", "ratio"):
        made.add_column(name, justify="right")
    for each in figures:
        made.add_row(
            each.what,
            f"{each.value:,.1f} {each.unit}",
            f"≤ {each.target:,.0f} {each.unit}",
            f"[{'green' if each.ratio <= 1 else 'red'}]{each.ratio:.2f}[/]",
        )
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="print JSON instead of a table")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory(prefix="headwater-bench-") as folder:
        lab = Lab(Path(folder, "lab"))
        try:
            figures = run(lab)
        finally:
            lab.reset()
    if as_json:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(figures)).decode() + "\n")
    else:
        Console().print(table(figures))
    sys.exit(any(each.ratio > 1 for each in figures))


if __name__ == "__main__":
    main()
