"""The layout of an explain text: its sections, the tree of its indentation, lists and brackets."""

from __future__ import annotations

import re
from typing import NamedTuple

from headwater.spark.plan.tree import Node

_SECTION = re.compile(r"^== (Parsed Logical|Analyzed Logical|Optimized Logical|Physical) Plan ==$")
_BRANCH = re.compile(r"^((?:[: ] {2})*)([:+]- )")
MAX_LINES = 20_000


class UnclearText(ValueError):
    """A plan's text is ambiguous: its lineage is reported as unknown instead of guessed."""


class PlanTextNode:
    """One node of a plan's text, with the plans below it and those inside its expressions."""

    __slots__ = ("below", "inside", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.below: list[PlanTextNode] = []
        self.inside: list[PlanTextNode] = []

    @property
    def kind(self) -> str:
        """The name of the node."""
        return re.split(r"[\s(\[]", self.text, maxsplit=1)[0]

    @property
    def rest(self) -> str:
        """The text after the name."""
        return self.text[len(self.kind) :].strip()


class ExplainSections(NamedTuple):
    """An extended explain text in its parts."""

    parsed: str
    analysed: str
    physical: str


class TextNode(Node):
    """A node made from text: its fields hold nodes themselves."""

    __slots__ = ()

    def node(self, field: str) -> Node | None:
        value = self.data.get(field)
        return value if isinstance(value, Node) else super().node(field)

    def nodes(self, field: str) -> list[Node]:
        value = self.data.get(field)
        if isinstance(value, list) and value and isinstance(value[0], Node):
            return value
        return super().nodes(field)


def sections(text: str, *, query: bool) -> ExplainSections:
    """Take an extended explain apart; the first line of a query's plan lists its columns, a command has none."""
    found: dict[str, list[str]] = {}
    lines: list[str] = []
    for line in text.split("\n"):
        if match := _SECTION.match(line):
            lines = found.setdefault(match[1], [])
        else:
            lines.append(line)
    analysed = found.get("Analyzed Logical", [])
    if query:
        analysed = analysed[1:]
    return ExplainSections(
        "\n".join(found.get("Parsed Logical", [])).strip("\n"),
        "\n".join(analysed).strip("\n"),
        "\n".join(found.get("Physical", [])),
    )


def parse_tree(text: str) -> PlanTextNode:
    """The tree of a plan's text; a line that is not a branch goes on with the one before."""
    lines = text.split("\n")
    if len(lines) > MAX_LINES:
        raise UnclearText("the plan's text is too long")
    root: PlanTextNode | None = None
    open_: list[tuple[int, PlanTextNode]] = []
    for line in lines:
        branch = _BRANCH.match(line)
        if root is None or branch is None:
            if root is None:
                root = PlanTextNode(line)
                open_ = [(0, root)]
            else:
                open_[-1][1].text += "\n" + line
            continue
        depth = len(branch[1]) // 3 + 1
        node = PlanTextNode(line[branch.end() :])
        while open_ and open_[-1][0] >= depth:
            open_.pop()
        if not open_:
            raise UnclearText("the plan's text is not a tree")
        level, above = open_[-1]
        if depth - level == 1:
            above.below.append(node)
        elif depth - level == 2:
            above.inside.append(node)
        else:
            raise UnclearText("the plan's text is not a tree")
        open_.append((depth, node))
    if root is None or not root.text:
        raise UnclearText("the plan's text is empty")
    for node in all_nodes(root):
        node.text = node.text.removeprefix("~").strip()
    return root


def all_nodes(root: PlanTextNode) -> list[PlanTextNode]:
    """All nodes, each before those below it."""
    found: list[PlanTextNode] = []
    waiting = [root]
    while waiting:
        node = waiting.pop()
        found.append(node)
        waiting.extend(reversed([*node.inside, *node.below]))
    return found


_OPEN, _CLOSE = "([{", ")]}"


def split(text: str, separator: str = ", ") -> list[str]:
    """The parts of a list, cut where no bracket is open."""
    parts: list[str] = []
    depth = start = at = 0
    while at < len(text):
        char = text[at]
        if char in _OPEN:
            depth += 1
        elif char in _CLOSE:
            depth -= 1
            if depth < 0:
                raise UnclearText("brackets do not match")
        elif depth == 0 and text.startswith(separator, at):
            parts.append(text[start:at])
            at += len(separator)
            start = at
            continue
        at += 1
    if depth:
        raise UnclearText("brackets do not match")
    return [*parts, text[start:]]


def bracketed(text: str) -> str | None:
    """The inside of `[...]` when that is the whole text."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else None


def relation_name(text: str) -> str:
    """A table's name behind its columns; before Spark 4.1 it is written twice, with and without its catalog."""
    first, _, second = text.partition(" ")
    if second and (first == second or ("/" in second and first.endswith(second))):
        return second
    return text


_CLOSING = {"(": ")", "[": "]", "{": "}"}


def close(text: str, at: int) -> int:
    """Where the bracket that opens here closes."""
    waiting: list[str] = []
    for place in range(at, len(text)):
        char = text[place]
        if char in _CLOSING:
            waiting.append(_CLOSING[char])
        elif char in ")]}":
            if not waiting or waiting.pop() != char:
                raise UnclearText("brackets do not match")
            if not waiting:
                return place
    raise UnclearText("brackets do not match")
