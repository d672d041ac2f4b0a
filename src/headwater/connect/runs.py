"""The runs of a job, by the word of the servers that events go to."""

from __future__ import annotations

import logging
import re
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Protocol
from urllib.parse import quote

import httpx
import msgspec

from headwater.lineage.moments import micros

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

log = logging.getLogger(__name__)

LIVE = ("NEW", "RUNNING")
MOST = 20
# A server that does not answer is not asked again for so long.
QUIET = 30.0
# What is finer than a microsecond is cut off: rounded, a moment could be later than it was.
_FINER = re.compile(r"(\.\d{6})\d+")


class Run(msgspec.Struct, frozen=True):
    """A run as a server shows it; times are microseconds, never later than what was said."""

    id: str
    state: str = ""
    started: int = 0
    ended: int | None = None

    @property
    def live(self) -> bool:
        """Whether it is under way."""
        return self.state in LIVE


class Asked(Protocol):
    """Somebody who may know the runs of a job."""

    @property
    def hope(self) -> bool:
        """Whether one who cannot say now may say later."""

    def of(self, namespace: str, job: str) -> list[Run] | None:
        """The last runs of a job, the newest first; None when nobody can say."""


class Nobody:
    """Knows no runs, and never will."""

    hope = False

    def of(self, namespace: str, job: str) -> list[Run] | None:
        """Nothing is known."""
        return None


class _Run(msgspec.Struct):
    """A run as Marquez's API shows it."""

    id: str
    state: str = ""
    createdAt: str | None = None  # noqa: N815
    endedAt: str | None = None  # noqa: N815


class _Answer(msgspec.Struct):
    runs: list[_Run]


_answer = msgspec.json.Decoder(_Answer)


class Runs:
    """Asks by Marquez's API, which Headwater's server has too."""

    def __init__(
        self,
        servers: Iterable[tuple[str, Mapping[str, str]]],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._servers = [(url.rstrip("/"), dict(headers)) for url, headers in servers]
        self._http = httpx.Client(timeout=5.0, trust_env=False, transport=transport)
        self._quiet: dict[str, float] = {}
        self._dumb: set[str] = set()

    @property
    def hope(self) -> bool:
        """Whether one who cannot say now may say later: it is away, and has refused nothing."""
        return any(url not in self._dumb for url, _ in self._servers)

    def of(self, namespace: str, job: str) -> list[Run] | None:
        """The last runs of a job, the newest first; None when nobody can say."""
        for url, headers in self._servers:
            if time.monotonic() < self._quiet.get(url, 0.0):
                continue
            try:
                found = self._ask(f"{url}/api/v1/namespaces", headers, namespace, job)
            except (httpx.HTTPError, msgspec.DecodeError) as error:
                self._quiet[url] = time.monotonic() + QUIET
                (self._dumb.discard if _passes(error) else self._dumb.add)(url)
                log.debug("runs from %s: %s", url, error)
            else:
                self._dumb.discard(url)
                return found
        return None

    def _ask(self, at: str, headers: Mapping[str, str], namespace: str, job: str) -> list[Run]:
        place = f"{at}/{quote(namespace, safe='')}/jobs/{quote(job, safe='')}/runs"
        answer = self._http.get(place, params={"limit": MOST}, headers=headers)
        if answer.status_code == 404:  # no such job yet, or no such API
            self._http.get(at, params={"limit": 1}, headers=headers).raise_for_status()
            return []
        answer.raise_for_status()
        return [
            Run(one.id, one.state, _moment(one.createdAt) or 0, _moment(one.endedAt))
            for one in _answer.decode(answer.content).runs
        ]

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()


def _moment(shown: str | None) -> int | None:
    """A moment as events are dated; one without a zone is taken for UTC, as Marquez means it."""
    try:
        moment = msgspec.convert(_FINER.sub(r"\1", shown or ""), datetime)
    except msgspec.ValidationError:
        return None
    return micros(moment if moment.tzinfo else moment.replace(tzinfo=timezone.utc))


def _passes(error: Exception) -> bool:
    """Whether what kept a server from answering may pass by itself."""
    if isinstance(error, httpx.HTTPStatusError):
        return error.response.status_code >= 500 or error.response.status_code == 429
    return isinstance(error, httpx.TransportError)
