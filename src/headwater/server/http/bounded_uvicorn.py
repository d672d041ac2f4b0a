"""HTTP for the small servers beside the lineage server, within limits that hold before any login."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from uvicorn import Config
from uvicorn.protocols.http.h11_impl import H11Protocol

if TYPE_CHECKING:
    import asyncio

__all__ = ["bounded"]

HEAD = 32 * 1024
"""Bytes of a request's address and headers."""
SECONDS = 10
"""A client that sent no whole request between two checks, this long apart, is cut off."""


class BoundedProtocol(H11Protocol):
    """HTTP as uvicorn speaks it, for so many clients at a time, each of which sends in time.

    h11 itself refuses a head that is too large; uvicorn's other parser keeps whatever is sent.
    """

    cycle: Any
    _answered = 0
    _seen = 0

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Take the connection, unless there are too many."""
        super().connection_made(transport)
        self._timer = self.loop.call_later(SECONDS, self._check)
        if self.limit_concurrency is not None and len(self.connections) > self.limit_concurrency:
            transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._timer.cancel()
        super().connection_lost(exc)

    def on_response_complete(self) -> None:
        """Count an answer: its client sent a whole request."""
        self._answered += 1
        super().on_response_complete()

    def _check(self) -> None:
        cycle = self.cycle
        to_send = cycle is None or cycle.response_complete or cycle.more_body
        if to_send and self._answered == self._seen:
            self.transport.abort()
        else:
            self._seen = self._answered
            self._timer = self.loop.call_later(SECONDS, self._check)


def bounded(app: Any, host: str, port: int, *, connections: int) -> Config:
    """How uvicorn serves an app on this address: no other protocol, no headers of a proxy."""
    return Config(
        app,
        host=host,
        port=port,
        http=BoundedProtocol,
        ws="none",
        lifespan="off",
        access_log=False,
        # Whatever a stranger sends wrongly would be a line.
        log_level="error",
        server_header=False,
        proxy_headers=False,
        limit_concurrency=connections,
        h11_max_incomplete_event_size=HEAD,
        timeout_graceful_shutdown=1,
    )
