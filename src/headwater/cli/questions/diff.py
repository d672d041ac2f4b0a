"""`headwater diff`: what changed between two moments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from headwater.cli.options import spread
from headwater.cli.output import escape, out, print_json
from headwater.cli.questions.from_lake import Lake, of_period, say_source
from headwater.cli.questions.shown_names import column_ends
from headwater.cli.questions.times import TIME, moment, until
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads it)
from headwater.errors import UsageError
from headwater.lineage.wording import hidden_text

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["diff"]

DEPTH = 3


@spread
def diff(
    start: Annotated[str, typer.Option("--from", metavar="TIME", help=f"{TIME}.", callback=moment)],
    how: ServerOptions,
    end: Annotated[
        str | None,
        typer.Option("--to", metavar="TIME", help="The same; now if left out.", callback=until),
    ] = None,
    around: Annotated[
        str | None, typer.Option(metavar="DATASET", help="Only what lies around a dataset.")
    ] = None,
    depth: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=50,
            help="With --around, how many jobs beyond its own readers and writers.",
            show_default=str(DEPTH),
        ),
    ] = None,
    lake: Lake = None,
) -> None:
    """Show the jobs, edges, columns, schemas and states that appeared, went or changed."""
    if depth is not None and around is None:
        raise UsageError("--depth says how far --around goes", hint="--around DATASET")
    depth = DEPTH if depth is None else depth
    server = how.server() if lake is None else of_period(lake, start, end, around, depth)
    query: dict[str, Any] = {"from": start, "to": end, "limit": 5_000}
    if around is not None:
        named = server.find_dataset(around, "--around {namespace}:{name}")
        query |= {"node": f"dataset:{named.namespace}:{named.name}", "depth": depth}
    found = server.get("/api/v2/graph/diff", **query)
    if how.as_json:
        print_json(found)
        return
    lines = list(_lines(found))
    for line in lines or ["nothing changed"]:
        out.print(line, soft_wrap=True)
    if count := found["hidden"]:
        where = "next to these" if around is not None else "in the estate"
        out.print(f"[yellow]{hidden_text(count, where)}[/]")
    if found["truncated"]:
        out.print("[yellow]there is more than is shown[/]")
    say_source(found)


def _lines(found: dict[str, Any]) -> Iterator[str]:
    for sign, style, nodes, edges, columns in (
        ("+", "green", "appeared", "added", "columnsAdded"),
        ("-", "red", "vanished", "removed", "columnsRemoved"),
    ):
        for node in found[nodes]:
            kind, _, name = node.partition(":")
            yield f"[{style}]{sign} {kind}[/] {escape(name)}"
        for edge in found[edges]:
            ends = (edge["origin"].partition(":")[2], edge["destination"].partition(":")[2])
            yield f"[{style}]{sign} edge[/] {escape(' → '.join(ends))}"
        for one in found[columns]:
            yield f"[{style}]{sign} column[/] {escape(' → '.join(column_ends(one)))}"
    for one in found["schemas"]:
        breaks = "" if one["compatible"] else " [red](breaks readers)[/]"
        name = escape(one["dataset"].partition(":")[2])
        yield f"[yellow]~ schema[/] {name}: {escape('; '.join(one['changes']))}{breaks}"
    for one in found["states"]:
        name = escape(one["job"].partition(":")[2])
        yield f"[yellow]~ state[/] {name}: {one['before']} → {one['after']}"
