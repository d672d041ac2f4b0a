"""What was asked of a server, how it was answered, and how long that took."""

from __future__ import annotations

import re
import secrets
from collections import Counter
from typing import TYPE_CHECKING

from headwater.metrics import Histogram, Metric, labelled

if TYPE_CHECKING:
    from collections.abc import Iterable

    from headwater.server.http import Response

__all__ = ["API", "EVENT", "PAGE", "RequestMetrics", "id_of", "with_id"]

EVENT, API, PAGE = "event", "api", "page"
"""One event sent; any other call of the API; a file of the page."""
BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_ID = re.compile(rb"[\w.:/+=-]{1,128}")


class RequestMetrics:
    """Counts answered requests; on the event loop alone."""

    def __init__(self) -> None:
        self._codes: Counter[tuple[str, int]] = Counter()
        self._seconds = {kind: Histogram(*BOUNDS) for kind in (EVENT, API, PAGE)}

    def answered(self, kind: str, code: int, seconds: float) -> None:
        """Count a request by its answer."""
        self._codes[kind, code] += 1
        self._seconds[kind].observe(seconds)

    def metrics(self) -> Iterable[Metric]:
        """The counts."""
        yield labelled(
            "headwater_requests_total",
            "counter",
            "Requests answered, by kind and status.",
            (
                ({"kind": kind, "code": str(code)}, count)
                for (kind, code), count in sorted(self._codes.items())
            ),
        )
        samples = [
            one for kind, held in self._seconds.items() for one in held.samples({"kind": kind})
        ]
        yield Metric(
            "headwater_request_seconds",
            "histogram",
            "Seconds from the whole request to its answer; of an event, until it is on the disk.",
            samples,
        )


def with_id(response: Response, own: str) -> Response:
    """The answer with the request id that log lines carry."""
    return response._replace(headers=(*response.headers, (b"x-request-id", own.encode())))


def id_of(header: bytes | None) -> str:
    """The id that a client or a proxy gave a request, if it is fit for a log; else a new one."""
    if header is not None and _ID.fullmatch(header):
        return header.decode("ascii")
    return secrets.token_hex(8)
