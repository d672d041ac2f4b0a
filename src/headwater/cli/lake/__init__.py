"""`headwater lake`: run the lineage lake, and ask it."""

from __future__ import annotations

import typer

from headwater.cli.lake.run import run
from headwater.cli.lake.sql import sql

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Keep lineage for years in Iceberg tables, and ask it."
)
app.command(
    "run", context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False}
)(run)
app.command("sql")(sql)
