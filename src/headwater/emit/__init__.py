"""How a producer gets an event out and never loses it."""

from __future__ import annotations

from headwater.emit.outbox import HeldError, Outbox, Pending, Transaction
from headwater.emit.sender import Sender
from headwater.emit.transport import Destination, RefusedError, destinations

__all__ = [
    "Destination",
    "HeldError",
    "Outbox",
    "Pending",
    "RefusedError",
    "Sender",
    "Transaction",
    "destinations",
]
