"""How a producer gets an event out and never loses it."""

from __future__ import annotations

from headwater.emit.destinations import Destination, RefusedError, destinations
from headwater.emit.outbox import Outbox, OutboxChange, OutboxInUseError, Pending, Transaction
from headwater.emit.sender import Sender

__all__ = [
    "Destination",
    "Outbox",
    "OutboxChange",
    "OutboxInUseError",
    "Pending",
    "RefusedError",
    "Sender",
    "Transaction",
    "destinations",
]
