"""Moments as whole microseconds since 1970, the unit every store keeps."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from functools import lru_cache

__all__ = ["EPOCH", "from_micros", "iso", "micros"]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)


MICROSECOND = timedelta(microseconds=1)


def micros(moment: datetime) -> int:
    """A moment as whole microseconds since 1970, the unit every store keeps."""
    return (moment - EPOCH) // MICROSECOND


def from_micros(value: int) -> datetime:
    """The moment that `micros` made into a number."""
    return EPOCH + value * MICROSECOND


@lru_cache(maxsize=8_192)
def iso(value: int) -> str:
    """A moment in microseconds as RFC 3339 text in UTC."""
    return from_micros(value).isoformat().replace("+00:00", "Z")
