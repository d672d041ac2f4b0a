"""Tables by name: their datasets, by the location that the server describes."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from headwater.lineage.model import Dataset, Symlink
from headwater.spark.model import observed
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import formats
from headwater.spark.stores.catalog import SESSION
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headwater.spark.remote.server_client import RemoteSession


def full(session: RemoteSession, name: str) -> list[str]:
    """The parts of a table's name as a program writes it, with catalog and namespace."""
    parts = _parts(name)
    server = session.server
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


def existing(session: RemoteSession, parts: list[str], asked: str = "") -> Dataset | None:
    """The dataset of a table that is there."""
    plain = [
        part for part in parts if not any(f.is_selector(part) for f in formats.table_formats())
    ]
    found = session.server.table(plain)
    if found is None or not found.location:
        return None
    place = name_of(found.location)
    if place is None:
        return None
    table_format = formats.by_name(found.provider.lower())
    if table_format is not None:
        version = asked or table_format.selected_version(parts[1:])
        made = table_format.in_catalog(session, parts[0], plain[1:], place, version)
        if made is not None:
            return made
    if parts[0] == SESSION:
        identifier = [parts[-2] if len(parts) > 2 else "default", parts[-1]]
        return catalogs.session_table(
            session, place, identifier, found.provider, found.type, "catalog table"
        )
    evidence = observed("table property location", ".".join(parts))
    return Dataset(*place, type="TABLE", evidence=evidence)


def metadata_of(session: RemoteSession, parts: list[str]) -> list[str]:
    """The name of the table whose metadata another name stands for; empty where it does not."""
    known = any(parts[-1].lower() in one.metadata_tables for one in formats.table_formats())
    if not known or len(parts) < 3:
        return []
    plain = [
        part for part in parts[:-1] if not any(f.is_selector(part) for f in formats.table_formats())
    ]
    return parts[:-1] if session.server.table(plain) is not None else []


def is_partitioned(session: RemoteSession, parts: Sequence[str]) -> bool:
    """Whether a table has partitions; one that cannot be described may have some."""
    found = session.server.table(list(parts))
    return found is None or found.partitioned


def gone(session: RemoteSession, parts: list[str]) -> Dataset | None:
    """The dataset of a table that is not there: only its name is left."""
    return by_name(session, parts, "TABLE")


def by_name(session: RemoteSession, parts: list[str], kind: str) -> Dataset | None:
    """A dataset known by catalog and name alone."""
    if parts[0] == SESSION:
        address = catalogs.metastore(session)
        database = parts[-2] if len(parts) > 2 else "default"
        logical = catalogs.logical_name(session, address, database, parts[-1])
        if logical is None:
            return None
        evidence = observed("catalog name", f"{database}.{parts[-1]}")
        catalog = catalogs.session_catalog(session, address)
        return Dataset(*logical, type=kind, catalog=catalog, evidence=evidence)  # type: ignore[arg-type]
    implementation = session.setting(f"spark.sql.catalog.{parts[0]}")
    table_format = formats.of_catalog(implementation)
    found = table_format and table_format.in_catalog(session, parts[0], parts[1:], None)
    return msgspec.structs.replace(found, type=kind) if found else None


def planned(parts: list[str]) -> Dataset:
    """A placeholder for a table that does not exist yet: it gives a job its name and is never emitted."""
    name = ".".join(parts[1:] if len(parts) > 2 else parts)
    return Dataset("", "", type="TABLE", symlinks=(Symlink("", name),))
