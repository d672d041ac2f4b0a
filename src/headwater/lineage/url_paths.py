"""Names as parts of a server's addresses, whatever they hold."""

from __future__ import annotations

from urllib.parse import quote

__all__ = ["DOTS", "path_of", "path_part"]

DOTS = {".;": ".", "..;": ".."}
"""How what is called `.` or `..` travels: browsers and HTTP clients take both out of an address, some
even encoded, and an encoded name holds no semicolon."""
_WRITTEN = {name: written for written, name in DOTS.items()}


def path_part(name: str) -> str:
    """A name as one part of a path: it may hold slashes, which travel encoded."""
    return _WRITTEN.get(name) or quote(name, safe="")


def path_of(*parts: str) -> str:
    """A path of these parts."""
    return "/" + "/".join(map(path_part, parts))
