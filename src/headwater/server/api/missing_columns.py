"""The answer to a name of a column that a dataset lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.server.api.facet_columns import field_names
from headwater.server.api.lookup import nearest
from headwater.server.http import HttpNotFoundError

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["missing_column", "row_of"]


def missing_column(view: View, dataset: Dataset, field: str) -> HttpNotFoundError:
    """404 for a column that a dataset lacks, with those of its columns that are most like it."""
    held = dataset.state.facets.get("schema")
    made = {name for _, name in view.column_graph().outputs([dataset.root])}
    known = sorted(made | field_names(held, view.bodies([held[0]])) if held else made)
    if not known:
        message = f"The columns of dataset '{dataset.name}' are not known yet: no producer has reported them."
        return HttpNotFoundError(message, "column", field, [])
    rows = [row_of(dataset, name) for name in nearest(field, known[:2_000])]
    message = f"Dataset '{dataset.name}' has no column '{field[:200]}'."
    return HttpNotFoundError(message, "column", field, rows)


def row_of(dataset: Dataset, field: str) -> dict[str, Any]:
    """A dataset or one of its columns by name, with its node id."""
    row = {"namespace": dataset.space, "name": dataset.name}
    if not field:
        return {"kind": "dataset", **row, "node": f"dataset:{dataset.space}:{dataset.name}"}
    node = f"datasetField:{dataset.space}:{dataset.name}:{field}"
    return {"kind": "column", **row, "field": field, "node": node}
