"""Hudi tables: where they lie, and which instant was asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.jvm import attempt, kind, option
from headwater.spark.sources import MappedSource, Source
from headwater.spark.stores import files, tables
from headwater.spark.value import Value

if TYPE_CHECKING:
    from headwater.spark.jvm import World

_INSTANT = "as.of.instant"


def is_hudi(name: str) -> bool:
    """Whether a class belongs to Hudi."""
    return name.startswith(("org.apache.hudi.", "org.apache.spark.sql.hudi.")) or "Hoodie" in name


def relation(world: World, given: Any, held: Any) -> Source | None:
    """The table behind a relation of Hudi's; `held` is what the catalog says of it."""
    found = tables.read_table(world, held, "catalog table") if held is not None else None
    if found is None:
        path = _path(given)
        found = files.one(path, "hudi", "hudi table") if path else None
    if found is None:
        return None
    options = world.mapping(attempt(given, "options", "optParams"))
    found = msgspec.structs.replace(found, version=options.get(_INSTANT, ""))
    location = attempt(given, "location")
    if "CDC" in kind(given if location is None else location):
        # Rows before and after a change, each whole and as text.
        return MappedSource((found,), {"op": Value(), "ts_ms": Value()})
    return Source((found,))


def _path(given: Any) -> str:
    location = attempt(given, "location")
    if location is not None:
        first = option(location.rootPaths().headOption())
        return first.toString() if first is not None else ""
    client = attempt(given, "metaClient")
    path = attempt(client, "getBasePath") if client is not None else None
    return str(path.toString()) if path is not None else ""
