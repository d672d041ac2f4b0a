"""The lake's tables through PyIceberg: Arrow for questions, DuckDB for SQL. No Spark, no JVM."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Any

from headwater.errors import EnvironmentProblem, HeadwaterError, UsageError
from headwater.lake.projection import LogRecord
from headwater.lake.selection import LakeAlias, Use, declared_aliases
from headwater.lake.tables import (
    ALIASES,
    ANALYSED_COLUMNS,
    ANALYSED_COMPONENTS,
    ANALYSED_DATASETS,
    COLUMN_EDGES,
    DATASETS,
    EDGES,
    EVENTS,
    RUNS,
    TABLES,
    UNIQUE,
    unique_sql,
)
from headwater.lineage.moments import from_micros
from headwater.lineage.secrets import redact
from headwater.server.analysis import (
    AnalysedColumn,
    AnalysedComponent,
    AnalysedDataset,
    AnalysedEstate,
)

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator

    from headwater.lake.selection import Name
    from headwater.lake.tables import LakeTable

__all__ = ["FEW", "IcebergLake", "TooManyRecordsError", "open_lake"]

SCHEME = "iceberg://"
FEW = 1_000
"""Nodes up to which they are named in the scan, so that files without them are not read."""
_HINT = "such as iceberg://CATALOG/NAMESPACE, where PyIceberg's configuration has the catalog"
_FIELDS = (
    "node",
    "kind",
    "hash",
    "body",
    "log",
    "arrived",
    "seq",
    "topic",
    "kafka_partition",
    "kafka_offset",
)
_ORDER = ("arrived", "seq", "topic", "kafka_partition", "kafka_offset")


def open_lake(url: str) -> IcebergLake:
    """The lake behind `iceberg://CATALOG/NAMESPACE`; raises UsageError.

    PyIceberg knows the catalog, its address and its keys, from ~/.pyiceberg.yaml or from variables
    such as PYICEBERG_CATALOG__LAB__URI: so no secret stands on a command line.
    """
    try:
        from pyiceberg.catalog import load_catalog
        from pyiceberg.exceptions import NoSuchTableError
    except ModuleNotFoundError as error:
        raise EnvironmentProblem(
            f"a lake needs the package {error.name}", hint="pip install 'headwater[lake]'"
        ) from error
    catalog, _, namespace = url.removeprefix(SCHEME).partition("/")
    if not url.startswith(SCHEME) or not catalog or not namespace.strip("/"):
        raise UsageError(f"{url!r} is not the address of a lake", hint=_HINT)
    try:
        found = load_catalog(catalog)
        space = namespace.strip("/").replace("/", ".")
        tables = {table.name: found.load_table(f"{space}.{table.name}") for table in TABLES}
    except NoSuchTableError as error:
        raise UsageError(
            f"there is no lake at {url}: {error}", hint="headwater lake run makes its tables"
        ) from error
    except Exception as error:  # noqa: BLE001  (whatever a catalog raises)
        # A catalog's address may hold a login, and a library's error may repeat it.
        problem = redact(str(error))
        raise HeadwaterError(f"the lake {url} does not answer: {problem}", hint=_HINT) from None
    return IcebergLake(tables)


@contextmanager
def _reading(table: str) -> Iterator[None]:
    try:
        yield
    except Exception as error:  # noqa: BLE001  (whatever a store of files raises)
        problem = redact(str(error))
        raise HeadwaterError(f"the lake's {table} cannot be read: {problem}") from None


class TooManyRecordsError(HeadwaterError):
    """More records would have to be read than whoever asks has room for."""


class IcebergLake:
    """The tables of a lake as they are now."""

    def __init__(self, tables: dict[str, Any]) -> None:
        self._tables = tables

    def _arrow(self, table: str, **scan: Any) -> Any:
        """Rows of a table; raises HeadwaterError where its files cannot be read."""
        with _reading(table):
            return self._tables[table].scan(**scan).to_arrow()

    def _columns(self, table: LakeTable, *names: str, **scan: Any) -> Iterator[tuple[Any, ...]]:
        """Some columns of a table, each combination once; moments in microseconds."""
        import pyarrow as pa  # type: ignore[import-untyped]

        found = self._arrow(table.name, selected_fields=names, **scan)
        # Of the columns between two datasets there are dozens: they are told apart before Python sees them.
        found = found.group_by(list(names)).aggregate([])
        columns = []
        for name in names:
            column = found[name]
            if pa.types.is_timestamp(column.type):
                column = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
            columns.append(column.to_pylist())
        yield from zip(*columns, strict=True)

    def uses(self) -> Iterator[Use]:
        """Who touched which dataset, and when."""
        for node, space, name, direction, since, until in self._columns(
            EDGES, "node", "dataset_namespace", "dataset_name", "direction", "valid_from", "valid_to"
        ):  # fmt: skip
            yield Use(node, (space, name), direction == "output", since, until)
        for node, from_space, from_name, space, name, since, until in self._columns(
            COLUMN_EDGES, "node", "source_namespace", "source_name",
            "dataset_namespace", "dataset_name", "valid_from", "valid_to",
        ):  # fmt: skip
            yield Use(node, (from_space, from_name), False, since, until)
            yield Use(node, (space, name), True, since, until)

    def named(self) -> Iterator[tuple[str, Name]]:
        """Who ever named which dataset."""
        for node, *name in self._columns(DATASETS, "node", "dataset_namespace", "dataset_name"):
            yield node, (name[0], name[1])

    def aliases(self) -> Iterator[LakeAlias]:
        """Which names stand for one thing."""
        names = ("kind", "namespace", "name", "other_namespace", "other_name")
        for kind, space, name, other_space, other_name in self._columns(ALIASES, *names):
            yield LakeAlias(kind, (space, name), (other_space, other_name))
        where: Any = import_module("pyiceberg.expressions")
        # A command that is about no job has no node, so no derived table has what it declares.
        declares = where.And(
            where.IsNull("node"), where.EqualTo("kind", "command"), where.EqualTo("type", "alias")
        )
        found = self._arrow(EVENTS.name, row_filter=declares, selected_fields=("body",))
        yield from declared_aliases(found["body"].to_pylist())

    def parents(self) -> Iterator[tuple[str, str]]:
        """The nodes whose runs name a run of another as their parent, each with that other."""
        rows = list(self._columns(RUNS, "node", "run", "parent"))
        naming: dict[str, set[str]] = defaultdict(set)
        for node, _, parent in rows:
            if parent is not None:
                naming[parent.lower()].add(node)
        yield from {
            (child, node) for node, run, _ in rows for child in naming.get(run, ()) if child != node
        }

    def reporting(self, since: int, until: int) -> set[str]:
        """The nodes with events or commands of a period."""
        # Its types name parameters that its own examples leave out.
        where: Any = import_module("pyiceberg.expressions")
        first, last = (from_micros(moment).isoformat() for moment in (since, until))
        period = where.And(
            where.GreaterThan("time", first), where.LessThanOrEqual("time", last), where.NotNull("node")
        )  # fmt: skip
        found: set[str] = set()
        # Of years of events, each has its node: they are never in memory together.
        with _reading(EVENTS.name):
            scan = self._tables[EVENTS.name].scan(row_filter=period, selected_fields=("node",))
            for batch in scan.to_arrow_batch_reader():
                found.update(batch.column("node").unique().to_pylist())
        return found

    def records(self, nodes: Collection[str], most: int | None = None) -> Iterator[LogRecord]:
        """The records of some nodes and the commands of no node, each once, as they arrived.

        Where there are more than `most`, no more are read and TooManyRecordsError is raised; of more than
        `FEW` nodes those of all others count too.
        """
        import pyarrow as pa
        import pyarrow.compute as pc  # type: ignore[import-untyped]

        where: Any = import_module("pyiceberg.expressions")
        wanted = sorted(nodes)
        chosen = where.AlwaysTrue()
        if len(wanted) <= FEW:
            chosen = where.IsNull("node")
            chosen = where.Or(chosen, where.In("node", wanted)) if wanted else chosen
        found = self._arrow(
            EVENTS.name,
            row_filter=chosen,
            selected_fields=_FIELDS,
            limit=None if most is None else most + 1,
        )
        if most is not None and len(found) > most:
            raise TooManyRecordsError(
                f"more than {most:,} events of the lake would have to be read"
            )
        if len(wanted) > FEW:
            own = pc.is_in(found["node"], value_set=pa.array(wanted, pa.large_string()))
            found = found.filter(pc.or_(own, pc.is_null(found["node"])))
        yield from _once(found, _ORDER)

    def log(self) -> Iterator[LogRecord]:
        """All records, each once: as the one server's log has them if they are of one, else as they arrived."""
        found = self._arrow(EVENTS.name, selected_fields=_FIELDS)
        one = len(found["log"].unique()) == 1 and not found["seq"].null_count
        yield from _once(found, ("seq", *_ORDER) if one else _ORDER)

    def analysed(self) -> AnalysedEstate | None:
        """The datasets as `lake analyse` found them last; None while it did not."""
        names = ANALYSED_DATASETS.names
        rows = list(self._columns(ANALYSED_DATASETS, *names))
        if not rows:
            return None
        at, since = rows[0][-2:]
        parts = self._columns(ANALYSED_COMPONENTS, *AnalysedComponent._fields)
        return AnalysedEstate(
            at,
            since,
            [AnalysedDataset(*row[:-2]) for row in rows],
            sorted(AnalysedComponent(*row) for row in parts),
        )

    def analysed_columns(self, names: Collection[Name]) -> list[AnalysedColumn]:
        """The columns of the dataset that has one of these names, by name."""
        where: Any = import_module("pyiceberg.expressions")
        chosen = where.In("dataset_name", sorted({name for _, name in names}))
        fields = (*ANALYSED_COLUMNS.names[:2], *AnalysedColumn._fields)
        rows = self._columns(ANALYSED_COLUMNS, *fields, row_filter=chosen)
        found = [AnalysedColumn(*row[2:]) for row in rows if (row[0], row[1]) in names]
        return sorted(found, key=lambda column: column.field)

    def sql(self, query: str) -> tuple[list[str], Iterable[tuple[Any, ...]]]:
        """The columns and rows of a query over the tables and `events_unique`."""
        try:
            import duckdb
        except ModuleNotFoundError as error:
            raise EnvironmentProblem(
                "SQL over the lake needs DuckDB", hint="pip install 'headwater[lake]'"
            ) from error
        connection = duckdb.connect()
        # The query is a person's own, on the person's machine; even so it reads the lake and nothing else.
        connection.execute("SET TimeZone = 'UTC'")
        text = query.casefold()
        for name in self._tables:
            if name in text:
                connection.register(name, self._arrow(name))
        if UNIQUE in text:
            connection.execute(f"CREATE VIEW {UNIQUE} AS {unique_sql(EVENTS.name)}")
        connection.execute("SET enable_external_access = false")
        connection.execute("SET lock_configuration = true")
        try:
            found = connection.execute(query)
        except duckdb.Error as error:
            raise UsageError(f"the query failed: {error}") from error
        return [column[0] for column in found.description or ()], found.fetchall()


def _once(rows: Any, order: tuple[str, ...]) -> Iterator[LogRecord]:
    """Rows of `events` in an order, without those that repeat an earlier one."""
    import pyarrow as pa

    rows = rows.sort_by([(name, "ascending") for name in dict.fromkeys(order)])
    arrived = rows["arrived"].cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    met: set[bytes] = set()
    for at, kind, digest, body in zip(
        arrived.to_pylist(), rows["kind"].to_pylist(), rows["hash"].to_pylist(),
        rows["body"].to_pylist(), strict=True,
    ):  # fmt: skip
        if digest not in met:
            met.add(digest)
            yield LogRecord(int(kind == "command"), at, body.encode())
