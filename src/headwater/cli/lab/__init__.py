"""`headwater lab`: a real streaming stack on this machine, without containers."""

from __future__ import annotations

import typer

from headwater.cli.lab import graph, stack, story, traffic

__all__ = ["app"]

app = typer.Typer(
    help="A complete real streaming stack on this machine: Kafka, Connect, registry, S3, "
    "Iceberg catalog, PostgreSQL.",
    no_args_is_help=True,
)
for command in (
    stack.up,
    stack.status,
    stack.down,
    stack.reset,
    stack.logs,
    stack.fetch,
    stack.env,
    traffic.traffic,
    graph.graph,
):
    app.command()(command)
# What follows the program's name belongs to the program.
app.command(context_settings={"ignore_unknown_options": True, "allow_interspersed_args": False})(
    graph.run
)
app.command()(story.story)
