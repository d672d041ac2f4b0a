"""A connector's lineage as it was worked out, and whether it would come out otherwise now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.connect.recorder import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.model import Connector, Dataset, Derived, Edge, Settings


class Lineage:
    """What was derived, from what the world then said."""

    def __init__(self, derived: Derived, asked: Recorder) -> None:
        self.derived = derived
        self._asked = asked

    @property
    def unsure(self) -> bool:
        """Whether somebody who should know could not be asked."""
        return self._asked.unsure

    def changed(self) -> bool:
        """Whether the world answers otherwise now, so that it is worth deriving again."""
        return self._asked.unheard or self._asked.changed()


def keep(known: Derived, found: Derived) -> Derived:
    """What was found while somebody could not be asked, with what was known before in its gaps.

    A dataset that was known and is not found now is taken for one of those gaps.
    """
    before = {dataset.id: dataset for dataset in (*known.inputs, *known.outputs)}
    if not before.keys() <= {dataset.id for dataset in (*found.inputs, *found.outputs)}:
        return known
    edges = {(edge.input, edge.output): edge for edge in known.edges}
    seen = {dataset.id for dataset in known.outputs if _seen(dataset)}
    seen -= {dataset.id for dataset in found.outputs if _seen(dataset)}

    def filled(dataset: Dataset) -> Dataset:
        old = before.get(dataset.id)
        if old is not None and (dataset.id in seen or (dataset.schema is None and old.schema)):
            return old
        return dataset

    def gap(edge: Edge) -> bool:
        return edge.columns is None or edge.output in seen

    return replace(
        found,
        inputs=tuple(map(filled, found.inputs)),
        outputs=tuple(map(filled, found.outputs)),
        edges=tuple(
            edges.get((edge.input, edge.output), edge) if gap(edge) else edge
            for edge in found.edges
        ),
    )


def _seen(dataset: Dataset) -> bool:
    return any(item.source == "catalog" for item in dataset.evidence)


def work_out(
    connector: Connector,
    world: Any,
    settings: Settings,
    derive: Callable[[Connector, Any, Settings], Derived],
) -> Lineage:
    """Derive a connector's lineage and keep what it was derived from."""
    asked = Recorder(world)
    return Lineage(derive(connector, asked, settings), asked)
