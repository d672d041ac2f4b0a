"""The lake's tables as files of a real catalog, asked by the command line."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any

import pyarrow as pa  # type: ignore[import-untyped]
import pytest
from pyiceberg.catalog import load_catalog
from typer.testing import CliRunner

from headwater.cli.main import app
from headwater.errors import HeadwaterError, UsageError
from headwater.lake.iceberg import open_lake
from headwater.lake.records import Arrival, RecordReader
from headwater.lake.selection import LakeAlias
from headwater.lake.tables import EVENTS

from .conftest import arrow_table
from .estates import BASE

if TYPE_CHECKING:
    from pathlib import Path


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


def test_which_jobs_run_others(own_lake: str) -> None:
    runs = load_catalog("unit").load_table("lineage.runs")
    found = runs.scan().to_arrow()
    rows = {row["node"]: row for row in found.to_pylist()}
    loaded = rows["job:jobs:load"]["run"]
    rows["job:jobs:report"]["parent"] = loaded.upper()
    rows["job:jobs:load"]["parent"] = loaded
    runs.overwrite(pa.Table.from_pylist(list(rows.values()), schema=found.schema))
    assert list(open_lake(own_lake).parents()) == [("job:jobs:report", "job:jobs:load")]


def test_names_that_were_declared_by_hand(own_lake: str) -> None:
    command = {
        "command": "alias",
        "namespace": "s3://lake",
        "name": "t",
        "alias": ["s3://old", "v"],
    }
    at = (BASE + 200) * 1_000_000
    body = json.dumps({**command, "at": at, "id": "x"}).encode()
    headers = {"headwater.log": b"l", "headwater.kind": b"command"}
    table, row = RecordReader().read(Arrival("t", 0, 100, at, body, headers))
    assert (table, row["node"]) == ("events", None)
    load_catalog("unit").load_table("lineage.events").append(arrow_table(EVENTS, [row]))
    declared = LakeAlias("dataset", ("s3://old", "v"), ("s3://lake", "t"))
    assert declared in open_lake(own_lake).aliases()


def test_a_difference(lake: str) -> None:
    found = said("diff", "--from", "2026-01-01T00:00:10Z", "--to", "2026-01-01T00:00:25Z", "--lake", lake)  # fmt: skip
    (schema,) = found["schemas"]
    assert schema["dataset"] == "dataset:s3://lake:t"
    assert found["appeared"] == []
    later = said("diff", "--from", "2026-01-01T00:00:25Z", "--around", "t", "--lake", lake)
    assert later["appeared"] == ["dataset:s3://lake:u", "job:jobs:report"]


def test_an_audit_of_a_past_period(lake: str) -> None:
    found = said("audit", "u", "--to", "2026-01-01T00:00:31Z", "--lake", lake)
    assert [job["name"] for job in found["writers"]] == ["report", "load"]
    early = said(
        "audit", "t", "--from", "2026-01-01", "--to", "2026-01-01T00:00:25Z", "--lake", lake
    )
    assert [job["name"] for job in early["writers"]] == ["load"]
    assert early["readers"] == []


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


def test_who_reported_is_found_without_all_events_in_memory(
    lake: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    opened = open_lake(lake)
    monkeypatch.setattr("pyiceberg.table.DataScan.to_arrow", None)
    assert opened.reporting(0, 2**62) == {"job:jobs:load", "job:jobs:report"}
    assert opened.reporting(0, 1) == set()
