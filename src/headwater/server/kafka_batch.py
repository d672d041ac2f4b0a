"""Some messages of a topic on their way into the store, in one commit with their offsets."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.server.store import StoreUnavailableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from headwater.server.store import Receipt, Store
    from headwater.server.store.database import Connection

__all__ = ["READ", "Batch", "MovedError", "Place", "Refused", "UndeliveredError"]

log = logging.getLogger("headwater.server")

READ = "SELECT value FROM setting WHERE name = ?"
WRITE = (
    "INSERT INTO setting (name, value) VALUES (?, ?)"
    " ON CONFLICT (name) DO UPDATE SET value = excluded.value"
)
Place = tuple[str, int]


class Refused(NamedTuple):
    """A message that no event can be made of, and why."""

    message: Any
    reason: str


class UndeliveredError(Exception):
    """Some of a batch must go to the dead letters before its offsets may move on."""

    def __init__(self, refused: list[Refused]) -> None:
        super().__init__(f"{len(refused)} messages cannot be read")
        self.refused = refused


class MovedError(Exception):
    """Another server has read on from where this one stands."""


class Batch(NamedTuple):
    """Some messages and where each partition stood before them."""

    messages: list[Any]
    dead: frozenset[int]
    stored: dict[Place, int | None]
    name: Callable[[Place], str]
    limit: int

    def take(self, store: Store) -> dict[Place, int]:
        """Write the events and the offsets in one commit; answers the offsets."""
        refused = [Refused(m, why) for m in self.messages if (why := self._unfit(m))]
        if refused:
            raise UndeliveredError(refused)
        good = [m for m in self.messages if id(m) not in self.dead]
        ends = {(m.topic(), m.partition()): m.offset() + 1 for m in self.messages}

        def also(connection: Connection, receipts: Sequence[Receipt]) -> None:
            bad = [
                Refused(message, str(receipt.error))
                for message, receipt in zip(good, receipts, strict=True)
                if receipt.error is not None
            ]
            if bad:
                raise UndeliveredError(bad)
            for place, end in ends.items():
                rows = connection.all(READ, (self.name(place),))
                if (int(rows[0][0]) if rows else None) != self.stored.get(place):
                    raise MovedError(f"{place[0]}/{place[1]} was read on by another server")
                connection.run(WRITE, (self.name(place), str(end)))

        try:
            store.append([m.value() for m in good], also)
        except (UndeliveredError, MovedError, StoreUnavailableError):
            raise
        except Exception as error:
            # One message that the writer cannot digest must not hold up the others.
            log.exception("a batch of %d messages failed", len(good))
            store.abandon()
            raise UndeliveredError(self._indigestible(store, good, error)) from error
        return ends

    def _unfit(self, message: Any) -> str:
        if id(message) in self.dead:
            return ""
        value = message.value()
        if value is None:
            return "the message has no value"
        return f"larger than {self.limit} bytes" if len(value) > self.limit else ""

    @staticmethod
    def _indigestible(store: Store, good: list[Any], error: Exception) -> list[Refused]:
        """The messages that fail by themselves; the others are taken in on the way."""
        found = []
        for message in good:
            try:
                store.append([message.value()])
            except StoreUnavailableError:
                raise
            except Exception as own:  # noqa: BLE001
                store.abandon()
                found.append(Refused(message, f"the server failed on it: {own!r}"))
        if not found:
            raise StoreUnavailableError(f"the batch failed: {error}")
        return found
