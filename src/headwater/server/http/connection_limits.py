"""What all connections together may take: how many there are, and the bodies they hold in memory."""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from typing import TYPE_CHECKING, Protocol

from headwater.server.http import HttpError

if TYPE_CHECKING:
    from collections.abc import Iterator

    from headwater.server.app import App

__all__ = ["ConnectionLimits", "InFlightBody", "watch_connections"]

RETRY = [(b"retry-after", b"1")]
TICK = 1.0


class SlowClientCheck(Protocol):
    """A connection that is asked every second whether its client still keeps up."""

    def tick(self) -> None:
        """Close the connection if its client is too slow."""
        ...


class ConnectionLimits:
    """Counts connections and the bytes of bodies that are being received or answered."""

    def __init__(self, connections: int, a_client: int, bodies: int) -> None:
        self._most = connections
        self._most_a_client = a_client
        self._most_bytes = bodies
        self._clients: Counter[str] = Counter()
        self.connections: set[SlowClientCheck] = set()
        self.bytes = 0

    def enter(self, connection: SlowClientCheck, client: str) -> None:
        """Count a new connection; raises 503 where there are too many.

        `client` is its address, or empty for a trusted proxy, whose clients are counted by their
        requests.
        """
        if len(self.connections) >= self._most:
            raise HttpError(503, f"there are {self._most} connections already", headers=RETRY)
        self._add(client, "connections")
        self.connections.add(connection)

    def leave(self, connection: SlowClientCheck, client: str) -> None:
        """Forget a connection that was counted."""
        if connection in self.connections:
            self.connections.discard(connection)
            self.ended(client)

    def begun(self, client: str) -> None:
        """Count a request of a client behind a proxy; raises 503 where there are too many."""
        self._add(client, "requests")

    def ended(self, client: str) -> None:
        """Forget one request or connection of a client."""
        if client:
            self._clients[client] -= 1
            if not self._clients[client]:
                del self._clients[client]

    def _add(self, client: str, what: str) -> None:
        if not client:
            return
        if self._clients[client] >= self._most_a_client:
            text = f"there are {self._most_a_client} {what} from this address already"
            raise HttpError(503, text, headers=RETRY)
        self._clients[client] += 1

    @contextlib.contextmanager
    def request(self, client: str) -> Iterator[None]:
        """Count one request of a client behind a proxy until it is answered."""
        self.begun(client)
        try:
            yield
        finally:
            self.ended(client)

    def hold(self, size: int) -> None:
        """Count bytes of a body; raises 503, having counted them, where all bodies are too many."""
        self.bytes += size
        if self.bytes > self._most_bytes:
            text = f"requests in flight have more than {self._most_bytes} bytes; send this again"
            raise HttpError(503, text, headers=RETRY)

    def release(self, size: int) -> None:
        """Forget bytes that were counted."""
        self.bytes -= size

    @contextlib.contextmanager
    def body(self) -> Iterator[InFlightBody]:
        """Count the body of one request until it is answered."""
        held = InFlightBody(self)
        try:
            yield held
        finally:
            self.release(held.size)


class InFlightBody:
    """The bytes that one request holds."""

    def __init__(self, traffic: ConnectionLimits) -> None:
        self._traffic = traffic
        self.size = 0

    def hold(self, size: int) -> None:
        """Count more bytes of this request; raises 503 where all requests hold too many."""
        self.size += size
        self._traffic.hold(size)


async def watch_connections(app: App) -> None:
    """Ask every connection each second whether its client keeps up."""
    while True:
        await asyncio.sleep(TICK)
        for connection in list(app.traffic.connections):
            connection.tick()
