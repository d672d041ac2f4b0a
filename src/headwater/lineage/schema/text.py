"""Decode schema text that arrives as JSON."""

from __future__ import annotations

from typing import Any

import msgspec

from .model import SchemaError


def decode(schema: object) -> Any:
    """JSON text or bytes as Python values; values that are decoded already pass through."""
    if not isinstance(schema, (str, bytes)):
        return schema
    try:
        return msgspec.json.decode(schema)
    except RecursionError:
        raise SchemaError("schema: the JSON is nested too deeply to be read") from None
    except (msgspec.DecodeError, UnicodeError) as error:
        raise SchemaError(f"schema: not JSON that can be read: {error}") from None


def string(value: object) -> str:
    """The value when it is a string, else nothing."""
    return value if isinstance(value, str) else ""
