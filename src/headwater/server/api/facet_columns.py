"""Columns and tags from facets, in the shape of Marquez's answers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.columns import from_column_lineage
from headwater.lineage.openlineage import facets as known
from headwater.server.store.read.tagged import sent_tags

if TYPE_CHECKING:
    from collections.abc import Mapping

    import msgspec

    from headwater.server.store.entities import Held

__all__ = ["columns", "field_names", "tags_of"]


def tags_of(held: Mapping[str, Held], bodies: Mapping[int, msgspec.Raw]) -> list[tuple[str, str]]:
    """The tags that a producer sent: the column (empty for the whole) and the tag."""
    own = held.get("tags")
    return sent_tags(bytes(bodies[own[0]])) if own and own[0] in bodies else []


def field_names(number: int, bodies: Mapping[int, bytes]) -> set[str]:
    """The columns of a schema facet and those inside them, by dotted name."""
    body = bodies.get(number)
    read = known.read(body, known.SchemaFacet) if body else None
    found: set[str] = set()
    level = [("", field) for field in (read.fields if read else None) or ()]
    while level:
        found |= {prefix + field.name for prefix, field in level}
        level = [
            (f"{prefix}{field.name}.", inner)
            for prefix, field in level
            for inner in field.fields or ()
        ]
    return found


def columns(held: Held | None, bodies: Mapping[int, bytes]) -> list[dict[str, Any]]:
    """A column lineage facet, column by column."""
    body = bodies.get(held[0]) if held else None
    read = known.read(body, known.ColumnLineageFacet) if body else None
    grouped: dict[str, list[dict[str, Any]]] = {}
    for edge in from_column_lineage(read) if read else ():
        step = edge.transformations[0] if edge.transformations else None
        grouped.setdefault(edge.output, []).append(
            {
                "namespace": edge.namespace,
                "dataset": edge.name,
                "field": edge.field,
                "transformationDescription": (step.description or None) if step else None,
                "transformationType": step.subtype if step else None,
            }
        )
    return [
        {
            "name": name,
            "inputFields": inputs,
            "transformationDescription": None,
            "transformationType": None,
        }
        for name, inputs in grouped.items()
    ]
