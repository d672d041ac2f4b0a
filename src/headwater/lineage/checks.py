"""What makes a body unfit to be read at all: too deep, too many, repeated keys, NUL characters."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any, NoReturn

import msgspec

from headwater.lineage.hashing import canonical

__all__ = ["EventError", "Limits", "Problem", "check_size", "check_text", "refuse"]


class Problem(msgspec.Struct, frozen=True):
    """One thing wrong with one field of what was sent."""

    field: str
    problem: str


class EventError(ValueError):
    """What was sent is not an event; `problems` says why, field by field."""

    def __init__(self, problems: list[Problem]) -> None:
        super().__init__("; ".join(f"{p.field}: {p.problem}" for p in problems))
        self.problems = problems


class Limits(msgspec.Struct, frozen=True):
    """How large one event may be before it is refused."""

    depth: int = 64
    members: int = 25_000
    name: int = 4_096
    skew: timedelta = timedelta(days=1)


_NOT_BRACKETS = bytes(c for c in range(256) if c not in b"[]{}")


def check_text(raw: bytes, value: Any) -> None:
    """Refuse repeated keys and NUL characters in JSON that was decoded to `value`."""
    if b"\\" in raw and b"\\u" in raw:
        _check_escapes(raw, value)
        return
    body = canonical(value)
    # Without escapes, JSON that comes back with all its colons has lost no repeated key.
    if len(raw) != len(body) and raw.count(b":") != body.count(b":"):
        _check_repeats(raw)


def refuse(field: str, problem: str) -> NoReturn:
    raise EventError([Problem(field, problem)]) from None


def check_size(raw: bytes, value: Any, limits: Limits) -> None:
    """Hold a decoded value to the limits of depth and number; raises EventError."""
    brackets = raw.translate(None, _NOT_BRACKETS)
    if len(brackets) <= 2 * limits.depth:  # every level takes two
        brackets = b""
    for _ in range(limits.depth // 2):
        if not brackets:
            break
        brackets = brackets.replace(b"[]", b"").replace(b"{}", b"")
    if brackets or (len(raw) > limits.members and raw.count(b",") >= limits.members):
        _walk(value, limits)


def _walk(value: Any, limits: Limits) -> None:
    level: list[tuple[str, Any]] = [("$", value)]
    for _ in range(limits.depth + 1):
        below: list[tuple[str, Any]] = []
        for path, item in level:
            if not isinstance(item, (dict, list)):
                continue
            if len(item) > limits.members:
                refuse(path, f"{len(item)} members, more than the limit of {limits.members}")
            pairs = item.items() if isinstance(item, dict) else enumerate(item)
            below += [(_join(path, key), child) for key, child in pairs]
        level = [pair for pair in below if isinstance(pair[1], (dict, list))]
        if not level:
            return
    refuse(level[0][0][:200], f"nested deeper than {limits.depth} levels")


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
            keys = [key for key, _ in pairs]
            twice = next(key for key in keys if keys.count(key) > 1)
            refuse(twice, "the key stands twice in one object")
        return found

    json.loads(raw, object_pairs_hook=once)
