"""`headwater runs`: runs of a lineage server, by hand."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.options import spread
from headwater.cli.output import out, print_json
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads the annotation)
from headwater.lineage.url_paths import path_of

__all__ = ["app"]

app = typer.Typer(help="Runs of a lineage server.", no_args_is_help=True)


@app.callback()
def runs() -> None:
    """Runs of a lineage server."""


@app.command()
@spread
def abort(
    run: Annotated[str, typer.Argument(metavar="ID", help="The run's UUID.")],
    how: ServerOptions,
) -> None:
    """Close a run that will not end by itself."""
    state = how.server().post(path_of("api", "v2", "runs", run, "abort"))["state"]
    if how.as_json:
        print_json({"run": run, "state": state})
    else:
        out.print(f"run {run} is {state}", markup=False)
