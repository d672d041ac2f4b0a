"""`headwater demo`: the pipeline on a lab of its own, watched live."""

from __future__ import annotations

import os
import shlex
import signal
import sys
import tempfile
import threading
import time
import webbrowser
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Group
from rich.live import Live
from rich.table import Table

from headwater.cli.lab.options import Catalog, CatalogKind
from headwater.cli.output import (
    AsJson,
    FetchBar,
    duration,
    err,
    escape,
    is_interactive,
    out,
    print_json,
    state,
    table_of,
)
from headwater.errors import HeadwaterError, UsageError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType

    from headwater.lab.demo.row_counts import RowCounter
    from headwater.lab.demo.run import Demo
    from headwater.lab.demo.verdict import Item, Verdict

VERIFY_SECONDS = 300.0
BATCH_EVERY = 60.0
VERDICT = Path("demo-verdict.json")
MAX_RATE = 1000
POLL_SECONDS = 1.0
LINE_SECONDS = 20.0
# A rate is that of the last half minute.
RATE_SECONDS = 30.0
LEAST_RATE = 0.05
NUMBER_WIDTH = 9


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End when everything was seen; exit code 1 if not.")
    ] = False,
    home: Annotated[
        Path | None,
        typer.Option(
            "--home", metavar="FOLDER", help="The demo's folder.", show_default="a temporary one"
        ),
    ] = None,
    catalog: Catalog = CatalogKind.rest,
    secure: Annotated[
        bool,
        typer.Option(
            "--secure", help="With logins for Kafka, Connect, registry and lineage server."
        ),
    ] = False,
    lake: Annotated[
        bool,
        typer.Option(
            "--lake", help="Keep the lineage server's log in the lineage lake, and ask it too."
        ),
    ] = False,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, max=MAX_RATE, help="Orders a second.")
    ] = 5.0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the orders pipeline, from a shop's database through Kafka and PySpark into Iceberg.

    Its lineage is watched live in one graph. Ctrl-C ends it, each run with its right end.
    """
    from headwater.lab.demo.run import Demo
    from headwater.lab.lab import Lab

    if lake and catalog is CatalogKind.hive:
        raise UsageError("--lake and --catalog hive exclude each other")
    signal.signal(signal.SIGTERM, _interrupt)
    view, over = DemoView(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        lab = Lab(home or Path(folder, "lab"))
        shown = Demo(lab, view.changed)
        verified = False
        try:
            with FetchBar() as progress:
                shown.start(progress, hive=catalog is CatalogKind.hive, secure=secure, lake=lake)
            view.follow(shown.counter)
            shown.flow()
            for work in (_order, _summarise):
                threading.Thread(target=work, args=(shown, view, rate, over), daemon=True).start()
            verdict = _verify(shown, view)
            with view.held():
                _print_result(verdict, shown, as_json)
            if not verdict.ok:
                missing = ", ".join(verdict.missing)
                missing = f"nothing more was seen for {VERIFY_SECONDS:.0f} s, not yet: {missing}"
                hint = f"logs are in {lab.home.logs}"
                if once:
                    kept = hint if home else "a busy machine is slow; --home FOLDER keeps the logs"
                    raise HeadwaterError(missing, hint=kept)
                # A busy machine is slow: whoever looks sees the rest come.
                view.notify(f"[yellow]{escape(missing)}[/]; the demo goes on, {escape(hint)}")
            verified = True
            if not once:
                with view.held():
                    _invite(shown, opens=not no_open)
                while True:  # until Ctrl-C, whatever happens to the lab meanwhile
                    time.sleep(1)
        except KeyboardInterrupt:
            if not verified:
                raise
        finally:
            # A second Ctrl-C must not leave half of it running; stopping takes seconds.
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, signal.SIG_IGN)
            over.set()
            view.stop()
            err.print("stopping: streams, connectors, then the lab; up to 45 s")
            shown.stop()
            if home is None:
                lab.reset()
            kept = (
                "its data is deleted"
                if home is None
                else f"its data is kept in {escape(str(home))}"
            )
            err.print(f"stopped; {kept}", soft_wrap=True)


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _order(shown: Demo, _view: DemoView, rate: float, over: threading.Event) -> None:
    """Customers; while the database is away they come back later."""
    import psycopg

    from headwater.lab.demo.traffic import OrderRate

    pace = OrderRate(rate)
    while not over.wait(pace.interval):
        try:
            if due := pace.due():
                shown.traffic.send(due)
        except psycopg.Error:
            over.wait(1)
            pace = OrderRate(rate)


def _summarise(shown: Demo, view: DemoView, _rate: float, over: threading.Event) -> None:
    """Run the batch job as soon as there is something to sum up, then every minute."""
    while not _ingested(shown):
        if over.wait(0.5):
            return
    while not over.is_set():
        view.note = "the batch job supplier_stats runs"
        try:
            shown.summarise()
        except HeadwaterError as error:
            if not over.is_set():
                view.notify(f"[yellow]{escape(error.message)}[/]; {escape(error.hint or '')}")
        view.note = ""
        over.wait(BATCH_EVERY)


def _ingested(shown: Demo) -> bool:
    try:
        return shown.counter.rows("default.orders") > 0
    except Exception:  # noqa: BLE001  (a catalog that is away now may be back in a moment)
        return False


def _verify(shown: Demo, view: DemoView) -> Verdict:
    """Look until all is seen, or nothing more has been for so long that it will not be.

    A busy machine takes its time from one to the next, and gets there.
    """
    import httpx

    deadline = time.monotonic() + VERIFY_SECONDS
    fewest: int | None = None
    while True:
        try:
            verdict = shown.judge.verdict()
        except httpx.HTTPError as error:
            if time.monotonic() > deadline:
                raise HeadwaterError(f"the lineage server does not answer: {error}") from error
        else:
            view.seen(verdict)
            if fewest is None or len(verdict.missing) < fewest:
                fewest = len(verdict.missing)
                deadline = time.monotonic() + VERIFY_SECONDS
            if verdict.ok or time.monotonic() > deadline:
                return verdict
        time.sleep(1)


def _print_result(verdict: Verdict, shown: Demo, as_json: bool) -> None:
    from headwater.lab.demo.run import STREAMS
    from headwater.lab.services.headwater import token_file

    try:
        VERDICT.write_bytes(msgspec.json.format(msgspec.json.encode(verdict)) + b"\n")
    except OSError as error:
        err.print(f"[yellow]{VERDICT} was not written:[/] {error.strerror}", soft_wrap=True)
    if as_json:
        print_json(verdict)
        return
    out.print(verdict_table(verdict))
    out.print(f"\nThe graph: [cyan]{shown.judge.page()}[/]", soft_wrap=True)
    for row in shown.lab.status([*STREAMS, "spark-history"]):
        if row.page:
            out.print(f"The page of {row.service}: [cyan]{row.page}[/]", soft_wrap=True)
    if shown.lab.home.settings.secure:
        file = escape(str(token_file(shown.lab.context)))
        out.print(
            f"The page of the graph asks for a token, the one in [cyan]{file}[/]", soft_wrap=True
        )


def _invite(shown: Demo, *, opens: bool) -> None:
    out.print("Orders go on until Ctrl-C; the batch job runs every minute.")
    home = shlex.quote(str(shown.lab.home.root))
    words = f"export OPENLINEAGE_URL={shown.lab.context.url('server')} HEADWATER_LAB_HOME={home}"
    if shown.lab.home.settings.secure:  # the token, too, which is not for this terminal
        words = f'eval "$(headwater lab env --home {home})"'
    out.print(f"For questions, in another terminal: [bold]{escape(words)}[/]", soft_wrap=True)
    out.print("Incidents to play, there: [bold]headwater lab story[/]")
    if opens and is_interactive() and _has_display():
        webbrowser.open(shown.judge.page())


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )


class DemoView:
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

    def follow(self, counter: RowCounter) -> None:
        """Count what each stage holds from now on."""
        self._thread = threading.Thread(target=self._count, args=(counter,), daemon=True)
        self._thread.start()
        self._show()

    def seen(self, verdict: Verdict) -> None:
        """Say what lineage shows for the first time."""
        parts = (
            verdict.jobs,
            verdict.edges,
            verdict.columns,
            verdict.schemas,
            verdict.impact,
            verdict.lake,
        )
        items = [item for part in parts for item in part]
        new = [item for item in items if item.seen and item.what not in self._seen]
        self._seen.update(item.what for item in new)
        past = time.monotonic() - self.began
        if new:  # in one go: each time something is printed, the counts below are drawn again
            lines = (
                f"{past:6.1f} s  [green]✓[/] {item.what} {item.state}".rstrip() for item in new
            )
            self._print("\n".join(lines))

    def notify(self, text: str) -> None:
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

    def _count(self, counter: RowCounter) -> None:
        printed_at = time.monotonic()
        stages = counter.stages()
        self._counts = {stage: [] for stage in stages}
        while not self._over.is_set():
            for stage, count in stages.items():
                try:
                    now = (time.monotonic(), count())
                except Exception:  # noqa: BLE001, S112  (a service that is away is the story, not ours)
                    continue
                recent = [s for s in self._counts[stage] if now[0] - s[0] < RATE_SECONDS]
                self._counts[stage] = [*recent, now]
            if not is_interactive() and time.monotonic() - printed_at > LINE_SECONDS:
                printed_at = time.monotonic()
                rows = " · ".join(f"{' '.join(k.split())} {v:,}" for k, v in self.totals().items())
                self._print(f"{printed_at - self.began:6.1f} s  {rows}")
            self._over.wait(POLL_SECONDS)

    def _show(self) -> None:
        """A new one each time: a live display that is started again wipes what was printed since."""
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
    table = table_of("", "seen in the lineage server", "state")

    def rows(title: str, items: list[Item]) -> None:
        table.add_row("", f"[bold]{title}[/]", "")
        for item in items:
            table.add_row("[green]✓[/]" if item.seen else "[red]✗[/]", item.what, item.state)

    rows("jobs", verdict.jobs)
    rows("edges", verdict.edges)
    rows("columns", verdict.columns)
    rows("schemas", verdict.schemas)
    rows("impact", verdict.impact)
    if verdict.lake:
        rows("lake", verdict.lake)
    return table
