"""Types across formats: one spelling, and which change of type readers survive."""

from __future__ import annotations

import re
from functools import lru_cache

_SAME = {
    "integer": "int",
    "int32": "int",
    "int4": "int",
    "serial": "int",
    "bigint": "long",
    "int64": "long",
    "bigserial": "long",
    "short": "smallint",
    "int16": "smallint",
    "int2": "smallint",
    "byte": "tinyint",
    "bool": "boolean",
    "real": "float",
    "float4": "float",
    "float32": "float",
    "float8": "double",
    "float64": "double",
    "double precision": "double",
    "text": "string",
    "varchar": "string",
    "character varying": "string",
    "nvarchar": "string",
    "binary": "bytes",
    "varbinary": "bytes",
    "bytea": "bytes",
    "numeric": "decimal",
    "record": "struct",
    "row": "struct",
    "list": "array",
    "timestamp with time zone": "timestamp",
    "timestamptz": "timestamp",
    "timestamp without time zone": "timestamp_ntz",
}
_PREFIX = {"numeric": "decimal", "character varying": "varchar", "nvarchar": "varchar"}
_SIZED = re.compile(r"^([a-z_ ]+?)\s*\(\s*(\d{1,6})\s*(?:,\s*(\d{1,6})\s*)?\)$")
_MARK = re.compile(r"[<>(),]")
_CONTAINERS = frozenset({"array", "list", "map"})
_LONGEST_CONTAINER = 8
# From one to the next nothing is lost; a type may go as far as it likes.
_LADDERS = (
    ("tinyint", "smallint", "int", "long"),
    ("tinyint", "smallint", "int", "double"),
    ("float", "double"),
    ("date", "timestamp_ntz"),
)
_DIGITS = {"tinyint": 3, "smallint": 5, "int": 10, "long": 19}


_CACHED_LENGTH = 64


def normal(kind: str) -> str:
    """One spelling of a type name, so that `BIGINT` and `long` do not count as a change."""
    # Every event repeats its types, and each is compared with every claim on its dataset. Long ones
    # are nested and rare: they would only fill the cache.
    return _short(kind) if len(kind) <= _CACHED_LENGTH else _normal(kind)


@lru_cache(maxsize=4_096)
def _short(kind: str) -> str:
    return _normal(kind)


def _normal(kind: str) -> str:
    return "".join(_tokens(kind))


def _tokens(kind: str) -> list[str]:
    """A type as the containers, commas and types of one spelling that it is written with.

    One pass, however deep it is nested: types come from whoever sends events.
    """
    text = " ".join(kind.split()).lower()
    tokens: list[str] = []
    start = nested = inside = 0
    for mark in _MARK.finditer(text):
        at, sign = mark.start(), mark[0]
        if sign in "<(":
            name = text[start:at].strip() if at - start <= _LONGEST_CONTAINER else ""
            if sign == "<" and not inside and name in _CONTAINERS:
                tokens.append(f"{_SAME.get(name, name)}<")
                nested, start = nested + 1, at + 1
            else:
                inside += 1  # of a struct, or of the size of a number
        elif inside:
            inside -= sign in ">)"
        elif nested and sign in ",>":
            tokens += filter(None, (_one(text[start:at].strip()), sign))
            nested, start = nested - (sign == ">"), at + 1
    return [*tokens, *filter(None, (_one(text[start:].strip()),))]


def _one(text: str) -> str:
    if match := _SIZED.match(text):
        name = _PREFIX.get(match[1], match[1])
        size = f"{match[2]},{match[3] or 0}" if name == "decimal" else match[2]
        return f"{name}({size})"
    return _SAME.get(text, text)


def widens(old: str, new: str) -> bool:
    """Whether every value of the old type is a value of the new one."""
    before, after = _tokens(old), _tokens(new)
    return len(before) == len(after) and all(map(_one_widens, before, after))


def _one_widens(old: str, new: str) -> bool:
    if old == new:
        return True
    if any(old in step and new in step[step.index(old) :] for step in _LADDERS):
        return True
    return _wider(_sized(old), _sized(new))


_FAMILIES = (
    ("tinyint", "smallint", "int", "long", "float", "double", "decimal"),
    ("string", "varchar", "char", "enum", "uuid"),
    ("date", "timestamp", "timestamp_ntz", "timestamp-micros", "timestamp-millis"),
    ("bytes", "fixed"),
)


_FLAT = frozenset(name for family in _FAMILIES for name in family) | {"boolean", "time"}


def holds_nothing(kind: str) -> bool:
    """Whether a value of this type is known to have no fields or elements."""
    return _sized(normal(kind))[0] in _FLAT


def same_family(old: str, new: str) -> bool:
    """Whether both are numbers, texts, moments or bytes, so that most expressions take either."""
    kinds = _sized(normal(old))[0], _sized(normal(new))[0]
    return kinds[0] == kinds[1] or any(set(kinds) <= set(family) for family in _FAMILIES)


def _wider(old: tuple[str, int, int], new: tuple[str, int, int]) -> bool:
    (kind, size, scale), (target, room, places) = old, new
    if target == "decimal":
        whole = room - places
        if kind == "decimal":
            return bool(size) and places >= scale and whole >= size - scale
        return kind in _DIGITS and whole >= _DIGITS[kind]
    if kind in ("varchar", "char"):
        return target == "string" or (target in ("varchar", "char") and room >= size > 0)
    if kind == "fixed":
        return target == "bytes"
    return kind in ("enum", "uuid") and target == "string"


def _sized(kind: str) -> tuple[str, int, int]:
    match = _SIZED.match(kind)
    return (match[1], int(match[2]), int(match[3] or 0)) if match else (kind, 0, 0)
