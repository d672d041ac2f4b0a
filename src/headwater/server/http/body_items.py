"""The elements of a body, a JSON array or one a line, counted before any is set aside.

A packed body of a few hundred bytes can hold millions of them, and each takes more memory as an
object than as text.
"""

from __future__ import annotations

import threading

import msgspec

from headwater.lineage.openlineage.events import EventProblem
from headwater.server.http import HttpError

__all__ = ["array", "lines"]

BRACE = ord("{")


class _CountedMembers(msgspec.Struct, gc=False):
    """An object whose members are skipped; those of one array are counted, up to a limit."""

    def __post_init__(self) -> None:
        _counting.left -= 1
        if _counting.left < 0:
            raise OverflowError


_counting = threading.local()
_array = msgspec.json.Decoder(list[msgspec.Raw])
_count = msgspec.json.Decoder(list[_CountedMembers])


def array(body: bytes | msgspec.Raw, limit: int) -> list[msgspec.Raw]:
    """The elements of a JSON array; raises 413 for more than `limit` of them."""
    text = bytes(body)
    try:
        if text.count(b",") >= limit:  # else there cannot be too many
            _counting.left = limit
            _count.decode(text)
        return _array.decode(text)
    except OverflowError:
        raise _too_many(limit) from None
    except msgspec.ValidationError as error:
        problem = EventProblem("$", str(error))
        raise HttpError(400, "the body is not an array of objects", [problem]) from None
    except msgspec.DecodeError as error:
        raise HttpError(400, "the array is not JSON", [EventProblem("$", str(error))]) from None


def lines(body: bytes, limit: int) -> list[memoryview]:
    """The lines of a body that are not empty, not copied; raises 413 for more than `limit` lines."""
    if b"\r" in body:  # a line may end in CR LF, and that is one end
        if max(body.count(b"\n"), body.count(b"\r")) > limit:
            raise _too_many(limit)
        found = [memoryview(line) for line in body.splitlines() if line.strip()]
    else:
        # To look for the next end is ten times as fast as to count or split by it.
        whole, found, start, left = memoryview(body), [], 0, limit
        while (end := body.find(b"\n", start)) >= 0:
            if not left:
                raise _too_many(limit)
            left -= 1
            # An event begins with a brace: most lines need not be copied to see that they are not blank.
            if body[start] == BRACE or body[start:end].strip():
                found.append(whole[start:end])
            start = end + 1
        if body[start : start + 1] == b"{" or body[start:].strip():
            found.append(whole[start:])
    if len(found) > limit:
        raise _too_many(limit)
    return found


def _too_many(limit: int) -> HttpError:
    return HttpError(413, f"more than {limit} events in one request; send them in several")
