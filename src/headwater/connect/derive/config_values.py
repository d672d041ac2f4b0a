"""Connector configurations as text: every shape that REST gives, placeholders marked."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from typing import Any

PLACEHOLDER = "\u0298"
"""Stands where a `${provider:...}` stood: a letter, so that names with it can still be made, and
rare, so that a name which depends on it is recognised and never used."""

_PROVIDER = re.compile(r"\$\{(?!date:|date-with)[A-Za-z][\w.\-]*:[^{}]*\}")
_LONGEST = 65_536
_SHAPES = ("config", "configs")


def normalise(raw: object) -> dict[str, str]:
    """A configuration as plain text to text, from an object or Confluent Cloud's array of pairs."""
    if isinstance(raw, list | tuple):
        pairs = [
            (item.get("config") or item.get("name") or item.get("key"), item.get("value"))
            for item in raw
            if isinstance(item, Mapping)
        ]
    elif isinstance(raw, Mapping):
        inner = next((raw[key] for key in _SHAPES if isinstance(raw.get(key), list)), None)
        if inner is not None:
            return normalise(inner)
        pairs = list(raw.items())
    else:
        return {}
    return {str(key): _text(value) for key, value in pairs if key and value is not None}


def mark(config: Mapping[str, str]) -> dict[str, str]:
    """The configuration with every placeholder of a secret store replaced by one letter."""
    return {key: _PROVIDER.sub(PLACEHOLDER, value[:_LONGEST]) for key, value in config.items()}


def unresolved_keys(config: Mapping[str, str]) -> list[str]:
    """The keys whose values only the worker can resolve."""
    return sorted(key for key, value in config.items() if _PROVIDER.search(value))


def split(text: str) -> list[str]:
    """A list separated by commas, without blanks."""
    return [item.strip() for item in text.split(",") if item.strip()]


def split_patterns(text: str) -> list[str]:
    """A list of expressions separated by commas; a comma of an expression has a backslash before."""
    parts = re.findall(r"(?:\\.|[^,\\])+", text, re.DOTALL)
    return [part.strip().replace("\\,", ",") for part in parts if part.strip()]


def pairs(text: str, separators: str = ":=") -> dict[str, str]:
    """`a:b,c:d` as a dictionary; the last separator divides, so that names may hold it."""
    found: dict[str, str] = {}
    for item in split(text):
        cut = max(item.rfind(mark) for mark in separators)
        if cut > 0:
            found.setdefault(item[:cut].strip(), item[cut + 1 :].strip())
    return found


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | tuple):
        return ",".join(_text(item) for item in value)
    if isinstance(value, Mapping):
        return json.dumps(value, ensure_ascii=False)
    return str(value)
