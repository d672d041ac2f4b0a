"""SQL identifiers: split a qualified name at its dots, minding quotes."""

from __future__ import annotations

# Beyond this a text is no identifier, and minding its quotes would only cost time.
_LONGEST = 4096
_CLOSING = {'"': '"', "`": "`", "[": "]", "'": "'"}


def split(text: str) -> list[str]:
    """Split `a."b.c".[d]` into `a`, `b.c`, `d`; a doubled closing quote stands for itself.

    A quote that is never closed is taken as an ordinary character, so odd input still has a name.
    """
    if len(text) > _LONGEST:
        return [part for part in text.split(".") if part]
    parts: list[str] = []
    current: list[str] = []
    index = 0
    while index < len(text):
        char = text[index]
        if char == ".":
            parts.append("".join(current).strip())
            current = []
        elif char in _CLOSING and not "".join(current).strip():
            inner, after = _quoted(text, index + 1, _CLOSING[char])
            if after:
                current, index = [inner], after
                continue
            current.append(char)
        else:
            current.append(char)
        index += 1
    parts.append("".join(current).strip())
    return [part for part in parts if part]


def _quoted(text: str, start: int, close: str) -> tuple[str, int]:
    out: list[str] = []
    index = start
    while index < len(text):
        if text[index] == close:
            if text[index + 1 : index + 2] != close:
                return "".join(out), index + 1
            index += 1
        out.append(text[index])
        index += 1
    return "", 0
