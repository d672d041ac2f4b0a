"""What `toJSON` leaves out of a plan, asked of the JVM node by node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.jvm import seq

if TYPE_CHECKING:
    from headwater.spark.jvm import World
    from headwater.spark.tree import Node

MOST = 20


def complete(world: World, plan: Any, tree: Node) -> None:
    """Fill in the lines of every `Expand`, which are lists of lists and so not in the JSON."""
    for node, path in _expands(tree):
        try:
            at = plan
            for place in path:
                at = at.children().apply(place)
            node.data["projections"] = [_line(world, line) for line in seq(at.projections())]
        except Exception as error:  # noqa: BLE001
            world.problem(f"Expand: could not be read ({type(error).__name__})")


def _expands(tree: Node) -> list[tuple[Node, tuple[int, ...]]]:
    found: list[tuple[Node, tuple[int, ...]]] = []
    waiting: list[tuple[Node, tuple[int, ...]]] = [(tree, ())]
    while waiting and len(found) < MOST:
        node, path = waiting.pop()
        if node.kind == "Expand" and not node.get("projections"):
            found.append((node, path))
        waiting += [(child, (*path, place)) for place, child in enumerate(node.children)]
    return found


def _line(world: World, line: Any) -> list[Any]:
    """The expressions of one line in one call, as the children of an array."""
    array = world.jvm.org.apache.spark.sql.catalyst.expressions.CreateArray(line, True)
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
