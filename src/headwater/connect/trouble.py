"""What is wrong in a cluster: said once, tried again with back-off, forgotten when it is well."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING

from headwater.lineage.naming import redact

if TYPE_CHECKING:
    from collections.abc import Mapping

log = logging.getLogger(__name__)

FIRST_WAIT = 5.0
LONGEST_WAIT = 300.0


class Troubles:
    """The troubles of one cluster: of the whole under the empty name, else of a connector.

    A connector may have several, told apart by their kind; one without a kind is so bad that the
    connector is left alone for a while.
    """

    def __init__(self, cluster: str) -> None:
        self.cluster = cluster
        self._now: dict[tuple[str, str], tuple[str, float]] = {}
        self._wait: dict[str, tuple[float, float]] = {}

    def add(self, name: str, text: str, kind: str = "") -> None:
        """Something is wrong; the log hears of it when it is new."""
        text = redact(text)
        known = self._now.get((name, kind))
        if known is None:
            log.warning("%s: %s", self._where(name), text)
        self._now[name, kind] = (text, known[1] if known else time.time())
        if name and not kind:
            wait = min(self._wait.get(name, (0.0, FIRST_WAIT / 2))[1] * 2, LONGEST_WAIT)
            self._wait[name] = (time.time() + wait, wait)

    def fault(self, name: str, error: Exception, kind: str = "") -> None:
        """Something is wrong with us, which must not cost the other connectors."""
        if (name, kind) not in self._now:
            log.debug("%s", self._where(name), exc_info=error)
        self.add(name, f"{type(error).__name__}: {error}", kind)

    def retry(self, name: str, now: float) -> bool:
        """Whether a connector in trouble may be looked at again."""
        return name not in self._wait or now >= self._wait[name][0]

    def clear(self, name: str, kind: str = "") -> None:
        """It is well again."""
        if not kind:
            self._wait.pop(name, None)
        if self._now.pop((name, kind), None) is not None:
            log.warning("%s: well again", self._where(name))

    def around(self, problems: Mapping[str, str]) -> None:
        """What cannot be asked beside Connect itself now, by kind; what is not named is well."""
        known = {kind for name, kind in self._now if not name and kind}
        for kind in known - problems.keys():
            self.clear("", kind)
        for kind, text in problems.items():
            self.add("", text, kind)

    def forget(self, name: str) -> None:
        """The connector is gone, and its troubles with it."""
        self._wait.pop(name, None)
        self._now = {key: value for key, value in self._now.items() if key[0] != name}

    def all(self) -> list[dict[str, str | float]]:
        """Every trouble there is now."""
        return [
            {"connector": name, "problem": text, "since": since}
            for (name, _), (text, since) in sorted(self._now.items())
        ]

    def _where(self, name: str) -> str:
        return f"{self.cluster}: {name}" if name else self.cluster
