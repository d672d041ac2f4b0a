"""A connector's lineage as it was worked out, and whether it would come out otherwise now."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.connect.world import Recorder

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.model import Connector, Derived, Settings


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


def work_out(
    connector: Connector,
    world: Any,
    settings: Settings,
    derive: Callable[[Connector, Any, Settings], Derived],
) -> Lineage:
    """Derive a connector's lineage and keep what it was derived from."""
    asked = Recorder(world)
    return Lineage(derive(connector, asked, settings), asked)
