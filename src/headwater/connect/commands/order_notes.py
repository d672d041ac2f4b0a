"""Notes for the agent of what a command does to connectors and for whom, beside doing it."""

from __future__ import annotations

import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from msgspec.structs import replace

from headwater.connect.agent.orders import RESTARTING, WITHDRAWN, Order, leave_order
from headwater.connect.commands.inspect import existing_outbox
from headwater.emit.process.process_exit import user
from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["OrderNotes"]


class OrderNotes:
    """Notes for the agent with this state; what is done does not depend on whether they can be left."""

    def __init__(self, state: str | None, url: str) -> None:
        self.problem = ""
        """Why notes cannot be left; empty while they can."""
        self._state, self._url = state, url

    @contextmanager
    def order(self, name: str, action: str) -> Iterator[None]:
        """Note what is done to a connector here, which polls may miss."""
        order = Order(name, time.time_ns() // 1000, action, user())
        # A poll that shows what was ordered has to find by whom.
        self._leave(replace(order, action=RESTARTING) if action == "restart" else order)
        try:
            yield
        except BaseException:
            # Later, somebody else may do what was not done here.
            self._leave(replace(order, action=WITHDRAWN))
            raise
        if action == "restart":
            self._leave(order)

    def _leave(self, order: Order) -> None:
        if self.problem:
            return
        try:
            outbox = existing_outbox(self._state)
            if outbox is not None:
                try:
                    leave_order(outbox, self._url, order)
                finally:
                    outbox.forget_connection()
        except Exception as error:  # noqa: BLE001
            self.problem = redact(str(error))
