"""What the command prints: tables and colour for people, JSON for programs, errors in one line."""

from __future__ import annotations

import io
import os
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, DownloadColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from types import TracebackType

    from rich.tree import Tree

    from headwater.errors import HeadwaterError


class _Console(Console):
    """A console whose reader may leave, as `head` does: the program's end is handled in one place."""

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


out = _Console(highlight=False)
err = _Console(stderr=True, highlight=False)
PIPE_WIDTH = 200
PIPE_LINE = 20_000

# A character the terminal's encoding lacks must not end the program.
for stream in (sys.stdout, sys.stderr):
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables and colour.")]

STATE_STYLE = {
    "running": "green",
    "starting": "yellow",
    "paused": "yellow",
    "restarting": "yellow",
    "unassigned": "yellow",
    "destroyed": "yellow",
    "unhealthy": "red",
    "died": "bold red",
    "failed": "bold red",
    "stopped": "dim",
}


def print_json(value: object) -> None:
    """Print a value as indented JSON, never wrapped or coloured."""
    try:
        sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenPipeError from None  # without its number, for which click ends with 1


def print_error(error: HeadwaterError) -> None:
    """Say what is wrong and what to do, on standard error."""
    err.print(f"[bold red]error:[/] {escape(error.message)}", soft_wrap=True)
    if error.hint:
        err.print(f"[cyan]hint:[/] {escape(error.hint)}", soft_wrap=True)


def table_of(*columns: str) -> Table:
    """An empty table without lines, whose cells fold where they do not fit."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def print_tree(tree: Tree) -> None:
    """Print a tree as wide as the terminal; what reads a pipe wants a node a line."""
    (out if out.is_terminal else Console(highlight=False, width=PIPE_LINE)).print(tree)


def print_wide(table: Table) -> None:
    """Print a table as wide as the terminal; what reads a pipe wants a row a line."""
    (out if out.is_terminal else Console(highlight=False, width=PIPE_WIDTH)).print(table)


def confirm(question: str) -> None:
    """Go on only if a person says yes; asked beside what programs read."""
    if not typer.confirm(question, err=True):
        err.print("nothing was done")
        raise typer.Exit(1)


def state(name: str) -> str:
    """The state of a service, a connector or a task in its colour."""
    shown = name.lower()
    return f"[{STATE_STYLE.get(shown, 'none')}]{escape(shown)}[/]"


def remark(text: str) -> None:
    """Print what a person may want to know beside a command's result, on standard error."""
    err.print(escape(text), style="yellow", soft_wrap=True)


def size(count: float | None) -> str:
    """Bytes as people say them."""
    return "" if count is None else f"{count / (1 << 20):,.0f} MB"


def duration(seconds: float | None) -> str:
    """Seconds as people say them."""
    if seconds is None:
        return ""
    if seconds < 60:
        return f"{seconds:.0f} s"
    minutes, left = divmod(int(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {left} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min" if hours < 48 else f"{hours // 24} d {hours % 24} h"


def is_interactive() -> bool:
    """Whether a person watches: a terminal, and not a CI job."""
    return err.is_terminal and "CI" not in os.environ


class FetchBar:
    """A progress bar on a terminal, a line a step elsewhere, nothing while there is nothing to do."""

    def __init__(self) -> None:
        self._bar = Progress(
            TextColumn("[bold]{task.description}"),
            BarColumn(),
            DownloadColumn(),
            TimeRemainingColumn(),
            console=err,
            transient=True,
        )
        self._task = self._bar.add_task("", visible=False)

    def __enter__(self) -> FetchBar:
        if is_interactive():
            self._bar.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._bar.live.is_started:
            self._bar.stop()

    def step(self, name: str, total: int) -> None:
        if is_interactive():
            self._bar.reset(self._task, description=name, total=total, visible=total > 0)
        elif total:
            err.print(f"{name} {size(total)}")

    def at(self, done: int) -> None:
        self._bar.update(self._task, completed=done)

    def say(self, text: str) -> None:
        remark(text)
