"""A connector's configuration on its way to Connect: read, fitted to the worker, compared."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.connect.config import read_properties, read_text
from headwater.connect.redact import safe_config
from headwater.errors import UsageError

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping
    from pathlib import Path

LINEAGE_TRANSFORM = "OpenLineageLifecycleSmt"


class Wanted(NamedTuple):
    """A connector as a file describes it."""

    name: str
    config: dict[str, str]


class Change(NamedTuple):
    """One key that would change; None stands for a key that is not there."""

    key: str
    before: str | None
    after: str | None


def read_connector(path: Path) -> Wanted:
    """A connector out of a file: `{"name", "config"}`, a flat JSON object, or properties."""
    text = read_text(path)
    if path.suffix == ".properties":
        found: Any = read_properties(text)
    else:
        try:
            found = json.loads(text)
        except ValueError as error:
            raise UsageError(f"{path}: not JSON: {error}") from None
    if not isinstance(found, dict):
        raise UsageError(f"{path}: not a connector", hint='{"name": …, "config": {…}}')
    config = found.get("config", found)
    if isinstance(config, list):  # as Confluent Cloud shows them
        config = {item.get("config"): item.get("value") for item in config}
    if not isinstance(config, dict):
        raise UsageError(f"{path}: config is not an object")
    settings = {str(key): _text(value) for key, value in config.items() if value is not None}
    name = str(found.get("name") or settings.get("name") or path.stem)
    if not settings.get("connector.class"):
        raise UsageError(f"{path}: has no connector.class", hint='{"name": …, "config": {…}}')
    return Wanted(name, {**settings, "name": name})


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return value if isinstance(value, str) else json.dumps(value)


def fit(config: Mapping[str, str], available: Collection[str]) -> tuple[dict[str, str], list[str]]:
    """The configuration without lineage transforms that the worker lacks, and their names."""
    names = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    gone = [
        name
        for name in names
        if (kind := config.get(f"transforms.{name}.type", "")).endswith(LINEAGE_TRANSFORM)
        and not _has(kind, available)
    ]
    if not gone:
        return dict(config), []
    fitted = {
        key: value
        for key, value in config.items()
        if not any(key.startswith(f"transforms.{name}.") for name in gone)
    }
    kept = [name for name in names if name not in gone]
    if kept:
        fitted["transforms"] = ",".join(kept)
    else:
        fitted.pop("transforms", None)
    return fitted, gone


def _has(kind: str, available: Collection[str]) -> bool:
    return any(one == kind or one.rsplit(".", 1)[-1] == kind for one in available)


def changes(
    before: Mapping[str, str] | None, after: Mapping[str, str], declared: Collection[str] = ()
) -> list[Change]:
    """What would change, key by key, secrets masked; a secret that changes says only that it does."""
    old, new = dict(before or {}), dict(after)
    shown_old, shown_new = safe_config(old, declared), safe_config(new, declared)
    return [
        Change(key, shown_old.get(key), shown_new.get(key))
        for key in sorted(old.keys() | new.keys())
        if old.get(key) != new.get(key)
    ]


def faults(answer: Mapping[str, Any]) -> list[str]:
    """What a plug-in's validation finds wrong, one line a key."""
    found = []
    for item in answer.get("configs", []):
        value = item.get("value", {})
        found += [f"{value.get('name')}: {error}" for error in value.get("errors", [])]
    return found
