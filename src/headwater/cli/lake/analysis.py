"""`headwater lake analysis`: datasets by what lies behind them, and those that nobody reads."""

from __future__ import annotations

from typing import Annotated, Any, Literal

import typer

from headwater.cli.lake.sql import LakeUrl  # noqa: TC001  (typer reads it)
from headwater.cli.output import AsJson, err, escape, out, print_json, print_wide, table_of
from headwater.errors import UsageError
from headwater.lineage.moments import from_micros

__all__ = ["analysis"]

FIGURES = ("jobs", "datasets", "owners", "readers", "columns", "unused_columns")


def analysis(
    lake: LakeUrl,
    by: Annotated[
        Literal["jobs", "datasets", "owners", "unused-columns"],
        typer.Option("--by", help="What to rank by."),
    ] = "jobs",
    unused: Annotated[
        bool, typer.Option("--unused", help="Only datasets that are written and that nobody reads.")
    ] = False,
    limit: Annotated[int, typer.Option("--limit", min=1, help="Rows at most.")] = 20,
    as_json: AsJson = False,
) -> None:
    """Show what `lake analyse` found: datasets with the most behind them, or unused ones."""
    from headwater.lake.iceberg import open_lake

    found = open_lake(lake).analysed()
    if found is None:
        raise UsageError("the lake was not analysed yet", hint="headwater lake analyse does it")
    field = by.replace("-", "_")
    rows = [row for row in found.datasets if row.unused or not unused]
    rows.sort(key=lambda row: (-getattr(row, field), -row.datasets, row.namespace, row.name))
    at, since = (from_micros(moment).isoformat() for moment in (found.at, found.since))
    if as_json:
        datasets: list[dict[str, Any]] = [row._asdict() for row in rows[:limit]]
        print_json({"analysedAt": at, "since": since, "datasets": datasets, "total": len(rows)})
        return
    table = table_of("dataset", *(name.replace("_", " ") for name in FIGURES), "")
    for row in rows[:limit]:
        figures = (f"{getattr(row, name):,}" for name in FIGURES)
        named = f"{escape(row.name)} [dim]{escape(row.namespace)}[/]"
        table.add_row(named, *figures, "unused" if row.unused else "")
    print_wide(table) if rows else out.print("no dataset is unused" if unused else "no datasets")
    out.print(f"[dim]as of {at[:16]}, use since {since[:16]} (UTC)[/]")
    if len(rows) > limit:
        err.print(f"[yellow]{len(rows) - limit:,} more; --limit shows more[/]")
