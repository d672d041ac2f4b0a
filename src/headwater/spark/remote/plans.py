"""Plans from text: each drawn node as the node that the rules read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.spark.remote.layout import Drawn, Text, Unclear, bracketed, split
from headwater.spark.remote.phrases import Phrases
from headwater.spark.remote.rules import settle_groups
from headwater.spark.remote.tokens import close

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.tree import Node

    Leaf = Callable[[Drawn, list[str]], dict[str, Any]]

_PLAIN = re.compile(r"^[\w$.-]*$")
_CONSTANT = ("LocalRelation", "OneRowRelation", "CommandResult", "EmptyRelation")
_LISTED = {"Sort": "order", "Deduplicate": "keys", "DeduplicateWithinWatermark": "keys"}
_PYTHON = re.compile(r"^(?:\w*MapIn|FlatMap|TransformWithState)")


class Plans:
    """Builds the tree of one plan, from its leaves up.

    `leaf` is asked for the types of a leaf's columns by name; columns that it does not name are
    facts about rows and files.
    """

    def __init__(
        self, leaf: Leaf, literals: dict[str, str], functions: dict[str, set[int]]
    ) -> None:
        self.phrases = Phrases(literals, functions)
        self.leaves: list[tuple[Drawn, Node]] = []
        self.nodes = 0
        self._ranges: list[Text] = []
        self._leaf = leaf
        self._odd: dict[str, str] = {}

    def plan(self, drawn: Drawn) -> Text:
        """The tree of a drawn plan."""
        made = self.build(drawn)
        missing = list(self.phrases.missing.items())
        if len(missing) <= len(self._ranges) and all(name == "id" for _, name in missing):
            # A range does not show its column: nobody else can have given it.
            for (number, name), leaf in zip(missing, self._ranges, strict=False):
                leaf.data["output"] = [self.phrases.defined(f"{name}#{number}L")]
        return made

    def build(self, drawn: Drawn) -> Text:
        """The node of a drawn plan and of all below it."""
        children = [self.build(below) for below in drawn.below]
        inside = [self.build(one) for one in drawn.inside]
        self.nodes += 1
        drawn.text = self._calm(drawn.text)
        if drawn.kind == "LateralJoin":
            return self._lateral(drawn, children, inside)
        self.phrases.inside = list(inside)
        made = self._node(drawn, children)
        if self.phrases.inside:
            raise Unclear("a subquery's place is not shown")
        self._note_names()
        return made

    def _calm(self, text: str) -> str:
        """A text in which attributes with odd names have plain ones."""
        for odd, plain in self._odd.items():
            if odd in text:
                text = text.replace(odd, plain)
        return text

    def _note_names(self) -> None:
        for number, name in list(self.phrases.names.items()):
            if not _PLAIN.match(name) and f"{name}#{number}" not in self._odd:
                plain = f"odd{number}"
                self._odd[f"{name}#{number}"] = f"{plain}#{number}"
                self.phrases.names[number] = plain

    def _node(self, drawn: Drawn, children: list[Text]) -> Text:
        kind, rest = drawn.kind, drawn.rest
        if not children and not drawn.below:
            return self._bottom(drawn)
        if kind == "Project":
            return _made(kind, children, {"projectList": self._named(split(rest)[0])})
        if kind in _LISTED:
            return _made(kind, children, {_LISTED[kind]: self._list(split(rest)[0])})
        if kind == "Filter":
            return _made(kind, children, {"condition": self.phrases.phrase(rest)})
        if kind == "Aggregate":
            return self._aggregate(rest, children)
        if kind == "Join":
            return self._join(rest, children)
        if kind == "Window":
            return _made(kind, children, {"windowExpressions": self._named(split(rest)[0])})
        if kind == "Generate":
            parts = split(rest)
            outputs = self._outputs(parts[-1])
            generator = self.phrases.phrase(parts[0])
            return _made(kind, children, {"generator": generator, "generatorOutput": outputs})
        if kind == "Expand":
            return self._expand(rest, children)
        if kind == "CTERelationDef":
            return _made(kind, children, {"id": int(split(rest)[0])})
        if _PYTHON.match(kind):
            return self._python(kind, rest, children)
        if kind in ("ArrowEvalPython", "BatchEvalPython", "MergeRows"):
            raise Unclear(f"{kind} does not show what it does")
        return _made(kind, children, {})

    def _list(self, text: str) -> list[Node]:
        inner = bracketed(text)
        if inner is None:
            raise Unclear("a list is not clear")
        return self.phrases.expressions(inner)

    def _named(self, text: str) -> list[Node]:
        """A list of columns: one without a name is a constant that was cut in two."""
        found = self._list(text)
        if any(one.id < 0 for one in found):
            raise Unclear("a list of columns is not clear")
        return found

    def _outputs(self, text: str, separator: str = ", ") -> list[Node]:
        inner = bracketed(text)
        if inner is None:
            raise Unclear("a list of columns is not clear")
        return [self.phrases.defined(part) for part in split(inner, separator)] if inner else []

    def _aggregate(self, rest: str, children: list[Text]) -> Text:
        parts = split(rest)
        groups = self._list(parts[0]) if len(parts) > 1 else []
        items = self._named(parts[1] if len(parts) > 1 else parts[0])
        settle_groups(items, groups)
        data = {"groupingExpressions": groups, "aggregateExpressions": items}
        return _made("Aggregate", children, data)

    def _join(self, rest: str, children: list[Text]) -> Text:
        parts = [p for p in split(rest) if not re.match(r"^(?:left|right)Hint=", p)]
        if len(parts) > 2:
            raise Unclear("a join's condition is not clear")
        data: dict[str, Any] = {"joinType": parts[0]}
        if len(parts) == 2:
            data["condition"] = self.phrases.phrase(parts[1])
        return _made("Join", children, data)

    def _lateral(self, drawn: Drawn, children: list[Text], inside: list[Text]) -> Text:
        if len(inside) != 1:
            raise Unclear("a lateral join's query is not shown")
        parts = split(drawn.rest)
        data: dict[str, Any] = {"right": _made("LateralSubquery", [], {"plan": inside[0]})}
        if len(parts) > 2:
            self.phrases.inside = []
            data["condition"] = self.phrases.phrase(parts[2])
        return _made("LateralJoin", children, data)

    def _expand(self, rest: str, children: list[Text]) -> Text:
        parts = split(rest)
        lines = bracketed(parts[0])
        if lines is None or len(parts) != 2:
            raise Unclear("an Expand is not clear")
        projections = [self._list(line) for line in split(lines)]
        outputs = self._outputs(parts[1])
        if any(len(line) != len(outputs) for line in projections):
            raise Unclear("an Expand is not clear")
        return _made("Expand", children, {"projections": projections, "output": outputs})

    def _python(self, kind: str, rest: str, children: list[Text]) -> Text:
        """A function over rows: lists of groups before it, its columns after it."""
        parts = split(rest)
        place = next((n for n, part in enumerate(parts) if re.search(r"\)#\d+$", part)), -1)
        after = [part for part in parts[place + 1 :] if bracketed(part) is not None]
        if place < 0 or not after:
            raise Unclear(f"{kind} does not show its columns")
        data: dict[str, Any] = {"output": self._outputs(after[0])}
        before = parts[:place]
        if before and before[0].isdigit():
            data["leftGroupingLen"], data["rightGroupingLen"] = int(before[0]), int(before[1])
        elif before and bracketed(before[0]) is not None:
            data["groupingAttributes"] = self._list(before[0])
        return _made(kind, children, data)

    def _bottom(self, drawn: Drawn) -> Text:
        kind, rest = drawn.kind, drawn.rest
        if kind in ("CTERelationRef", "UnionLoopRef"):
            parts = split(rest)
            outputs = self._outputs(next(p for p in parts if bracketed(p) is not None))
            name = "cteId" if kind == "CTERelationRef" else "loopId"
            return _made(kind, [], {name: int(parts[0]), "output": outputs})
        if kind == "Range":
            self._ranges.append(_made(kind, [], {"output": []}))
            return self._ranges[-1]
        if kind in _CONSTANT:
            listed = [p for p in split(rest) if bracketed(p) is not None]
            shown = bool(listed) and "#" in listed[0]
            return _made(kind, [], {"output": self._outputs(listed[0]) if shown else []})
        text, separator = _columns(drawn)
        columns = self._outputs(text, separator)
        types = self._leaf(drawn, [column.name for column in columns])
        for column in columns:
            if column.name in types:
                known = types[column.name] or self.phrases.types.get(column.id)
                column.data["dataType"] = self.phrases.types[column.id] = known
            else:
                column.data["metadata"] = {"__metadata_col": True}
        made = _made(kind, [], {"output": columns})
        self.leaves.append((drawn, made))
        return made


def _columns(drawn: Drawn) -> tuple[str, str]:
    """The list of a leaf's columns, and what separates them."""
    rest = drawn.rest
    if drawn.kind == "HiveTableRelation":
        raise Unclear("the columns of a Hive table are not clear")
    at = -1
    while (at := rest.find("[", at + 1)) >= 0:
        end = close(rest, at)
        if re.search(r"#\d+L?(?:-T\d+ms)?\]$", rest[at : end + 1]):
            text = rest[at : end + 1]
            separator = "," if drawn.kind == "Relation" and ", " not in text else ", "
            return text, separator
        at = end
    raise Unclear(f"{drawn.kind}: its columns are not shown")


def _made(kind: str, children: list[Text], data: dict[str, Any]) -> Text:
    return Text({"class": kind, "num-children": len(children), **data}, list(children))
