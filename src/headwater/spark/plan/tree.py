"""Trees from Spark's `toJSON`: nodes of plans and expressions, each with its children."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from headwater.spark.jvm import seq

if TYPE_CHECKING:
    from headwater.spark.jvm import JvmSession

Raw = dict[str, Any]
_MAX_EXPANDS = 20


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
        """A field that is text; of a Scala object such as `Inner$` its bare name."""
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


class Tree(NamedTuple):
    """The tree of a plan, and whether it may have queries inside of its expressions."""

    root: Node
    inner: bool


def read_tree(session: JvmSession, plan: Any, limit: int) -> Tree | None:
    """The tree of a plan of the JVM, or None when it has more nodes than the limit."""
    found = session.json(plan, limit)
    if found is None:
        return None
    root = parse(found.text)
    complete(session, plan, root)
    return Tree(root, found.inner)


def complete(session: JvmSession, plan: Any, tree: Node) -> None:
    """Fill in the lines of every `Expand`, which are lists of lists and so not in the JSON."""
    for node, path in _expands(tree):
        try:
            at = plan
            for place in path:
                at = at.children().apply(place)
            node.data["projections"] = [_line(session, line) for line in seq(at.projections())]
        except Exception as error:  # noqa: BLE001
            session.problem(f"Expand: could not be read ({type(error).__name__})")


def _expands(tree: Node) -> list[tuple[Node, tuple[int, ...]]]:
    found: list[tuple[Node, tuple[int, ...]]] = []
    waiting: list[tuple[Node, tuple[int, ...]]] = [(tree, ())]
    while waiting and len(found) < _MAX_EXPANDS:
        node, path = waiting.pop()
        if node.kind == "Expand" and not node.get("projections"):
            found.append((node, path))
        waiting += [(child, (*path, place)) for place, child in enumerate(node.children)]
    return found


def _line(session: JvmSession, line: Any) -> list[Any]:
    """The expressions of one line in one call, as the children of an array."""
    array = session.jvm.org.apache.spark.sql.catalyst.expressions.CreateArray(line, True)
    flat: list[dict[str, Any]] = msgspec.json.decode(array.toJSON())[1:]
    lines: list[Any] = []
    at = 0
    while at < len(flat):
        end, open_ = at, 1
        while open_:
            open_ += flat[end]["num-children"] - 1
            end += 1
        lines.append(flat[at:end])
        at = end
    return lines
