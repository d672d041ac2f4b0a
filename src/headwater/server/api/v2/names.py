"""Which datasets and columns a name that a person typed can mean."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any, TypedDict

from headwater.server.api.facet_columns import field_names
from headwater.server.api.lookup import column_node, dataset_node, has_column
from headwater.server.api.parameters import text
from headwater.server.api.types import NameMatch
from headwater.server.http import HttpError, HttpNotFoundError
from headwater.server.routing import Routes

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.store.entities import Dataset
    from headwater.server.store.view import View

__all__ = ["api", "missing_column"]

api = Routes()

CANDIDATES = 20
LIKE = 500
DOTS = 8
"""Ways to cut a text into a dataset and a column that are tried."""
Match = tuple["Dataset", str]
"""A dataset, and one of its columns or nothing."""


class Matches(TypedDict):
    """What a name can mean: one match, or several to choose from."""

    matches: list[NameMatch]
    truncated: bool


@api.get("/api/v2/names", answer=Matches)
def names(view: View, q: str = text(required=True, example="orders.price")) -> dict[str, Any]:
    """The datasets or columns that a text names: `NAMESPACE:NAME`, `NAME`, either with `.COLUMN`.

    A name without its namespace may also leave out leading parts (`orders` for `shop.public.orders`)
    where nothing has it as its full name. Node ids are taken too. 404 has the nearest names.
    """
    found = _matches(view, q.strip())
    return {
        "matches": [_row(dataset, field) for dataset, field in found[:CANDIDATES]],
        "truncated": len(found) > CANDIDATES,
    }


def _matches(view: View, typed: str) -> list[Match]:
    kind, _, rest = typed.partition(":")
    if kind == "datasetField" and rest:
        dataset, field = column_node(view, rest)
        if not has_column(view, dataset, field):
            raise missing_column(view, dataset, field)
        return [(dataset, field)]
    typed = rest if kind == "dataset" and rest else typed
    whole = _datasets(view, typed)
    if whole:
        return [(dataset, "") for dataset in whole]
    lacking: list[Match] = []
    for name, field in _cuts(typed):
        datasets = _datasets(view, name)
        found = [(dataset, field) for dataset in datasets if has_column(view, dataset, field)]
        if found:
            return found
        lacking += [(dataset, field) for dataset in datasets]
    if len(lacking) == 1:
        raise missing_column(view, *lacking[0])
    name = typed.rpartition(":")[2]
    raise HttpNotFoundError(f"no dataset is called '{typed[:200]}'", "dataset", name)


def _cuts(typed: str) -> Iterator[tuple[str, str]]:
    """The ways to cut a text at a dot, the longest dataset first."""
    parts = typed.split(".")
    for i in range(len(parts) - 1, max(0, len(parts) - 1 - DOTS), -1):
        yield ".".join(parts[:i]), ".".join(parts[i:])


def _datasets(view: View, name: str) -> list[Dataset]:
    """The datasets that a text names: one by namespace and name, else all of that name."""
    if not name:
        return []
    if ":" in name:
        try:
            return list(view.datasets([dataset_node(view, name).root]).values())
        except HttpError:
            pass
    sql = (
        "SELECT t.id, t.name, t.root FROM dataset t WHERE t.hidden = 0"  # noqa: S608
        f" AND t.id IN (SELECT id FROM dataset WHERE {view.connection.holds.format('dataset')})"
        " ORDER BY length(t.name), t.id LIMIT ?"
    )
    rows = view.all(sql, (view.connection.sought(name), LIKE))
    ends = (f".{name}", f"/{name}")
    exact = {root for _, full, root in rows if full == name}
    found = exact or {root for _, full, root in rows if full.endswith(ends)}
    datasets = view.datasets(found).values()
    return sorted(datasets, key=lambda one: (one.name, one.space))


def missing_column(view: View, dataset: Dataset, field: str) -> HttpNotFoundError:
    """404 for a column that a dataset lacks, with those of its columns that are most like it."""
    held = dataset.state.facets.get("schema")
    known = sorted(field_names(held, view.bodies([held[0]])) if held else ())
    near = difflib.get_close_matches(field, known[:2_000], n=5, cutoff=0.4) or known[:5]
    message = f"Dataset '{dataset.name}' has no column '{field[:200]}'."
    return HttpNotFoundError(message, "column", field, [_row(dataset, name) for name in near])


def _row(dataset: Dataset, field: str) -> dict[str, Any]:
    row = {"namespace": dataset.space, "name": dataset.name}
    if not field:
        return {"kind": "dataset", **row, "node": f"dataset:{dataset.space}:{dataset.name}"}
    node = f"datasetField:{dataset.space}:{dataset.name}:{field}"
    return {"kind": "column", **row, "field": field, "node": node}
