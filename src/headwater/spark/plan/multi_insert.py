"""Multi-insert: one statement that inserts into several tables is one run with several outputs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import replace

from headwater.lineage.model import ColumnLineage, Edge
from headwater.spark.model import PlanLineage, each_once

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.lineage.model import ColumnSource, Dataset
    from headwater.lineage.naming import DatasetName

OPERATION = "multi_insert"


def together(parts: list[PlanLineage]) -> PlanLineage:
    """The lineage of a statement from that of its commands, with the pairs that belong together."""
    if len(parts) == 1:
        return parts[0]
    outputs: dict[DatasetName, Dataset] = {}
    edges: dict[tuple[DatasetName, DatasetName], Edge] = {}
    for part in parts:
        for one in part.outputs:
            before = outputs.get(one.id)
            outputs[one.id] = one if before is None else _both(before, one)
            for source in part.inputs:
                known = one.columns is not None and not one.columns.unknown
                edges[source.id, one.id] = Edge(source.id, one.id, source.evidence, known)
    return PlanLineage(
        inputs=tuple(each_once(one for part in parts for one in part.inputs).values()),
        outputs=tuple(outputs.values()),
        edges=tuple(edges.values()),
        operation=OPERATION,
        problems=tuple(dict.fromkeys(text for part in parts for text in part.problems)),
        nodes=sum(part.nodes for part in parts),
        targets=tuple(one.id for part in parts for one in part.outputs),
        evolves=any(part.evolves for part in parts),
    )


def _both(one: Dataset, other: Dataset) -> Dataset:
    """A table that is inserted into twice: its columns come from both."""
    columns = None
    if one.columns is not None and other.columns is not None:
        columns = _columns(one.columns, other.columns)
    changes = [item.change for item in (one, other) if item.change is not None]
    # What replaces the table as a whole says more than what replaces a part of it.
    change = next((c for c in changes if not c.partial), next(iter(changes), None))
    return replace(one, columns=columns, change=change)


def _columns(one: ColumnLineage, other: ColumnLineage) -> ColumnLineage:
    unknown = tuple(dict.fromkeys((*one.unknown, *other.unknown)))
    return ColumnLineage(
        {
            name: _sources((*one.fields.get(name, ()), *other.fields.get(name, ())))
            for name in (*one.fields, *(n for n in other.fields if n not in one.fields))
            if name not in unknown
        },
        _sources((*one.dataset, *other.dataset)),
        unknown,
    )


def _sources(given: Iterable[ColumnSource]) -> tuple[ColumnSource, ...]:
    found: dict[tuple[DatasetName, str], ColumnSource] = {}
    for one in given:
        key = (one.dataset, one.field)
        before = found.get(key)
        ways = before.transformations if before is not None else ()
        found[key] = replace(
            one, transformations=tuple(dict.fromkeys((*ways, *one.transformations)))
        )
    return tuple(found.values())
