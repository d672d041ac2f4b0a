"""`headwater demo`: the pipeline on a lab of its own, watched live."""

from __future__ import annotations

import signal
import tempfile
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.live import Live
from rich.table import Table

from headwater.cli.output import AsJson, FetchBar, err, is_interactive, out, print_json, state
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from types import FrameType

    from headwater.lab.demo import Demo
    from headwater.lab.verdict import Item, Verdict

VERIFY_SECONDS = 180.0
BATCH_EVERY = 60.0
VERDICT = Path("demo-verdict.json")


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End when everything was seen; exit code 1 if not.")
    ] = False,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="The demo's folder.  [default: a temporary one]"),
    ] = None,
    rate: Annotated[float, typer.Option("--rate", min=0.1, help="Orders a second.")] = 5.0,
    as_json: AsJson = False,
) -> None:
    """Run the orders pipeline, from a shop's database through Kafka and PySpark into Iceberg.

    Its lineage is watched live in one graph. Ctrl-C ends it, each run with its right end.
    """
    from headwater.lab.demo import Demo
    from headwater.lab.lab import Lab

    signal.signal(signal.SIGTERM, _interrupt)
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        lab = Lab(home or Path(folder, "lab"))
        began = time.monotonic()

        def changed(what: str, to: str) -> None:
            err.print(f"{time.monotonic() - began:5.1f} s  {what:<20} {state(to)}")

        shown = Demo(lab, changed)
        over = threading.Event()
        try:
            with FetchBar() as progress:
                shown.start(progress)
            orders = threading.Thread(target=_order, args=(shown, rate, over), daemon=True)
            orders.start()
            verdict = _verify(shown)
            VERDICT.write_bytes(msgspec.json.format(msgspec.json.encode(verdict)) + b"\n")
            if as_json:
                print_json(verdict)
            else:
                out.print(_verdict_table(verdict))
            if not verdict.ok:
                raise HeadwaterError(
                    f"not seen within {VERIFY_SECONDS:.0f} s: {', '.join(verdict.missing)}",
                    hint=f"logs are in {lab.home.logs} while the demo runs with --home DIR",
                )
            if not once:
                _stay(shown)
        except KeyboardInterrupt:
            pass
        finally:
            over.set()
            err.print("stopping: streams, connectors, then the lab")
            shown.stop()
            if home is None:
                lab.reset()


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _order(shown: Demo, rate: float, over: threading.Event) -> None:
    while not over.wait(1 / rate):
        shown.traffic.send(1)


def _verify(shown: Demo) -> Verdict:
    """Run the batch job as soon as there is something to sum up, and look until all is seen."""
    deadline = time.monotonic() + VERIFY_SECONDS
    while not shown.counts()["Iceberg      default.orders"] and time.monotonic() < deadline:
        time.sleep(0.5)
    err.print("running the batch job supplier_stats")
    shown.summarise()
    while not (verdict := shown.judge.verdict()).ok and time.monotonic() < deadline:
        time.sleep(1)
    return verdict


def _stay(shown: Demo) -> None:
    out.print(f"\nThe graph: [cyan]{shown.lab.context.url('server', '/graph')}[/]")
    out.print("Orders go on until Ctrl-C; the batch job runs every minute.")
    batch_at = time.monotonic() + BATCH_EVERY
    with Live(console=out, refresh_per_second=2, auto_refresh=is_interactive()) as live:
        while True:
            if is_interactive():
                live.update(_counts_table(shown.counts()))
            if time.monotonic() >= batch_at:
                shown.summarise()
                batch_at = time.monotonic() + BATCH_EVERY
            time.sleep(1)


def _counts_table(counts: dict[str, int]) -> Table:
    table = Table(box=None, header_style="bold", pad_edge=False)
    table.add_column("stage")
    table.add_column("rows", justify="right")
    for stage, count in counts.items():
        table.add_row(stage, f"{count:,}")
    return table


def _verdict_table(verdict: Verdict) -> Table:
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
