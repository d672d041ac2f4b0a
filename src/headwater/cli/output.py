"""What the command prints: tables and colour for people, JSON for programs, errors in one line."""

from __future__ import annotations

import io
import json
import os
import re
import stat
import sys
from typing import TYPE_CHECKING, Annotated, BinaryIO

import msgspec
import typer
from rich.console import Console
from rich.segment import Segment
from rich.table import Table

from headwater.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path
    from types import TracebackType

    from rich.console import ConsoleOptions, RenderableType
    from rich.tree import Tree

    from headwater.errors import HeadwaterError


_BRACKET, _BACKSLASH = "\ue05b", "\ue05c"
"""What stands for `[` and a backslash of a foreign text until it is printed."""
_COMMANDS = (
    r"\x00-\x09\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    r"\ud800-\udfff\ufeff\ufff9-\ufffb\U000e0000-\U000e007f"
)
"""Characters that a terminal obeys or that hide or reorder others, but for the end of a line."""
_RAW = re.compile(f"[{_COMMANDS}]")
_FOREIGN = re.compile(f"[\n{_COMMANDS}{_BRACKET}{_BACKSLASH}]")
_IN_MARKUP = str.maketrans({"[": _BRACKET, "\\": _BACKSLASH})
_PRINTED = str.maketrans({_BRACKET: "[", _BACKSLASH: "\\"})


def _as_escape(found: re.Match[str]) -> str:
    return ascii(found[0])[1:-1]


def visible(text: str) -> str:
    """A text from outside in one line: what would steer a terminal is shown as `\\x1b` or `\\n`."""
    return _FOREIGN.sub(_as_escape, text)


def escape(text: str) -> str:
    """A text from outside to stand in markup: in one line, steering nothing, never read as markup.

    Rich's own function looks at one text at a time, but a tag can begin in one name and end in the
    next. So no bracket gets into the markup at all: the console puts them back.
    """
    return visible(text).translate(_IN_MARKUP)


def escape_lines(text: str, indent: str = "") -> str:
    """The same for a text of several lines, which no indented one can pass off as the command's own."""
    return f"\n{indent}".join(map(escape, text.splitlines()))


class _Console(Console):
    """A console that hands no command of a foreign text on to the terminal.

    Its reader may leave, as `head` does: the program's end is handled in one place.
    """

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """What is printed, with the characters shown that a terminal would obey."""
        for text, style, control in super().render(renderable, options):
            plain = text if control else _RAW.sub(_as_escape, text).translate(_PRINTED)
            yield Segment(plain, style, control)

    def on_broken_pipe(self) -> None:
        raise BrokenPipeError


# Without emoji: a name such as `a:key:b` has none.
out = _Console(highlight=False, emoji=False)
err = _Console(stderr=True, highlight=False, emoji=False)
INDENT = "    "
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
    text = msgspec.json.format(msgspec.json.encode(value)).decode()
    try:
        # JSON may hold all but the lowest control characters as they are; a terminal must not.
        sys.stdout.write(_RAW.sub(_in_json, text) + "\n")
        sys.stdout.flush()
    except BrokenPipeError:
        raise BrokenPipeError from None  # without its number, for which click ends with 1


def _in_json(found: re.Match[str]) -> str:
    return json.dumps(found[0])[1:-1]


def print_error(error: HeadwaterError) -> None:
    """Say what is wrong and what to do, on standard error."""
    err.print(f"[bold red]error:[/] {escape_lines(error.message, INDENT)}", soft_wrap=True)
    if error.hint:
        err.print(f"[cyan]hint:[/] {escape(error.hint)}", soft_wrap=True)


def private_file(file: str | Path) -> BinaryIO:
    """A file to write, emptied, that only its owner can read: exports name what an estate holds."""
    try:
        opened = os.open(file, os.O_CREAT | os.O_WRONLY, 0o600)
        try:
            if stat.S_ISREG(os.fstat(opened).st_mode):  # and not /dev/stdout, or a pipe
                os.fchmod(opened, 0o600)
                os.ftruncate(opened, 0)
            return os.fdopen(opened, "wb")
        except BaseException:
            os.close(opened)
            raise
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error


def table_of(*columns: str) -> Table:
    """An empty table without lines, whose cells fold where they do not fit."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in columns:
        table.add_column(name, overflow="fold")
    return table


def print_tree(tree: Tree) -> None:
    """Print a tree as wide as the terminal; what reads a pipe wants a node a line."""
    (out if out.is_terminal else _Console(highlight=False, emoji=False, width=PIPE_LINE)).print(
        tree
    )


def print_wide(table: Table) -> None:
    """Print a table as wide as the terminal; what reads a pipe wants a row a line."""
    (out if out.is_terminal else _Console(highlight=False, emoji=False, width=PIPE_WIDTH)).print(
        table
    )


def confirm(question: str) -> None:
    """Continue only if a person confirms; asked on standard error, beside what programs read."""
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
    """Bytes as people read them."""
    return "" if count is None else f"{count / (1 << 20):,.0f} MB"


def duration(seconds: float | None) -> str:
    """Seconds as people read them."""
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
        # Most commands download nothing, and start a tenth of a second sooner without these.
        from rich.progress import (
            BarColumn,
            DownloadColumn,
            Progress,
            TextColumn,
            TimeRemainingColumn,
        )

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

    def notify(self, text: str) -> None:
        remark(text)
