"""Flow samples: how fast records move, beside the events, and lost where a server is away."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Literal

import msgspec

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.emit.destinations import Destination

log = logging.getLogger(__name__)

TIMEOUT = 5.0
# A server without `/api/v2/flow` is asked again after so many seconds.
RETRY_AFTER = 600.0
Direction = Literal["input", "output"]


class DatasetRef(msgspec.Struct, frozen=True):
    """The dataset that a sample is about."""

    namespace: str
    name: str


class FlowSample(msgspec.Struct, frozen=True, rename="camel", omit_defaults=True):
    """One dataset as one run reads or writes it, at one moment."""

    run: str
    dataset: DatasetRef
    direction: Direction
    time: str
    records_per_second: float | None = None
    end_offset: int | None = None
    lag: int | None = None
    last_record_at: str | None = None


class FlowReporter:
    """Posts samples to `/api/v2/flow` of every HTTP destination that has it."""

    def __init__(self, destinations: Sequence[Destination], timeout: float = TIMEOUT) -> None:
        self._destinations = destinations
        self._http: Any = None
        self._retry_at: dict[str, float] = {}
        if any(destination.is_http for destination in destinations):
            # Not at the first sample: a child that is forked while another thread imports a module
            # can never import it.
            import httpx

            self._http = httpx.Client(timeout=timeout)

    def post(self, samples: Sequence[FlowSample]) -> None:
        """Send the samples; what does not arrive is lost."""
        if not samples:
            return
        body = msgspec.json.encode({"samples": samples})
        for destination in self._destinations:
            if time.monotonic() < self._retry_at.get(destination.name, 0.0):
                continue
            server = destination.server
            if server is not None and not self._send(server[0].rstrip("/"), server[1], body):
                self._retry_at[destination.name] = time.monotonic() + RETRY_AFTER

    def _send(self, url: str, headers: Any, body: bytes) -> bool:
        """Post once; False if the server does not know the path."""
        import httpx

        try:
            answer = self._http.post(
                f"{url}/api/v2/flow",
                content=body,
                headers={"Content-Type": "application/json", **headers},
            )
        except httpx.HTTPError as error:
            log.debug("flow samples not sent to %s: %s", url, error)
            return True
        # Another backend does not have the path; it gets the figures in heartbeats.
        return answer.status_code not in (404, 405)

    def close(self) -> None:
        """Let go of connections."""
        if self._http is not None:
            self._http.close()
