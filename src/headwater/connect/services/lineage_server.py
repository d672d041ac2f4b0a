"""What the lineage servers know that events go to: runs of jobs, consumer groups of queries."""

from __future__ import annotations

import logging
import re
import time
from collections import defaultdict
from datetime import datetime, timezone
from functools import partial
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import httpx
import msgspec

from headwater.connect.services.http_client import Answer, AnswerTooLargeError, ask
from headwater.lineage.moments import micros

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

log = logging.getLogger(__name__)

A = TypeVar("A")
NAMESPACES = "api/v1/namespaces"
GROUPS = "api/v2/consumer-groups"
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


class NamedGroups(NamedTuple):
    """The consumer groups that queries name as theirs, by the topic that they read."""

    topics: dict[str, list[str]]
    complete: bool
    """Whether every server has answered which it knows; false since the start until each did once."""


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


class _GroupsAnswer(msgspec.Struct):
    topics: dict[str, list[str]]


_answer = msgspec.json.Decoder(_RunsAnswer)
_groups = msgspec.json.Decoder(_GroupsAnswer)


class _Question:
    """A question to servers, which is put off for one that did not answer it."""

    def __init__(self) -> None:
        self.refusing: set[str] = set()
        """Those that will not answer later either, unless their configuration changes."""
        self._retry_at: dict[str, float] = {}

    def ask(self, url: str, asked: Callable[[], A]) -> A | None:
        """What a server answers; None where it does not answer, or did not just now."""
        if time.monotonic() < self._retry_at.get(url, 0.0):
            return None
        try:
            found = asked()
        except _FAULTS as error:
            self._retry_at[url] = time.monotonic() + RETRY_AFTER
            (self.refusing.discard if _is_transient(error) else self.refusing.add)(url)
            log.debug("%s does not answer: %s", url, error)
            return None
        self.refusing.discard(url)
        return found


class LineageServers:
    """Lists runs by Marquez's API, which Headwater's server has too; groups by the server's own."""

    def __init__(
        self,
        servers: Iterable[tuple[str, Mapping[str, str]]],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self._servers = [(url.rstrip("/"), dict(headers)) for url, headers in servers]
        self._http = httpx.Client(timeout=5.0, trust_env=False, transport=transport)
        # A server may refuse one question and answer the other.
        self._for_runs, self._for_groups = _Question(), _Question()
        self._named: dict[tuple[str, str], dict[str, list[str]]] = {}

    @property
    def may_answer_later(self) -> bool:
        """Whether a server that lists no runs now may do so later: it is away, and refuses nothing."""
        return any(url not in self._for_runs.refusing for url, _ in self._servers)

    def runs_of(self, namespace: str, job: str) -> list[ServerRun] | None:
        """The last runs of a job, the newest first; None when no server answers."""
        for url, headers in self._servers:
            asked = partial(self._runs, url, headers, namespace, job)
            if (found := self._for_runs.ask(url, asked)) is not None:
                return found
        return None

    def named_groups(self, namespace: str) -> NamedGroups:
        """The groups that queries name as theirs which read a Kafka cluster's topics.

        Of a server that is away, those that it knew last.
        """
        for url, headers in self._servers:
            asked = partial(self._groups, url, headers, namespace)
            if (found := self._for_groups.ask(url, asked)) is not None:
                self._named[url, namespace] = found
        known = [self._named.get((url, namespace)) for url, _ in self._servers]
        topics: dict[str, list[str]] = defaultdict(list)
        for topic, groups in chain.from_iterable(one.items() for one in known if one):
            topics[topic] += groups
        return NamedGroups(dict(topics), None not in known)

    def _runs(
        self, url: str, headers: Mapping[str, str], namespace: str, job: str
    ) -> list[ServerRun]:
        place = f"{url}/{NAMESPACES}/{quote(namespace, safe='')}/jobs/{quote(job, safe='')}/runs"
        answer = self._get(place, {"limit": RUNS_LISTED}, headers)
        if answer.status_code == 404:  # no such job yet, or no such API
            if self._get(f"{url}/{NAMESPACES}", {"limit": 1}, headers).status_code == 404:
                raise _RefusedError(404)
            return []
        return [
            ServerRun(one.id, one.state, _micros(one.createdAt) or 0, _micros(one.endedAt))
            for one in _answer.decode(answer.content).runs[:RUNS_LISTED]
        ]

    def _groups(self, url: str, headers: Mapping[str, str], namespace: str) -> dict[str, list[str]]:
        answer = self._get(f"{url}/{GROUPS}", {"namespace": namespace}, headers)
        # Marquez and earlier releases have no such API; who names groups reports to a server that has.
        return {} if answer.status_code == 404 else _groups.decode(answer.content).topics

    def _get(self, url: str, params: Mapping[str, str | int], headers: Mapping[str, str]) -> Answer:
        answer = ask(self._http, "GET", url, params=params, headers=headers, max_bytes=MAX_BYTES)
        if not answer.is_success and answer.status_code != 404:
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
