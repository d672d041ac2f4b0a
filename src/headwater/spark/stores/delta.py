"""Delta tables: where they lie, which version was asked for, and what is Delta's own work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from headwater.spark.jvm import attempt, class_name, kind, option
from headwater.spark.sources import Source
from headwater.spark.stores import files, tables

if TYPE_CHECKING:
    from headwater.spark.jvm import World
    from headwater.spark.model import Dataset


def is_delta(name: str) -> bool:
    """Whether a class belongs to Delta."""
    return name.startswith(("org.apache.spark.sql.delta.", "io.delta."))


def relation(world: World, given: Any, held: Any) -> Source | None:
    """The table behind a relation of Delta's; `held` is what the catalog says of it."""
    location = attempt(given, "location")
    if location is not None and kind(location) == "DeltaLogFileIndex":
        # Delta reads its own log.
        return Source(())
    found = tables.read_table(world, held, "catalog table") if held is not None else None
    if found is None:
        path = attempt(location if location is not None else given.deltaLog(), "path", "dataPath")
        found = files.one(path.toString(), "delta", "delta table") if path is not None else None
    if found is None:
        return None
    return Source((msgspec.structs.replace(found, version=_version(location)),))


def table(world: World, given: Any) -> Dataset | None:
    """The dataset of a `DeltaTableV2`."""
    held = option(attempt(given, "catalogTable"))
    if held is not None:
        return tables.read_table(world, held, "delta table")
    path = attempt(given, "path")
    return files.one(path.toString(), "delta", "delta table") if path is not None else None


def generated(
    given: Any, names: tuple[str, ...], written: list[dict[str, Any]]
) -> tuple[dict[str, Any], ...]:
    """The columns of a table that Delta itself fills, where the query leaves them out."""
    if not is_delta(class_name(given)) or len(names) <= len(written):
        return ()
    told = {item["name"] for item in written}
    # The table itself does not show how a column is filled, what is known of its state does.
    made = msgspec.json.decode(given.initialSnapshot().metadata().schema().json())["fields"]
    return tuple(item for item in made if item["name"] not in told and _fills(item["metadata"]))


def _fills(metadata: dict[str, Any]) -> bool:
    return any(key.startswith(("delta.generation", "delta.identity")) for key in metadata)


def _version(location: Any) -> str:
    """The version that was asked for, also where it was asked for by time."""
    if location is None or attempt(location, "isTimeTravelQuery") is not True:
        return ""
    asked = option(attempt(location, "versionToUse"))
    return str(asked) if asked is not None else ""
