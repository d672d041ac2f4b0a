"""`headwater lake`: run the lineage lake, look after it, and ask it."""

from __future__ import annotations

import typer

from headwater.cli.lake.analysis import analysis
from headwater.cli.lake.programs import analyse, ask, maintain, repair, run
from headwater.cli.lake.sql import sql

__all__ = ["app"]

app = typer.Typer(
    no_args_is_help=True, help="Keep lineage for years in Iceberg tables, and ask it."
)
for program in (run, maintain, repair, analyse, ask):
    app.command(
        program.__name__,
        context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False},
    )(program)
app.command("analysis")(analysis)
app.command("sql")(sql)
