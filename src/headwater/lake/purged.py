"""Which records name something that was purged, known by the digests that the log has of it."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from headwater.server.store.keep.purge import KINDS, PurgeTarget, mentions
from headwater.server.store.write.incoming.prepared import safe

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["Purges"]

NAMES = 100_000
"""Names that are remembered with their digests: most come again."""


class Purges:
    """What was purged: each digest with the moment of the latest purge of it, in microseconds."""

    def __init__(self, digests: Mapping[str, int]) -> None:
        self._digests = digests
        self._until = lru_cache(NAMES)(self._purged)

    def took(self, body: bytes, arrived: int) -> bool:
        """Whether a record that arrived at a moment names something that was purged since."""
        try:
            value = msgspec.json.decode(body)
        except msgspec.DecodeError:
            return False
        return any(self._until(*name) >= arrived for name in mentions(value))

    def _purged(self, namespace: str, name: str) -> int:
        """When something of this name was purged last; -1 if never."""
        found = {(namespace, name), safe(namespace, name)}
        targets = [PurgeTarget(KINDS[-1], space) for space, _ in found]
        targets += [PurgeTarget(kind, *one) for one in found for kind in KINDS[:-1]]
        return max(self._digests.get(target.digest, -1) for target in targets)
