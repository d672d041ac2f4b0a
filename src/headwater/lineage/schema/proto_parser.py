"""A small tolerant parser of .proto text: messages, enums and what is imported."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from .model import SchemaError

_TOKEN = re.compile(
    r"(?P<comment>//[^\n]*|/\*.*?(?:\*/|$))|(?P<string>\"(?:[^\"\\\n]|\\.)*\"|'(?:[^'\\\n]|\\.)*')"
    r"|(?P<word>[.\w\-+]+)|(?P<mark>[^\s\w])",
    re.DOTALL,
)
_LONGEST = 2_000_000
_LABELS = ("repeated", "optional", "required")


@dataclass
class ProtoField:
    """A field as written: its type is not resolved yet."""

    name: str
    type: str
    label: str = ""
    key: str = ""
    description: str = ""
    default: bool = False


@dataclass
class ProtoMessage:
    """A message with the names of everything around it."""

    full: str
    fields: list[ProtoField] = field(default_factory=list)
    description: str = ""


@dataclass
class ProtoFile:
    """One parsed file; messages and enums by full name, in the order of the text."""

    syntax: str = "proto2"
    package: str = ""
    imports: list[str] = field(default_factory=list)
    messages: dict[str, ProtoMessage] = field(default_factory=dict)
    enums: set[str] = field(default_factory=set)


def parse(text: str) -> ProtoFile:
    """Parse .proto text; what is not needed for fields (options, services) is stepped over."""
    if len(text) > _LONGEST:
        raise SchemaError(f"schema: .proto text of more than {_LONGEST} characters is not read")
    return _Parser(text).file()


class _Parser:
    def __init__(self, text: str) -> None:
        self.tokens: list[tuple[str, str]] = []
        comment, end = "", 0
        for match in _TOKEN.finditer(text):
            if match.lastgroup != "comment":
                self.tokens.append((match[0], comment))
                comment, end = "", match.end()
            elif not end or "\n" in text[end : match.start()]:
                # One behind a statement on its line belongs to that, not to what follows.
                words = " ".join(line.strip("/* \t") for line in match[0].splitlines())
                comment = f"{comment} {words.strip()}".strip()
        self.at = 0
        self.out = ProtoFile()

    def file(self) -> ProtoFile:
        while self.at < len(self.tokens):
            word, comment = self._next()
            if word in ("syntax", "edition"):
                self._skip("=")
                self.out.syntax = self._next()[0].strip("\"'")
                self._statement()
            elif word == "package":
                self.out.package = self._next()[0]
                self._statement()
            elif word == "import":
                self._import()
            elif word == "message":
                self._message(self.out.package, comment, 0)
            elif word == "enum":
                self._enum(self.out.package)
            elif word != ";":
                self._statement()
        return self.out

    def _import(self) -> None:
        word = self._next()[0]
        if word in ("public", "weak"):
            word = self._next()[0]
        self.out.imports.append(word.strip("\"'"))
        self._statement()

    def _enum(self, scope: str) -> None:
        self.out.enums.add(_join(scope, self._next()[0]))
        self._statement()

    def _message(self, scope: str, comment: str, depth: int) -> None:
        name = self._next()[0]
        message = ProtoMessage(_join(scope, name), description=comment)
        if depth > 64:
            raise SchemaError(f"{message.full[:200]}: messages are nested deeper than 64 levels")
        self.out.messages[message.full] = message
        self._skip("{")
        self._body(message, depth)

    def _body(self, message: ProtoMessage, depth: int, choice: str = "") -> None:
        while True:
            word, comment = self._next()
            if word == "}":
                return
            if word == "message" and self._peek(1) == "{":
                self._message(message.full, comment, depth + 1)
            elif word == "enum" and self._peek(1) == "{":
                self._enum(message.full)
            elif word == "oneof" and self._peek(1) == "{":
                self._next()
                self._skip("{")
                self._body(message, depth, "oneof")
            elif word in ("option", "reserved", "extensions", "extend"):
                self._statement()
            elif word != ";":
                self._field(message, word, comment, depth, choice)

    def _field(
        self, message: ProtoMessage, word: str, comment: str, depth: int, label: str
    ) -> None:
        if word in _LABELS and self._peek(1) != "=":
            label, word = word, self._next()[0]
        key = ""
        if word == "group":
            name = self._peek(0)
            self._message_group(message, depth)
            message.fields.append(ProtoField(name.lower(), name, label, description=comment))
            return
        if word == "map" and self._peek(0) == "<":
            self._skip("<")
            key = self._next()[0]
            self._skip(",")
            word = self._next()[0]
            self._skip(">")
        name = self._next()[0]
        if not re.fullmatch(r"[A-Za-z_]\w*", name) or self._peek(0) != "=":
            raise SchemaError(f"{message.full}.{name[:60]}: expected `type name = number;`")
        options = self._statement()
        default = re.search(r"\bdefault\s*=", options) is not None
        message.fields.append(ProtoField(name, word, label, key, comment, default))

    def _message_group(self, message: ProtoMessage, depth: int) -> None:
        name = self._next()[0]
        while self._peek(0) not in ("{", ";", ""):
            self._next()
        self._skip("{")
        inner = ProtoMessage(_join(message.full, name))
        self.out.messages[inner.full] = inner
        self._body(inner, depth + 1)

    def _statement(self) -> str:
        """Step over the rest of a statement: to its `;`, or past its closing brace."""
        depth, words = 0, []
        while self.at < len(self.tokens):
            word = self._next()[0]
            words.append(word)
            if word in "{[(":
                depth += 1
            elif word in "}])":
                depth -= 1
                if depth <= 0 and word == "}":
                    break
            elif word == ";" and depth <= 0:
                break
        return " ".join(words)

    def _next(self) -> tuple[str, str]:
        if self.at >= len(self.tokens):
            raise SchemaError("schema: the .proto text ends in the middle of a statement")
        self.at += 1
        return self.tokens[self.at - 1]

    def _peek(self, ahead: int) -> str:
        index = self.at + ahead
        return self.tokens[index][0] if index < len(self.tokens) else ""

    def _skip(self, mark: str) -> None:
        word = self._next()[0]
        if word != mark:
            raise SchemaError(f"schema: expected {mark!r} in the .proto text, found {word[:40]!r}")


def _join(scope: str, name: str) -> str:
    return f"{scope}.{name}" if scope else name
