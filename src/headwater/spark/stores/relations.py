"""Relations and tables of every kind, told apart by their class."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.spark.jvm import attempt, class_name, hidden, kind
from headwater.spark.model import Dataset, Evidence
from headwater.spark.sources import Source
from headwater.spark.stores import delta, files, hudi, iceberg, jdbc, kafka, tables
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.spark.jvm import World

QUIET = (
    "RateStreamTable", "RatePerMicroBatchTable", "TextSocketTable", "MemoryStreamTable", "NoopTable",
    "ConsoleTable", "MemorySink", "MemoryTable", "ForeachBatchSink", "ForeachWriterTable",
    "ForeachTable", "ConsoleSinkProvider", "NoopDataSource", "ContinuousMemorySink", "StateTable",
    "StateMetadataTable", "ConsoleRelation", "MemoryPlan", "RangeTable",
)  # fmt: skip
"""Sources and sinks that are no dataset: made-up rows, screens, memory."""

QUIET_SOURCES = ("rate", "rate-micro-batch", "rate-v2", "socket", "memory", "console", "noop")


def is_quiet(name: str) -> bool:
    """Whether a class stands for no dataset at all."""
    return name.rstrip("$").rpartition("$")[2] in QUIET or name.rstrip("$") in QUIET


def table(
    world: World, given: Any, catalog: Any, identifier: list[str], options: Mapping[str, str]
) -> Source | None:
    """What a table of the second data source API reads or writes."""
    name = class_name(given)
    short = name[name.rfind(".") + 1 :]
    if short == "RowLevelOperationTable":
        inner = table(world, given.table(), catalog, identifier, options)
        if inner is not None:
            inner.target = True
        return inner
    if iceberg.is_iceberg(name):
        where = catalog.name() if catalog is not None else ""
        return _one(iceberg.read(world, given, where, identifier, options))
    if kafka.is_kafka(name):
        return Source(kafka.read(world, options), topic=True)
    if short == "JDBCTable":
        return jdbc.read(world, world.mapping(given.jdbcOptions().parameters()))
    if short == "V1Table" or name.endswith("HoodieInternalV2Table"):
        held = attempt(given, "v1Table", "catalogTable")
        return _one(tables.read_table(world, held, "catalog table"))
    if delta.is_delta(name):
        return _one(delta.table(world, given))
    if (paths := _paths(given)) is not None:
        word = str(attempt(given, "formatName") or "").lower()
        return Source(files.by_paths(paths, word, "file table"))
    if is_quiet(short):
        return Source(())
    return _other(world, given, catalog, identifier)


def relation(world: World, given: Any, catalog_table: Any) -> Source | None:
    """What a relation of the first data source API reads."""
    name = class_name(given)
    # What a format puts its relations together from says more than their own class.
    inner = class_name(given.location()) if name.endswith("FsRelation") else name
    if delta.is_delta(name) or delta.is_delta(inner):
        return delta.relation(world, given, catalog_table)
    if hudi.is_hudi(name) or hudi.is_hudi(inner):
        return hudi.relation(world, given, catalog_table)
    if catalog_table is not None:
        found = tables.read_table(world, catalog_table, "catalog table")
        if found is not None:
            return Source((found,))
    if name.endswith("FsRelation"):
        return Source(files.relation(world, given))
    if name.endswith(".JDBCRelation"):
        return jdbc.read(world, world.mapping(given.jdbcOptions().parameters()))
    if kafka.is_kafka(name):
        return Source(kafka.read(world, world.mapping(hidden(given, "sourceOptions"))), topic=True)
    if is_quiet(kind(given)):
        return Source(())
    world.problem(f"{kind(given)}: a relation whose dataset is not known")
    return None


def _one(given: Dataset | None) -> Source | None:
    return Source((given,)) if given is not None else None


def _paths(given: Any) -> list[str] | None:
    try:
        return files.table_paths(given)
    except Exception:  # noqa: BLE001
        return None


def _other(world: World, given: Any, catalog: Any, identifier: list[str]) -> Source | None:
    """A table nobody told us of: its location, if it says one."""
    located = world.mapping(attempt(given, "properties")).get("location", "")
    place = name_of(located) if located else None
    if place is None:
        world.problem(f"{kind(given)}: a table whose dataset is not known")
        return None
    name = ".".join([catalog.name() if catalog is not None else "", *identifier]).strip(".")
    return Source((Dataset(*place, evidence=(Evidence("table property location", name),)),))
