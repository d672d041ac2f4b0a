"""Connectors and their lineage as tables, wide where the output is not a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.cli.output import INDENT, escape, escape_lines, out, print_wide, state, table_of

if TYPE_CHECKING:
    from rich.table import Table

    from headwater.connect.model import Derived

LEAST_WIDTH = 40


def print_status(entries: list[tuple[str, dict[str, Any]]]) -> None:
    """Print each connector and its tasks, then every trace."""
    table = table_of("connector", "part", "state", "worker", "version")
    traces = []
    for connector, found in entries:
        parts = [("connector", found), *((f"task {t['id']}", t) for t in found["tasks"])]
        for at, (part, values) in enumerate(parts):
            name = escape(connector) if at == 0 else ""
            table.add_row(
                name,
                part,
                state(values["state"]),
                escape(values["worker_id"]),
                escape(values["version"]),
            )
            if values["trace"]:
                traces.append((f"{connector} {part}", values["trace"]))
    if table.row_count:
        print_wide(table)
    for where, trace in traces:
        out.print(f"\n[bold red]{escape(where)}[/]", soft_wrap=True)
        out.print(INDENT + escape_lines(trace.strip(), INDENT), soft_wrap=True)


def print_derived(derived: Derived) -> None:
    """Print a connector's datasets and edges with their evidence."""
    out.print(
        f"[bold]{escape(derived.job.name)}[/] in {escape(derived.job.namespace)}: {derived.family}"
        f"{f', {derived.role}' if derived.role else ''}",
        soft_wrap=True,
    )
    table = _with_evidence("", "dataset", "columns")
    for side, datasets in (("reads", derived.lineage.inputs), ("writes", derived.lineage.outputs)):
        for dataset in datasets:
            count = len(dataset.schema.columns()) if dataset.schema else 0
            table.add_row(
                side,
                escape(f"{dataset.namespace} {dataset.name}"),
                str(count or "unknown"),
                escape(_evidence(dataset.evidence)),
            )
    if table.row_count:
        print_wide(table)
    if derived.edges:
        edges = _with_evidence("from", "to", "columns")
        for edge in derived.edges:
            columns = derived.columns_of(edge)
            known = "unknown" if columns is None else f"{len(columns)} edges"
            edges.add_row(
                escape(edge.input.name), escape(edge.output.name), known,
                escape(_evidence(edge.evidence)),
            )  # fmt: skip
        out.print()
        print_wide(edges)


def _evidence(found: Any) -> str:
    return "; ".join(
        f"{one.source}: {one.detail} ({'observed' if one.observed else 'derived'})" for one in found
    )


def _with_evidence(*columns: str) -> Table:
    """An empty table; evidence gets room to be read."""
    table = table_of(*columns, "evidence")
    table.columns[-1].min_width = LEAST_WIDTH
    return table
