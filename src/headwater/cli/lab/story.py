"""`headwater lab story`: incidents on the running pipeline, and what lineage shows of them."""

from __future__ import annotations

import os
import sys
import time
from typing import TYPE_CHECKING, Annotated

import typer
from rich.status import Status

from headwater.cli.lab.options import Home, open_lab
from headwater.cli.output import (
    AsJson,
    duration,
    err,
    escape,
    escape_lines,
    is_interactive,
    out,
    print_json,
    print_wide,
    table_of,
)
from headwater.errors import HeadwaterError, UsageError

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lab.stories.base import Check, PageLink, StoryResult

QUIET_SECONDS = 10.0


def story(
    name: Annotated[
        str | None,
        typer.Argument(help="Which story; without one they are listed.", show_default=False),
    ] = None,
    home: Home = None,
    seconds: Annotated[
        float,
        typer.Option(
            "--seconds", min=12, max=300, help="outage: how long the lineage server stays away."
        ),
    ] = 60.0,
    keep: Annotated[
        bool,
        typer.Option(
            "--keep", help="Wait for Enter before everything is put back, to look at the pages."
        ),
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Play an incident on the running demo and check what lineage shows of it.

    Start `headwater demo` in another terminal first. A story puts everything back, so any can be
    played again, in any order. Exit code 1 when lineage does not show what it should.
    """
    from headwater.lab.stories import STORIES, play

    if name is None:
        _list(as_json)
        return
    if name not in STORIES:
        raise UsageError(f"there is no story {name!r}", hint=f"stories: {', '.join(STORIES)}")
    lab = open_lab(home or _running())
    with StoryPrinter(quiet=as_json) as printer:
        before_undo = printer.wait_for_enter if keep else None
        result = play(name, lab, printer, seconds=seconds, before_undo=before_undo)
    if as_json:
        print_json(result)
    else:
        _show(result)
    if not result.ok:
        raise HeadwaterError(f"{name}: {result.reason}", hint=f"logs of the lab: {lab.home.logs}")


def _running() -> Path | None:
    """The one lab whose streams run, unless the environment names a lab."""
    from headwater.lab.stories.story_run import running_homes

    if os.environ.get("HEADWATER_LAB_HOME"):
        return None
    homes = running_homes()
    if len(homes) > 1:
        raise UsageError(
            f"several pipelines run: {', '.join(map(str, homes))}", hint="say which: --home DIR"
        )
    return homes[0] if homes else None


def _list(as_json: bool) -> None:
    from headwater.lab.stories import STORIES

    if as_json:
        print_json([{"name": s.name, "title": s.title, "shows": s.shows} for s in STORIES.values()])
        return
    table = table_of("story", "what happens", "what lineage shows")
    table.columns[0].no_wrap = True
    for one in STORIES.values():
        table.add_row(f"[cyan]{one.name}[/]", escape(one.title), escape(one.shows))
    print_wide(table)
    out.print(
        "\nWith [bold]headwater demo[/] in another terminal: [bold]headwater lab story NAME[/]"
    )


class StoryPrinter:
    """Prints a story's progress on standard error: a spinner for people, lines for logs."""

    def __init__(self, *, quiet: bool) -> None:
        self.quiet = quiet
        self._began = self._printed_at = time.monotonic()
        self._status = Status("", console=err)

    def __enter__(self) -> StoryPrinter:
        return self

    def __exit__(self, *_: object) -> None:
        self._status.stop()

    def describe(self, text: str) -> None:
        """What happens now."""
        self._line(f"[bold]{escape(text)}[/]")

    def show(self, link: PageLink) -> None:
        """A page that shows it."""
        self._line(f"  look at {_link(link)}")

    def wait(self, what: str, past: float, most: float) -> None:
        """What is waited for."""
        text = f"{what} … {past:.0f} s of at most {most:.0f} s"
        if is_interactive() and not self.quiet:
            self._status.update(escape(text))
            self._status.start()
        elif time.monotonic() - self._printed_at > QUIET_SECONDS:
            self._line(f"  [dim]{escape(text)}[/]")

    def checked(self, check: Check) -> None:
        """What was found."""
        found = f"  [dim]{escape(check.found)}[/]" if check.found else ""
        self._line(f"  {_mark(check)} {escape(check.what)}{found}")

    def wait_for_enter(self) -> None:
        """Leave everything as the story made it until a person has looked."""
        self._status.stop()
        err.print("[bold]Press Enter to put everything back.[/]")
        sys.stdin.readline()

    def _line(self, text: str) -> None:
        self._printed_at = time.monotonic()
        self._status.stop()
        if not self.quiet:
            past = self._printed_at - self._began
            err.print(f"[dim]{past:5.1f} s[/]  {text}", soft_wrap=True)


def _mark(check: Check) -> str:
    return "[green]✓[/]" if check.ok else "[red]✗[/]"


def _link(link: PageLink) -> str:
    passing = "" if link.lasting else " [dim](only while the story plays)[/]"
    return f"{escape(link.what)}: [cyan]{escape(link.url)}[/]{passing}"


def _show(result: StoryResult) -> None:
    for text in result.text:
        out.print()
        out.print(escape_lines(text), soft_wrap=True)
    table = table_of("", result.story, "found")
    for check in result.checks:
        table.add_row(_mark(check), escape(check.what), f"[dim]{escape(check.found)}[/]")
    out.print()
    print_wide(table)
    for link in result.look:
        out.print(_link(link), soft_wrap=True)
    word = "[green]as it should be[/]" if result.ok else "[red]not as it should be[/]"
    all_back = "everything" if result.undone else "[red]not everything[/]"
    out.print(f"\n{word}, in {duration(result.seconds)}; {all_back} is as it was before")
