"""Which runs of a job are under way, by the word of the servers that events go to."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING
from urllib.parse import quote

import httpx
import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

log = logging.getLogger(__name__)

LIVE = ("NEW", "RUNNING")
MOST = 20
# A server that does not answer is not asked again for so long.
QUIET = 30.0


class Run(msgspec.Struct):
    """A run as Marquez's API shows it."""

    id: str
    state: str = ""


class Answer(msgspec.Struct):
    """Some of a job's runs, the newest first."""

    runs: list[Run]


_answer = msgspec.json.Decoder(Answer)


class Runs:
    """Asks by Marquez's API, which Headwater's server has too."""

    def __init__(self, servers: Iterable[tuple[str, Mapping[str, str]]]) -> None:
        self._servers = [(url.rstrip("/"), dict(headers)) for url, headers in servers]
        self._http = httpx.Client(timeout=5.0, trust_env=False)
        self._quiet: dict[str, float] = {}

    def under_way(self, namespace: str, job: str) -> list[str] | None:
        """The runs of a job that have not ended, the newest first; None when nobody can say."""
        for url, headers in self._servers:
            if time.monotonic() < self._quiet.get(url, 0.0):
                continue
            try:
                return self._ask(f"{url}/api/v1/namespaces", headers, namespace, job)
            except (httpx.HTTPError, msgspec.DecodeError) as error:
                self._quiet[url] = time.monotonic() + QUIET
                log.debug("runs from %s: %s", url, error)
        return None

    def _ask(self, at: str, headers: Mapping[str, str], namespace: str, job: str) -> list[str]:
        place = f"{at}/{quote(namespace, safe='')}/jobs/{quote(job, safe='')}/runs"
        answer = self._http.get(place, params={"limit": MOST}, headers=headers)
        if answer.status_code == 404:  # no such job yet, or no such API
            self._http.get(at, params={"limit": 1}, headers=headers).raise_for_status()
            return []
        answer.raise_for_status()
        return [run.id for run in _answer.decode(answer.content).runs if run.state in LIVE]

    def close(self) -> None:
        """Let go of connections."""
        self._http.close()
