"""A lab's services as a table, and what is to be said about those that are not well."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from rich.markup import escape
from rich.table import Table

from headwater.cli.output import duration, err, out, print_wide, size, state

if TYPE_CHECKING:
    from headwater.lab.lab import Lab, Status


def print_table(lab: Lab, rows: list[Status]) -> None:
    """Print the services, their logs relative to the home, which is printed once."""
    table = Table(box=None, header_style="bold", pad_edge=False)
    for name in ("service", "state"):
        table.add_column(name, no_wrap=True)
    for name in ("port", "pid", "memory", "uptime"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("version", no_wrap=True)
    table.add_column("log", style="dim", overflow="fold")
    for row in rows:
        log = Path(row.log)
        table.add_row(
            row.service,
            state(row.state),
            str(row.port or ""),
            str(row.pid or ""),
            size(row.memory),
            duration(row.uptime),
            row.version,
            str(log.relative_to(lab.home.root)) if log.exists() else "",
        )
    total = sum(row.memory or 0 for row in rows)
    if total:
        table.add_section()
        table.add_row("", "", "", "", size(total), "", "", "", style="bold")
    print_wide(table)
    out.print(f"[dim]home[/] {escape(str(lab.home.root))}", soft_wrap=True)


def explain(row: Status) -> None:
    """Say why a service is not up: the end of its log, and what to do."""
    from headwater.lab.logs import tail

    said = "has died" if row.state == "died" else "lives but does not answer"
    err.print(f"\n[bold red]{row.service} {said}[/]; the end of its log:")
    for line in tail(Path(row.log)):
        err.out(f"  {line}")
    action = (
        "headwater lab up" if row.state == "died" else "headwater lab down, then headwater lab up"
    )
    err.print(
        f"[cyan]hint:[/] start it again: {action}; the whole log: headwater lab logs {row.service}",
        soft_wrap=True,
    )
