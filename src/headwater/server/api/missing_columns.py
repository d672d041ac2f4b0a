"""The answer to a name of a column that a dataset lacks."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.moments import iso
from headwater.server.api.lookup import columns_of, has_column, nearest
from headwater.server.http import HttpNotFoundError

if TYPE_CHECKING:
    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["check_column", "missing_column", "row_of"]


def check_column(view: View, dataset: Dataset, field: str, at: int | None = None) -> bool:
    """Whether the columns of a dataset are known; 404 where they are and this is none of them."""
    known = has_column(view, dataset, field, at)
    if known is False:
        raise missing_column(view, dataset, field, at)
    return known is True


def missing_column(
    view: View, dataset: Dataset, field: str, at: int | None = None
) -> HttpNotFoundError:
    """404 for a column that a dataset lacks now, or lacked, with those that are most like it."""
    made = {name for _, name in view.column_graph(at).outputs([dataset.root])}
    known = sorted(made | columns_of(view, dataset, at))
    if not known:
        message = f"The columns of dataset '{dataset.name}' are not known yet: no producer has reported them."
        return HttpNotFoundError(message, "column", field, [])
    rows = [row_of(dataset, name) for name in nearest(field, known[:2_000])]
    lacks = "has no" if at is None else "had no"
    message = f"Dataset '{dataset.name}' {lacks} column '{field[:200]}'"
    message += "." if at is None else f" at {iso(at)}."
    return HttpNotFoundError(message, "column", field, rows)


def row_of(dataset: Dataset, field: str) -> dict[str, Any]:
    """A dataset or one of its columns by name, with its node id."""
    row = {"namespace": dataset.space, "name": dataset.name}
    if not field:
        return {"kind": "dataset", **row, "node": f"dataset:{dataset.space}:{dataset.name}"}
    node = f"datasetField:{dataset.space}:{dataset.name}:{field}"
    return {"kind": "column", **row, "field": field, "node": node}
