"""Consumer groups with a new generated name at each start: those alike are one reader.

So are the producers of one application one writer, which have a transactional id for each task.
"""

from __future__ import annotations

import re
from collections import defaultdict
from itertools import chain, pairwise
from typing import TYPE_CHECKING

from headwater.connect.services.consumer_groups import MAX_CLIENTS, ConsumerGroup

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

__all__ = ["UUID", "common_name", "merged", "producer_name", "together"]

ANY = "*"
UUID = "[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"
_UUID = re.compile(UUID, re.IGNORECASE)
# The end of a pod's name. Kubernetes makes it of characters that form no words.
_POD = re.compile(r"(?<=-)[b-df-hj-np-tv-xz2-9]{6,10}-[b-df-hj-np-tv-xz2-9]{5}$")
_WORD = re.compile(r"[0-9A-Za-z]+")
_ROW = re.compile(r"\*(?:[-_.]+(?:\*|[0-9]+(?![0-9A-Za-z])))+")
_HEX = re.compile(r"[0-9a-f]{8,}|[0-9A-F]{8,}")
_SEPARATORS = "-_.:"
_VERSION = re.compile(r"(?:^|[-_.:])v[0-9]+$")
_DIGITS = 8
"""From so many digits on, a number is a date, a time or an id; fewer may be a tenant or a version."""


def common_name(group: str) -> str:
    """A group's name with `*` for what was generated in it: UUIDs, pods, long numbers and hashes."""
    name = _POD.sub(ANY, _UUID.sub(ANY, group))
    name = _WORD.sub(lambda word: ANY if _is_generated(word[0]) else word[0], name)
    return _ROW.sub(ANY, name)


def _is_generated(word: str) -> bool:
    if word.isdecimal():
        return len(word) >= _DIGITS
    # Letters and digits in turn: "cafe2024" is a word and a year.
    turns = sum(a.isdecimal() != b.isdecimal() for a, b in pairwise(word))
    return turns > 1 and _HEX.fullmatch(word) is not None


def producer_name(transactional_id: str) -> str:
    """A transactional id with `*` for what was generated in it, and for the numbers at its end.

    Kafka Streams, Flink and Spring number the producers of one application. A version stays.
    """
    name = common_name(transactional_id)
    stem = name.rstrip(f"0123456789{ANY}{_SEPARATORS}")
    tail = name[len(stem) :]
    if not tail.strip(_SEPARATORS) or _VERSION.search(name):
        return name
    return f"{stem}{tail[0] if tail[0] in _SEPARATORS else ''}{ANY}"


def together(
    names: Iterable[str], common: Callable[[str], str] = common_name
) -> dict[str, list[str]]:
    """Clients by their common names, in the order in which they come."""
    found: dict[str, list[str]] = defaultdict(list)
    for name in names:
        found[common(name)].append(name)
    return dict(found)


def merged(
    name: str, groups: list[str], found: Mapping[str, ConsumerGroup]
) -> ConsumerGroup | None:
    """Groups as the one reader they are; None if none of them was described.

    Offsets of earlier starts stand still until Kafka forgets them. So of groups with members the one
    furthest behind counts; where none has members, the one furthest ahead, which alone may move.
    """
    if groups == [name]:
        return found.get(name)
    known = [found[one] for one in groups if one in found]
    if not known:
        return None
    working = [one for one in known if one.live]
    furthest = min if working else max
    working = working or known
    committed: dict[tuple[str, int], int] = {}
    for part, offset in chain.from_iterable(one.committed.items() for one in working):
        committed[part] = furthest(offset, committed.get(part, offset))
    return ConsumerGroup(
        name,
        working[0].state,
        sum(one.members for one in known),
        any(one.live for one in known),
        tuple(sorted({client for one in known for client in one.clients})[:MAX_CLIENTS]),
        frozenset().union(*(one.assigned for one in known)),
        committed,
        len(groups),
    )
