"""`headwater trace`: where a dataset or a column comes from, or where it goes, as a tree."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.tree import Tree

from headwater.cli.options import spread
from headwater.cli.output import err, escape, out, print_json, print_tree, visible
from headwater.cli.questions.from_lake import Lake, of_dataset, say_source
from headwater.cli.questions.shown_names import ShownNames, job_names
from headwater.cli.questions.times import TIME, until
from headwater.cli.questions.unknown_columns import unknown_inputs, unknown_outputs
from headwater.cli.server.client import ServerOptions  # noqa: TC001  (typer reads it)
from headwater.errors import HeadwaterError, UsageError
from headwater.lineage.wording import hidden_text

if TYPE_CHECKING:
    from collections.abc import Iterator


__all__ = ["DatasetName", "trace"]

DatasetName = Annotated[
    str,
    typer.Argument(
        metavar="DATASET[.COLUMN]", help="NAMESPACE:NAME, or NAME alone where it is the only one."
    ),
]
# In a label Mermaid reads more than its quotes: entities of its own (#), directives (%%), Markdown (`).
MERMAID = str.maketrans(
    {
        "&": "&amp;", '"': "&quot;", "<": "&lt;", ">": "&gt;",
        "#": "&num;", "%": "&percnt;", "`": "&grave;",
    }
)  # fmt: skip
GRAPHVIZ = str.maketrans({"\\": "\\\\", '"': '\\"'})
STYLE = {"RUNNING": "green", "FAILED": "bold red", "ABORTED": "yellow", "COMPLETED": "blue"}


@spread
def trace(
    dataset: DatasetName,
    how: ServerOptions,
    up: Annotated[bool, typer.Option("--up", help="What it comes from; the default.")] = False,
    down: Annotated[bool, typer.Option("--down", help="What it leads to.")] = False,
    depth: Annotated[int, typer.Option(min=1, max=50, help="How many jobs away.")] = 20,
    at: Annotated[
        str | None, typer.Option(metavar="TIME", help=f"As it was then: {TIME}.", callback=until)
    ] = None,
    lake: Lake = None,
    indirect: Annotated[
        bool, typer.Option("--indirect", help="Also columns that only decide which rows there are.")
    ] = False,
    mermaid: Annotated[bool, typer.Option("--mermaid", help="Print a Mermaid flowchart.")] = False,
    dot: Annotated[bool, typer.Option("--dot", help="Print Graphviz's language.")] = False,
) -> None:
    """Show where a dataset or a column comes from, or where it goes, with states and evidence."""
    if up and down:
        raise UsageError("--up and --down exclude each other", hint="ask twice")
    if how.as_json + mermaid + dot > 1:
        raise UsageError("--json, --mermaid and --dot exclude each other")
    server = how.server() if lake is None else of_dataset(lake, dataset, at, depth, down=down)
    named = server.find(dataset, at=at)
    found = server.get(
        "/api/v2/trace",
        node=named.node,
        direction="down" if down else "up",
        depth=depth,
        at=at,
        indirect="true" if indirect else None,
    )
    if how.as_json:
        print_json(found)
    elif mermaid or dot:
        out.print(
            "\n".join(_mermaid(found) if mermaid else _dot(found)), markup=False, soft_wrap=True
        )
    else:
        if found["columnsKnown"] is False:
            raise HeadwaterError(
                f"the columns of {named.namespace} {named.name} are not known yet",
                hint="a connector's are reported by the poll after its schema is registered or its "
                "table is created",
            )
        print_tree(_tree(found))
        named.print_others()
        server.print_page("datasets", named.namespace, named.name)
    if found.get("unknown"):
        _say_unknown(named.field, found)
    if count := found.get("hidden"):
        err.print(f"[yellow]{hidden_text(count, 'next to these')}[/]")
    if found["truncated"]:
        err.print("[yellow]there is more than is shown[/]")
    say_source(found)


def _say_unknown(field: str, found: dict[str, Any]) -> None:
    """Say that more columns may lead to one, or come from it: jobs beside its dataset report none."""
    jobs = [node["id"] for node in found["nodes"] if node["kind"] == "job"]
    names = ShownNames([*jobs, *(one["job"] for one in found["unknown"])])
    silent, more = found["unknown"], len(found["rows"]) > 1
    say = unknown_outputs if found["direction"] == "down" else unknown_inputs
    text = say(field, silent, names, more=more)
    err.print(f"[yellow]{escape(text)}[/]", soft_wrap=True)


def _tree(found: dict[str, Any]) -> Tree:
    nodes = _named(found)
    edges = {(edge["origin"], edge["destination"]): edge for edge in found["edges"]}
    drawn: list[Tree] = []
    for row in found["rows"]:
        node, parent = nodes[row["node"]], row["parent"]
        label = _label(node)
        if parent is not None:
            label += _along(edges.get(_ends(found, row), {}), nodes)
        if row["repeated"]:
            label += " [dim](see above or below)[/]"
        drawn.append(Tree(label, highlight=False) if parent is None else drawn[parent].add(label))
    return drawn[0]


def _named(found: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The nodes by their ids; a job whose name another one has is called by its namespace too."""
    names = job_names(node for node in found["nodes"] if node["kind"] == "job")
    return {
        node["id"]: {**node, "name": names[node["namespace"], node["name"]]}
        if node["kind"] == "job"
        else node
        for node in found["nodes"]
    }


def _ends(found: dict[str, Any], row: dict[str, Any]) -> tuple[str, str]:
    """The edge over which a row was reached, as data goes: in a cycle there is one each way."""
    near, far = found["rows"][row["parent"]]["node"], row["node"]
    return (near, far) if found["direction"] == "down" else (far, near)


def _label(node: dict[str, Any]) -> str:
    if node["kind"] == "job":
        kind = " ".join(w for w in (node["integration"], node["processing"]) if w)
        error = f"  [red]{escape(node['error'])}[/]" if node["error"] else ""
        return f"[bold]{escape(node['name'])}[/] {_state(node)} [dim]{escape(kind)}[/]{error}"
    name = f"{node['name']}.{node['field']}" if node.get("field") else node["name"]
    if node["kind"] == "column" and not node["field"]:
        name += " (the whole record)"
    store = f" {escape(node['store'])}" if node["store"] != node["namespace"] else ""
    return f"[cyan]{escape(name)}[/] [dim]{escape(node['namespace'])}{store}[/]"


def _state(job: dict[str, Any]) -> str:
    since = f" since {job['since']}" if job["since"] else ""
    state = _shown(job)
    return f"[{STYLE.get(state, 'none')}]{escape(state)}[/]{since}"


def _shown(job: dict[str, Any]) -> str:
    """PAUSED or STOPPED where somebody wanted it so, else the state of the newest run."""
    return str(job.get("planned") or job["state"]).upper()


def _along(edge: dict[str, Any], nodes: dict[str, dict[str, Any]]) -> str:
    """How a column came about and by which jobs; of any edge, what it is known from."""
    parts = []
    how = {str(one["subtype"] or one["type"] or "").lower() for one in edge.get("how", ())}
    if words := ", ".join(sorted(how - {""}) + ["masked"] * edge.get("masked", False)):
        parts.append(escape(words))
    jobs = [nodes[job] for job in edge.get("jobs", ()) if job in nodes]
    if jobs:
        some = [] if edge["masked"] else edge["maskedBy"]
        parts.append(
            "by "
            + ", ".join(
                f"{escape(job['name'])} ({_state(job)}{', which masks it' * (job['id'] in some)})"
                for job in jobs
            )
        )
    proofs = [
        f"{one.get('source', '')} {one.get('detail', '')}".strip() + _seen(one)
        for one in edge.get("evidence", ())
    ]
    if proofs:
        parts.append("from " + escape("; ".join(proofs[:2])))
    return f"  [dim]{' '.join(parts)}[/]" if parts else ""


def _seen(evidence: dict[str, Any]) -> str:
    observed = evidence.get("observed")
    return "" if observed is None else " (observed)" if observed else " (derived)"


def _drawn(found: dict[str, Any]) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    """The nodes of the tree: a short name, what kind it is, and the lines of its label."""
    shown = {row["node"] for row in found["rows"]}
    for number, node in enumerate(_named(found).values()):
        if node["id"] in shown:
            name = node["name"] + (f".{node['field']}" if node["kind"] == "column" else "")
            more = _shown(node) if node["kind"] == "job" else node["namespace"]
            yield f"n{number}", node["kind"], (visible(name), visible(more))


def _arrows(found: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """The edges of the tree between those short names, each with how a column came about."""
    numbers = {node["id"]: f"n{number}" for number, node in enumerate(found["nodes"])}
    drawn = {_ends(found, row) for row in found["rows"] if row["parent"] is not None}
    for edge in found["edges"]:
        if (edge["origin"], edge["destination"]) in drawn:
            how = {str(one["subtype"] or one["type"] or "").lower() for one in edge.get("how", ())}
            label = visible(", ".join(sorted(how - {""})))
            yield numbers[edge["origin"]], numbers[edge["destination"]], label


def _mermaid(found: dict[str, Any]) -> Iterator[str]:
    def quoted(*lines: str) -> str:
        return '"' + "<br>".join(line.translate(MERMAID) for line in lines) + '"'

    yield "flowchart LR"
    for name, kind, lines in _drawn(found):
        yield f"  {name}({quoted(*lines)})" if kind == "job" else f"  {name}[{quoted(*lines)}]"
    for origin, destination, label in _arrows(found):
        yield f"  {origin} -->{f'|{quoted(label)}|' if label else ''} {destination}"


def _dot(found: dict[str, Any]) -> Iterator[str]:
    def quoted(*lines: str) -> str:
        return '"' + "\\n".join(line.translate(GRAPHVIZ) for line in lines) + '"'

    yield "digraph lineage {"
    yield "  rankdir=LR;"
    for name, kind, lines in _drawn(found):
        yield f"  {name} [label={quoted(*lines)}, shape={'ellipse' if kind == 'job' else 'box'}];"
    for origin, destination, label in _arrows(found):
        yield f"  {origin} -> {destination}{f' [label={quoted(label)}]' if label else ''};"
    yield "}"
