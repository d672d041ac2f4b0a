"""Relations and tables of every kind: the class of each decides which store reads it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headwater.lineage.model import Dataset
from headwater.spark.columns.source import Source
from headwater.spark.jvm import attempt, class_name, hidden, kind, option
from headwater.spark.model import observed
from headwater.spark.stores import catalog as catalogs
from headwater.spark.stores import files, formats, jdbc, kafka
from headwater.spark.stores.paths import name_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from headwater.spark.jvm import JvmSession

QUIET = (
    "RateStreamTable", "RatePerMicroBatchTable", "TextSocketTable", "MemoryStreamTable", "NoopTable",
    "ConsoleTable", "MemorySink", "MemoryTable", "ForeachBatchSink", "ForeachWriterTable",
    "ForeachTable", "ConsoleSinkProvider", "NoopDataSource", "ContinuousMemorySink", "StateTable",
    "StateMetadataTable", "ConsoleRelation", "MemoryPlan", "RangeTable",
)  # fmt: skip
"""Classes of sources and sinks that are no dataset: generated rows, the console, memory."""

PYTHON_TABLE = "PythonTable"
QUIET_SOURCES = ("rate", "rate-micro-batch", "rate-v2", "socket", "memory", "console", "noop")


def is_quiet(name: str) -> bool:
    """Whether a class is a source or sink without a dataset."""
    return name.rstrip("$").rpartition("$")[2] in QUIET or name.rstrip("$") in QUIET


def table(
    session: JvmSession, given: Any, catalog: Any, identifier: list[str], options: Mapping[str, str]
) -> Source | None:
    """What a table of the second data source API reads or writes."""
    name = class_name(given)
    short = name[name.rfind(".") + 1 :]
    if short == "RowLevelOperationTable":
        inner = table(session, given.table(), catalog, identifier, options)
        if inner is not None:
            inner.target = True
        return inner
    table_format = formats.owner(name)
    if short == PYTHON_TABLE:
        # All data sources written in Python share one class; the table has the format's name.
        table_format = formats.by_name(str(attempt(given, "name") or "").lower())
    if table_format is not None:
        where = catalog.name() if catalog is not None else ""
        return table_format.table(session, given, where, identifier, options)
    if kafka.is_kafka(name):
        return Source(kafka.read(session, options), topic=True)
    if short == "JDBCTable":
        return jdbc.read(session, session.mapping(given.jdbcOptions().parameters()))
    if short == "V1Table":
        held = attempt(given, "v1Table", "catalogTable")
        return Source.of(catalogs.read_table(session, held, "catalog table"))
    if (paths := _paths(given)) is not None:
        file_format = str(attempt(given, "formatName") or "").lower()
        index = attempt(given, "fileIndex")
        if index is not None:
            return files.indexed(session, index, file_format, "file table")
        return Source(files.by_paths(paths, file_format, "file table"))
    if is_quiet(short):
        return Source(())
    return _other(session, given, catalog, identifier)


def leaf(session: JvmSession, given: Any) -> Source | None:
    """What a leaf of the first data source API reads."""
    table = option(given.catalogTable())
    if table is not None:
        found = catalogs.read_table(session, table, "catalog table")
        # The catalog has reported it all, unless a table format keeps the table.
        if found is not None and formats.by_name(found.storage_layer) is None:
            return Source((found,))
    return relation(session, given.relation(), table)


def relation(session: JvmSession, given: Any, catalog_table: Any) -> Source | None:
    """What a relation of the first data source API reads."""
    name = class_name(given)
    # Formats build their relations from Spark's classes; the file index inside is their own.
    inner = class_name(given.location()) if name.endswith("FsRelation") else name
    table_format = formats.owner(name, inner)
    if table_format is not None:
        return table_format.relation(session, given, catalog_table)
    if catalog_table is not None:
        found = catalogs.read_table(session, catalog_table, "catalog table")
        if found is not None:
            return Source((found,))
    if name.endswith("FsRelation"):
        return files.relation(session, given)
    if name.endswith(".JDBCRelation"):
        return jdbc.read(session, session.mapping(given.jdbcOptions().parameters()))
    if kafka.is_kafka(name):
        return Source(
            kafka.read(session, session.mapping(hidden(given, "sourceOptions"))), topic=True
        )
    if is_quiet(kind(given)):
        return Source(())
    session.problem(f"{kind(given)}: a relation whose dataset is not known")
    return None


def _paths(given: Any) -> list[str] | None:
    try:
        return files.table_paths(given)
    except Exception:  # noqa: BLE001
        return None


def _other(session: JvmSession, given: Any, catalog: Any, identifier: list[str]) -> Source | None:
    """A table of a kind that is not known: its location, if its properties have one."""
    located = session.mapping(attempt(given, "properties")).get("location", "")
    place = name_of(located) if located else None
    if place is None:
        session.problem(f"{kind(given)}: a table whose dataset is not known")
        return None
    name = ".".join([catalog.name() if catalog is not None else "", *identifier]).strip(".")
    evidence = observed("table property location", name)
    return Source((Dataset(*place, type="TABLE", evidence=evidence),))
