"""A connector out of a file that a person wrote: JSON as one would POST it, or properties."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headwater.connect.config import read_properties, read_text
from headwater.connect.derive.config_values import normalise
from headwater.connect.model import Connector
from headwater.errors import UsageError

if TYPE_CHECKING:
    from pathlib import Path

_HINT = '{"name": …, "config": {…}}'


def read_connector(path: Path) -> Connector:
    """The connector in a file, named by the file where it has no name of its own."""
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
        return connector_from(document, path.stem)
    except UsageError as error:
        raise UsageError(f"{path}: {error.message}", hint=error.hint) from None


def connector_from(document: object, default_name: str = "connector") -> Connector:
    """The connector in a decoded document: name and configuration, or a configuration alone."""
    if not isinstance(document, Mapping):
        raise UsageError("not a connector", hint=_HINT)
    nested = document.get("config")
    if nested is not None and not isinstance(nested, Mapping | list):
        raise UsageError("config is not an object", hint=_HINT)
    config = normalise(document if nested is None else nested)
    if not config.get("connector.class"):
        raise UsageError("has no connector.class", hint=_HINT)
    name = str(document.get("name") or config.get("name") or default_name)
    kind = document.get("type")
    role = kind if kind in ("source", "sink") else None
    return Connector(name, role, {**config, "name": name})
