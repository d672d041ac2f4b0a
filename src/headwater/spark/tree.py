"""Trees from Spark's `toJSON`: nodes of plans and expressions, each with its children."""

from __future__ import annotations

from typing import Any

import msgspec

Raw = dict[str, Any]


class Node:
    """One node of a plan or an expression."""

    __slots__ = ("children", "data", "kind")

    def __init__(self, data: Raw, children: list[Node]) -> None:
        name: str = data.get("class", "")
        self.kind = name[name.rfind(".") + 1 :]
        self.data = data
        self.children = children

    def get(self, field: str) -> Any:
        """A field as Spark wrote it."""
        return self.data.get(field)

    def text(self, field: str) -> str:
        """A field that is a word; a Scala object such as `Inner$` gives its bare name."""
        value = self.data.get(field)
        if isinstance(value, dict):
            value = value.get("object", "")
            value = value[value.rfind(".") + 1 :].rstrip("$")
        return value if isinstance(value, str) else ""

    def node(self, field: str) -> Node | None:
        """The plan or expression in a field, whether it is a child or stands apart."""
        value = self.data.get(field)
        if isinstance(value, int) and not isinstance(value, bool):
            return self.children[value] if 0 <= value < len(self.children) else None
        if isinstance(value, list) and value:
            if isinstance(value[0], dict) and "num-children" in value[0]:
                return build(value)
            if isinstance(value[0], list) and len(value) == 1:
                return build(value[0])
        return None

    def nodes(self, field: str) -> list[Node]:
        """The plans or expressions in a field that holds several."""
        value = self.data.get(field)
        if not isinstance(value, list):
            return []
        if value and isinstance(value[0], dict) and "num-children" in value[0]:
            return [build(value)]
        found: list[Node] = []
        for item in value:
            if isinstance(item, int) and not isinstance(item, bool):
                found.append(self.children[item])
            elif isinstance(item, list) and item and isinstance(item[0], dict):
                found.append(build(item))
        return found

    @property
    def id(self) -> int:
        """The number of the attribute, or -1."""
        found = self.data.get("exprId")
        return found["id"] if isinstance(found, dict) and isinstance(found.get("id"), int) else -1

    @property
    def name(self) -> str:
        """The name of an attribute, an alias or a field."""
        found = self.data.get("name")
        return found if isinstance(found, str) else ""


def parse(text: str) -> Node:
    """The tree of one `toJSON`."""
    return build(msgspec.json.decode(text))


def build(flat: list[Raw]) -> Node:
    """The tree of nodes in pre-order, each with the number of its children."""
    waiting: list[Node] = []
    for data in reversed(flat):
        count = data["num-children"]
        children = [waiting.pop() for _ in range(count)]
        waiting.append(Node(data, children))
    return waiting[-1]
