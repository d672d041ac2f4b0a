"""Java's regular expressions on names that others chose: same answers, never out of time."""

from __future__ import annotations

import re
import warnings
from functools import lru_cache
from typing import NamedTuple

from headwater.connect.derive import linear_matcher

LONGEST = 2_000
_POSIX = {
    "Lower": "a-z", "Upper": "A-Z", "Alpha": "a-zA-Z", "Digit": "0-9", "Alnum": "a-zA-Z0-9",
    "Punct": re.escape("!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"), "Space": r" \t\n\x0b\f\r",
    "XDigit": "0-9a-fA-F", "ASCII": r"\x00-\x7f", "Blank": r" \t",
    "L": "a-zA-Z", "Lu": "A-Z", "Ll": "a-z", "N": "0-9", "Nd": "0-9", "IsAlphabetic": "a-zA-Z",
    "IsDigit": "0-9", "javaLowerCase": "a-z", "javaUpperCase": "A-Z",
}  # fmt: skip
_TOKEN = re.compile(
    r"\\Q(?P<quoted>.*?)(?:\\E|$)"
    r"|\\(?P<kind>[pP])(?:\{(?:Is)?(?P<property>\w+)\}|(?P<letter>\w))"
    r"|\\k<(?P<reference>\w+)>|\\.|\(\?<(?![=!])|\[\^?\]?|&&|.",
    re.DOTALL,
)
_ESCAPES = {r"\z": r"\Z", r"\h": r"[ \t]", r"\R": r"(?:\r\n|[\n\r])"}
_GROUP = re.compile(r"\$(?:\{([A-Za-z][A-Za-z0-9]*)\}|(\d{1,3}))|\\(.)|(\$)", re.DOTALL)


class PatternError(ValueError):
    """An expression that Java would refuse, or that cannot be followed in bounded time."""


class RegexMatch(NamedTuple):
    """Where an expression matched, with its groups."""

    text: str
    start: int
    end: int
    groups: tuple[str | None, ...]

    def group(self, number: int) -> str:
        """A group's text, nothing where it took no part; 0 is the whole match."""
        if number == 0:
            return self.text[self.start : self.end]
        return self.groups[number - 1] or ""


class Pattern:
    """One Java expression; `matches` asks for the whole text, `find` for the first place."""

    def __init__(self, java: str, *, ignore_case: bool = False) -> None:
        if len(java) > LONGEST:
            raise PatternError(f"an expression of more than {LONGEST} characters is not followed")
        flags = int(re.ASCII | (re.IGNORECASE if ignore_case else 0))
        text, flags = _inline(_translate(java), flags)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._re = re.compile(text, flags)
                self._machine = linear_matcher.build(text, flags)
        except linear_matcher.UnfollowableError as error:
            raise PatternError(f"{java[:80]!r} {error}") from None
        except (re.error, RecursionError, OverflowError) as error:
            raise PatternError(f"{java[:80]!r} is no expression of Java: {error}") from None
        self.names = dict(self._re.groupindex)
        self.text = java

    def matches(self, text: str) -> bool:
        """Whether the whole text matches, as `Matcher.matches()` has it."""
        return self._run(text, whole=True) is not None

    def find(self, text: str) -> RegexMatch | None:
        """The first place where the expression matches."""
        return self._run(text, whole=False)

    def replace_first(self, text: str, replacement: str) -> str:
        """Put Java's replacement (`$1`, `${name}`, `\\$`) in the place of the first match."""
        found = self.find(text)
        if found is None:
            return text
        return text[: found.start] + self.expand(found, replacement) + text[found.end :]

    def expand(self, found: RegexMatch, replacement: str) -> str:
        """A replacement with its groups filled in."""

        def fill(match: re.Match[str]) -> str:
            name, number, escaped, lone = match.groups()
            if escaped is not None:
                return str(escaped)
            if lone:
                raise PatternError("a $ in the replacement names no group")
            if name:
                if name not in self.names:
                    raise PatternError(
                        f"the replacement names the group {name}, which is not there"
                    )
                return found.group(self.names[name])
            # Java reads as many digits as still name a group.
            digits = str(number)
            while len(digits) > 1 and int(digits) > len(found.groups):
                digits = digits[:-1]
            rest = str(number)[len(digits) :]
            if int(digits) > len(found.groups):
                raise PatternError(f"the replacement names the group {digits}, which is not there")
            return found.group(int(digits)) + rest

        return _GROUP.sub(fill, replacement)

    def _run(self, text: str, *, whole: bool) -> RegexMatch | None:
        if len(text) > LONGEST:
            return None
        if self._machine is not None:
            spans = self._machine.run(text, whole=whole)
            if spans is None:
                return None
            groups = tuple(None if a < 0 else text[a:b] for a, b in spans[1:])
            return RegexMatch(text, *spans[0], groups)
        match = self._re.fullmatch(text) if whole else self._re.search(text)
        return RegexMatch(text, match.start(), match.end(), match.groups()) if match else None


@lru_cache(maxsize=2_048)
def pattern(java: str, *, ignore_case: bool = False) -> Pattern:
    """The compiled expression, kept for the next poll; raises PatternError."""
    return Pattern(java, ignore_case=ignore_case)


def literal(java: str) -> str | None:
    """The one text an expression stands for when it holds no operators, such as `shop\\.orders`."""
    found = literals(java)
    return found[0] if found and len(found) == 1 else None


def literals(java: str) -> list[str] | None:
    """The texts that the whole of an expression can match, such as both of `shop[.](orders|items)`.

    None when there is no end of them, or more than a person would have listed.
    """
    if len(java) > LONGEST:
        return None
    try:
        found, rest = _choices(java.removeprefix("^"), 0)
    except (_EndlessError, RecursionError):
        return None
    return list(dict.fromkeys(found)) if rest == "" else None


class _EndlessError(Exception):
    """More texts match than can be listed."""


_CLASS = re.compile(r"\[(?:\\(\W)|([^\]\\^]))\]")
_QUOTE = re.compile(r"\\Q(.*?)(?:\\E|$)", re.DOTALL)
_MOST = 64


def _choices(text: str, depth: int) -> tuple[list[str], str]:
    """Every alternative up to the end or the closing bracket, and what follows."""
    done: list[str] = []
    current = [""]
    while text and text[0] != ")":
        if text[0] == "|":
            done, current, text = done + current, [""], text[1:]
            continue
        parts, text = _piece(text, depth)
        if text[:1] in ("*", "+", "?", "{") and text[:1]:
            raise _EndlessError
        current = [head + tail for head in current for tail in parts]
        if len(done) + len(current) > _MOST:
            raise _EndlessError
    return done + current, text


def _piece(text: str, depth: int) -> tuple[list[str], str]:
    if text[0] == "(" and depth < 8:
        inner = text[3:] if text.startswith("(?:") else text[1:]
        found, rest = _choices(inner, depth + 1)
        if inner.startswith("?") or not rest:
            raise _EndlessError
        return found, rest[1:]
    if match := _CLASS.match(text):
        return [match[1] or match[2]], text[match.end() :]
    if match := _QUOTE.match(text):
        return [match[1]], text[match.end() :]
    if text[0] == "\\" and len(text) > 1 and not text[1].isalnum():
        return [text[1]], text[2:]
    if text == "$":
        return [""], ""
    if text[0] in "\\^$*+?()[]{}":
        raise _EndlessError
    # A lone dot is what people write for a dot; it is also what a dot matches.
    return [text[0]], text[1:]


def _translate(java: str) -> str:
    out: list[str] = []
    inside = False
    for token in _TOKEN.finditer(java):
        text = token[0]
        if token["quoted"] is not None:
            out.append(re.escape(token["quoted"]))
        elif token["kind"]:
            out.append(_property(token, inside))
        elif token["reference"]:
            out.append(f"(?P={token['reference']})")
        elif text in _ESCAPES:
            out.append(_ESCAPES[text].strip("[]") if inside else _ESCAPES[text])
        elif inside and text in ("[", "&&"):
            raise PatternError("classes inside classes are not followed")
        else:
            out.append("(?P<" if text == "(?<" else text)
            inside = text.startswith("[") or (inside and text != "]")
    return "".join(out)


def _property(token: re.Match[str], inside: bool) -> str:
    chars = _POSIX.get(token["property"] or token["letter"] or "")
    if chars is None or (inside and token["kind"] == "P"):
        raise PatternError("a class of characters that is not followed")
    return chars if inside else f"[{'^' if token['kind'] == 'P' else ''}{chars}]"


def _inline(text: str, flags: int) -> tuple[str, int]:
    match = re.match(r"\(\?([imsux]+)\)", text)
    if not match:
        return text, flags
    for letter in match[1]:
        flags |= {"i": re.IGNORECASE, "m": re.MULTILINE, "s": re.DOTALL, "x": re.VERBOSE}.get(
            letter, 0
        )
    return text[match.end() :], flags
