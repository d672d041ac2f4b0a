"""`headwater lake sql`: any question about the lake's tables."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from headwater.cli.output import AsJson, err, escape, out, print_json

__all__ = ["LakeUrl", "sql"]

LakeUrl = Annotated[
    str,
    typer.Option(
        "--lake",
        envvar="HEADWATER_LAKE",
        help="The lake: iceberg://CATALOG/NAMESPACE, a catalog of PyIceberg's configuration.",
        show_default=False,
    ),
]
SHOWN = 1_000


def sql(
    query: Annotated[str, typer.Argument(help="SQL, over the tables that docs/lake.md lists.")],
    lake: LakeUrl,
    as_json: AsJson = False,
) -> None:
    """Ask the lake's tables anything, in DuckDB's SQL, on this machine."""
    from headwater.lake.iceberg import open_lake

    names, rows = open_lake(lake).sql(query)
    found = list(rows)
    if as_json:
        print_json([dict(zip(names, map(_plain, row), strict=True)) for row in found])
        return
    table = Table(*map(escape, names), box=None)
    for row in found[:SHOWN]:
        table.add_row(*(escape(str(_plain(value))) for value in row))
    out.print(table)
    if len(found) > SHOWN:
        err.print(f"[yellow]{len(found) - SHOWN:,} more rows; --json has all[/]")


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return value.hex()
    return value if isinstance(value, (int, float, str, bool, type(None))) else str(value)
