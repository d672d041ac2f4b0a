"""`headwater connect`: the lineage agent, and connectors from the command line."""

from __future__ import annotations

import typer

from headwater.cli.connect import apply, connectors, explain, watch

__all__ = ["app"]

app = typer.Typer(
    help="Kafka Connect: the lineage agent, and connectors by hand.", no_args_is_help=True
)
app.command("list")(connectors.list_connectors)
app.command()(connectors.status)
app.command()(explain.explain)
app.command()(explain.preview)
app.command()(apply.apply)
for name, help_text in connectors.ACTIONS.items():
    app.command(name, help=help_text)(connectors.action(name))
app.command()(watch.watch)
