"""The explicit `lineage` facet: what each output comes from, in the shape of `columnLineage`.

One shape for both facets lets everything that reads column lineage read this one too. An input
without a column stands among the inputs of the whole dataset, with an empty column.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.openlineage.events import canonical

if TYPE_CHECKING:
    from headwater.lineage.openlineage.facets import LineageFacet, LineageField, LineageInput

__all__ = ["of_dataset", "of_job"]

Key = tuple[str, str]


def of_dataset(facet: LineageFacet) -> bytes | None:
    """The sources that a dataset's own facet names, or None if it names none."""
    if facet.inputs is None and facet.fields is None:
        return None
    return _statement(facet.inputs, facet.fields)


def of_job(facet: LineageFacet) -> dict[Key, bytes]:
    """The statement for each output that a job's facet names."""
    merged: dict[Key, tuple[list[LineageInput], dict[str, LineageField]]] = {}
    for entry in facet.entries or ():
        if entry.namespace and entry.name and entry.type in (None, "DATASET"):
            inputs, fields = merged.setdefault((entry.namespace, entry.name), ([], {}))
            inputs.extend(entry.inputs or ())
            fields.update(entry.fields or {})
    return {key: _statement(*found) for key, found in merged.items()}


def _statement(inputs: list[LineageInput] | None, fields: dict[str, LineageField] | None) -> bytes:
    columns: dict[str, Any] = {}
    whole = [_input(item) for item in inputs or () if _is_dataset(item)]
    for name, field in (fields or {}).items():
        sources = [item for item in field.inputs or () if _is_dataset(item)]
        named = [_input(item) for item in sources if item.field]
        whole += [_input(item) for item in sources if not item.field]
        columns[name] = {"inputFields": named}
    return canonical({"explicit": True, "fields": columns, "dataset": whole})


def _is_dataset(item: LineageInput) -> bool:
    return bool(item.namespace and item.name and item.type in (None, "DATASET"))


def _input(item: LineageInput) -> dict[str, Any]:
    found: dict[str, Any] = {
        "namespace": item.namespace, "name": item.name, "field": item.field or "",
    }  # fmt: skip
    if item.transformations:
        found["transformations"] = item.transformations
    return found
