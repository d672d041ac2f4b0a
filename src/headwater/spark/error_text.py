"""Error messages without the plan tree that Spark puts into many of them, and without py4j's envelope."""

from __future__ import annotations

import re

_BRANCH = re.compile(r"^[ :|]*(?:\+-|:-) ")
_UNRESOLVED = re.compile(r"^'[A-Z]\w+(?: |$)")
LEFT_OUT = "(plan left out)"
_PYTHON = "Traceback (most recent call last):"
_FROM_JVM = ": "
"""What py4j puts before the JVM's own words, in the line after its own."""


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


def raised_in(text: str) -> str:
    """The line that says what went wrong: the error that a function of `foreachBatch` raised, if one did.

    Of such an error the first line has but "An exception was raised by the Python Proxy".
    """
    first, _, rest = text.partition("\n")
    if not first.endswith(_PYTHON):
        return first
    lines = rest.split("\n")
    raised = [(n, line) for n, line in enumerate(lines) if line.strip() and not line[0].isspace()]
    if not raised:
        return first
    number, line = raised[0]
    below = lines[number + 1] if number + 1 < len(lines) else ""
    return below.removeprefix(_FROM_JVM) if below.startswith(_FROM_JVM) else line
