"""`headwater events`: take events out of a store, or put them in."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.output import AsJson, err, escape, out, print_json, private_file
from headwater.cli.server.store_options import StoreUrl, counting_bar, opened
from headwater.errors import UsageError

if TYPE_CHECKING:
    from rich.progress import Progress

    from headwater.server.store import Store

__all__ = ["app"]

BATCH = 256
SHOWN = 20
app = typer.Typer(help="Export events from a store, or import them.", no_args_is_help=True)


@app.command("export")
def export_events(
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where to; - for standard output.")],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Write every event as it was sent, one a line; when each arrived stays behind."""
    from headwater.server.store.keep.rebuild import ahead, export

    count = 0
    with opened(store) as source, counting_bar() as bar:
        ((total,),) = source.connection.all("SELECT count(*) FROM log WHERE kind = 0")
        early = ahead(source)
        task = bar.add_task("writing", total=total)
        target: Any = sys.stdout.buffer if file == "-" else private_file(file)
        try:
            for line in export(source):
                target.write(line + b"\n")
                count += 1
                bar.update(task, completed=count)
            target.flush()
        finally:
            if file != "-":
                target.close()
    if early:
        err.print(
            f"{early:,} of them have a time more than five minutes ahead of their arrival, which counts "
            "for them here and is not in the file: where they are imported they count as of their own "
            "time, or of the import; `headwater store backup` keeps it",
            soft_wrap=True,
        )
    if file == "-":
        return
    if as_json:
        print_json({"events": count, "ahead": early})
    else:
        out.print(f"{count:,} events written")


@app.command("import")
def import_events(
    file: Annotated[
        str | None,
        typer.Argument(
            metavar="FILE", help="Events, one a line; - for standard input.", show_default=False
        ),
    ] = None,
    marquez: Annotated[
        str | None,
        typer.Option(
            help="Take over the events, tags, sources and namespaces of the Marquez at this URL. "
            "A token is read from MARQUEZ_TOKEN.",
            show_default=False,
        ),
    ] = None,
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Take events in from a file or from a Marquez; those already there are left alone."""
    if (file is None) == (marquez is None):
        raise UsageError("say either FILE or --marquez URL", hint="headwater events import --help")
    with opened(store, new=True) as target, counting_bar() as bar:
        taker = _EventImporter(target)
        if marquez is not None:
            counts = _take_over(taker, marquez, bar)
        else:
            assert file is not None
            counts = _read_file(taker, file, bar)
    if as_json:
        print_json(counts)
    else:
        out.print(", ".join(f"{count:,} {name}" for name, count in counts.items()))
    if counts["refused"]:
        raise typer.Exit(1)


class _EventImporter:
    """Takes events into a store and counts what became of them."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self.counts = {"accepted": 0, "duplicates": 0, "refused": 0}

    def take(self, batch: list[tuple[str, bytes]]) -> None:
        if not batch:
            return
        receipts = self.store.append([line for _, line in batch])
        for (place, _), receipt in zip(batch, receipts, strict=True):
            if receipt.error is not None:
                self.counts["refused"] += 1
                if self.counts["refused"] <= SHOWN:
                    err.print(f"{place}: {escape(str(receipt.error))}", soft_wrap=True)
                elif self.counts["refused"] == SHOWN + 1:
                    err.print("further refused events are only counted")
            else:
                self.counts["duplicates" if receipt.duplicate else "accepted"] += 1


def _read_file(taker: _EventImporter, file: str, bar: Progress) -> dict[str, int]:
    batch: list[tuple[str, bytes]] = []
    source = sys.stdin.buffer if file == "-" else _readable(file)
    size = None if file == "-" else Path(file).stat().st_size
    task = bar.add_task("reading", total=size)
    with source as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                batch.append((f"line {number}", line.strip()))
            if len(batch) >= BATCH:
                taker.take(batch)
                batch = []
            bar.advance(task, len(line))
    taker.take(batch)
    return taker.counts


def _take_over(taker: _EventImporter, url: str, bar: Progress) -> dict[str, int]:
    from headwater.server.ingest.marquez import Marquez, missing

    source = Marquez(url, os.environ.get("MARQUEZ_TOKEN"))
    task = bar.add_task("events", total=None)
    count = 0
    for page in source.events():
        taker.take([(f"event {count + i}", event) for i, event in enumerate(page.events, 1)])
        count += len(page.events)
        # Each page reports again what is left; what came before it was counted here.
        bar.update(task, completed=count, total=max(count, page.total))
    settings = bar.add_task("settings", total=None)
    taken = 0
    for command in missing(taker.store.connection, source.commands()):
        taker.store.perform(command)
        taken += 1
        bar.update(settings, completed=taken)
    source.close()
    return {**taker.counts, "settings": taken}


def _readable(file: str) -> Any:
    try:
        return Path(file).open("rb")
    except OSError as error:
        raise UsageError(f"cannot read {file}: {error.strerror}") from error
