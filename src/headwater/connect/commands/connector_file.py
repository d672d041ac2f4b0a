"""A connector out of a file that a person wrote: JSON as one would POST it, or properties."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from msgspec.structs import replace

from headwater.connect.config import read_properties, read_text
from headwater.connect.derive.config_values import normalise
from headwater.connect.model import Connector
from headwater.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_HINT = '{"name": …, "config": {…}}'
# What Connect replaces itself has a colon in it, as ${file:…}; what plug-ins do has small letters.
_VARIABLE = re.compile(r"\$\{([A-Z][A-Z0-9_]*)\}")


def read_connector(path: Path, variables: Mapping[str, str] = os.environ) -> Connector:
    """The connector in a file, named by the file where it has no name of its own.

    `${NAME}` in a value, in capitals, is a variable of the environment.
    """
    text = read_text(path)
    document: Any
    if path.suffix == ".properties":
        document = read_properties(text)
    else:
        try:
            document = json.loads(text)
        except ValueError as error:
            raise UsageError(f"{path}: not JSON: {error}", hint=_HINT) from None
    try:
        found = connector_from(document, path.stem)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from None
    if unset := [name for name in variables_in(found) if name not in variables]:
        raise UsageError(
            f"{path}: not set in the environment: {', '.join(unset)}",
            hint='set them first; for a lab: eval "$(headwater lab env)"',
        )
    filled = {
        key: _VARIABLE.sub(lambda name: variables[name[1]], value)
        for key, value in found.config.items()
    }
    return replace(found, config=filled)


def variables_in(connector: Connector) -> list[str]:
    """The variables of the environment that a configuration names."""
    return sorted(
        {name for value in connector.config.values() for name in _VARIABLE.findall(value)}
    )


def connector_in(text: str) -> Connector:
    """The connector in a text: JSON, or the lines of a properties file."""
    try:
        if not text.lstrip().startswith(("{", "[")):
            return connector_from(read_properties(text))
        return connector_from(json.loads(text))
    except (ValueError, RecursionError):
        raise UsageError("the configuration is not JSON that can be read", hint=_HINT) from None
    except UsageError as error:
        raise UsageError(f"the configuration {error.message}", hint=error.hint) from None


def connector_from(document: object, default_name: str = "connector") -> Connector:
    """The connector in a decoded document: name and configuration, or a configuration alone."""
    if not isinstance(document, Mapping):
        raise UsageError("is not a connector", hint=_HINT)
    nested = document.get("config")
    if nested is not None and not isinstance(nested, Mapping | list):
        raise UsageError("has a config that is not an object", hint=_HINT)
    config = normalise(document if nested is None else nested)
    if not config.get("connector.class"):
        raise UsageError("has no connector.class", hint=_HINT)
    name = str(document.get("name") or config.get("name") or default_name)
    kind = document.get("type")
    role = kind if kind in ("source", "sink") else None
    return Connector(name, role, {**config, "name": name})
