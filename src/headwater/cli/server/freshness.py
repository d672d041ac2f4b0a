"""`headwater freshness`."""

from __future__ import annotations

from typing import Annotated
from urllib.parse import quote

import typer

from headwater.cli.output import AsJson, out, print_json
from headwater.cli.server.client import SERVER, get

__all__ = ["freshness"]


def freshness(
    namespace: Annotated[str, typer.Argument(help="The dataset's namespace.")],
    name: Annotated[str, typer.Argument(help="The dataset's name.")],
    url: Annotated[str, typer.Option("--url", help="Where the server answers.")] = SERVER,
    as_json: AsJson = False,
) -> None:
    """Say whether a dataset is up to date, and if not, since when and because of which job.

    A token is read from HEADWATER_TOKEN.
    """
    path = f"/api/v2/datasets/{quote(namespace, safe='')}/{quote(name, safe='')}/freshness"
    found = get(url, path, hint="say where it is: --url")
    if as_json:
        print_json(found)
        return
    since = f" since {found['since']}" if found["since"] else ""
    written = f", last written {found['lastWrittenAt']}" if found["lastWrittenAt"] else ""
    out.print(f"{found['verdict']}{since}{written}", markup=False, soft_wrap=True)
    for cause in found["causes"]:
        job = cause["job"]
        because = "because" if cause["root"] else "and so"
        out.print(
            f"  {because} {job['namespace']} {job['name']}: {cause['trouble']} since {cause['since']}",
            markup=False,
            soft_wrap=True,
        )
