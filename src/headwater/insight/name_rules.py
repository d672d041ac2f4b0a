"""A user's own rules for names: how some are to be read, and which pairs are never one dataset.

Patterns come from a file or a request, so they are held to forms whose cost is bounded: a group is not
repeated, and few parts may be of any length.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.insight.dataset_pairs import NameRules

if TYPE_CHECKING:
    from headwater.insight.dataset_pairs import Named

__all__ = ["RULES_SHAPE", "NameRuleError", "name_rules"]

RULES_SHAPE = (
    '{"read": [{"namespace": PATTERN, "name": PATTERN, "toNamespace": TEXT, "toName": TEXT}],'
    ' "never": [{"one": PATTERN, "other": PATTERN}]}'
)
MOST = 200
LONGEST = 300
NAMES = 500
"""Names longer than this are left alone."""
REPEATS = 3
OPTIONS = 10
_READ = {"namespace", "name", "toNamespace", "toName"}
_NEVER = {"one", "other"}


class NameRuleError(ValueError):
    """A rule that cannot be used, and why."""


class _Reading(NamedTuple):
    namespace: re.Pattern[str]
    name: re.Pattern[str]
    to: tuple[str | None, str | None]

    def read(self, space: str, text: str) -> Named | None:
        namespace, name = self.namespace.fullmatch(space), self.name.fullmatch(text)
        if namespace is None or name is None:
            return None
        to_namespace, to_name = self.to
        return (
            space if to_namespace is None else namespace.expand(to_namespace),
            text if to_name is None else name.expand(to_name),
        )


def name_rules(given: Any) -> NameRules:
    """The rules that a file or a request holds; raises NameRuleError with the place of what is wrong."""
    if not isinstance(given, dict) or given.keys() - {"read", "never"}:
        raise NameRuleError(f"must be {RULES_SHAPE}")
    readings = [_reading(item, f"read[{i}]") for i, item in enumerate(_listed(given, "read"))]
    pairs = [_pair(item, f"never[{i}]") for i, item in enumerate(_listed(given, "never"))]

    def read(namespace: str, name: str) -> Named:
        if len(namespace) <= NAMES and len(name) <= NAMES:
            for one in readings:
                if (found := one.read(namespace, name)) is not None:
                    return found
        return namespace, name

    def never(one: Named, other: Named) -> bool:
        texts = [":".join(named)[: 2 * NAMES] for named in (one, other)]
        return any(
            first.fullmatch(a) is not None and second.fullmatch(b) is not None
            for first, second in pairs
            for a, b in (texts, texts[::-1])
        )

    return NameRules(read if readings else None, never if pairs else None)


def _listed(given: dict[str, Any], member: str) -> list[Any]:
    found = given.get(member, [])
    if not isinstance(found, list) or len(found) > MOST:
        raise NameRuleError(f"{member} must be a list of at most {MOST} rules")
    return found


def _texts(item: Any, place: str, members: set[str]) -> dict[str, str]:
    if not isinstance(item, dict) or not all(isinstance(text, str) for text in item.values()):
        raise NameRuleError(f"{place} must have texts: {', '.join(sorted(members))}")
    if unknown := sorted(item.keys() - members):
        raise NameRuleError(f"{place} has no {unknown[0]}; it has {', '.join(sorted(members))}")
    return item


def _reading(item: Any, place: str) -> _Reading:
    texts = _texts(item, place, _READ)
    to = (texts.get("toNamespace"), texts.get("toName"))
    if to == (None, None):
        raise NameRuleError(f"{place} must have toNamespace, toName or both")
    patterns = [_pattern(texts.get(key, ".*"), f"{place}.{key}") for key in ("namespace", "name")]
    for pattern, text, key in zip(patterns, to, ("toNamespace", "toName"), strict=True):
        try:
            if text is not None:
                re.sub(pattern, text, "")  # compiles the replacement even where nothing matches
        except (re.error, IndexError) as error:
            raise NameRuleError(f"{place}.{key} cannot be used: {error}") from None
    return _Reading(patterns[0], patterns[1], to)


def _pair(item: Any, place: str) -> tuple[re.Pattern[str], re.Pattern[str]]:
    texts = _texts(item, place, _NEVER)
    if texts.keys() != _NEVER:
        raise NameRuleError(f"{place} must have one and other")
    return _pattern(texts["one"], f"{place}.one"), _pattern(texts["other"], f"{place}.other")


def _pattern(text: str, place: str) -> re.Pattern[str]:
    if len(text) > LONGEST:
        raise NameRuleError(f"{place} is longer than {LONGEST} characters")
    # What is left has no escapes and no classes: each repeat in it is one.
    plain = re.sub(r"\[\^?\]?[^\]]*\]", "c", re.sub(r"\\.", "e", text, flags=re.DOTALL))
    if re.search(r"\\[1-9]", text) or re.search(r"\(\?(?!:|P<)", plain):
        raise NameRuleError(f"{place} may not look back or ahead")
    if re.search(r"\)[*+{]", plain):
        raise NameRuleError(f"{place} may not repeat a group")
    repeats = len(re.findall(r"[*+]|\{\d*,\d*\}", plain))
    if repeats > REPEATS or plain.count("?") > OPTIONS:
        raise NameRuleError(f"{place} may hold at most {REPEATS} parts of any length")
    try:
        return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise NameRuleError(f"{place} is no pattern: {error}") from None
