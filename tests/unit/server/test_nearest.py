"""Names like one that is not there: what the answer to a wrong name offers."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING, Any

from headwater.server.api import lookup

if TYPE_CHECKING:
    import pytest


def test_the_names_most_like_one_come_first() -> None:
    known = ["amount", "amounts", "country", "currency", "x" * 500]
    assert lookup.nearest("amuont", known)[:2] == ["amount", "amounts"]
    assert lookup.nearest("", known) == known
    assert lookup.nearest("?", ["a", "b"]) == ["a", "b"]


def test_long_names_are_compared_within_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    """A producer chooses the names of columns: each of 190 letters took 3.5 ms of CPU, and 2,000 are looked at."""
    compared: list[list[str]] = []

    def close(_: str, names: list[str], **__: Any) -> list[str]:
        compared.append(names)
        return []

    monkeypatch.setattr(difflib, "get_close_matches", close)
    for wanted, size in (("ab" * 16_000, 190), ("ab" * 95, 190), ("ab" * 15, 30)):
        lookup.nearest(wanted, [("ab" * size)[n % 2 :][:size] for n in range(2_000)])
        assert len(wanted[:200]) * sum(map(len, compared[-1])) <= lookup.PAIRS
    assert len(compared[-1]) == 2_000
    lookup.nearest("ab", ["x" * 30_000, "ac"])
    assert compared[-1] == ["ac"]
