"""From a connector as it is seen to what is remembered of it, lineage included."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.connect import reported
from headwater.connect.access import ConnectError
from headwater.connect.lineage import keep
from headwater.connect.model import Connector
from headwater.connect.pace import SECOND, Times
from headwater.connect.redact import scrub, secrets
from headwater.connect.state import Condition, Tracked, bare, digest, shown_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.connect.answers import Entry
    from headwater.connect.client import Connect
    from headwater.connect.lineage import Lineage
    from headwater.connect.model import Derived, Status
    from headwater.connect.trouble import Troubles

log = logging.getLogger(__name__)

LONGEST_TRACE = 32_000
# Topics of a young run are looked at more often, since a source's show with its first records.
YOUNG = 60 * SECOND


class Watched:
    """A connector in memory: what is on disk, and what need not be."""

    def __init__(self, tracked: Tracked, birth: int = 0) -> None:
        self.tracked = tracked
        self.raw = b""
        self.lineage: Lineage | None = None
        self.due = 0.0
        self.unsettled: int | None = None
        self.waiting: tuple[Condition, int] | None = None
        self.again: int | None = None
        self.pause = 0.0
        self.parts = 0
        self.ran_on = False
        self.birth = birth
        self.moved = False

    @property
    def pending(self) -> bool:
        """Whether it is to be looked at even if it looks as before."""
        return self.moved or self.unsettled is not None or self.waiting is not None

    def wait(self, seen: Condition | None, now: int) -> None:
        """Go on waiting for word of a connector that is seen so, or wait no more."""
        self.waiting = None if seen is None else (seen, self.waited(seen, now))
        self.again = None

    def waited(self, seen: Condition, now: int) -> int:
        """Since when it is waited for so; now, when it is not."""
        return self.waiting[1] if self.waiting and self.waiting[0] is seen else now

    def stir(self, mark: bytes) -> None:
        """It may look otherwise now: soon it is to be looked at again."""
        if self.raw != mark:
            self.pause = 0.0

    def look_later(self, now: int, seen: Condition, times: Times) -> None:
        """Look at it again though it looks as before: soon at first, then less and less often."""
        self.pause = 0.0 if seen is not self.tracked.condition else self.pause
        self.pause = min(max(2 * self.pause, times.poll), times.heartbeat)
        if seen is not Condition.RUNNING or self.pause < times.heartbeat:
            self.again = now + int(self.pause * SECOND)

    def late(self, now: int) -> bool:
        """Whether it is time to look at it again."""
        return self.again is not None and now >= self.again

    def settled(self, seen: Condition, now: int, grace: float) -> Condition:
        """A state that should pass by itself and does not is a loss after the grace time."""
        if seen is not Condition.UNSETTLED:
            self.unsettled = None
            return seen
        if self.unsettled is None:
            self.unsettled = now
        return Condition.LOST if now - self.unsettled >= grace * SECOND else seen

    def arrived(self, tracked: Tracked, seen: Condition) -> bool:
        """Whether parts of it run on other workers than was told, and move no more."""
        moves = tracked.status.workers != self.tracked.status.workers
        done = self.moved and not moves and seen is Condition.RUNNING
        self.moved = self.tracked.open and (moves or self.moved) and not done
        return done

    def forget(self) -> None:
        """Look at it anew at the next poll, whatever it looks like."""
        self.raw = b""


class Reader:
    """Works out what is to be remembered of a connector."""

    def __init__(
        self,
        connect: Connect,
        troubles: Troubles,
        *,
        derive: Callable[[Connector], Lineage],
        nothing: Callable[[str], Derived],
        claim: Callable[[Tracked], str | None] = lambda _: None,
        times: Times | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._connect = connect
        self._troubles = troubles
        self._derive = derive
        self._nothing = nothing
        self._claim = claim
        self._times = times or Times()
        self._clock = clock

    def read(self, watched: Watched, entry: Entry, seen: Condition) -> Tracked:
        """The connector as this entry shows it; its lineage is worked out when it may be new."""
        tracked, config = watched.tracked, entry.info.config
        mark = digest(config)
        new = mark != tracked.config or tracked.derived is None or watched.lineage is None
        after = replace(
            tracked,
            type=entry.info.type,
            shown=shown_of(config),
            config=mark,
            group=config.get("consumer.override.group.id", ""),
            status=self._scrubbed(entry) if seen is Condition.FAILED else bare(entry.status),
        )
        if new and (seen in (Condition.RUNNING, Condition.FAILED) or reported.told(config)):
            return self.lineage(watched, after, entry, self.topics(tracked))
        return after

    def lineage(
        self, watched: Watched, tracked: Tracked, entry: Entry, topics: tuple[str, ...]
    ) -> Tracked:
        """Work the lineage out anew; what cannot be asked now keeps its last answer."""
        name, kind = tracked.name, entry.info.type
        role: Any = kind or None
        watched.due = self._clock() + self._times.poll
        try:
            lineage = self._derive(Connector(name, role, entry.info.config, topics))
        except Exception as error:  # noqa: BLE001
            # Its life is told all the same, with the lineage that is known.
            self._troubles.fault(name, error, "lineage")
            watched.lineage = None
            return replace(tracked, derived=tracked.derived or self._nothing(name))
        watched.lineage = lineage
        self._troubles.clear(name, "lineage")
        derived = lineage.derived
        if lineage.unsure and tracked.derived and watched.tracked.config == tracked.config:
            derived = keep(tracked.derived, derived)
        after = replace(tracked, topics=topics, derived=derived)
        taken = self._claim(after)
        if taken:
            self._troubles.add(name, taken, "name")
        else:
            self._troubles.clear(name, "name")
        return after

    def topics(self, tracked: Tracked) -> tuple[str, ...]:
        """The topics in use now, or those last known when Connect does not say."""
        try:
            found = self._connect.topics(tracked.name)
        except ConnectError as error:
            log.debug("topics of %s: %s", tracked.name, error.message)
            return tracked.topics
        return tracked.topics if found is None else found

    def outdated(self, watched: Watched, now: int) -> tuple[str, ...] | None:
        """The topics in use when they or the world have changed; None when nothing has."""
        tracked = watched.tracked
        young = now - tracked.started < YOUNG
        watched.due = now / SECOND + (self._times.poll if young else self._times.rotation)
        topics = self.topics(tracked)
        if topics == tracked.topics and watched.lineage and not watched.lineage.changed():
            return None
        return topics

    def _scrubbed(self, entry: Entry) -> Status:
        """A status whose traces hold none of the connector's secrets, cut to a bearable length."""
        config = entry.info.config
        hidden = secrets(config, self._connect.passwords(config.get("connector.class", "")))

        def clean(trace: str) -> str:
            return scrub(trace[:LONGEST_TRACE], hidden)

        status = entry.status
        tasks = tuple(replace(task, trace=clean(task.trace)) for task in status.tasks)
        return replace(status, trace=clean(status.trace), tasks=tasks)
