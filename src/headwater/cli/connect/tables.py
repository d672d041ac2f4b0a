"""Connectors and their lineage as tables, wide where the output is not a terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.cli.output import INDENT, escape, escape_lines, out, print_wide, state, table_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.connect.model import Derived
    from headwater.lineage.model import Evidence


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
    """Print a connector's datasets and edges; evidence is numbered and printed once."""
    evidence: dict[str, int] = {}

    def known(found: Sequence[Evidence]) -> str:
        texts = [
            f"{one.source}: {one.detail} ({'observed' if one.observed else 'derived'})"
            for one in found
        ]
        return ", ".join(str(evidence.setdefault(text, len(evidence) + 1)) for text in texts)

    out.print(
        f"[bold]{escape(derived.job.name)}[/] in {escape(derived.job.namespace)}: {derived.family}"
        f"{f', {derived.role}' if derived.role else ''}",
        soft_wrap=True,
    )
    table = table_of("", "dataset", "columns", "known from")
    for side, datasets in (("reads", derived.lineage.inputs), ("writes", derived.lineage.outputs)):
        for dataset in datasets:
            count = len(dataset.schema.columns()) if dataset.schema else 0
            table.add_row(
                side,
                escape(f"{dataset.namespace} {dataset.name}"),
                str(count or "unknown"),
                known(dataset.evidence),
            )
    if table.row_count:
        print_wide(table)
    if derived.edges:
        edges = table_of("from", "to", "columns", "known from")
        for edge in derived.edges:
            columns = derived.columns_of(edge)
            counted = "unknown" if columns is None else f"{len(columns)} edges"
            edges.add_row(
                escape(edge.input.name), escape(edge.output.name), counted, known(edge.evidence)
            )
        out.print()
        print_wide(edges)
    if evidence:
        out.print()
    for text, number in evidence.items():
        out.print(f"{number}  {escape(text)}", soft_wrap=True)
