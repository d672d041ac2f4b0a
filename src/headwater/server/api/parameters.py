"""The kinds of query parameters, to be given as the defaults of a handler's parameters."""

from __future__ import annotations

import re
import time
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import msgspec

from headwater.lineage.moments import SECOND, TIME, micros, relative, to_rfc3339
from headwater.server.http import Request
from headwater.server.routing import Parameter

if TYPE_CHECKING:
    from headwater.server.store.read.timeline import Cursor

__all__ = ["check_period", "cursor", "flag", "integer", "moment", "parse_moment", "text", "written"]

AHEAD = 300 * SECOND
LATEST = {"at": AHEAD, "from": 0, "to": AHEAD}
"""How far ahead the moments of these names may lie; of others, however far."""
LARGEST = 2**63 - 1
CURSOR = re.compile(r"(-?[0-9]{1,19})\.([0-9]{1,19})")
DATE = re.compile(r"[0-9]{4}-[0-9]{2}-[0-9]{2}")
_time = msgspec.json.Decoder(datetime)


def integer(default: int, low: int = 0, high: int = 1_000) -> Any:
    """A whole number; one above `high` counts as that."""
    schema = {"type": "integer", "minimum": low, "default": default}
    return Parameter(lambda request, name: request.integer(name, default, low, high), schema)


def text(
    default: str = "",
    *,
    name: str = "",
    options: tuple[str, ...] = (),
    required: bool = False,
    example: str = "",
) -> Any:
    """A text, or one of some options in any case; not an empty one, unless its routes allow that."""
    schema: dict[str, Any] = {"type": "string"}
    if options:
        schema["enum"] = list(options)

    def read(request: Request, named: str) -> str:
        value = request.query.get(named) or default
        if not options or not value:
            return value
        known = {option.lower(): option for option in options}
        if value.lower() not in known:
            raise request.bad(named, "not one of " + ", ".join(options))
        return known[value.lower()]

    return Parameter(read, schema, name, required, example, filled=True)


def flag(*, name: str = "") -> Any:
    """A truth value: `true`, `1` or `yes` is true."""
    schema = {"type": "boolean", "default": False}
    return Parameter(lambda request, named: request.flag(named), schema, name)


def moment(default: int | None = None, *, name: str = "", required: bool = False) -> Any:
    """A time, in microseconds: a moment, how long ago, or now.

    `at` and `to` may not lie further ahead than clocks and events may be, `from` not ahead at all. An
    empty one is refused as an empty text is.
    """
    schema = {"type": "string", "format": "date-time"}

    def read(request: Request, named: str) -> int | None:
        value = request.query.get(named)
        if not value:
            return default
        try:
            found = relative(value)
            asked = parse_moment(value) if found is None else found
        except ValueError:
            raise request.bad(named, f"not a time: {TIME}") from None
        if named in LATEST and asked > time.time_ns() // 1000 + LATEST[named]:
            raise request.bad(named, "lies in the future")
        return asked

    return Parameter(read, schema, name, required, filled=True)


def parse_moment(value: str) -> int:
    """A moment written as RFC 3339, or a date, in microseconds; raises ValueError if it is neither.

    Without a zone it is in UTC, a date is its first moment.
    """
    if DATE.fullmatch(value):
        value += "T00:00:00Z"
    found = _time.decode(msgspec.json.encode(to_rfc3339(value.replace(" ", "+"))))
    return micros(found if found.tzinfo else found.replace(tzinfo=timezone.utc))


def check_period(start: int | None, end: int | None) -> None:
    """Refuse a period that ends before it begins; nothing can have changed in it."""
    if start is not None and end is not None and start > end:
        raise Request.bad("from", "is later than to")


def cursor() -> Any:
    """Where an earlier page ended, as `written` handed it out; opaque to a client."""

    def read(request: Request, named: str) -> Cursor | None:
        value = request.query.get(named)
        if not value:
            return None
        found = CURSOR.fullmatch(value)
        place = (int(found[1]), int(found[2])) if found else (2**63, 0)
        if max(abs(number) for number in place) > LARGEST:
            raise request.bad(named, "not a cursor of an earlier page")
        return place

    return Parameter(read, {"type": "string"})


def written(place: Cursor | None) -> str | None:
    """A cursor for the next page."""
    return None if place is None else f"{place[0]}.{place[1]}"
