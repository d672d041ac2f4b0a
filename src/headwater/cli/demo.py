"""`headwater demo`: the pipeline on a lab of its own, watched live."""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import threading
import time
import webbrowser
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import httpx
import msgspec
import typer
from rich.markup import escape

from headwater.cli.demo_view import View, verdict_table
from headwater.cli.output import AsJson, FetchBar, err, is_interactive, out, print_json
from headwater.errors import HeadwaterError

if TYPE_CHECKING:
    from types import FrameType

    from headwater.lab.demo import Demo
    from headwater.lab.verdict import Verdict

VERIFY_SECONDS = 180.0
BATCH_EVERY = 60.0
VERDICT = Path("demo-verdict.json")
MOST_RATE = 1000


def demo(
    once: Annotated[
        bool, typer.Option("--once", help="End when everything was seen; exit code 1 if not.")
    ] = False,
    home: Annotated[
        Path | None,
        typer.Option("--home", help="The demo's folder.", show_default="a temporary one"),
    ] = None,
    rate: Annotated[
        float, typer.Option("--rate", min=0.1, max=MOST_RATE, help="Orders a second.")
    ] = 5.0,
    no_open: Annotated[bool, typer.Option("--no-open", help="Do not open the page.")] = False,
    as_json: AsJson = False,
) -> None:
    """Run the orders pipeline, from a shop's database through Kafka and PySpark into Iceberg.

    Its lineage is watched live in one graph. Ctrl-C ends it, each run with its right end.
    """
    from headwater.lab.demo import Demo
    from headwater.lab.lab import Lab

    signal.signal(signal.SIGTERM, _interrupt)
    view, over = View(), threading.Event()
    with tempfile.TemporaryDirectory(prefix="headwater-demo-") as folder:
        lab = Lab(home or Path(folder, "lab"))
        shown = Demo(lab, view.changed)
        verified = False
        try:
            with FetchBar() as progress:
                shown.start(progress)
            view.follow(shown.gauge)
            shown.flow()
            for work in (_order, _summarise):
                threading.Thread(target=work, args=(shown, view, rate, over), daemon=True).start()
            verdict = _verify(shown, view)
            with view.held():
                _tell(verdict, shown, as_json)
            if not verdict.ok:
                raise HeadwaterError(
                    f"not seen within {VERIFY_SECONDS:.0f} s: {', '.join(verdict.missing)}",
                    hint=f"logs are in {lab.home.logs} while the demo runs with --home DIR",
                )
            verified = True
            if not once:
                with view.held():
                    _invite(shown, opens=not no_open)
                while True:  # until Ctrl-C, whatever somebody does to the lab meanwhile
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
            err.print("stopping: streams, connectors, then the lab")
            shown.stop()
            if home is None:
                lab.reset()


def _interrupt(_signal: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _order(shown: Demo, _view: View, rate: float, over: threading.Event) -> None:
    """Customers; while the database is away they come back later."""
    import psycopg

    from headwater.lab.traffic import Pace

    pace = Pace(rate)
    while not over.wait(pace.interval):
        try:
            if due := pace.due():
                shown.traffic.send(due)
        except psycopg.Error:
            over.wait(1)
            pace = Pace(rate)


def _summarise(shown: Demo, view: View, _rate: float, over: threading.Event) -> None:
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
                view.say(f"[yellow]{escape(error.message)}[/]; {escape(error.hint or '')}")
        view.note = ""
        over.wait(BATCH_EVERY)


def _ingested(shown: Demo) -> bool:
    try:
        return shown.gauge.rows("default.orders") > 0
    except Exception:  # noqa: BLE001  (a catalog that is away now may be back in a moment)
        return False


def _verify(shown: Demo, view: View) -> Verdict:
    """Look until all is seen, or time is up."""
    deadline = time.monotonic() + VERIFY_SECONDS
    while True:
        try:
            verdict = shown.judge.verdict()
        except httpx.HTTPError as error:
            if time.monotonic() > deadline:
                raise HeadwaterError(f"the lineage server does not answer: {error}") from error
        else:
            view.seen(verdict)
            if verdict.ok or time.monotonic() > deadline:
                return verdict
        time.sleep(1)


def _tell(verdict: Verdict, shown: Demo, as_json: bool) -> None:
    try:
        VERDICT.write_bytes(msgspec.json.format(msgspec.json.encode(verdict)) + b"\n")
    except OSError as error:
        err.print(f"[yellow]{VERDICT} was not written:[/] {error.strerror}", soft_wrap=True)
    if as_json:
        print_json(verdict)
        return
    out.print(verdict_table(verdict))
    out.print(f"\nThe graph: [cyan]{shown.judge.page()}[/]", soft_wrap=True)


def _invite(shown: Demo, *, opens: bool) -> None:
    out.print("Orders go on until Ctrl-C; the batch job runs every minute.")
    out.print("Incidents to play, in another terminal: [bold]headwater lab story[/]")
    if opens and is_interactive() and _has_display():
        webbrowser.open(shown.judge.page())


def _has_display() -> bool:
    return sys.platform in ("darwin", "win32") or any(
        os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")
    )
