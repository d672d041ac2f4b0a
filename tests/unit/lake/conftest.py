"""The lake's tables as files of a real catalog."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config

from headwater.lake.projection import LogRecord, Projector
from headwater.lake.records import Arrival, RecordReader
from headwater.lake.tables import TABLES
from headwater.lineage.moments import from_micros

from .estates import BASE
from .test_projection import made

if TYPE_CHECKING:
    from pathlib import Path

    from headwater.lake.tables import LakeTable

TYPES: dict[str, Any] = {
    "string": pa.string(), "binary": pa.binary(), "int": pa.int32(), "bigint": pa.int64(),
    "boolean": pa.bool_(), "timestamp": pa.timestamp("us", tz="UTC"),
}  # fmt: skip
URL = "iceberg://unit/lineage"


def two_jobs() -> list[bytes]:
    """The events of a job that writes `t`, and of one that makes `u` of it."""
    bodies = [made("load", 0, "a", run=1), made("load", 20, "a", "b", run=2)]
    report = json.loads(made("report", 30, "x", run=3))
    report["inputs"] = [{"namespace": "s3://lake", "name": "t"}]
    report["outputs"][0]["name"] = "u"
    return [*bodies, json.dumps(report).encode()]


@pytest.fixture(scope="session")
def made_lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a lake that no test changes."""
    folder = tmp_path_factory.mktemp("lake")
    with pytest.MonkeyPatch.context() as patch:
        use(folder, patch)
        make_lake()
    return folder


@pytest.fixture
def lake(made_lake: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two jobs in a row in tables like those the program makes, to be read only."""
    use(made_lake, monkeypatch)
    return URL


@pytest.fixture
def own_lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """The same in tables that the test may change."""
    use(tmp_path, monkeypatch)
    make_lake()
    return URL


def use(folder: Path, patch: pytest.MonkeyPatch) -> None:
    """Let the catalog `unit` be the one in the folder."""
    patch.setenv("PYICEBERG_CATALOG__UNIT__URI", f"sqlite:///{folder}/catalog.db")
    patch.setenv("PYICEBERG_CATALOG__UNIT__WAREHOUSE", f"file://{folder}/warehouse")
    # PyIceberg reads its configuration when it is imported.
    patch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())


def make_lake() -> None:
    """Fill the lake's tables with the events of two jobs; one event stands twice."""
    catalog = load_catalog("unit")
    catalog.create_namespace("lineage")
    bodies = two_jobs()
    bodies += [bodies[0]]
    rows: dict[str, list[dict[str, Any]]] = {table.name: [] for table in TABLES}
    reader, projector = RecordReader(), Projector()
    for offset, body in enumerate([*bodies, b"{"]):
        table, row = reader.read(
            Arrival("t", 0, offset, (BASE + 100 + offset) * 1_000_000, body, {})
        )
        rows[table].append(row)
    for node in ("job:jobs:load", "job:jobs:report"):
        found = [row for row in rows["events"] if row["node"] == node]
        records = [LogRecord(0, row["arrived"], row["body"].encode()) for row in found]
        for table, row in projector.rows(node, records):
            rows[table].append(row)
    projector.close()
    for one in TABLES:
        found = arrow_table(one, rows[one.name])
        catalog.create_table(f"lineage.{one.name}", found.schema).append(found)


def arrow_table(table: LakeTable, rows: list[dict[str, Any]]) -> Any:
    """Rows of a table of the lake, as Arrow has them."""
    schema = pa.schema([(column.name, TYPES[column.type]) for column in table.columns])
    columns = {
        column.name: [_shown(row[column.name], column.type) for row in rows]
        for column in table.columns
    }
    return pa.table(columns, schema=schema)


def _shown(value: Any, kind: str) -> Any:
    return from_micros(value) if kind == "timestamp" and value is not None else value
