"""How commands are shown in `--help`: whole summaries, and a word for each value instead of Python's types."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

if TYPE_CHECKING:
    import typer

__all__ = ["shape"]


def shape(group: typer.Typer) -> None:
    """Show every command with its whole first sentence, which click would cut, and in our words."""
    for command in group.registered_commands:
        text = command.help or (command.callback and command.callback.__doc__) or ""
        command.short_help = " ".join(text.strip().partition("\n\n")[0].split())
        command.cls = _Command
    for inner in group.registered_groups:
        assert inner.typer_instance is not None
        inner.short_help = str(inner.typer_instance.info.help).partition("\n\n")[0]
        shape(inner.typer_instance)


class _Command(TyperCommand):
    """A command whose values are called by a word in capitals: `--token-file FILE`, not `<path>`."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        for parameter in self.params:
            _name(parameter)


def _name(parameter: Any) -> None:
    argument = parameter.param_type_name == "argument"
    if parameter.metavar is None:
        parameter.metavar = parameter.name.upper() if argument else _value(parameter)
    if argument:
        bare = parameter.required or parameter.metavar.startswith("[")
        usage = parameter.metavar if bare else f"[{parameter.metavar}]"
        parameter.display_type_rich = lambda ctx: ""  # noqa: ARG005  (as it is called)
        parameter.get_usage_pieces = lambda ctx: [usage]  # noqa: ARG005


def _value(option: Any) -> str:
    kind = getattr(option, "type_descriptor", None) or option.type  # `type` until typer 0.2x
    if choices := getattr(kind, "choices", None):
        return "|".join(str(getattr(one, "value", one)) for one in choices)
    if getattr(kind, "is_path", False) or getattr(kind, "name", "") == "path":
        return "FILE"
    return str(option.name).upper().rpartition("_")[2]
