"""`headwater tags`: which tags there are, where one gets to, and which ones a dataset has."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater.cli.options import spread
from headwater.cli.output import err, escape, out, print_json, print_wide, table_of
from headwater.cli.server.client import ServerOptions, name_in
from headwater.errors import UsageError
from headwater.lineage.url_paths import path_of

__all__ = ["tags"]


@spread
def tags(
    how: ServerOptions,
    dataset: Annotated[
        str | None,
        typer.Argument(
            metavar="DATASET[.COLUMN]",
            help="The tags of a dataset or a column; without one, every tag.",
            show_default=False,
        ),
    ] = None,
    tag: Annotated[
        str | None, typer.Option("--tag", help="Where this tag gets to.", show_default=False)
    ] = None,
) -> None:
    """Show tags on columns, where they get to along the data, and where a job masked it."""
    if dataset and tag:
        raise UsageError("a dataset and --tag exclude each other", hint="ask twice")
    server = how.server()
    if tag:
        found = server.get(path_of("api", "v2", "tags", tag))
    elif dataset:
        named = server.find(dataset)
        path = path_of("api", "v2", "datasets", named.namespace, named.name, "tags")
        found = server.get(path, column=named.field or None)
    else:
        found = server.get("/api/v2/tags")
    if how.as_json:
        print_json(found)
    elif "tags" in found:
        _print_all(found["tags"])
    else:
        _print_tagged(found)
    if found["truncated"]:
        err.print("[yellow]there is more than is shown[/]")


def _print_all(found: list[dict[str, Any]]) -> None:
    table = table_of("tag", "columns", "datasets", "description")
    for one in found:
        cells = (one["name"], one["columns"], one["datasets"], one["description"] or "")
        table.add_row(*(escape(str(cell)) for cell in cells))
    print_wide(table) if found else out.print("no tag was set on anything")


def _print_tagged(found: dict[str, Any]) -> None:
    for one in found["columns"]:
        where = one["name"] + (f".{one['field']}" if one["field"] else "")
        how = "set" if one["set"] else "propagated"
        _print(
            f"[bold magenta]{escape(one['tag'])}[/] [cyan]{escape(where)}[/]"
            f" [dim]{escape(one['namespace'])}[/] {how}"
        )
        if not one["set"]:
            _print(f"    [dim]{escape(_path(one['path']))}[/]")
    for one in found["stopped"]:
        ends = f"{_column(one['source'])} → {_column(one['target'])}"
        by = ", ".join(name_in(job) for job in one["jobs"])
        _print(
            f"[bold magenta]{escape(one['tag'])}[/] [green]stopped[/] {escape(ends)}"
            f" [dim]masked by {escape(by)}[/]"
        )
    for one in found["unknown"]:
        ends = f"{name_in(one['origin'])} → {name_in(one['destination'])}"
        _print(
            f"[yellow]unknown[/] {escape(ends)}"
            f" [dim]{escape(name_in(one['job']))} reports no columns[/]"
        )
    if not found["columns"]:
        _print("no tag is set here, and none gets here")


def _print(text: str) -> None:
    out.print(text, soft_wrap=True)


def _column(step: dict[str, Any]) -> str:
    return f"{step['name']}.{step['field']}"


def _path(steps: list[dict[str, Any]]) -> str:
    text = ""
    for step in steps:
        by = f" → {', '.join(name_in(job) for job in step['jobs'])} → " if text else ""
        text += by + _column(step)
    return text
