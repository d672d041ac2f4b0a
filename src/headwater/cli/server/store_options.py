"""What the commands around a store share: its option, opening it, durations."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated
from urllib.parse import quote

import typer

from headwater.cli.output import err, is_interactive
from headwater.errors import UsageError
from headwater.lineage import moments

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.progress import Progress

    from headwater.server.store import Store

__all__ = ["StoreUrl", "check_file", "counting_bar", "opened", "seconds", "sqlite_url", "store_url"]


def store_url(text: str | None) -> str | None:
    """The URL of a store; a path without a scheme is an SQLite file."""
    if text == "":  # as from a variable of a script that is not set
        raise UsageError("the store has no name", hint="a file, or postgresql://USER@HOST/DATABASE")
    if text is None or "://" in text or text.startswith("sqlite:"):
        return text
    return sqlite_url(Path(text).expanduser())


def sqlite_url(file: Path) -> str:
    """The URL of a store in a file."""
    return f"sqlite:///{quote(str(file.absolute()))}"


StoreUrl = Annotated[
    str | None,
    typer.Option(
        "--store",
        metavar="FILE|URL",
        help="A file (SQLite), or postgresql://…",
        callback=store_url,
        show_default="a file in the user's data directory",
    ),
]


def counting_bar() -> Progress:
    """A bar that counts what is done, shown to people only."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeRemainingColumn,
    )

    return Progress(
        TextColumn("[bold]{task.description}"), BarColumn(), MofNCompleteColumn(),
        TimeRemainingColumn(), console=err, transient=True, disable=not is_interactive(),
    )  # fmt: skip


def seconds(text: str | None, option: str) -> float | None:
    """The duration that an option has: 90d, 12h, 30m or 45s."""
    if text is None:
        return None
    try:
        found = moments.seconds(text)
    except ValueError:
        raise UsageError(
            f"{option} {text!r} is not a duration", hint="such as 90d, 12h, 30m or 45s"
        ) from None
    if not found:  # would delete all there is, or close every run, where perhaps never was meant
        raise UsageError(
            f"{option} {text!r} is no time at all", hint=f"leave {option} out for never"
        )
    return found


def check_file(url: str) -> None:
    """Do not make an empty store where there is none to read."""
    from headwater.server.store.database.sqlite import sqlite_path

    if url.startswith("sqlite:") and not sqlite_path(url).is_file():
        raise UsageError(f"there is no store {sqlite_path(url)}", hint="name it with --store")


@contextmanager
def opened(url: str | None, *, new: bool = False) -> Iterator[Store]:
    """The store behind a URL, closed at the end; made where there is none only if it may be `new`."""
    from headwater.server.http.serve import default_store
    from headwater.server.store import open_store

    found = url or default_store()
    if not new:
        check_file(found)
    store = open_store(found)
    try:
        yield store
    finally:
        store.close()
