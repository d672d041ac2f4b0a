"""`headwater freshness`."""

from __future__ import annotations

from typing import Annotated

import typer

from headwater.cli.options import spread
from headwater.cli.output import escape, out, print_json
from headwater.cli.server.client import ServerOptions, path_of

__all__ = ["freshness"]


@spread
def freshness(
    namespace: Annotated[str, typer.Argument(help="The dataset's namespace.")],
    name: Annotated[str, typer.Argument(help="The dataset's name.")],
    how: ServerOptions,
) -> None:
    """Say whether a dataset is up to date, and if not, since when and because of which job."""
    server = how.server()
    found = server.get(path_of("api", "v2", "datasets", namespace, name, "freshness"))
    if how.as_json:
        print_json(found)
        return
    since = f" since {found['since']}" if found["since"] else ""
    written = f", last written {found['lastWrittenAt']}" if found["lastWrittenAt"] else ""
    out.print(f"{found['verdict']}{since}{written}", markup=False, soft_wrap=True)
    for cause in found["causes"]:
        job = cause["job"]
        because = "because" if cause["root"] else "and so"
        out.print(
            f"  {because} {escape(job['namespace'])} {escape(job['name'])}:"
            f" {cause['trouble']} since {cause['since']}",
            soft_wrap=True,
        )
    server.print_page("datasets", namespace, name)
