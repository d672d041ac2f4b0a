"""`headwater runs`: runs of a lineage server, by hand."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from headwater.cli.output import AsJson, out, print_json
from headwater.cli.server.client import SERVER, post

__all__ = ["app"]

app = typer.Typer(help="Runs of a lineage server.", no_args_is_help=True)


@app.callback()
def runs() -> None:
    """Runs of a lineage server."""


@app.command()
def abort(
    run: Annotated[str, typer.Argument(metavar="ID", help="The run's UUID.")],
    url: Annotated[str, typer.Option("--url", help="Where the server answers.")] = SERVER,
    as_json: AsJson = False,
) -> None:
    """Close a run that will not end by itself. A token is read from HEADWATER_TOKEN."""
    path = f"/api/v2/runs/{quote(run, safe='')}/abort"
    state = post(url, path, "state", hint="say where it is: --url")["state"]
    if as_json:
        print_json({"run": run, "state": state})
    else:
        out.print(f"run {run} is {state}", markup=False)
