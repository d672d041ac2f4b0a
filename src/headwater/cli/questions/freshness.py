"""`headwater freshness`."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater.cli.options import given, spread
from headwater.cli.output import escape, out, print_json
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads the annotation)
from headwater.lineage.url_paths import path_of
from headwater.lineage.wording import hidden_text

__all__ = ["freshness", "last_write"]

PLANNED = dict.fromkeys(("paused", "stopped"), " (planned)")


@spread
def freshness(
    dataset: Annotated[
        str,
        typer.Argument(help="NAMESPACE:NAME, or NAME alone where it is the only one."),
    ],
    how: ServerOptions,
    name: Annotated[
        str | None,
        typer.Argument(help="The name, where DATASET is the namespace alone.", show_default=False),
    ] = None,
) -> None:
    """Say whether a dataset is up to date, and if not, since when and because of which job."""
    server = how.server()
    if name is None:
        named = server.find_dataset(dataset, "headwater why {namespace}:{name}.{field}")
        namespace, name = named.namespace, named.name
    else:
        namespace = given(dataset, "the namespace of the dataset")
        name = given(name, "the name of the dataset")
    found = server.get(path_of("api", "v2", "datasets", namespace, name, "freshness"))
    if how.as_json:
        print_json(found)
        return
    since = f" since {found['since']}" if found["since"] else ""
    out.print(f"{found['verdict']}{since}{last_write(found)}", markup=False, soft_wrap=True)
    for cause in found["causes"]:
        job = cause["job"]
        because = "because" if cause["root"] else "and so"
        out.print(
            f"  {because} {escape(job['namespace'])} {escape(job['name'])}:"
            f" {cause['trouble']}{PLANNED.get(cause['trouble'], '')} since {cause['since']}",
            soft_wrap=True,
        )
    if count := found.get("hidden"):
        out.print(f"[yellow]{hidden_text(count, 'upstream')}[/]", soft_wrap=True)
    if found["truncated"]:
        out.print("[yellow]there is more than was looked at[/]", soft_wrap=True)
    server.print_page("datasets", namespace, name)


def last_write(found: dict[str, Any]) -> str:
    """When a dataset was last written, or a job that writes it last reported that it runs."""
    if not found["lastWrittenAt"]:
        return ""
    word = "reported" if found.get("lastWrittenFrom") == "heartbeat" else "written"
    return f", last {word} {found['lastWrittenAt']}"
