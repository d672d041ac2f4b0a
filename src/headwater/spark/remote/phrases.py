"""Expressions from a plan's text, as the nodes that the rules read."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from headwater.spark.remote.calls import Calls
from headwater.spark.remote.layout import Text, Unclear, split
from headwater.spark.remote.tokens import ATTRIBUTE, Token, tokens

if TYPE_CHECKING:
    from collections.abc import Callable

    from headwater.spark.tree import Node

SUBQUERIES = {
    "scalar-subquery": "ScalarSubquery",
    "list": "ListQuery",
    "exists": "Exists",
    "lateral-subquery": "LateralSubquery",
}
_ORDER = re.compile(r" (?:ASC|DESC) NULLS (?:FIRST|LAST)$")
_STOPS = ("WHEN", "THEN", "ELSE", "END", "else")


class Phrases(Calls):
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

    def defined(self, text: str) -> Text:
        """An attribute where it comes to be, as in a relation's `id#1L`."""
        match = ATTRIBUTE.match(text) or re.match(
            r"^(?P<name>.*)#(?P<id>\d+)(?P<long>L?)(?P<path>)$", text, re.DOTALL
        )
        if match is None or match["path"]:
            raise Unclear("an attribute's name is not clear")
        number = int(match["id"])
        self.names[number] = match["name"]
        self.types.setdefault(number, "long" if match["long"] else None)
        return self._attribute(number, match["name"])

    def _attribute(self, number: int, name: str, kind: str = "AttributeReference") -> Text:
        given = {"name": name, "exprId": {"id": number}, "dataType": self.types.get(number)}
        return Text({"class": kind, "num-children": 0, **given}, [])

    def expressions(self, text: str) -> list[Node]:
        """The expressions of a list."""
        return [self.expression(part) for part in split(text)] if text else []

    def expression(self, text: str) -> Text:
        """One expression, with the name it is given if it is given one."""
        text = _ORDER.sub("", text.strip())
        parts = split(text, " AS ")
        if len(parts) == 1:
            return self.phrase(text)
        name = text[len(parts[0]) + 4 :]
        match = re.match(r"^(.*)#(\d+)(L?)(?:-T\d+ms)?$", name, re.DOTALL)
        if match is None:
            raise Unclear("an alias is not clear")
        try:
            value = self.phrase(parts[0])
        except Unclear as error:
            self.problems[f"{match[1]}: {error}"] = None
            value = self.generic("Opaque", [])
        number = int(match[2])
        self.names[number] = match[1]
        self.types[number] = "long" if match[3] else value.get("dataType")
        data = {"class": "Alias", "num-children": 1, "child": 0, "name": match[1]}
        return Text({**data, "exprId": {"id": number}}, [value])

    def phrase(self, text: str) -> Text:
        """An expression without a name of its own."""
        if text in self.literals:
            return self.literal(self.literals[text])
        found = tokens(text)
        made, rest = self._sequence(found, 0, text)
        if rest != len(found):
            raise Unclear("an expression is not clear")
        return made

    def _sequence(self, given: list[Token], at: int, text: str) -> tuple[Text, int]:
        """Atoms and the words between them, up to a word that ends a branch."""
        atoms: list[Text] = []
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
                atoms[-1] = self.item(atoms[-1], self.phrase(token.text))
            elif token.kind == "group":
                atoms.append(self._group(token.text))
            else:
                raise Unclear("a list stands where none is known")
            at += 1
        if not atoms:
            return self.literal(text if len(given) == at - start else _said(given[start:at])), at
        if len(atoms) == 1 and not words:
            return atoms[0], at
        return self.generic("Phrase", atoms), at

    def _word(self, given: list[Token], at: int, atoms: list[Text], text: str) -> tuple[int, int]:
        """A word: how many it counts for between atoms, and where to go on."""
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
        """Whether a word that could end a branch stands where no branch is: it is a constant."""
        return given[at].text == "else" and not any(t.text == "if" for t in given[:at])

    def _reference(self, given: list[Token], at: int, atoms: list[Text]) -> int:
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
                raise Unclear("an attribute's name is not clear")
            atoms.append(self.generic("Phrase", [self._attribute(token.number, known)]))
            return at
        made = self._attribute(token.number, token.name)
        if made.get("dataType") is None and token.long:
            made.data["dataType"] = "long"
        atoms.append(self.dots(made, list(token.path)))
        return at

    def _call(self, given: list[Token], at: int, atoms: list[Text]) -> int:
        """Add a function; says whether a word stood before its name."""
        token = given[at]
        if token.name == "windowspecdefinition":
            if not atoms:
                raise Unclear("a window without a function")
            function = atoms[0] if len(atoms) == 1 else self.generic("Phrase", list(atoms))
            atoms[:] = [self.window(function, token.text)]
            return 0
        name = token.name.lstrip("-~")
        atoms.append(self.call(name, token.text))
        return int(name != token.name)

    def _subquery(self, name: str) -> Text:
        if not self.inside:
            raise Unclear("a subquery's plan is not shown")
        data = {"class": SUBQUERIES[name], "num-children": 0, "plan": self.inside.pop(0)}
        return Text(data, [])

    def _variable(self, token: Token) -> Text:
        if token.kind != "attribute":
            raise Unclear("a lambda's variable is not clear")
        made = self._attribute(token.number, token.name, "NamedLambdaVariable")
        return self.dots(made, list(token.path))

    def _named(self, text: str) -> Text:
        assert self.unresolved is not None
        made = self.unresolved(text[1:])
        assert isinstance(made, Text)
        return made

    def _filtered(self, atom: Text, token: Token) -> None:
        if atom.kind != "AggregateExpression" or not token.text.startswith("WHERE "):
            raise Unclear("a filter is not clear")
        atom.data["filter"] = self.phrase(token.text.removeprefix("WHERE "))

    def _group(self, text: str) -> Text:
        parts = split(text)
        if len(parts) == 1:
            return self.phrase(text)
        return self.generic("Phrase", [self.phrase(part) for part in parts])

    def _if(self, given: list[Token], at: int, text: str) -> tuple[Text, int]:
        condition = self.phrase(given[at].text)
        then, at = self._sequence(given, at + 1, text)
        if at >= len(given) or given[at].text != "else":
            raise Unclear("an if is not clear")
        otherwise, at = self._sequence(given, at + 1, text)
        kinds = {
            child.get("dataType") for child in (then,) if isinstance(then.get("dataType"), str)
        }
        data = {"class": "If", "num-children": 3, "dataType": next(iter(kinds), None)}
        return Text(data, [condition, then, otherwise]), at

    def _case(self, given: list[Token], at: int, text: str) -> tuple[Text, int]:
        children: list[Node] = []
        word = given[at].text if at < len(given) else ""
        while word == "WHEN":
            condition, at = self._sequence(given, at + 1, text)
            if at >= len(given) or given[at].text != "THEN":
                raise Unclear("a case is not clear")
            result, at = self._sequence(given, at + 1, text)
            children += [condition, result]
            word = given[at].text if at < len(given) else ""
        if word == "ELSE":
            otherwise, at = self._sequence(given, at + 1, text)
            children.append(otherwise)
            word = given[at].text if at < len(given) else ""
        if word != "END" or not children:
            raise Unclear("a case is not clear")
        return Text({"class": "CaseWhen", "num-children": len(children)}, children), at + 1


def _said(given: list[Token]) -> str:
    return " ".join(token.text for token in given)
