"""The layout of an explain text: its sections, and the tree that its indentation draws."""

from __future__ import annotations

import re
from typing import NamedTuple

from headwater.spark.tree import Node

_SECTION = re.compile(r"^== (Parsed Logical|Analyzed Logical|Optimized Logical|Physical) Plan ==$")
_BRANCH = re.compile(r"^((?:[: ] {2})*)([:+]- )")
MOST_LINES = 20_000


class Unclear(ValueError):
    """A text that does not say enough to be read without guessing."""


class Drawn:
    """One node of a drawn plan: its text, the plans below it and those inside its expressions."""

    __slots__ = ("below", "inside", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self.below: list[Drawn] = []
        self.inside: list[Drawn] = []

    @property
    def kind(self) -> str:
        """The name of the node."""
        return re.split(r"[\s(\[]", self.text, maxsplit=1)[0]

    @property
    def rest(self) -> str:
        """What the node says of itself."""
        return self.text[len(self.kind) :].strip()


class Explained(NamedTuple):
    """An extended explain text in its parts."""

    parsed: str
    analysed: str
    physical: str


class Text(Node):
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


def sections(text: str, *, query: bool) -> Explained:
    """Take an extended explain apart; a query's columns stand above its plan, a command has none."""
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
    return Explained(
        "\n".join(found.get("Parsed Logical", [])).strip("\n"),
        "\n".join(analysed).strip("\n"),
        "\n".join(found.get("Physical", [])),
    )


def draw(text: str) -> Drawn:
    """The tree of a plan's text; a line that is not a branch goes on with the one before."""
    lines = text.split("\n")
    if len(lines) > MOST_LINES:
        raise Unclear("the plan's text is too long")
    root: Drawn | None = None
    open_: list[tuple[int, Drawn]] = []
    for line in lines:
        branch = _BRANCH.match(line)
        if root is None or branch is None:
            if root is None:
                root = Drawn(line)
                open_ = [(0, root)]
            else:
                open_[-1][1].text += "\n" + line
            continue
        depth = len(branch[1]) // 3 + 1
        node = Drawn(line[branch.end() :])
        while open_ and open_[-1][0] >= depth:
            open_.pop()
        if not open_:
            raise Unclear("the plan's text is not a tree")
        level, above = open_[-1]
        if depth - level == 1:
            above.below.append(node)
        elif depth - level == 2:
            above.inside.append(node)
        else:
            raise Unclear("the plan's text is not a tree")
        open_.append((depth, node))
    if root is None or not root.text:
        raise Unclear("the plan's text is empty")
    for node in every(root):
        node.text = node.text.removeprefix("~").strip()
    return root


def every(root: Drawn) -> list[Drawn]:
    """All nodes, each before those below it."""
    found: list[Drawn] = []
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
                raise Unclear("brackets do not match")
        elif depth == 0 and text.startswith(separator, at):
            parts.append(text[start:at])
            at += len(separator)
            start = at
            continue
        at += 1
    if depth:
        raise Unclear("brackets do not match")
    return [*parts, text[start:]]


def bracketed(text: str) -> str | None:
    """What stands inside `[...]` when that is the whole of the text."""
    return text[1:-1] if text.startswith("[") and text.endswith("]") else None


def relation_name(text: str) -> str:
    """A table's name behind its columns; before Spark 4.1 its own stands after its catalog's."""
    first, _, second = text.partition(" ")
    if second and (first == second or ("/" in second and first.endswith(second))):
        return second
    return text
