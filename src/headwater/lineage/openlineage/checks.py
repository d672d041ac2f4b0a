"""What makes a body unfit to be read at all: too deep, too many, repeated keys, NUL characters."""

from __future__ import annotations

import json
from collections import Counter
from datetime import timedelta
from typing import Any, NoReturn

import msgspec

from headwater.lineage.openlineage.hashing import canonical
from headwater.lineage.secrets import redact

__all__ = [
    "EventError",
    "EventProblem",
    "Limits",
    "check_size",
    "check_text",
    "check_values",
    "lowered",
    "refuse",
]


class EventProblem(msgspec.Struct, frozen=True):
    """One thing wrong with one field of what was sent."""

    field: str
    problem: str


class EventError(ValueError):
    """What was sent is not an event; `problems` has the reasons, field by field."""

    def __init__(self, problems: list[EventProblem]) -> None:
        # Reasons quote what was sent, and are answered and logged.
        self.problems = [EventProblem(redact(p.field), redact(p.problem)) for p in problems]
        super().__init__("; ".join(f"{p.field}: {p.problem}" for p in self.problems))


class Limits(msgspec.Struct, frozen=True):
    """How large one event may be before it is refused."""

    depth: int = 64
    members: int = 25_000
    values: int = 250_000
    """Values of all objects and arrays together. Decoded they take some 100 bytes each, however
    few of them there are in what was sent."""
    datasets: int = 5_000
    """Inputs, outputs, or the further datasets that facets of an event name. A new one takes the writer
    some 50 µs, so an event of as many keeps it for a quarter of a second."""
    name: int = 1_024
    """Bytes of UTF-8 of a namespace or a name. Two of them fit into one key of an index in
    PostgreSQL, which holds 2,704 bytes at most; a key in S3 has up to 1,024."""
    skew: timedelta = timedelta(days=1)


_NOT_BRACKETS = bytes(c for c in range(256) if c not in b"[]{}")


def check_text(raw: bytes, value: Any) -> None:
    """Refuse repeated keys and NUL characters in JSON that was decoded to `value`."""
    if raw.find(b"\\u") >= 0:
        _check_escapes(raw, value)
        return
    body = canonical(value)
    # Without escapes, JSON that comes back with all its colons has lost no repeated key.
    if len(raw) != len(body) and raw.count(b":") != body.count(b":"):
        _check_repeats(raw)


def refuse(field: str, problem: str) -> NoReturn:
    raise EventError([EventProblem(field, problem)]) from None


def lowered(text: str) -> str:
    """A sentence to stand behind a field's name; a word in capitals, such as JSON, stays one."""
    return text if text[1:2].isupper() else text[:1].lower() + text[1:]


def check_size(raw: bytes, value: Any, limits: Limits) -> None:
    """Hold a decoded value to the limits of depth and number; raises EventError."""
    brackets = raw.translate(None, _NOT_BRACKETS)
    for left in range(limits.depth, 0, -2):  # each round takes two levels away at most
        if len(brackets) <= 2 * left:  # and every level takes two
            brackets = b""
            break
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets or (len(raw) > limits.members and raw.count(b",") >= limits.members):
        _walk(value, limits)


def check_values(raw: bytes, limits: Limits) -> None:
    """Refuse, before it is decoded, JSON that would take far more memory than its bytes."""
    # An object, an array or a value takes a byte and a separator at least.
    if len(raw) <= limits.values:
        return
    count = raw.count(b",") + raw.count(b"{") + raw.count(b"[")
    if count > limits.values:
        refuse("event", f"{count} values, more than the limit of {limits.values}")


def _walk(value: Any, limits: Limits) -> None:
    level: list[Any] = [value] if isinstance(value, (dict, list)) else []
    for _ in range(limits.depth + 1):
        below: list[Any] = []
        for item in level:
            if len(item) > limits.members:
                text = f"{len(item)} members, more than the limit of {limits.members}"
                refuse(_path(value, item), text)
            inner = item.values() if isinstance(item, dict) else item
            below += [child for child in inner if isinstance(child, (dict, list))]
        level = below
        if not level:
            return
    refuse(_path(value, level[0])[:200], f"nested deeper than {limits.depth} levels")


def _path(root: Any, wanted: Any) -> str:
    """Where a container stands in a value."""
    stack: list[tuple[str, Any]] = [("$", root)]
    while stack:
        path, item = stack.pop()
        if item is wanted and item is not root:
            return path
        pairs = item.items() if isinstance(item, dict) else enumerate(item)
        stack += [(_join(path, k), v) for k, v in pairs if isinstance(v, (dict, list))]
    return "event"


def _join(path: str, key: str | int) -> str:
    if isinstance(key, int):
        return f"{path}[{key}]"
    return key if path == "$" else f"{path}.{key}"


def _check_escapes(raw: bytes, value: Any) -> None:
    _check_repeats(raw)
    stack: list[tuple[str, Any]] = [("$", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, str):
            if "\0" in item:
                refuse(path, "holds a NUL character")
        elif isinstance(item, dict):
            if any("\0" in key for key in item):
                refuse(path, "a key holds a NUL character")
            stack += [(_join(path, key), child) for key, child in item.items()]
        elif isinstance(item, list):
            stack += [(_join(path, key), child) for key, child in enumerate(item)]


def _check_repeats(raw: bytes) -> None:
    def once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        found = dict(pairs)
        if len(found) != len(pairs):
            twice, _ = Counter(key for key, _ in pairs).most_common(1)[0]
            refuse(twice, "the key occurs twice in one object")
        return found

    json.loads(raw, object_pairs_hook=once)
