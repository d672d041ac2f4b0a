"""HTTP clients of services; answers are read up to a size and a time, since any may be hostile."""

from __future__ import annotations

import re
import time
from typing import TYPE_CHECKING, NamedTuple
from urllib.parse import urlsplit

import httpx

from headwater.connect.services.endpoint import LOOPBACK, tls_context

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.connect.services.endpoint import Endpoint

# A connector with its status takes about 5 KB, so this is a cluster of ten thousand.
MAX_BYTES = 64_000_000
# The client's own timeout holds for each piece of an answer; this many hold for the whole of it.
PIECES = 3
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


class AnswerTooLargeError(Exception):
    """An answer is larger than what is read of it."""


class Answer(NamedTuple):
    """What a service answered."""

    status_code: int
    content: bytes
    reason_phrase: str = ""

    @property
    def is_success(self) -> bool:
        """Whether the service did what it was asked for."""
        return 200 <= self.status_code < 300


def client(
    endpoint: Endpoint,
    accept: str = "application/json",
    *,
    connect_seconds: float = 5.0,
    transport: httpx.BaseTransport | None = None,
) -> httpx.Client:
    """An HTTP client with a service's login, certificates and timeouts; no proxy to loopback."""
    headers = {"Accept": accept}
    if endpoint.token:
        headers["Authorization"] = f"Bearer {endpoint.token}"
    return httpx.Client(
        auth=httpx.BasicAuth(endpoint.username, endpoint.password) if endpoint.username else None,
        headers=headers,
        timeout=httpx.Timeout(endpoint.timeout, connect=min(connect_seconds, endpoint.timeout)),
        verify=tls_context(endpoint),
        trust_env=not all(urlsplit(url).hostname in LOOPBACK for url in endpoint.urls),
        transport=transport,
    )


def ask(
    http: httpx.Client,
    method: str,
    url: str,
    *,
    json: object = None,
    params: Mapping[str, str | int] | None = None,
    headers: Mapping[str, str] | None = None,
    max_bytes: int = MAX_BYTES,
) -> Answer:
    """Send a request and read its answer; raises httpx.HTTPError, or that it is too large."""
    end = time.monotonic() + PIECES * (http.timeout.read or 10.0)
    with http.stream(method, url, json=json, params=params, headers=headers) as response:
        parts, size = [], 0
        for part in response.iter_bytes():
            size += len(part)
            if size > max_bytes:
                raise AnswerTooLargeError(f"an answer of more than {max_bytes:,} bytes")
            if time.monotonic() > end:
                raise httpx.ReadTimeout("the answer takes too long")
            parts.append(part)
        return Answer(response.status_code, b"".join(parts), response.reason_phrase)


def one_line(text: str, limit: int = 200) -> str:
    """A name or state of a service's, without control characters and cut to a limit."""
    return _CONTROL.sub("?", text)[:limit]


def has_control(text: str) -> bool:
    """Whether a text holds control characters, which no name of Connect's may."""
    return _CONTROL.search(text) is not None
