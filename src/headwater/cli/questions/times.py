"""Times as people write them: a moment, a date, how long ago, or now."""

from __future__ import annotations

import re
import time

from headwater.errors import UsageError
from headwater.lineage.moments import SECOND, iso, seconds

__all__ = ["TIME", "moment", "until"]

TIME = "RFC 3339, a date, how long ago (90m, 2d), or now"
"""What the help of an option says that takes a time."""


def moment(text: str | None) -> str | None:
    """A time as the server reads it: what is a duration is that long before now."""
    if text is None:
        return None
    if text.lower() == "now":
        return iso(time.time_ns() // 1_000)
    if not re.fullmatch(r"\d+[dhms]", text.lower()):
        return text
    try:
        ago = seconds(text)
    except ValueError as error:
        raise UsageError(f"{text} {error}") from None
    return iso(round((time.time() - ago) * SECOND))


def until(text: str | None) -> str | None:
    """As `moment`, where leaving the time out means now: the server's clock says when that is."""
    return None if text is not None and text.lower() == "now" else moment(text)
