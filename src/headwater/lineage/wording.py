"""Numbers of things in sentences."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["affected_text", "counted", "hidden_text"]


def counted(number: int, noun: str) -> str:
    """`1 dataset`, `2 datasets`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def hidden_text(number: int, where: str = "") -> str:
    """`2 jobs or datasets upstream are hidden from you`."""
    noun, verb = ("job or dataset", "is") if number == 1 else ("jobs or datasets", "are")
    return " ".join(filter(None, (str(number), noun, where, verb, "hidden from you")))


def _told_apart(named: Sequence[Mapping[str, Any]]) -> list[str]:
    """Names of jobs and datasets, with the namespace where two of a kind have one name."""
    often = Counter((one["type"], one["name"]) for one in named)
    return [
        f"{one['namespace']}:{one['name']}" if often[one["type"], one["name"]] > 1 else one["name"]
        for one in named
    ]


def affected_text(affected: Mapping[str, Any], names: int) -> str:
    """What of an incident lies downstream, with at most so many names; nothing if nothing does.

    A reader who may not see everything gets numbers without names.
    """
    parts = [counted(affected[f"{noun}s"], noun) for noun in ("dataset", "job")]
    counts = " and ".join(part for part in parts if not part.startswith("0 "))
    if not counts:
        return ""
    listed = ", ".join(_told_apart(affected["names"][:names]))
    text = f"{'at least ' if affected['more'] else ''}{counts} downstream"
    return f"{text}: {listed}" if listed else text
