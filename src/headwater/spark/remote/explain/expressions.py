"""Expressions in a plan's text, parsed into the nodes that the column rules read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.spark.columns.expressions import WRITE_SIDE
from headwater.spark.remote.explain import types
from headwater.spark.remote.explain.layout import TextNode, UnclearText, split
from headwater.spark.remote.explain.spark_functions import AGGREGATES, ARGUMENTS, CLASSES
from headwater.spark.remote.explain.tokens import ATTRIBUTE, Token, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.plan.tree import Node

SUBQUERIES = {
    "scalar-subquery": "ScalarSubquery",
    "list": "ListQuery",
    "exists": "Exists",
    "lateral-subquery": "LateralSubquery",
}
_ORDER = re.compile(r" (?:ASC|DESC) NULLS (?:FIRST|LAST)$")
_STOPS = ("WHEN", "THEN", "ELSE", "END", "else")
_CASTS = ("cast", "try_cast", "ansi_cast", "upcast")
_SAME_TYPE = ("Max", "Min", "First", "Last", "AnyValue", "Mode", "MaxBy", "MinBy", "Coalesce",
              "Reverse", "Slice", "SortArray", "ArraySort", "ArrayDistinct", "KnownNullable",
              "KnownNotNull", "AssertNotNull")  # fmt: skip
_TEXTS = ("upper", "lower", "trim", "concat_ws", "to_json", "substring", "date_format")
_SPECIAL = ("outer", "lambdafunction", "struct", "named_struct", "from_json", "from_avro",
            "arrays_zip", "nvl2", "static_invoke", "update_fields")  # fmt: skip


class ExpressionParser:
    """Reads the expressions of one plan.

    `names` and `types` are those of the attributes met so far, by number. `literals` are constants
    that were taken out of the text because they look like something else. `inside` are the plans
    of the node's subqueries, in the order in which its text names them. `unresolved` finds a
    column by the name that a statement uses.
    """

    def __init__(self, literals: dict[str, str], functions: dict[str, set[int]]) -> None:
        self.names: dict[int, str] = {}
        self.types: dict[int, Any] = {}
        self.literals = literals
        self.functions = functions
        self.missing: dict[int, str] = {}
        self.problems: dict[str, None] = {}
        self.inside: list[Node] = []
        self.unresolved: Callable[[str], Node] | None = None

    def define_attribute(self, text: str) -> TextNode:
        """An attribute where it comes to be, as in a relation's `id#1L`."""
        match = ATTRIBUTE.match(text) or re.match(
            r"^(?P<name>.*)#(?P<id>\d+)(?P<long>L?)(?P<path>)$", text, re.DOTALL
        )
        if match is None or match["path"]:
            raise UnclearText("an attribute's name is not clear")
        number = int(match["id"])
        self.names[number] = match["name"]
        self.types.setdefault(number, "long" if match["long"] else None)
        return self._attribute(number, match["name"])

    def _attribute(self, number: int, name: str, kind: str = "AttributeReference") -> TextNode:
        given = {"name": name, "exprId": {"id": number}, "dataType": self.types.get(number)}
        return TextNode({"class": kind, "num-children": 0, **given}, [])

    def parse_list(self, text: str) -> list[Node]:
        """The expressions of a list."""
        return [self.parse(part) for part in split(text)] if text else []

    def parse(self, text: str) -> TextNode:
        """One expression, with the name it is given if it is given one."""
        text = _ORDER.sub("", text.strip())
        parts = split(text, " AS ")
        if len(parts) == 1:
            return self.parse_value(text)
        name = text[len(parts[0]) + 4 :]
        match = re.match(r"^(.*)#(\d+)(L?)(?:-T\d+ms)?$", name, re.DOTALL)
        if match is None:
            raise UnclearText("an alias is not clear")
        try:
            value = self.parse_value(parts[0])
        except UnclearText as error:
            self.problems[f"{match[1]}: {error}"] = None
            value = self.generic("Opaque", [])
        number = int(match[2])
        self.names[number] = match[1]
        self.types[number] = "long" if match[3] else value.get("dataType")
        data = {"class": "Alias", "num-children": 1, "child": 0, "name": match[1]}
        return TextNode({**data, "exprId": {"id": number}}, [value])

    def parse_value(self, text: str) -> TextNode:
        """An expression without a name of its own."""
        if text in self.literals:
            return self.literal(self.literals[text])
        found = tokens(text)
        made, rest = self._sequence(found, 0, text)
        if rest != len(found):
            raise UnclearText("an expression is not clear")
        return made

    def _sequence(self, given: list[Token], at: int, text: str) -> tuple[TextNode, int]:
        """Atoms and the words between them, up to a word that ends a branch."""
        atoms: list[TextNode] = []
        words = 0
        start = at
        while at < len(given):
            token = given[at]
            if token.kind == "word":
                if token.text in _STOPS and not self._data(given, at):
                    break
                made, at = self._word(given, at, atoms, text)
                words += made
                continue
            if token.kind == "attribute":
                at = self._reference(given, at, atoms)
            elif token.kind == "call":
                words += self._call(given, at, atoms)
            elif token.kind == "list" and token.glued and atoms:
                atoms[-1] = self.item(atoms[-1], self.parse_value(token.text))
            elif token.kind == "group":
                atoms.append(self._group(token.text))
            else:
                raise UnclearText("a list stands where none is known")
            at += 1
        if not atoms:
            return self.literal(text if len(given) == at - start else _joined(given[start:at])), at
        if len(atoms) == 1 and not words:
            return atoms[0], at
        return self.generic("Combined", atoms), at

    def _word(
        self, given: list[Token], at: int, atoms: list[TextNode], text: str
    ) -> tuple[int, int]:
        """Parse a word: how many operators it counts for, and where to go on."""
        token = given[at]
        following = given[at + 1] if at + 1 < len(given) else None
        if token.text == "CASE":
            made, at = self._case(given, at + 1, text)
            atoms.append(made)
            return 0, at
        if token.text == "if" and following is not None and following.kind == "group":
            made, at = self._if(given, at + 1, text)
            atoms.append(made)
            return 0, at
        if token.text == "lambda" and following is not None:
            atoms.append(self._variable(following))
            return 0, at + 2
        if token.text == "FILTER" and atoms and following is not None:
            self._filtered(atoms[-1], following)
            return 0, at + 2
        if token.glued and token.text.startswith(".") and atoms:
            atoms[-1] = self.dots(atoms[-1], token.text[1:].split("."))
            return 0, at + 1
        if token.text.startswith("'") and self.unresolved is not None:
            atoms.append(self._named(token.text))
            return 0, at + 1
        return 1, at + 1

    @staticmethod
    def _data(given: list[Token], at: int) -> bool:
        """Whether a word that could end a branch is outside of a branch: it is a constant."""
        return given[at].text == "else" and not any(t.text == "if" for t in given[:at])

    def _reference(self, given: list[Token], at: int, atoms: list[TextNode]) -> int:
        token = given[at]
        if token.glued and not token.name and atoms:
            # A function in Python has a number of its own.
            self.python(atoms[-1])
            atoms[-1] = self.dots(atoms[-1], list(token.path))
            return at
        following = given[at + 1] if at + 1 < len(given) else None
        if (
            token.name in SUBQUERIES
            and following is not None
            and following.kind == "list"
            and not following.glued
        ):
            atoms.append(self._subquery(token.name))
            return at + 1
        known = self.names.get(token.number)
        if known is None:
            self.missing[token.number] = token.name
        elif token.name.lower() != known.lower():
            if token.name.lower().lstrip("-~+") != known.lower():
                raise UnclearText("an attribute's name is not clear")
            signed = self.dots(self._attribute(token.number, known), list(token.path))
            atoms.append(self.generic("Combined", [signed]))
            return at
        made = self._attribute(token.number, token.name)
        if made.get("dataType") is None and token.long:
            made.data["dataType"] = "long"
        atoms.append(self.dots(made, list(token.path)))
        return at

    def _call(self, given: list[Token], at: int, atoms: list[TextNode]) -> int:
        """Add a function; 1 when an operator stood before its name."""
        token = given[at]
        if token.name == "windowspecdefinition":
            if not atoms:
                raise UnclearText("a window without a function")
            function = atoms[0] if len(atoms) == 1 else self.generic("Combined", list(atoms))
            atoms[:] = [self.window(function, token.text)]
            return 0
        name = token.name.lstrip("-~")
        atoms.append(self.call(name, token.text))
        return int(name != token.name)

    def _subquery(self, name: str) -> TextNode:
        if not self.inside:
            raise UnclearText("a subquery's plan is not shown")
        data = {"class": SUBQUERIES[name], "num-children": 0, "plan": self.inside.pop(0)}
        return TextNode(data, [])

    def _variable(self, token: Token) -> TextNode:
        if token.kind != "attribute":
            raise UnclearText("a lambda's variable is not clear")
        made = self._attribute(token.number, token.name, "NamedLambdaVariable")
        return self.dots(made, list(token.path))

    def _named(self, text: str) -> TextNode:
        assert self.unresolved is not None
        made = self.unresolved(text[1:])
        assert isinstance(made, TextNode)
        return made

    def _filtered(self, atom: TextNode, token: Token) -> None:
        if atom.kind != "AggregateExpression" or not token.text.startswith("WHERE "):
            raise UnclearText("a filter is not clear")
        atom.data["filter"] = self.parse_value(token.text.removeprefix("WHERE "))

    def _group(self, text: str) -> TextNode:
        parts = split(text)
        if len(parts) == 1:
            return self.parse_value(text)
        return self.generic("Combined", [self.parse_value(part) for part in parts])

    def _if(self, given: list[Token], at: int, text: str) -> tuple[TextNode, int]:
        condition = self.parse_value(given[at].text)
        then, at = self._sequence(given, at + 1, text)
        if at >= len(given) or given[at].text != "else":
            raise UnclearText("an if is not clear")
        otherwise, at = self._sequence(given, at + 1, text)
        kinds = {
            child.get("dataType") for child in (then,) if isinstance(then.get("dataType"), str)
        }
        data = {"class": "If", "num-children": 3, "dataType": next(iter(kinds), None)}
        return TextNode(data, [condition, then, otherwise]), at

    def _case(self, given: list[Token], at: int, text: str) -> tuple[TextNode, int]:
        children: list[Node] = []
        word = given[at].text if at < len(given) else ""
        while word == "WHEN":
            condition, at = self._sequence(given, at + 1, text)
            if at >= len(given) or given[at].text != "THEN":
                raise UnclearText("a case is not clear")
            result, at = self._sequence(given, at + 1, text)
            children += [condition, result]
            word = given[at].text if at < len(given) else ""
        if word == "ELSE":
            otherwise, at = self._sequence(given, at + 1, text)
            children.append(otherwise)
            word = given[at].text if at < len(given) else ""
        if word != "END" or not children:
            raise UnclearText("a case is not clear")
        return TextNode({"class": "CaseWhen", "num-children": len(children)}, children), at + 1

    def literal(self, text: str) -> TextNode:
        """A constant."""
        data = {"class": "Literal", "num-children": 0, "value": self.literals.get(text, text)}
        return TextNode(data, [])

    def generic(self, kind: str, children: list[TextNode], data_type: Any = None) -> TextNode:
        """Something that hands on what it is given."""
        data = {"class": kind, "num-children": len(children), "dataType": data_type}
        return TextNode(data, list(children))

    def call(self, name: str, inner: str) -> TextNode:
        """A function and what it is given."""
        name = name.removeprefix("'").lower()
        if name in _CASTS:
            return self._cast(inner)
        parts = split(inner) if inner else []
        special = getattr(self, f"_{name}", None) if name in _SPECIAL else None
        if special is not None:
            made: TextNode = special(parts)
            return made
        if name.rpartition(".")[2] in {word.lower() for word in WRITE_SIDE} and parts:
            return self.parse_value(parts[0])
        if name in AGGREGATES:
            return self._aggregate(name, parts)
        kind = CLASSES.get(name, "Function")
        children = [self.parse_value(part) for part in parts]
        wanted = ARGUMENTS.get(kind)
        if wanted is not None and len(children) != wanted:
            raise UnclearText(f"the arguments of {name} are not clear")
        if kind == "Decode" and len(children) > 2:
            raise UnclearText("decode with a list of choices")
        made = self.generic(kind, children)
        made.data["headwater_name"] = name
        if kind in _SAME_TYPE and children:
            made.data["dataType"] = children[0].get("dataType")
        elif name in _TEXTS:
            made.data["dataType"] = "string"
        return made

    def _cast(self, inner: str) -> TextNode:
        parts = split(inner, " as ")
        if len(parts) < 2:
            raise UnclearText("a cast is not clear")
        value = self.parse_value(inner[: -len(parts[-1]) - 4])
        target = types.from_simple_string(parts[-1])
        if target is None or value.get("dataType") is None:
            return self.generic("UncertainCast", [value], target)
        return self.generic("Cast", [value], target)

    def _aggregate(self, name: str, parts: list[str]) -> TextNode:
        parts = [part.removeprefix("distinct ") for part in parts]
        kind = AGGREGATES[name]
        if ARGUMENTS.get(kind, 0) > len(parts) or (kind == "PivotFirst" and len(parts) < 2):
            raise UnclearText(f"the arguments of {name} are not clear")
        children = [self.parse_value(part) for part in parts]
        kept = children[0].get("dataType") if children and kind in _SAME_TYPE else None
        if kind in ("CollectList", "CollectSet") and children:
            element = children[0].get("dataType")
            kept = element and {"type": "array", "elementType": element, "containsNull": False}
        function = self.generic(kind, children, "long" if kind == "Count" else kept)
        made = self.generic("AggregateExpression", [function], function.get("dataType"))
        made.data["aggregateFunction"] = function
        return made

    def _outer(self, parts: list[str]) -> TextNode:
        if len(parts) != 1:
            raise UnclearText("an outer reference is not clear")
        made = self.generic("OuterReference", [])
        made.data["e"] = self.parse_value(parts[0])
        made.data["dataType"] = made.data["e"].get("dataType")
        return made

    def _lambdafunction(self, parts: list[str]) -> TextNode:
        if len(parts) < 2 or parts[-1] not in ("true", "false"):
            raise UnclearText("a lambda is not clear")
        body = self.parse_value(parts[0])
        made = self.generic("LambdaFunction", [body])
        made.data["function"] = body
        made.data["arguments"] = [self.parse_value(part) for part in parts[1:-1]]
        return made

    def _struct(self, parts: list[str]) -> TextNode:
        if len(parts) % 2:
            raise UnclearText("the fields of a struct are not clear")
        children: list[TextNode] = []
        fields = []
        for name, value in zip(parts[::2], parts[1::2], strict=True):
            label, made = self.parse_value(name), self.parse_value(value)
            if label.kind != "Literal":
                raise UnclearText("the fields of a struct are not clear")
            children += [label, made]
            fields.append({"name": str(label.get("value")), "type": made.get("dataType")})
        known = all(field["type"] is not None for field in fields)
        return self.generic(
            "CreateNamedStruct", children, {"type": "struct", "fields": fields} if known else None
        )

    _named_struct = _struct

    def _from_json(self, parts: list[str]) -> TextNode:
        fields = [part for part in parts if part.startswith("StructField(")]
        rest = parts[len(fields) :]
        schema: Any = types.fields(fields) if fields else types.from_class_string(rest.pop(0))
        # Options stand before the column in some versions, in a map of their own.
        rest = [part for part in rest if not part.startswith(("Map(", "("))]
        if not rest:
            raise UnclearText("from_json is not clear")
        made = self.generic("JsonToStructs", [self.parse_value(rest[0])], schema)
        made.data["schema"] = schema
        return made

    def _from_avro(self, parts: list[str]) -> TextNode:
        if len(parts) < 2:
            raise UnclearText("from_avro is not clear")
        made = self.generic("FromAvro", [self.parse_value(parts[0])])
        made.data["jsonFormatSchema"] = self.literals.get(parts[1], parts[1])
        return made

    def _arrays_zip(self, parts: list[str]) -> TextNode:
        children = [self.parse_value(part) for part in parts]
        if len(children) % 2:
            raise UnclearText("arrays_zip is not clear")
        made = self.generic("ArraysZip", children)
        made.data["names"] = children[len(children) // 2 :]
        return made

    def _nvl2(self, parts: list[str]) -> TextNode:
        if len(parts) != 3:
            raise UnclearText("nvl2 is not clear")
        return self.generic("If", [self.parse_value(part) for part in parts])

    def _static_invoke(self, parts: list[str]) -> TextNode:
        return self.parse_value(", ".join(parts))

    def _update_fields(self, parts: list[str]) -> TextNode:
        children = [self.parse_value(parts[0])]
        operations: list[dict[str, str]] = []
        for part in parts[1:]:
            word, _, inner = part.partition("(")
            inside = split(inner.removesuffix(")"))
            if word.lower() == "withfield" and len(inside) == 2:
                operations.append({"product-class": "WithField"})
                made = self.generic("WithField", [self.parse_value(inside[1])])
                made.data["name"] = inside[0]
                children.append(made)
            elif word.lower() == "dropfield" and len(inside) == 1:
                operations.append({"product-class": "DropField", "name": inside[0]})
            else:
                raise UnclearText("the changes of a struct are not clear")
        made = self.generic("UpdateFields", children)
        made.data["fieldOps"] = operations
        return made

    def window(self, function: TextNode, inner: str) -> TextNode:
        """A function over a window."""
        parts = [part for part in split(inner) if "windowframe" not in part.lower()]
        made = self.generic("WindowExpression", [function], function.get("dataType"))
        spec = self.generic("WindowSpecDefinition", [])
        spec.data["partitionSpec"] = [self.parse(part) for part in parts]
        made.children.append(spec)
        return made

    def python(self, function: TextNode) -> None:
        """Say of a call that it is a function in Python."""
        if function.kind == "AggregateExpression":
            function.data.pop("aggregateFunction")
            function.children = list(function.children[0].children)
        name = str(function.get("headwater_name") or "")
        function.kind = "PythonUDF"
        kinds = self.functions.get(name, set())
        function.data["evalType"] = next(iter(kinds)) if len(kinds) == 1 else None
        function.data["dataType"] = None

    def dots(self, value: TextNode, path: list[str]) -> TextNode:
        """Fields inside a value."""
        for name in path:
            made = self.generic("Dot", [value], _field(value.get("dataType"), name))
            made.data["name"] = name
            value = made
        return value

    def item(self, value: TextNode, place: TextNode) -> TextNode:
        """An element of an array or an entry of a map."""
        outer = value.get("dataType")
        kind = outer.get("type") if isinstance(outer, dict) else ""
        inner = outer.get("elementType" if kind == "array" else "valueType") if kind else None
        return self.generic("GetArrayItem", [value, place], inner)


def _joined(given: list[Token]) -> str:
    return " ".join(token.text for token in given)


def _field(outer: Any, name: str) -> Any:
    if not isinstance(outer, dict):
        return None
    if outer.get("type") == "array":
        inner = _field(outer.get("elementType"), name)
        return inner and {"type": "array", "elementType": inner, "containsNull": True}
    for field in outer.get("fields", ()):
        if field["name"].lower() == name.lower():
            return field["type"]
    return None
