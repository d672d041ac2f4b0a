"""A connector's configuration before it is sent to Connect: fitted to the worker, compared, checked."""

from __future__ import annotations

from difflib import get_close_matches
from typing import TYPE_CHECKING, Any, NamedTuple

from headwater.connect.derive.overrides import DECLARED, PREFIX
from headwater.connect.transforms.chain import LINEAGE
from headwater.errors import NotFoundError
from headwater.lineage.secrets import safe_config

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping


class FittedConfig(NamedTuple):
    """A configuration fitted to a worker, the transforms left out, and the keys that replace theirs."""

    config: dict[str, str]
    left_out: list[str]
    kept: list[str]


class ConfigChange(NamedTuple):
    """One key that would change; None stands for a key that is not there."""

    key: str
    before: str | None
    after: str | None
    masked: bool = False
    """Whether what differs is masked, so that both look alike."""


def fit(config: Mapping[str, str], available: Collection[str]) -> FittedConfig:
    """The configuration without lineage transforms that the worker lacks.

    What they declare is kept in keys of ours, which Connect and its plug-ins ignore.
    """
    names = [name.strip() for name in config.get("transforms", "").split(",") if name.strip()]
    gone = [
        name
        for name in names
        if (kind := config.get(f"transforms.{name}.type", "")).endswith(LINEAGE)
        and not _has(kind, available)
    ]
    if not gone:
        return FittedConfig(dict(config), [], [])
    fitted = {
        key: value
        for key, value in config.items()
        if not any(key.startswith(f"transforms.{name}.") for name in gone)
    }
    rest = [name for name in names if name not in gone]
    if rest:
        fitted["transforms"] = ",".join(rest)
    else:
        fitted.pop("transforms", None)
    declared = {
        f"{PREFIX}{key}": value
        for name in gone
        for key in DECLARED
        if (value := config.get(f"transforms.{name}.{key}", "").strip())
    }
    kept = {key: value for key, value in declared.items() if not fitted.get(key, "").strip()}
    return FittedConfig({**fitted, **kept}, gone, sorted(kept))


def _has(kind: str, available: Collection[str]) -> bool:
    return any(one == kind or one.rsplit(".", 1)[-1] == kind for one in available)


def changes(
    before: Mapping[str, str] | None, after: Mapping[str, str], declared: Collection[str] = ()
) -> list[ConfigChange]:
    """What would change, key by key, secrets masked; of a secret only that it changes."""
    old, new = dict(before or {}), dict(after)
    shown_old, shown_new = safe_config(old, declared), safe_config(new, declared)
    found = []
    for key in sorted(old.keys() | new.keys()):
        if old.get(key) == new.get(key):
            continue
        was, will_be = shown_old.get(key), shown_new.get(key)
        found.append(ConfigChange(key, was, will_be, masked=was == will_be))
    return found


def require_class(config: Mapping[str, str], plugins: Collection[Mapping[str, str]]) -> None:
    """Raise NotFoundError where the worker has no such connector: Connect answers with every plug-in."""
    wanted = config["connector.class"]
    known = sorted({one["class"] for one in plugins if one.get("type") in ("source", "sink")})
    # Connect also takes the class's name without its package, and without `Connector`.
    short = {name.rsplit(".", 1)[-1]: name for name in known}
    if not known or wanted in {*known, *short, *(one.removesuffix("Connector") for one in short)}:
        return
    # Packages are long and alike: they would make any two classes near.
    near = get_close_matches(wanted.rsplit(".", 1)[-1], short, n=1, cutoff=0.8)
    raise NotFoundError(
        "\n  ".join([f"the worker has no connector {wanted}; it has", *known]),
        hint=f"{short[near[0]]}? Nothing was changed" if near else "nothing was changed",
        names=known,
    )


def faults(answer: Mapping[str, Any]) -> list[str]:
    """What a plug-in's validation finds wrong, one line a key."""
    configs = answer.get("configs")
    items = [one for one in configs if isinstance(one, dict)] if isinstance(configs, list) else []
    values = [one["value"] for one in items if isinstance(one.get("value"), dict)]
    return [
        f"{value.get('name')}: {error}" for value in values for error in value.get("errors") or ()
    ]
