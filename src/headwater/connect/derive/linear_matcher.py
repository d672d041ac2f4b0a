"""A regular-expression matcher in linear time, for expressions that Python's engine may not end on.

Python's engine backtracks: with nested repeats its time doubles with each character, and configurations
may hold any expression. Here all alternatives advance together, one character at a time (Pike's
virtual machine), on the program that Python's own parser gives.
"""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import re

if sys.version_info >= (3, 11):
    from re import _compiler as sre_compile
    from re import _constants as sre
    from re import _parser as sre_parse
else:  # pragma: no cover
    import sre_compile
    import sre_constants as sre
    import sre_parse

_CAREFREE = 2
_MOST = 4_000
_ZERO = {sre.ASSERT, sre.ASSERT_NOT, sre.GROUPREF, sre.GROUPREF_EXISTS}
Span = tuple[int, int]


class UnfollowableError(ValueError):
    """An expression that cannot be followed in bounded time."""


def build(text: str, flags: int) -> MatcherProgram | None:
    """A machine for an expression that could run away; None when Python's engine will do."""
    tree = sre_parse.parse(text, flags)
    count, nested, special = _survey(tree, False)
    if count <= _CAREFREE and not nested:
        return None
    if special:
        raise UnfollowableError(
            "has too many repeats beside looks around or references to be followed"
        )
    machine = MatcherProgram(flags, tree.state.groups)
    machine.compile(tree)
    machine.emit("match")
    return machine


def _survey(tree: Any, inside: bool) -> tuple[int, bool, bool]:
    """How many repeats have no end, whether choices stand in one, and what no machine can do."""
    count, nested, special = 0, False, False
    for op, value in tree:
        here = inside
        if op in _ZERO or op not in _KNOWN:
            special = True
        if op in _REPEATS:
            count += value[1] is sre.MAXREPEAT or value[1] > 8
            nested |= inside
            here = inside or value[1] is sre.MAXREPEAT or value[1] > 1
        nested |= inside and op is sre.BRANCH
        for part in _parts(op, value):
            more, deeper, odd = _survey(part, here)
            count, nested, special = count + more, nested | deeper, special | odd
    return count, nested, special


_REPEATS = {sre.MAX_REPEAT, sre.MIN_REPEAT}
_SINGLE = {sre.LITERAL, sre.NOT_LITERAL, sre.ANY, sre.IN}
_KNOWN = _REPEATS | _SINGLE | {sre.SUBPATTERN, sre.BRANCH, sre.AT}


def _parts(op: Any, value: Any) -> list[Any]:
    if op in _REPEATS:
        return [value[2]]
    if op is sre.SUBPATTERN:
        return [value[3]]
    if op is sre.BRANCH:
        return list(value[1])
    if op in (sre.ASSERT, sre.ASSERT_NOT):
        return [value[1]]
    return []


class MatcherProgram:
    """The expression as a small program, run over the text in lock step."""

    def __init__(self, flags: int, groups: int) -> None:
        self.flags = flags
        self.groups = groups
        self.code: list[list[Any]] = []
        self._tests: dict[str, re.Pattern[str]] = {}

    def emit(self, *op: Any) -> int:
        """Add one instruction and return its position."""
        if len(self.code) >= _MOST:
            raise UnfollowableError("is too large to be followed")
        self.code.append(list(op))
        return len(self.code) - 1

    def compile(self, tree: Any) -> None:
        """Add the instructions of a parsed expression."""
        for op, value in tree:
            if op in _SINGLE:
                self.emit("char", self._test(op, value))
            elif op is sre.AT:
                self.emit("at", value)
            elif op is sre.SUBPATTERN:
                group, add, drop, inner = value
                if add or drop:
                    raise UnfollowableError("changes its flags half-way")
                if group is not None:
                    self.emit("save", 2 * group)
                self.compile(inner)
                if group is not None:
                    self.emit("save", 2 * group + 1)
            elif op is sre.BRANCH:
                self._branch(value[1])
            else:
                self._repeat(op, *value)

    def _branch(self, choices: list[Any]) -> None:
        ends = []
        for choice in choices[:-1]:
            split = self.emit("split", len(self.code) + 1, 0)
            self.compile(choice)
            ends.append(self.emit("jump", 0))
            self.code[split][2] = len(self.code)
        self.compile(choices[-1])
        for end in ends:
            self.code[end][1] = len(self.code)

    def _repeat(self, op: Any, low: int, high: int, inner: Any) -> None:
        greedy = op is sre.MAX_REPEAT
        for _ in range(low):
            self.compile(inner)
        if high is sre.MAXREPEAT:
            split = self.emit("split", 0, 0)
            start = len(self.code)
            self.compile(inner)
            self.emit("jump", split)
            self._choose(split, start, greedy)
            return
        splits = []
        for _ in range(high - low):
            splits.append((self.emit("split", 0, 0), len(self.code)))
            self.compile(inner)
        for split, start in splits:
            self._choose(split, start, greedy)

    def _choose(self, split: int, start: int, greedy: bool) -> None:
        end = len(self.code)
        self.code[split][1:] = [start, end] if greedy else [end, start]

    def _test(self, op: Any, value: Any) -> re.Pattern[str]:
        """One character's test, left to Python's engine: classes, case and all."""
        key = f"{op}{value}"
        if key not in self._tests:
            state: Any = sre_parse.State()
            state.flags, state.str = self.flags, "."
            self._tests[key] = _compile(sre_parse.SubPattern(state, [(op, value)]), self.flags)
        return self._tests[key]

    def run(self, text: str, *, whole: bool) -> list[Span] | None:
        """Where the whole expression and each group matched, or None."""
        best: list[int] | None = None
        threads: list[tuple[int, list[int]]] = []
        for index in range(len(text) + 1):
            if best is None and (index == 0 or not whole):
                seen = {pc for pc, _ in threads}
                threads += self._follow(0, index, text, [-1] * (2 * self.groups), seen, index)
            following: list[tuple[int, list[int]]] = []
            seen = set()
            for pc, saved in threads:
                op = self.code[pc]
                if op[0] == "match":
                    if whole and index < len(text):
                        continue
                    best = [*saved]
                    best[1] = index
                    break
                if index < len(text) and op[1].match(text[index]):
                    following += self._follow(pc + 1, index + 1, text, saved, seen)
            threads = following
            if not threads and (best is not None or whole):
                break
        if best is None:
            return None
        return [(best[2 * g], best[2 * g + 1]) for g in range(self.groups)]

    def _follow(
        self, pc: int, index: int, text: str, saved: list[int], seen: set[int],
        start: int | None = None,
    ) -> list[tuple[int, list[int]]]:  # fmt: skip
        """The instructions that wait for a character, in the order Java would try them."""
        if start is not None:
            saved = [*saved]
            saved[0] = start
        out: list[tuple[int, list[int]]] = []
        stack = [(pc, saved)]
        while stack:
            here, marks = stack.pop()
            if here in seen:
                continue
            seen.add(here)
            op = self.code[here]
            if op[0] == "jump":
                stack.append((op[1], marks))
            elif op[0] == "split":
                stack += [(op[2], marks), (op[1], marks)]
            elif op[0] == "save":
                copy = [*marks]
                copy[op[1]] = index
                stack.append((here + 1, copy))
            elif op[0] == "at":
                if _at(op[1], text, index):
                    stack.append((here + 1, marks))
            else:
                out.append((here, marks))
        return out


def _compile(pattern: Any, flags: int) -> re.Pattern[str]:
    compiled: re.Pattern[str] = sre_compile.compile(pattern, flags)
    return compiled


def _at(where: Any, text: str, index: int) -> bool:
    if where in (sre.AT_BEGINNING, sre.AT_BEGINNING_STRING):
        return index == 0
    if where in (sre.AT_END, sre.AT_END_STRING):
        return index == len(text)
    word = [
        0 <= i < len(text) and (text[i].isalnum() or text[i] == "_") for i in (index - 1, index)
    ]
    return (word[0] != word[1]) == (where is sre.AT_BOUNDARY)
