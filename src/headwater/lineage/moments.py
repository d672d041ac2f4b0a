"""Moments as whole microseconds since 1970, the unit every store keeps."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta, timezone
from functools import lru_cache

__all__ = [
    "EPOCH",
    "SECOND",
    "TIME",
    "from_micros",
    "iso",
    "micros",
    "relative",
    "seconds",
    "to_rfc3339",
]

EPOCH = datetime(1970, 1, 1, tzinfo=timezone.utc)
SECOND = 1_000_000
"""Microseconds in a second."""
TIME = "RFC 3339, a date, how long ago (90m, 2d), or now"
"""How people may write a time, for helps and refusals."""

_ISO_8601 = re.compile(
    r"(\d{4}-\d\d-\d\d)[Tt ](\d\d:\d\d)(:\d\d(?:\.\d+)?)?(?:([Zz])|([+-]\d\d)(?::?(\d\d))?)?(?:\[.*\])?"
)
_AGO = re.compile(r"\d+[dhms]", re.ASCII | re.IGNORECASE)
_UNITS = {"d": 86_400, "h": 3_600, "m": 60, "s": 1}
_LONGEST = 10_000 * 366 * 86_400
MICROSECOND = timedelta(microseconds=1)
FIRST = (datetime.min.replace(tzinfo=timezone.utc) - EPOCH) // MICROSECOND
LAST = (datetime.max.replace(tzinfo=timezone.utc) - EPOCH) // MICROSECOND
"""The earliest and the latest moment that can be written in UTC."""


def micros(moment: datetime) -> int:
    """A moment as whole microseconds since 1970, the unit every store keeps.

    Raises ValueError where no year from 1 to 9999 has it in UTC, as an offset can bring about.
    """
    value = (moment - EPOCH) // MICROSECOND
    if not FIRST <= value <= LAST:
        raise ValueError("lies outside the years 1 to 9999 in UTC")
    return value


def from_micros(value: int) -> datetime:
    """The moment that `micros` made into a number; one that no year has is the nearest that has one.

    A store may hold such a number, and one of them must not keep all the others from being shown.
    """
    return EPOCH + min(max(value, FIRST), LAST) * MICROSECOND


@lru_cache(maxsize=8_192)
def iso(value: int) -> str:
    """A moment in microseconds as RFC 3339 text in UTC."""
    return from_micros(value).isoformat().replace("+00:00", "Z")


def to_rfc3339(text: str) -> str:
    """A moment in ISO 8601 as RFC 3339 has it; any other text as it is.

    Java writes no seconds where they are zero, and a zone's name in brackets behind its offset.
    """
    found = _ISO_8601.fullmatch(text.strip())
    if not found:
        return text
    date, minute, second, utc, hours, minutes = found.groups()
    zone = "Z" if utc else f"{hours}:{minutes or '00'}" if hours else ""
    return f"{date}T{minute}{second or ':00'}{zone}"


def seconds(text: str) -> float:
    """A duration such as 90d, 12h, 30m or 45s; raises ValueError if it is none, or beyond all years."""
    unit = _UNITS.get(text[-1:].lower())
    found = float(text[:-1]) * unit if unit else float(text)
    if found > _LONGEST:
        raise ValueError(f"is longer than 10,000 years, which are {_LONGEST // 86_400:,} days")
    if not found >= 0:
        raise ValueError("is below zero")
    return found


def relative(text: str) -> int | None:
    """The moment that `now`, or a duration such as 90m before it, stands for; None for any other text.

    Raises ValueError for a duration that is beyond all years.
    """
    if text.lower() == "now":
        return time.time_ns() // 1_000
    if not _AGO.fullmatch(text):
        return None
    return max(FIRST, time.time_ns() // 1_000 - round(seconds(text) * SECOND))
