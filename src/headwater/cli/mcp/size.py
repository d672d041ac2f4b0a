"""Answers of a size that a model can read: texts and lists are cut, and `cut` lists which."""

from __future__ import annotations

from typing import Any

import msgspec

__all__ = ["MOST", "TEXT", "fitted"]

MOST = 12_000
"""Characters of an answer, about 3,000 tokens."""
TEXT = 400
"""Characters of one text; an error can be a page long."""
STEPS = (200, 100, 60, 35, 20, 12, 7, 4, 2, 1)
"""Items of a list that are tried, the most first; what comes first in an answer matters most."""


def fitted(answer: dict[str, Any]) -> str:
    """An answer as JSON of at most `MOST` characters; `cut` lists what was shortened."""
    text = ""
    for items, longest in (*((step, TEXT) for step in STEPS), (1, 80), (1, 20)):
        text = msgspec.json.encode(_cut(answer, items, longest)).decode()
        if len(text) <= MOST:
            break
    return text


def _cut(answer: dict[str, Any], items: int, longest: int) -> dict[str, Any]:
    inside = False

    def small(value: Any) -> Any:
        nonlocal inside
        if isinstance(value, str):
            return value if len(value) <= longest else value[: longest - 1] + "…"
        if isinstance(value, dict):
            return {str(small(str(key))): small(one) for key, one in value.items()}
        if isinstance(value, list):
            inside = inside or len(value) > items
            return [small(one) for one in value[:items]]
        return value

    found: dict[str, Any] = {}
    cut: dict[str, str] = {}
    for name, value in answer.items():
        if isinstance(value, list):
            found[name] = [small(one) for one in value[:items]]
            if len(value) > items:
                cut[name] = f"{items} of {len(value)}"
        else:
            # An address that was cut would lead nowhere.
            found[name] = value if name == "page" else small(value)
    if inside:
        cut["lists inside"] = f"at most {items} each"
    return {**found, "cut": cut} if cut else found
