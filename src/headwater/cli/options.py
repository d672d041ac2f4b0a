"""Options that several commands share: declared once, as the fields of a dataclass."""

from __future__ import annotations

import functools
import inspect
from dataclasses import fields, is_dataclass
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

import typer

from headwater.errors import UsageError
from headwater.logs import LogFormat

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

__all__ = ["LogFormatOption", "given", "spread"]

LogFormatOption = Annotated[
    LogFormat,
    typer.Option("--log-format", metavar="text|json", help="Lines for people, or JSON objects."),
]


def given(text: str, what: str, hint: str | None = None) -> str:
    """A text that is not empty, as from a variable of a script that is not set; that is no default."""
    if not text.strip():
        raise UsageError(f"{what} is empty", hint=hint)
    return text


def spread(command: Callable[..., None]) -> Callable[..., None]:
    """Make a parameter that is a dataclass into one option a field, in the parameter's place."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, Any] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if is_dataclass(parameter.annotation)
    }

    @functools.wraps(command)
    def run(**values: Any) -> None:
        for name, group in groups.items():
            values[name] = group(**{field.name: values.pop(field.name) for field in fields(group)})
        command(**values)

    def parameters() -> Iterator[inspect.Parameter]:
        for name, parameter in signature.parameters.items():
            if name in groups:
                yield from _options(groups[name])
            else:
                yield parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY)

    spread_out = signature.replace(parameters=list(parameters()))
    vars(run)["__signature__"] = spread_out
    run.__annotations__ = {p.name: p.annotation for p in spread_out.parameters.values()}
    return run


def _options(group: Any) -> Iterator[inspect.Parameter]:
    hints = get_type_hints(group, include_extras=True)
    for field in fields(group):
        yield inspect.Parameter(
            field.name,
            inspect.Parameter.KEYWORD_ONLY,
            default=field.default,
            annotation=hints[field.name],
        )
