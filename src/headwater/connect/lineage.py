"""A connector's lineage as it was worked out, and whether it would come out otherwise now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.connect.world import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.model import Connector, Dataset, Derived, Settings


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
        return self._asked.unsure or self._asked.changed()


def keep(known: Derived, found: Derived) -> Derived:
    """What was found while somebody could not be asked, with what was known before in its gaps.

    A dataset that was known and is not found now is taken for one of those gaps.
    """
    before = {dataset.id: dataset for dataset in (*known.inputs, *known.outputs)}
    if not before.keys() <= {dataset.id for dataset in (*found.inputs, *found.outputs)}:
        return known
    edges = {(edge.input, edge.output): edge for edge in known.edges}

    def filled(dataset: Dataset) -> Dataset:
        old = before.get(dataset.id)
        return old if old is not None and dataset.schema is None and old.schema else dataset

    return replace(
        found,
        inputs=tuple(map(filled, found.inputs)),
        outputs=tuple(map(filled, found.outputs)),
        edges=tuple(
            edge if edge.columns is not None else edges.get((edge.input, edge.output), edge)
            for edge in found.edges
        ),
    )


def work_out(
    connector: Connector,
    world: Any,
    settings: Settings,
    derive: Callable[[Connector, Any, Settings], Derived],
) -> Lineage:
    """Derive a connector's lineage and keep what it was derived from."""
    asked = Recorder(world)
    return Lineage(derive(connector, asked, settings), asked)
