"""The tokens of an expression's text: words outside of brackets, and whole brackets."""

from __future__ import annotations

import re
from typing import NamedTuple

from headwater.spark.remote.explain.layout import UnclearText, close

ATTRIBUTE = re.compile(
    r"^(?P<name>[^#]*)#(?P<id>\d+)(?P<long>L?)(?:-T\d+ms)?(?P<path>(?:\.[^.#]+)*)$"
)


class Token(NamedTuple):
    """A piece of an expression.

    `kind` is word, attribute, call, group or list; `glued` when nothing stands between it and the
    piece before. `text` is the word, or the inside of a bracket; `name` an attribute's or a
    function's.
    """

    kind: str
    text: str
    name: str = ""
    number: int = -1
    long: bool = False
    path: tuple[str, ...] = ()
    glued: bool = False


def tokens(text: str) -> list[Token]:
    """The pieces of an expression from left to right."""
    found: list[Token] = []
    at = 0
    spaced = True
    while at < len(text):
        char = text[at]
        if char in " \n\t,":
            spaced, at = True, at + 1
        elif char in "([":
            end = close(text, at)
            kind = "group" if char == "(" else "list"
            found.append(Token(kind, text[at + 1 : end], glued=not spaced))
            spaced, at = False, end + 1
        else:
            end = _word(text, at)
            word = text[at:end]
            if end < len(text) and text[end] == "(" and not word.startswith((".", "#")):
                shut = close(text, end)
                found.append(Token("call", text[end + 1 : shut], name=word, glued=not spaced))
                end = shut + 1
            elif match := ATTRIBUTE.match(word):
                path = tuple(match["path"].split(".")[1:])
                long = bool(match["long"])
                name, number = match["name"], int(match["id"])
                found.append(Token("attribute", word, name, number, long, path, not spaced))
            else:
                found.append(Token("word", word, glued=not spaced))
            spaced, at = False, end
    return found


def _word(text: str, at: int) -> int:
    """Where a word ends; `struct<a:int>` and braces are part of one."""
    while at < len(text):
        char = text[at]
        if char in " \n\t,([":
            return at
        if char in ")]":
            raise UnclearText("brackets do not match")
        at = close(text, at) + 1 if char == "{" else at + 1
    return at
