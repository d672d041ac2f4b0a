"""What `headwater demo` shows while it runs: what starts, what flows, what lineage has seen."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Group
from rich.live import Live
from rich.table import Table

from headwater.cli.output import duration, err, is_interactive, state

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.lab.gauge import Gauge
    from headwater.lab.verdict import Item, Verdict

LOOK_SECONDS = 1.0
LINE_SECONDS = 20.0
# A rate is that of the last half minute.
RATE_SECONDS = 30.0
LEAST_RATE = 0.05
NUMBER_WIDTH = 9


class View:
    """Live on a terminal, a line now and then elsewhere. Counting never disturbs the demo."""

    def __init__(self) -> None:
        self.began = time.monotonic()
        self.note = ""
        self._counts: dict[str, list[tuple[float, int]]] = {}
        self._seen: set[str] = set()
        self._over = threading.Event()
        self._live: Live | None = None
        self._thread: threading.Thread | None = None

    def changed(self, what: str, to: str) -> None:
        """Something starts, or is ready."""
        self._print(f"{time.monotonic() - self.began:6.1f} s  {what:<20} {state(to)}")

    def follow(self, gauge: Gauge) -> None:
        """Count what each stage holds from now on."""
        self._thread = threading.Thread(target=self._count, args=(gauge,), daemon=True)
        self._thread.start()
        self._show()

    def seen(self, verdict: Verdict) -> None:
        """Say what lineage shows for the first time."""
        items = (*verdict.jobs, *verdict.edges, *verdict.columns)
        new = [item for item in items if item.seen and item.what not in self._seen]
        self._seen.update(item.what for item in new)
        past = time.monotonic() - self.began
        if new:  # in one go: each time something is said, the counts below are drawn anew
            lines = (
                f"{past:6.1f} s  [green]✓[/] {item.what} {item.state}".rstrip() for item in new
            )
            self._print("\n".join(lines))

    def say(self, text: str) -> None:
        """A line in between."""
        self._print(text)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Leave the terminal to what is printed in between, and no old counts above it."""
        live = self._hide(wipe=True)
        try:
            yield
        finally:
            if live:
                self._show()

    def stop(self) -> None:
        """Show nothing more; what was shown last stays."""
        self._over.set()
        self._hide()

    def totals(self) -> dict[str, int]:
        """The newest count of each stage that answered."""
        return {stage: samples[-1][1] for stage, samples in self._counts.items() if samples}

    def _count(self, gauge: Gauge) -> None:
        said = time.monotonic()
        stages = gauge.stages()
        self._counts = {stage: [] for stage in stages}
        while not self._over.is_set():
            for stage, count in stages.items():
                try:
                    now = (time.monotonic(), count())
                except Exception:  # noqa: BLE001, S112  (a service that is away is the story, not ours)
                    continue
                recent = [s for s in self._counts[stage] if now[0] - s[0] < RATE_SECONDS]
                self._counts[stage] = [*recent, now]
            if not is_interactive() and time.monotonic() - said > LINE_SECONDS:
                said = time.monotonic()
                rows = " · ".join(f"{' '.join(k.split())} {v:,}" for k, v in self.totals().items())
                self._print(f"{said - self.began:6.1f} s  {rows}")
            self._over.wait(LOOK_SECONDS)

    def _show(self) -> None:
        """Each time anew: a live display that is started again wipes what was printed since."""
        if is_interactive():
            self._live = Live(console=err, get_renderable=self._render, refresh_per_second=2)
            self._live.start()

    def _hide(self, *, wipe: bool = False) -> bool:
        live, self._live = self._live, None
        if live:
            live.transient = wipe
            live.stop()
        return live is not None

    def _render(self) -> Group:
        table = Table(box=None, header_style="bold", pad_edge=False)
        table.add_column("rows through each stage")
        for name in ("rows", "a second"):
            table.add_column(name, justify="right", min_width=NUMBER_WIDTH)
        for stage, samples in list(self._counts.items()):
            rows = f"{samples[-1][1]:,}" if samples else "…"
            table.add_row(stage, rows, _rate(samples))
        past = duration(time.monotonic() - self.began)
        return Group("", table, f"[dim]{past}[/]  {self.note}")

    def _print(self, text: str) -> None:
        err.print(text, soft_wrap=not is_interactive())


def _rate(samples: list[tuple[float, int]]) -> str:
    if len(samples) < 2:
        return ""
    (then, before), (now, after) = samples[0], samples[-1]
    if time.monotonic() - now > RATE_SECONDS:  # its service is away
        return ""
    rate = (after - before) / (now - then) if now > then else 0
    return f"{rate:,.1f}" if rate >= LEAST_RATE else ""


def verdict_table(verdict: Verdict) -> Table:
    """Every expected job, edge and column path, and whether it is seen."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("", "seen in the lineage server", "state"):
        table.add_column(name)

    def rows(title: str, items: list[Item]) -> None:
        table.add_row("", f"[bold]{title}[/]", "")
        for item in items:
            table.add_row("[green]✓[/]" if item.seen else "[red]✗[/]", item.what, item.state)

    rows("jobs", verdict.jobs)
    rows("edges", verdict.edges)
    rows("columns", verdict.columns)
    return table
