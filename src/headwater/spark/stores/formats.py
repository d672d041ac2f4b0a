"""Table formats: all that Spark, Spark Connect and naming need to know of one, and their registry.

A format is one module. Those that come with Headwater are the modules of this package that define
`FORMAT`; others are installed packages with an entry point in the group `headwater.table_formats`
whose object is a `TableFormat`:

    [project.entry-points."headwater.table_formats"]
    paimon = "headwater_paimon:FORMAT"

Everything here has a default: a format overrides what it does differently from files at a path.
"""

from __future__ import annotations

import logging
import pkgutil
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

from headwater.lineage.model import Dataset
from headwater.spark import stores
from headwater.spark.columns.source import Source
from headwater.spark.jvm import attempt
from headwater.spark.model import observed
from headwater.spark.stores.paths import name_of, root

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping

    from headwater.lineage.naming import DatasetName
    from headwater.spark.jvm import JvmSession
    from headwater.spark.plan.operators import Rule
    from headwater.spark.plan.writes import Write

GROUP = "headwater.table_formats"

log = logging.getLogger("headwater.spark")


class Session(Protocol):
    """What a format may ask of any session: a driver's own, or a client's of Spark Connect."""

    def setting(self, key: str) -> str:
        """A setting of the session, or an empty text."""

    def hadoop_setting(self, key: str) -> str:
        """A setting of Hadoop's configuration, or an empty text."""

    def problem(self, text: str) -> None:
        """Report what could not be found out."""


class TableFormat:
    """A table format; subclass it and register one instance."""

    name: ClassVar[str] = ""
    """What `USING` and `.format()` call it: the storage layer and sub-type of its datasets."""

    classes: ClassVar[tuple[str, ...]] = ()
    """How the names of its JVM classes start."""

    data_files: ClassVar[str] = ""
    """The format of the files below a table, where it is always the same."""

    metadata_columns: ClassVar[frozenset[str]] = frozenset()
    """Columns that its rows show of the format's bookkeeping: facts about a row, not lineage."""

    metadata_tables: ClassVar[frozenset[str]] = frozenset()
    """What follows the name of a table to read what the format keeps about it, in lower case."""

    log_folders: ClassVar[tuple[str, ...]] = ()
    """Folders inside a table in which the format keeps its log: reads of them are no lineage."""

    log_scans: ClassVar[tuple[str, ...]] = ()
    """How a physical plan calls a scan of the format's log."""

    counts_rows_of_scans: ClassVar[bool] = True
    """Whether the row counts of its scans can be used even where they list no files."""

    version_options: ClassVar[tuple[str, ...]] = ("versionasof",)
    """Options of a reader that choose a version of a table, in lower case."""

    time_options: ClassVar[tuple[str, ...]] = ("timestampasof",)
    """Options of a reader that choose a moment, in lower case."""

    saves_by_name: ClassVar[bool] = False
    """Whether `save("db.orders")` names a table of a catalog, and only a text with a `/` a path."""

    keeps_catalogs: ClassVar[bool] = False
    """Whether its catalogs keep tables themselves; those of Delta and Hudi use Spark's own."""

    any_catalog: ClassVar[bool] = False
    """Whether it also names tables of catalogs whose class no format owns."""

    equivalents: ClassVar[Mapping[str, str]] = {}
    """Its plan nodes that hold the same as one of Spark's, by their class without the package."""

    commands: ClassVar[Mapping[str, Callable[[JvmSession, Any], Write]]] = {}
    """How to read its own commands that write, by their class without the package."""

    operators: ClassVar[Mapping[str, Rule]] = {}
    """What its own plan nodes make of the columns below them, by class without the package."""

    def owns(self, class_name: str) -> bool:
        """Whether a JVM class belongs to the format."""
        return bool(self.classes) and class_name.startswith(self.classes)

    def equivalent(self, node: str) -> str:
        """The class of Spark's whose rules read this node."""
        return self.equivalents.get(node, node)

    def at_path(self, session: Session, path: str, evidence: str) -> Dataset | None:
        """The table at a path, or at the table's partition that the path leads to."""
        place = None if is_log(path) else name_of(root(path))
        return self.located(place, evidence) if place is not None else None

    def located(self, place: DatasetName, evidence: str) -> Dataset:
        """The table at a place that has a name."""
        return Dataset(
            *place,
            type="TABLE",
            sub_type=self.name,
            storage_layer=self.name,
            file_format=self.data_files,
            evidence=observed(evidence, place.name),
        )

    # Reading

    def table(
        self,
        session: JvmSession,
        table: Any,
        catalog: str,
        identifier: list[str],
        options: Mapping[str, str],
    ) -> Source | None:
        """The source behind a table of the data source V2 API; None when it cannot be named."""
        return Source.of(self.at_path(session, options.get("path", ""), f"{self.name} table"))

    def relation(self, session: JvmSession, relation: Any, catalog_table: Any) -> Source | None:
        """The source behind a relation of the V1 API; `catalog_table` is None for a path."""
        path = session.mapping(attempt(relation, "options", "parameters")).get("path", "")
        return Source.of(self.at_path(session, path, f"{self.name} table"))

    def partition(self, session: JvmSession, partition: Any) -> Dataset | None:
        """The table that an input partition of an RDD belongs to, where the partition names it."""
        return None

    # Writing

    def sink(self, session: JvmSession, sink: Any, options: Mapping[str, str]) -> Dataset | None:
        """The table behind a streaming sink of the V1 API; None for a V2 sink, which is a table."""
        return None

    def save_mode(self, options: Mapping[str, str]) -> str:
        """`OVERWRITE` or `DELETE` where a writer's options say so, whatever its save mode is."""
        return ""

    def overwrites_part(self, options: Mapping[str, str], *, dynamic: bool) -> bool:
        """Whether an overwrite at a path leaves rows; `dynamic` is how Spark would treat partitions."""
        return False

    def generated_columns(
        self, table: Any, names: tuple[str, ...], written: list[dict[str, Any]]
    ) -> tuple[dict[str, Any], ...]:
        """The columns that the format fills itself when the query leaves them out."""
        return ()

    # Catalogs

    def in_catalog(
        self,
        session: Session,
        catalog: str,
        identifier: list[str],
        place: DatasetName | None,
        version: str = "",
    ) -> Dataset | None:
        """A table by catalog and name; `place` is its location, None when that is not known."""
        return None

    def described(self, session: JvmSession, given: Dataset, table: Any) -> Dataset:
        """A dataset with the schema that its catalog has for a table of the V2 API now."""
        return given

    def existing(self, session: JvmSession, catalog: Any, identifier: list[str]) -> Dataset | None:
        """The table that a catalog of the format has now under a name."""
        return None

    def planned_location(
        self, session: JvmSession, catalog: Any, identifier: list[str]
    ) -> DatasetName | None:
        """Where a table that does not exist yet will lie."""
        return None

    def selected_version(self, identifier: list[str]) -> str:
        """The version that the parts of a name choose, as in `db.orders.branch_audit`."""
        return ""

    def is_selector(self, part: str) -> bool:
        """Whether a part of a name chooses a version and does not name the table."""
        return False


@cache
def table_formats() -> tuple[TableFormat, ...]:
    """Every format there is: Headwater's own first, then those of installed packages."""
    found: dict[str, TableFormat] = {}
    for module in pkgutil.iter_modules(stores.__path__):
        built_in = getattr(import_module(f"{stores.__name__}.{module.name}"), "FORMAT", None)
        if isinstance(built_in, TableFormat):
            found[built_in.name] = built_in
    for entry in entry_points(group=GROUP):
        try:
            loaded = entry.load()
        except Exception as error:  # noqa: BLE001  (one broken package must not cost the others)
            log.warning(
                "table format %s is not available: its package %s failed to load (%s: %s)",
                entry.name, entry.value, type(error).__name__, error,
            )  # fmt: skip
            continue
        if isinstance(loaded, TableFormat) and loaded.name:
            found.setdefault(loaded.name, loaded)
        else:
            log.warning(
                "table format %s is not available: %s is no TableFormat with a name",
                entry.name, entry.value,
            )  # fmt: skip
    return tuple(found.values())


def by_name(name: str) -> TableFormat | None:
    """The format that `USING` calls by this name."""
    return next((one for one in table_formats() if one.name == name), None)


def owner(*class_names: str) -> TableFormat | None:
    """The format that one of these JVM classes belongs to."""
    return next((one for one in table_formats() if any(map(one.owns, class_names))), None)


def of_catalog(class_name: str, *, session: bool = False) -> TableFormat | None:
    """The format that names the tables of a catalog of this class.

    None for the `session` catalog unless a format keeps its tables: Spark's own catalog does.
    """
    known = owner(class_name)
    if known is not None and known.keeps_catalogs:
        return known
    return None if session else next((one for one in table_formats() if one.any_catalog), None)


def equivalent(node: str) -> str:
    """The class of Spark's whose rules read a node of a plan: the node's own, mostly."""
    for one in table_formats():
        if (found := one.equivalent(node)) != node:
            return found
    return node


def is_log(path: str) -> bool:
    """Whether a path, or a plan's text that ends in one, leads into the log of a table."""
    return any(
        f"/{folder}{end}" in f"{path}/"
        for one in table_formats()
        for folder in one.log_folders
        for end in "/[]"
    )


def is_log_scan(text: str) -> bool:
    """Whether a scan, as a physical plan writes it, reads the log of a table."""
    # Its path may be cut short, so that only the kind of the scan is left to know it by.
    return is_log(text) or any(word in text for one in table_formats() for word in one.log_scans)


def metadata_columns(datasets: Iterable[Dataset]) -> frozenset[str]:
    """The columns of datasets that are bookkeeping of their formats."""
    found = [by_name(one.storage_layer) for one in datasets if one.storage_layer]
    return frozenset(name for one in found if one is not None for name in one.metadata_columns)
