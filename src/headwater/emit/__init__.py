"""How a producer gets an event out and never loses it."""

from __future__ import annotations

from headwater.emit.outbox import Held, Outbox, Pending, Transaction
from headwater.emit.sender import Sender
from headwater.emit.transport import Destination, Refused, destinations

__all__ = [
    "Destination",
    "Held",
    "Outbox",
    "Pending",
    "Refused",
    "Sender",
    "Transaction",
    "destinations",
]
