"""Parse a `headwater …` command line as the program would, without running it."""

from __future__ import annotations

from functools import cache
from typing import Any

import typer.main

from headwater.cli.main import app


@cache
def _program() -> Any:
    return typer.main.get_command(app)


def parse(words: list[str]) -> dict[str, Any]:
    """The options of the command that the words after `headwater` name; an error if they do not fit."""
    command = _program()
    context = command.make_context("headwater", list(words))
    while hasattr(command, "commands"):
        rest = [*context._protected_args, *context.args]
        name, command, rest = command.resolve_command(context, rest)
        context = command.make_context(name, rest, parent=context)
    return dict(context.params)
