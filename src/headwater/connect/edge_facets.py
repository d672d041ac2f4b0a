"""Edges in facets: the explicit lineage, columns for older consumers, and evidence."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from openlineage.client import facet_v2 as ol
from openlineage.client.generated import lineage as explicit

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .model import Dataset, Derived, Edge, Evidence


def entry(derived: Derived, output: Dataset) -> Any:
    """One output of the explicit lineage facet: what feeds it, and what feeds its columns."""
    inputs: list[Any] = []
    fields: dict[str, list[Any]] = {}
    for edge in derived.edges:
        if edge.output != output.id:
            continue
        inputs.append(explicit.LineageDatasetInput(*edge.input, "DATASET", transformations=None))
        for column in edge.columns or ():
            how = column.transformation
            change = explicit.LineageTransformation(
                how.type or "DIRECT", how.subtype, how.description, how.masking or None
            )
            fields.setdefault(column.output, []).append(
                explicit.LineageDatasetInput(*edge.input, "DATASET", column.input, [change])
            )
    named = {name: explicit.LineageFieldEntry(sources) for name, sources in fields.items()}
    return explicit.LineageDatasetEntry(*output.id, "DATASET", inputs, named or None)


def column_lineage(edges: Sequence[Edge]) -> dict[str, Any]:
    """The fields of a columnLineage facet, from the edges into a dataset."""
    facet = ol.column_lineage_dataset
    found: dict[str, list[Any]] = {}
    for edge in edges:
        for column in edge.columns or ():
            how = column.transformation
            change = facet.Transformation(
                how.type or "DIRECT", how.subtype, how.description, how.masking or None
            )
            found.setdefault(column.output, []).append(
                facet.InputField(*edge.input, column.input, [change])
            )
    return {name: facet.Fields(inputs, None, None) for name, inputs in found.items()}


def edge_evidence(edge: Edge) -> dict[str, Any]:
    """An edge with what said so."""
    return {
        "input": edge.input._asdict(),
        "output": edge.output._asdict(),
        "columns": edge.columns is not None,
        "evidence": [_evidence(item) for item in edge.evidence],
    }


def dataset_evidence(dataset: Dataset) -> dict[str, Any]:
    """A dataset with what said so."""
    return {**dataset.id._asdict(), "evidence": [_evidence(item) for item in dataset.evidence]}


def _evidence(item: Evidence) -> dict[str, Any]:
    return {"source": item.source, "detail": item.detail, "observed": item.observed}
