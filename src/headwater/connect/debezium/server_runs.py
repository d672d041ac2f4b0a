"""The runs of a job, as the servers list them that events go to."""

from __future__ import annotations

import logging
import re
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import httpx
import msgspec

from headwater.connect.services.http_client import Answer, AnswerTooLargeError, ask
from headwater.lineage.moments import micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

log = logging.getLogger(__name__)

LIVE = ("NEW", "RUNNING")
RUNS_LISTED = 20
# Twenty runs with their facets take far less.
MAX_BYTES = 8_000_000
# A server that does not answer is not asked again for so many seconds.
RETRY_AFTER = 30.0
# What is finer than a microsecond is cut off: rounded, a time could be later than it was.
_FINER = re.compile(r"(\.\d{6})\d+")


class ServerRun(msgspec.Struct, frozen=True):
    """A run as a server lists it; times are microseconds, never later than those of its events."""

    id: str
    state: str = ""
    started: int = 0
    ended: int | None = None

    @property
    def live(self) -> bool:
        """Whether it is under way."""
        return self.state in LIVE


class RunLookup(Protocol):
    """What may know the runs of a job."""

    @property
    def may_answer_later(self) -> bool:
        """Whether a lookup that fails now may succeed later."""

    def runs_of(self, namespace: str, job: str) -> list[ServerRun] | None:
        """The last runs of a job, the newest first; None when no server answers."""


class NoLookup:
    """Without a server that lists runs."""

    may_answer_later = False

    def runs_of(self, namespace: str, job: str) -> list[ServerRun] | None:
        """No server answers."""
        return None


class _RefusedError(Exception):
    """A server answered with an error."""

    def __init__(self, status: int) -> None:
        super().__init__(f"answered {status}")
        self.status = status


_FAULTS = (
    httpx.HTTPError, msgspec.DecodeError, UnicodeDecodeError, RecursionError, AnswerTooLargeError,
    _RefusedError,
)  # fmt: skip


class _MarquezRun(msgspec.Struct):
    """A run as Marquez's API shows it."""

    id: str
    state: str = ""
    createdAt: str | None = None  # noqa: N815
    endedAt: str | None = None  # noqa: N815


class _RunsAnswer(msgspec.Struct):
    runs: list[_MarquezRun]


_answer = msgspec.json.Decoder(_RunsAnswer)


class ServerRuns:
    """Lists runs by Marquez's API, which Headwater's server has too."""

    def __init__(
        self,
        servers: Iterable[tuple[str, Mapping[str, str]]],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._servers = [(url.rstrip("/"), dict(headers)) for url, headers in servers]
        self._http = httpx.Client(timeout=5.0, trust_env=False, transport=transport)
        self._retry_at: dict[str, float] = {}
        self._refusing: set[str] = set()

    @property
    def may_answer_later(self) -> bool:
        """Whether a server that fails now may answer later: it is away, and refuses nothing."""
        return any(url not in self._refusing for url, _ in self._servers)

    def runs_of(self, namespace: str, job: str) -> list[ServerRun] | None:
        """The last runs of a job, the newest first; None when no server answers."""
        for url, headers in self._servers:
            if time.monotonic() < self._retry_at.get(url, 0.0):
                continue
            try:
                found = self._ask(f"{url}/api/v1/namespaces", headers, namespace, job)
            except _FAULTS as error:
                self._retry_at[url] = time.monotonic() + RETRY_AFTER
                (self._refusing.discard if _is_transient(error) else self._refusing.add)(url)
                log.debug("runs of %s/%s not listed by %s: %s", namespace, job, url, error)
            else:
                self._refusing.discard(url)
                return found
        return None

    def _ask(
        self, at: str, headers: Mapping[str, str], namespace: str, job: str
    ) -> list[ServerRun]:
        place = f"{at}/{quote(namespace, safe='')}/jobs/{quote(job, safe='')}/runs"
        answer = self._get(place, RUNS_LISTED, headers)
        if answer.status_code == 404:  # no such job yet, or no such API
            self._get(at, 1, headers)
            return []
        return [
            ServerRun(one.id, one.state, _micros(one.createdAt) or 0, _micros(one.endedAt))
            for one in _answer.decode(answer.content).runs[:RUNS_LISTED]
        ]

    def _get(self, url: str, limit: int, headers: Mapping[str, str]) -> Answer:
        answer = ask(
            self._http, "GET", url, params={"limit": limit}, headers=headers, max_bytes=MAX_BYTES
        )
        if not answer.is_success and (answer.status_code != 404 or limit == 1):
            raise _RefusedError(answer.status_code)
        return answer

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()


def _micros(shown: str | None) -> int | None:
    """A time in microseconds; Marquez means UTC where it writes no time zone."""
    try:
        moment = msgspec.convert(_FINER.sub(r"\1", shown or ""), datetime)
        return micros(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))
    except ValueError:
        return None


def _is_transient(error: Exception) -> bool:
    """Whether the server may answer later, without a change of configuration."""
    if isinstance(error, _RefusedError):
        return error.status >= 500 or error.status == 429
    return isinstance(error, httpx.TransportError)
