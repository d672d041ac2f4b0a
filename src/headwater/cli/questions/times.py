"""Times as people write them: a moment, a date, how long ago, or now."""

from __future__ import annotations

from headwater.errors import UsageError
from headwater.lineage.moments import TIME, iso, relative

__all__ = ["BEGINNING", "TIME", "moment", "until"]

BEGINNING = "1970-01-01"
"""Where a period begins that has no beginning: before the first record."""


def moment(text: str | None) -> str | None:
    """A time as the server reads it: what is a duration is that long before now."""
    if text is None:
        return None
    if not text.strip():
        # A variable of a script that holds nothing must not ask about now.
        raise UsageError("the time is empty", hint=TIME)
    try:
        found = relative(text)
    except ValueError as error:
        raise UsageError(f"{text} {error}") from None
    return text if found is None else iso(found)


def until(text: str | None) -> str | None:
    """As `moment`, where leaving the time out means now: the server's clock says when that is."""
    return None if text is not None and text.lower() == "now" else moment(text)
