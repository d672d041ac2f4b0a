"""What the command prints: tables and colour for people, JSON for programs, errors in one line."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Annotated

import msgspec
import typer
from rich.console import Console
from rich.markup import escape

if TYPE_CHECKING:
    from headwater.errors import HeadwaterError

out = Console(highlight=False)
err = Console(stderr=True, highlight=False)

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON instead of tables and colour.")]

STATE_STYLE = {
    "running": "green",
    "starting": "yellow",
    "unhealthy": "red",
    "died": "bold red",
    "failed": "bold red",
    "stopped": "dim",
}


def print_json(value: object) -> None:
    """Print a value as indented JSON, never wrapped or coloured."""
    sys.stdout.write(msgspec.json.format(msgspec.json.encode(value)).decode() + "\n")


def print_error(error: HeadwaterError) -> None:
    """Say what is wrong and what to do, on standard error."""
    err.print(f"[bold red]error:[/] {escape(error.message)}", soft_wrap=True)
    if error.hint:
        err.print(f"[cyan]hint:[/] {escape(error.hint)}", soft_wrap=True)


def state(name: str) -> str:
    """A state's name in its colour."""
    return f"[{STATE_STYLE.get(name, 'none')}]{name}[/]"


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
