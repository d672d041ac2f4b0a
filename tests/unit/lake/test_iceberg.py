"""The lake's tables as files of a real catalog, asked by the command line."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog
from pyiceberg.utils.config import Config
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.errors import HeadwaterError, UsageError
from headwater.lake.iceberg import open_lake
from headwater.lake.projection import LogRecord, Projector
from headwater.lake.records import Arrival, RecordReader
from headwater.lake.tables import TABLES
from headwater.lineage.moments import from_micros

from .estates import BASE
from .test_projection import made

if TYPE_CHECKING:
    from pathlib import Path

TYPES: dict[str, Any] = {
    "string": pa.string(), "binary": pa.binary(), "int": pa.int32(), "bigint": pa.int64(),
    "boolean": pa.bool_(), "timestamp": pa.timestamp("us", tz="UTC"),
}  # fmt: skip
URL = "iceberg://unit/lineage"


@pytest.fixture
def lake(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Two jobs in a row in tables like those the program makes; one event stands twice."""
    monkeypatch.setenv("PYICEBERG_CATALOG__UNIT__URI", f"sqlite:///{tmp_path}/catalog.db")
    monkeypatch.setenv("PYICEBERG_CATALOG__UNIT__WAREHOUSE", f"file://{tmp_path}/warehouse")
    # PyIceberg reads its configuration when it is imported.
    monkeypatch.setattr("pyiceberg.catalog._ENV_CONFIG", Config())
    catalog = load_catalog("unit")
    catalog.create_namespace("lineage")
    bodies = [made("load", 0, "a", run=1), made("load", 20, "a", "b", run=2)]
    report = json.loads(made("report", 30, "x", run=3))
    report["inputs"] = [{"namespace": "s3://lake", "name": "t"}]
    report["outputs"][0]["name"] = "u"
    bodies += [json.dumps(report).encode(), bodies[0]]
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
        schema = pa.schema([(column.name, TYPES[column.type]) for column in one.columns])
        columns = {
            column.name: [_shown(row[column.name], column.type) for row in rows[one.name]]
            for column in one.columns
        }
        catalog.create_table(f"lineage.{one.name}", schema).append(pa.table(columns, schema=schema))
    return URL


def _shown(value: Any, kind: str) -> Any:
    return from_micros(value) if kind == "timestamp" and value is not None else value


def said(*arguments: str) -> Any:
    result = CliRunner().invoke(app, [*arguments, "--json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_a_trace_at_a_past_moment(lake: str) -> None:
    now = said("trace", "u", "--lake", lake)
    assert [row["node"] for row in now["rows"]] == [
        "dataset:s3://lake:u", "job:jobs:report", "dataset:s3://lake:t", "job:jobs:load",
    ]  # fmt: skip
    then = said("trace", "t", "--down", "--at", "2026-01-01T00:00:25Z", "--lake", lake)
    assert [row["node"] for row in then["rows"]] == ["dataset:s3://lake:t"]


def test_a_difference(lake: str) -> None:
    found = said("diff", "--from", "2026-01-01T00:00:10Z", "--to", "2026-01-01T00:00:25Z", "--lake", lake)  # fmt: skip
    (schema,) = found["schemas"]
    assert schema["dataset"] == "dataset:s3://lake:t"
    assert found["appeared"] == []
    later = said("diff", "--from", "2026-01-01T00:00:25Z", "--around", "t", "--lake", lake)
    assert later["appeared"] == ["dataset:s3://lake:u", "job:jobs:report"]


def test_sql_sees_the_tables_and_nothing_else(lake: str, tmp_path: Path) -> None:
    query = "SELECT (SELECT count(*) FROM events) e, (SELECT count(*) FROM events_unique) u"
    assert said("lake", "sql", query, "--lake", lake) == [{"e": 4, "u": 3}]
    (row,) = said("lake", "sql", "SELECT valid_from FROM edges WHERE job_name = 'report' AND direction = 'output'", "--lake", lake)  # fmt: skip
    moment = datetime.fromisoformat(row["valid_from"]).astimezone(timezone.utc)
    assert moment.isoformat() == "2026-01-01T00:00:30+00:00"
    (tmp_path / "secret.csv").write_text("a\n1\n")
    with pytest.raises(UsageError):
        open_lake(lake).sql(f"SELECT * FROM '{tmp_path}/secret.csv'")


@pytest.mark.parametrize(
    "url", ["", "lineage", "iceberg://unit", "iceberg:///lineage", "http://x/y"]
)
def test_a_wrong_address_is_refused(url: str) -> None:
    with pytest.raises(UsageError):
        open_lake(url)


def test_a_lake_that_is_not_there_is_told(lake: str) -> None:
    with pytest.raises(HeadwaterError, match="no lake"):
        open_lake("iceberg://unit/nowhere")


def test_the_login_of_a_catalog_is_in_no_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def away(name: str) -> None:
        raise OSError(f"{name}: http://ann:hunter2@catalog:8181 refused the connection")

    monkeypatch.setattr("pyiceberg.catalog.load_catalog", away)
    with pytest.raises(HeadwaterError, match="refused the connection") as caught:
        open_lake("iceberg://unit/lineage")
    assert "hunter2" not in str(caught.value)
