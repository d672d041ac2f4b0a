"""The lake's tables through PyIceberg: Arrow for questions, DuckDB for SQL. No Spark, no JVM."""

from __future__ import annotations

from collections import defaultdict
from contextlib import contextmanager
from functools import cached_property
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
_EDGE_FIELDS = (
    "node", "dataset_namespace", "dataset_name", "direction", "valid_from", "valid_to",
)  # fmt: skip
_SOURCE_FIELDS = ("node", "source_namespace", "source_name", "valid_from", "valid_to")
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


def _values(column: Any) -> list[Any]:
    """A column as Python has it; moments in microseconds."""
    import pyarrow as pa  # type: ignore[import-untyped]

    if pa.types.is_timestamp(column.type):
        column = column.cast(pa.timestamp("us", tz="UTC")).cast(pa.int64())
    found: list[Any] = column.to_pylist()
    return found


class _Indexed:
    """Rows that are looked up by the text of a column, without a Python object for each of the others."""

    def __init__(self, rows: Any, columns: tuple[str, ...]) -> None:
        self.rows = rows
        self._codes = {
            name: rows[name].combine_chunks().dictionary_encode() for name in columns
        }  # fmt: skip

    def where(self, column: str, values: Collection[str]) -> Any:
        """The rows that have one of some values."""
        import pyarrow as pa
        import pyarrow.compute as pc  # type: ignore[import-untyped]

        codes = self._codes[column]
        known = codes.dictionary
        wanted = pc.is_in(known, value_set=pa.array(sorted(values), known.type))
        return self.rows.filter(wanted.take(codes.indices))


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
        found = self._arrow(table.name, selected_fields=names, **scan)
        # Of the columns between two datasets there are dozens: they are told apart before Python sees them.
        found = found.group_by(list(names)).aggregate([])
        yield from zip(*(_values(found[name]) for name in names), strict=True)

    @cached_property
    def _uses(self) -> _Indexed:
        import pyarrow as pa
        import pyarrow.compute as pc

        names = ("node", "space", "name", "writes", "since", "until")
        edges = self._arrow(EDGES.name, selected_fields=_EDGE_FIELDS).select(list(_EDGE_FIELDS))
        writes = pc.equal(edges["direction"], "output")
        edges = edges.set_column(3, "writes", writes).rename_columns(names)
        # What columns lead into, the job writes then, so it is among the edges.
        columns = self._arrow(COLUMN_EDGES.name, selected_fields=_SOURCE_FIELDS)
        columns = columns.select(list(_SOURCE_FIELDS)).group_by(list(_SOURCE_FIELDS)).aggregate([])
        reads = pa.repeat(pa.scalar(value=False), len(columns))
        columns = columns.add_column(3, "writes", reads).rename_columns(names)
        both = pa.concat_tables([edges, columns.cast(edges.schema)])
        return _Indexed(both.group_by(list(names)).aggregate([]), ("node", "name"))

    @cached_property
    def _named(self) -> _Indexed:
        fields = ["node", "dataset_namespace", "dataset_name"]
        rows = self._arrow(DATASETS.name, selected_fields=tuple(fields)).select(fields)
        return _Indexed(rows.rename_columns(["node", "space", "name"]), ("name",))

    def names(self) -> Iterator[Name]:
        """Every dataset that was ever named."""
        found = self._named.rows.select(["space", "name"]).group_by(["space", "name"]).aggregate([])
        yield from zip(found["space"].to_pylist(), found["name"].to_pylist(), strict=True)

    def uses_of(self, datasets: Collection[Name]) -> Iterator[Use]:
        """Who touched some datasets, and when."""
        for use in self._found("name", {name for _, name in datasets}):
            if use.dataset in datasets:
                yield use

    def uses_by(self, nodes: Collection[str]) -> Iterator[Use]:
        """What some nodes touched, and when."""
        yield from self._found("node", nodes)

    def _found(self, column: str, values: Collection[str]) -> Iterator[Use]:
        rows = self._uses.where(column, values)
        columns = [_values(rows[name]) for name in rows.column_names]
        for node, space, name, writes, since, until in zip(*columns, strict=True):
            yield Use(node, (space, name), writes, since, until)

    def naming(self, datasets: Collection[Name]) -> Iterator[str]:
        """The nodes that ever named some datasets."""
        rows = self._named.where("name", {name for _, name in datasets})
        columns = (rows[name].to_pylist() for name in ("node", "space", "name"))
        for node, space, name in zip(*columns, strict=True):
            if (space, name) in datasets:
                yield node

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
        import pyarrow.compute as pc

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
