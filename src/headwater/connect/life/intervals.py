"""How often the agent polls, sends heartbeats, and asks again for topics and schemas."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.lineage.moments import SECOND

if TYPE_CHECKING:
    from collections.abc import Iterable

LONGEST_WAIT = 30.0
# A heartbeat may be sent after this share of its interval, so that not all are due at once.
EARLY = 0.7


class Intervals(msgspec.Struct, frozen=True):
    """The agent's intervals, in seconds."""

    poll: float = 5.0
    heartbeat: float = 300.0
    grace: float = 600.0
    rotation: float = 60.0

    def poll_delay(self, failures: int) -> float:
        """How long to wait before the next poll: longer and longer while none succeeds."""
        longest = max(self.poll, min(LONGEST_WAIT, self.grace / 4))
        return min(self.poll * (1 << min(failures, 10)), longest)

    def rotation_size(self, count: int) -> int:
        """How many of so many connectors to refresh in one poll, so that all have their turn."""
        return int(count * self.poll / self.rotation) + 10

    def heartbeats_due(self, ages: Iterable[tuple[int, str]]) -> set[str]:
        """The connectors due for a heartbeat, by microseconds since the last event and name.

        Of many, a few are due early, so that a thousand are never due at once.
        """
        oldest = sorted(ages, reverse=True)
        interval = self.heartbeat * SECOND
        early = int(len(oldest) * self.poll / self.heartbeat * 1.5) + 5
        many = len(oldest) > early
        return {
            name
            for place, (age, name) in enumerate(oldest)
            if age >= interval or (many and place < early and age >= interval * EARLY)
        }


def micros(seconds: float) -> int:
    """Seconds as the whole microseconds that events and state are dated by."""
    return int(seconds * SECOND)
