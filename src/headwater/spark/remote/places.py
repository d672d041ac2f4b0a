"""Tables by name: where they lie, as the server describes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.spark.model import Dataset, Evidence, Symlink
from headwater.spark.stores import iceberg, tables
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from headwater.spark.jvm import World as JvmWorld
    from headwater.spark.remote.world import Table, World

SESSION = "spark_catalog"


def full(world: World, name: str) -> list[str]:
    """The parts of a table's name as a program writes it, with catalog and namespace."""
    parts = _parts(name)
    server = world.server
    current = server.current()
    if len(parts) == 1:
        return [*current, *parts]
    if parts[0] == SESSION or server.setting(f"spark.sql.catalog.{parts[0]}"):
        return parts
    return [current[0], *parts]


def _parts(name: str) -> list[str]:
    parts: list[str] = []
    word, inside = "", False
    for char in name.strip():
        if char == "`":
            inside = not inside
        elif char == "." and not inside:
            parts.append(word)
            word = ""
        else:
            word += char
    return [*parts, word]


def existing(world: World, parts: list[str], asked: str = "") -> Dataset | None:
    """The dataset of a table that is there."""
    plain = [part for part in parts if not iceberg._SELECTORS.match(part)]  # noqa: SLF001
    found = world.server.table(plain)
    if found is None or not found.location:
        return None
    place = name_of(found.location)
    if place is None:
        return None
    if found.provider.lower() == "iceberg":
        version = asked or iceberg.version(None, parts[1:], {})
        return iceberg.dataset(_like(world), place, parts[0], plain[1:], version)
    if parts[0] == SESSION:
        return _session(world, parts, found)
    evidence = (Evidence("table property location", ".".join(parts)),)
    return Dataset(*place, evidence=evidence)


def _session(world: World, parts: list[str], found: Table) -> Dataset | None:
    database = parts[-2] if len(parts) > 2 else "default"
    address = tables.metastore(_like(world))
    logical = tables.logical_name(_like(world), address, database, parts[-1])
    place = name_of(found.location)
    if place is None:
        return None
    provider = found.provider.lower()
    return Dataset(
        *place,
        type="TABLE",
        sub_type=found.type,
        symlinks=(Symlink(*logical),) if logical else (),
        catalog=tables.session_catalog(_like(world), address),
        storage_layer=provider,
        file_format=provider,
        evidence=(Evidence("catalog table", f"{database}.{parts[-1]}"),),
    )


def gone(world: World, parts: list[str]) -> Dataset | None:
    """The dataset of a table that is not there: only its name is left."""
    return by_name(world, parts, "TABLE")


def view(world: World, parts: list[str]) -> Dataset | None:
    """The dataset of a view."""
    return by_name(world, parts, "VIEW")


def by_name(world: World, parts: list[str], kind: str) -> Dataset | None:
    """A dataset known by catalog and name alone."""
    if parts[0] == SESSION:
        address = tables.metastore(_like(world))
        database = parts[-2] if len(parts) > 2 else "default"
        logical = tables.logical_name(_like(world), address, database, parts[-1])
        if logical is None:
            return None
        evidence = (Evidence("catalog name", f"{database}.{parts[-1]}"),)
        catalog = tables.session_catalog(_like(world), address)
        return Dataset(*logical, type=kind, catalog=catalog, evidence=evidence)  # type: ignore[arg-type]
    found = iceberg.dataset(_like(world), ("", ""), parts[0], parts[1:])  # type: ignore[arg-type]
    if not found.symlinks:
        return None
    link = found.symlinks[0]
    return msgspec.structs.replace(
        found, namespace=link.namespace, name=link.name, type=kind, symlinks=()
    )


def planned(parts: list[str]) -> Dataset:
    """A stand-in for a table that is about to be: it gives a job its name and is never told."""
    name = ".".join(parts[1:] if len(parts) > 2 else parts)
    return Dataset("", "", symlinks=(Symlink("", name),))


def iceberg_path(world: World, path: str) -> Dataset | None:
    """An Iceberg table by the path it lies at."""
    place = name_of(path)
    return iceberg.dataset(_like(world), place, "", []) if place is not None else None


def _like(world: World) -> JvmWorld:
    """The same world for functions that only read settings and note problems."""
    return world  # type: ignore[return-value]
