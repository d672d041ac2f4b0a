"""The problems of a cluster: logged once, retried with back-off, cleared when they are over."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

FIRST_RETRY = 5.0
MAX_RETRY = 300.0


class Problems:
    """The problems of one cluster, under the empty name, and of its connectors.

    A connector may have several, of different kinds. One without a kind keeps it from being
    examined, and is retried after a while.
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self._now: dict[tuple[str, str], tuple[str, float]] = {}
        self._wait: dict[str, tuple[float, float]] = {}

    def add(self, name: str, text: str, kind: str = "") -> None:
        """Note a problem; it is logged when it is new."""
        text = redact(text)
        known = self._now.get((name, kind))
        if known is None:
            log.warning("%s: %s", self._where(name), text)
        self._now[name, kind] = (text, known[1] if known else time.time())
        if name and not kind:
            wait = min(self._wait.get(name, (0.0, FIRST_RETRY / 2))[1] * 2, MAX_RETRY)
            self._wait[name] = (time.time() + wait, wait)

    def add_fault(self, name: str, error: Exception, kind: str = "") -> None:
        """Note a fault of the agent's own, which must not cost the other connectors."""
        if (name, kind) not in self._now:
            log.debug("%s", self._where(name), exc_info=error)
        self.add(name, f"{type(error).__name__}: {error}", kind)

    @property
    def waiting(self) -> int:
        """How many connectors are left alone until their next retry."""
        return len(self._wait)

    def may_retry(self, name: str, now: float) -> bool:
        """Whether a connector with a problem may be examined again."""
        return name not in self._wait or now >= self._wait[name][0]

    def clear(self, name: str, kind: str = "") -> None:
        """A problem is over."""
        if not kind:
            self._wait.pop(name, None)
        if self._now.pop((name, kind), None) is not None:
            log.warning(
                "%s: the problem is over%s", self._where(name), f" ({kind})" if kind else ""
            )

    def set_services(self, problems: Mapping[str, str]) -> None:
        """The services beside Connect that cannot be asked now, by kind; the others answer."""
        known = {kind for name, kind in self._now if not name and kind}
        for kind in known - problems.keys():
            self.clear("", kind)
        for kind, text in problems.items():
            self.add("", text, kind)

    def forget(self, name: str) -> None:
        """The connector is gone, and its problems with it."""
        self._wait.pop(name, None)
        self._now = {key: value for key, value in self._now.items() if key[0] != name}

    def all(self) -> list[dict[str, str | float]]:
        """Every problem there is now."""
        return [
            {"connector": name, "problem": text, "since": since}
            for (name, _), (text, since) in sorted(self._now.copy().items())
        ]

    def _where(self, name: str) -> str:
        return f"{self.cluster}: connector {name}" if name else self.cluster
