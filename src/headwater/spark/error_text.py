"""Error messages without the plan tree that Spark puts into many of them."""

from __future__ import annotations

import re

_BRANCH = re.compile(r"^[ :|]*(?:\+-|:-) ")
_UNRESOLVED = re.compile(r"^'[A-Z]\w+(?: |$)")
LEFT_OUT = "(plan left out)"


def without_plan(text: str) -> str:
    """The text with every plan tree (its root and the branches below it) replaced by `(plan left out)`."""
    kept: list[str] = []
    inside = False
    for line in text.split("\n"):
        branch = bool(_BRANCH.match(line))
        if branch and not inside and kept:
            kept[-1] = LEFT_OUT
        elif not branch and _UNRESOLVED.match(line):
            kept.append(LEFT_OUT)
        elif not branch:
            kept.append(line)
        inside = branch or (inside and not line)
    return "\n".join(kept)
