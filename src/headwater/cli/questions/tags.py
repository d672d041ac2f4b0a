"""`headwater tags`: which tags there are, where one gets to, and which ones a dataset has."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from headwater.cli.options import given, spread
from headwater.cli.output import err, escape, out, print_json, print_wide, table_of
from headwater.cli.questions.shown_names import ShownNames, dataset_id
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads it)
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
    if dataset is not None and tag is not None:
        raise UsageError("a dataset and --tag exclude each other", hint="ask twice")
    server = how.server()
    if tag is not None:
        found = server.get(path_of("api", "v2", "tags", given(tag, "the name of the tag")))
    elif dataset is not None:
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
    names = _names(found)
    for one in found["columns"]:
        where = one["name"] + (f".{one['field']}" if one["field"] else "")
        how = "set" if one["set"] else "propagated"
        _print(
            f"[bold magenta]{escape(one['tag'])}[/] [cyan]{escape(where)}[/]"
            f" [dim]{escape(one['namespace'])}[/] {how}"
        )
        if not one["set"]:
            _print(f"    [dim]{escape(_path(one['path'], names))}[/]")
    for one in found["stopped"]:
        ends = f"{_column(one['source'], names)} → {_column(one['target'], names)}"
        by = ", ".join(map(names.of, one["jobs"]))
        _print(
            f"[bold magenta]{escape(one['tag'])}[/] [green]stopped[/] {escape(ends)}"
            f" [dim]masked by {escape(by)}[/]"
        )
    for one in found["unknown"]:
        ends = f"{names.of(one['origin'])} → {names.of(one['destination'])}"
        _print(
            f"[yellow]unknown[/] {escape(ends)}"
            f" [dim]{escape(names.of(one['job']))} reports no columns[/]"
        )
    if not found["columns"]:
        _print("no tag is set here, and none gets here")


def _print(text: str) -> None:
    out.print(text, soft_wrap=True)


def _names(found: dict[str, Any]) -> ShownNames:
    steps = [step for one in found["columns"] for step in (one, *one["path"])]
    steps += [one[end] for one in found["stopped"] for end in ("source", "target")]
    nodes = [dataset_id(step) for step in steps]
    nodes += [job for step in steps for job in step.get("jobs", ())]
    nodes += [job for one in found["stopped"] for job in one["jobs"]]
    for one in found["unknown"]:
        nodes += [one["job"], one["origin"], one["destination"]]
    return ShownNames(nodes)


def _column(step: dict[str, Any], names: ShownNames) -> str:
    return f"{names.of(dataset_id(step), step['name'])}.{step['field']}"


def _path(steps: list[dict[str, Any]], names: ShownNames) -> str:
    text = ""
    for step in steps:
        by = f" → {', '.join(map(names.of, step['jobs']))} → " if text else ""
        text += by + _column(step, names)
    return text
