"""What can be kept of a value that is not quite of the shape it should have."""

from __future__ import annotations

from typing import Any, TypeVar, get_args

import msgspec

__all__ = ["salvage"]

T = TypeVar("T", bound=msgspec.Struct)


def salvage(value: Any, kind: type[T]) -> T | None:
    """The members of an object that fit, each by itself; None without one that must be there."""
    if not isinstance(value, dict):
        return None
    kept = {}
    for field in msgspec.structs.fields(kind):
        if field.encode_name in value:
            found = _member(value[field.encode_name], field.type)
            if found is not None:
                kept[field.name] = found
    try:
        return kind(**kept)
    except TypeError:
        return None


def _member(value: Any, kind: Any) -> Any:
    try:
        return msgspec.convert(value, kind, strict=False)
    except msgspec.ValidationError:
        pass
    options = get_args(kind) or (kind,)
    inner = next(
        (o for o in options if isinstance(o, type) and issubclass(o, msgspec.Struct)), None
    )
    if inner is not None:
        return salvage(value, inner)
    listed = next((get_args(o) for o in options if getattr(o, "__origin__", None) is list), None)
    if listed and isinstance(value, list):
        parts = (_member(item, listed[0]) for item in value)
        return [part for part in parts if part is not None]
    return None
