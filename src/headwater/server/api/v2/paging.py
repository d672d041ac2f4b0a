"""Keyset cursors as they stand in a query: opaque to a client, checked when they come back."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from headwater.lineage.events import Problem
from headwater.server.http import HttpError

if TYPE_CHECKING:
    from headwater.server.http import Request
    from headwater.server.store.timeline import Cursor

__all__ = ["bad", "read_cursor", "written"]

LARGEST = 2**63 - 1
CURSOR = re.compile(r"(-?[0-9]{1,19})\.([0-9]{1,19})")


def bad(name: str, problem: str) -> HttpError:
    """A query parameter that cannot be used."""
    return HttpError(400, f"{name}: {problem}", [Problem(name, problem)])


def read_cursor(request: Request, name: str = "before") -> Cursor | None:
    """The cursor that an earlier page handed out."""
    text = request.query.get(name)
    if not text:
        return None
    found = CURSOR.fullmatch(text)
    place = (int(found[1]), int(found[2])) if found else (2**63, 0)
    if max(abs(number) for number in place) > LARGEST:
        raise bad(name, "not a cursor of an earlier page")
    return place


def written(cursor: Cursor | None) -> str | None:
    """A cursor for the next page."""
    return None if cursor is None else f"{cursor[0]}.{cursor[1]}"
