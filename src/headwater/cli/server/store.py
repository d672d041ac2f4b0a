"""`headwater store`: back a store up, restore it, or move it to another database."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from headwater.cli.output import AsJson, out, print_json
from headwater.cli.server.store_options import (
    StoreUrl,
    check_file,
    counting_bar,
    sqlite_url,
    store_url,
)
from headwater.errors import UsageError

if TYPE_CHECKING:
    from headwater.server.store.keep.transfer import Copied

__all__ = ["app"]

app = typer.Typer(
    help="Back a store up, restore it, or move it to another database.", no_args_is_help=True
)
File = Annotated[Path, typer.Argument(metavar="FILE", help="The backup.", show_default=False)]


@app.command()
def backup(file: File, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Write everything a store holds to a new file, also while a server runs on it."""
    if file.exists():
        raise UsageError(f"{file} exists", hint="delete it or give another name")
    part = file.with_name(file.name + ".part")
    _remove(part)
    try:
        copied = _copy(store, sqlite_url(part), "backing up")
        part.rename(file)
    except OSError as error:
        raise UsageError(f"cannot write {file}: {error.strerror}") from error
    finally:
        _remove(part)
    _print_result(f"{file} holds", copied, as_json=as_json)


@app.command()
def restore(file: File, store: StoreUrl = None, as_json: AsJson = False) -> None:
    """Put a backup into an empty store: a new SQLite file or an empty PostgreSQL database."""
    from headwater.server.http.serve import default_store

    if not file.is_file():
        raise UsageError(f"there is no file {file}", hint="give a file of `headwater store backup`")
    copied = _copy(sqlite_url(file), store or default_store(), "restoring")
    _print_result("the store holds", copied, as_json=as_json)


@app.command()
def move(
    to: Annotated[
        str,
        typer.Option(
            "--to",
            metavar="FILE|URL",
            help="An empty store: a new file (SQLite), or postgresql://…",
            callback=store_url,
            show_default=False,
        ),
    ],
    store: StoreUrl = None,
    as_json: AsJson = False,
) -> None:
    """Copy a store to another database, SQLite or PostgreSQL; the old one is left as it was.

    Stop the server of the old store first.
    """
    copied = _copy(store, to, "moving", still=True)
    _print_result("the new store holds", copied, as_json=as_json)


def _copy(source: str | None, target: str, what: str, *, still: bool = False) -> Copied:
    from headwater.server.http.serve import default_store
    from headwater.server.store import open_store
    from headwater.server.store.database import open_database
    from headwater.server.store.keep.transfer import copy_store

    url = source or default_store()
    if url == target:
        raise UsageError("both stores are the same", hint="give another one with --to")
    check_file(url)
    with (
        closing(open_database(url)) as old,
        closing(open_store(target)) as new,
        counting_bar() as bar,
    ):
        task = bar.add_task(what, total=None)
        return copy_store(
            old,
            new,
            still=still,
            progress=lambda done, total: bar.update(task, completed=done, total=total),
        )


def _remove(part: Path) -> None:
    for end in ("", "-wal", "-shm"):
        part.with_name(part.name + end).unlink(missing_ok=True)


def _print_result(what: str, copied: Copied, *, as_json: bool) -> None:
    if as_json:
        print_json(copied._asdict())
        return
    text = (
        f"{what} {copied.records:,} records, {copied.rows:,} rows in all; checked, and equal. "
        f"The log ends at {copied.seq:,}, {copied.chain[:16]}…"
    )
    out.print(text, markup=False, soft_wrap=True)
