"""Changes made by hand, on their way to the writer."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.server.http import HttpError, bad_member
from headwater.server.store.write.commands import NoSuchError

if TYPE_CHECKING:
    from headwater.server.app import App

__all__ = ["carry_out"]


async def carry_out(app: App, command: dict[str, Any]) -> None:
    """Hand a command to the writer and wait until it is on the disk."""
    if (member := _with_nul(command)) is not None:
        raise bad_member(member, "holds a NUL")
    try:
        await app.ingest.perform(lambda store: store.perform(command))
    except NoSuchError as error:
        raise HttpError(404, error.message) from error


def _with_nul(value: Any, path: str = "") -> str | None:
    """Where a text holds a NUL, which no store of ours can keep."""
    if isinstance(value, str):
        return path if "\0" in value else None
    items: Any = ()
    if isinstance(value, dict):
        items = value.items()
        if any("\0" in str(key) for key in value):
            return path or "$"
    elif isinstance(value, list):
        items = enumerate(value)
    for key, inner in items:
        if (found := _with_nul(inner, f"{path}.{key}".lstrip("."))) is not None:
            return found
    return None
