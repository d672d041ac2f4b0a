"""What people order of connectors by commands, as the commands note it for the agent."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec
from msgspec.structs import replace

from headwater.connect.life.state import Condition
from headwater.lineage.model import End
from headwater.lineage.moments import SECOND
from headwater.lineage.openlineage.events import EventType

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.connect.life.steps import Emission, Step
    from headwater.emit import Outbox

# Connect shows what was ordered within moments, or once it has rebalanced.
SHOWN_WITHIN = 60 * SECOND
RESTARTING = "restarting"
"""What stands for `restart` until Connect has carried it out; a `restart` is one though no poll shows it."""
# What an order makes of a run: why it ends, and the conditions that show it.
_ENDS = {
    "pause": ("paused", (Condition.PAUSED,)),
    "stop": ("stopped", (Condition.STOPPED,)),
    RESTARTING: ("restarted", (Condition.RESTARTING,)),
    "restart": ("restarted", (Condition.RESTARTING, Condition.RUNNING)),
}
WITHDRAWN = "withdrawn"
"""What stands for the action of an order that Connect did not carry out, in a note after its own."""


class Order(msgspec.Struct, frozen=True, array_like=True):
    """One order; earlier versions noted restarts alone, and not by whom."""

    name: str
    at: int
    """When it was given, in microseconds, before Connect was asked."""
    action: str = "restart"
    by: str = ""
    """The user who gave it."""


_decoder = msgspec.json.Decoder(Order)


def leave_order(outbox: Outbox, url: str, order: Order) -> None:
    """Note an order for the agent of the cluster at that address."""
    outbox.note(_topic("order", url), msgspec.json.encode(order))


def _topic(kind: str, url: str) -> str:
    return f"{kind}/{url.rstrip('/')}"


class Orders:
    """The last order for each connector, until the poll that has to show it."""

    def __init__(self) -> None:
        self._last: dict[str, Order] = {}

    def take(self, outbox: Outbox, urls: Iterable[str], polled_at: int) -> list[Order]:
        """The orders noted since the last call; `polled_at`: when Connect last answered a poll before."""
        topics = [_topic(kind, url) for url in urls for kind in ("restart", "order")]
        new = [_decoder.decode(body) for topic in topics for body in outbox.notes(topic)]
        known = {**self._last, **{order.name: order for order in new}}
        # What was not seen in time may be another's doing when it is.
        self._last = {
            name: order for name, order in known.items() if polled_at < order.at + SHOWN_WITHIN
        }
        return new

    def sign(self, step: Step, seen: Condition) -> Step:
        """Name whoever ordered the end that a step reports."""
        order = self._last.get(step.tracked.name)
        if order is None or not order.by or order.action not in _ENDS:
            return step
        reason, shown = _ENDS[order.action]
        ends = [one for one in step.emissions if seen in shown and _is_due_to(order, one)]
        if not ends:
            return step
        del self._last[order.name]
        end = End(reason, by=order.by)
        signed = (replace(one, end=end) if one in ends else one for one in step.emissions)
        return replace(step, emissions=tuple(signed))


def _is_due_to(order: Order, emission: Emission) -> bool:
    """Whether an event ends a run that was under way when the order was given."""
    on_purpose = emission.type in (EventType.COMPLETE, EventType.ABORT) and not emission.inferred
    tracked = emission.tracked
    # An event has the time at which its poll began, and clocks differ a little.
    recent = tracked.emitted_at > order.at - SHOWN_WITHIN
    # The end of an earlier run may be emitted again (`run_selection`).
    earlier = tracked.run in tracked.ended
    return on_purpose and recent and not earlier and tracked.started <= order.at
