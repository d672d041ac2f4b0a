"""Names of jobs, progress reports, samples of flow, and what an entry point knows."""

from __future__ import annotations

import json

import pytest

from headwater.lineage.model import Dataset, Symlink
from headwater.spark import job_names
from headwater.spark.driver import wrapped_methods
from headwater.spark.driver.config import SparkSettings
from headwater.spark.model import PlanLineage
from headwater.spark.streaming import progress

TABLE = Dataset(
    "s3://warehouse", "default/supplier_stats", symlinks=(
        Symlink("http://catalog", "lab.default.supplier_stats"),
    ),
)  # fmt: skip


@pytest.mark.parametrize(
    ("node", "word"),
    [
        ("OverwriteByExpression", "overwrite_by_expression"),
        ("InsertIntoHadoopFsRelationCommand", "insert_into_hadoop_fs_relation"),
        ("saveAsTable", "save_as_table"),
        ("insert into", "insert_into"),
        ("toDF2CSV", "to_df2_csv"),
    ],
)
def test_operations(node: str, word: str) -> None:
    assert job_names.operation(node) == word


def test_a_job_is_named_by_application_operation_and_table() -> None:
    settings = SparkSettings(app_name="Supplier Stats")
    lineage = PlanLineage(outputs=(TABLE,), operation="overwrite_by_expression")
    expected = "supplier_stats.overwrite_by_expression.default_supplier_stats"
    assert job_names.job(settings, lineage) == expected
    short = SparkSettings(app_name="Supplier Stats", append_dataset=False)
    assert job_names.job(short, lineage) == "supplier_stats.overwrite_by_expression"


@pytest.mark.parametrize(
    ("dataset", "short"),
    [
        (TABLE, "default_supplier_stats"),
        (Dataset("kafka://b:9092", "shop.orders", type="TOPIC"), "shop_orders"),
        (Dataset("file", "/data/in/orders", type="FILE"), "in_orders"),
        (Dataset("file", "/orders", type="FILE"), "orders"),
        (Dataset("postgres://h:5432", "shop.public.orders"), "shop_public_orders"),
    ],
)
def test_short_names(dataset: Dataset, short: str) -> None:
    assert job_names.short(dataset) == short


@pytest.mark.parametrize(
    ("sql", "word", "target"),
    [
        ("insert into lab.db.t select 1", "insert_into", "lab.db.t"),
        ("  MERGE INTO `a`.`b` t using s on 1=1", "merge_into", "a.b"),
        ("with x as (select 1) insert overwrite table t select * from x",
         "insert_overwrite_table", "t"),
        ("create table if not exists t using iceberg as select 1",
         "create_table_if_not_exists", "t"),
        ("select * from t", "", ""),
        ("show tables", "", ""),
    ],
)  # fmt: skip
def test_what_sql_text_says(sql: str, word: str, target: str) -> None:
    found = wrapped_methods._entry("sql", "sql", (sql,), {})
    assert found is not None
    assert (found.operation, found.target) == (word, target)


REPORT = {
    "batchId": 7,
    "timestamp": "2026-01-01T00:00:00.000Z",
    "numInputRows": 30,
    "inputRowsPerSecond": "NaN",
    "processedRowsPerSecond": 12.3456,
    "durationMs": {"triggerExecution": 250},
    "eventTime": {"watermark": "2026-01-01T00:00:00.000Z"},
    "stateOperators": [{"numRowsTotal": 3}, {"numRowsTotal": 4}],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[orders]]",
            "endOffset": {"orders": {"0": 10, "1": 20}},
            "latestOffset": {"orders": {"0": 15, "1": 21}},
            "numInputRows": 30,
            "inputRowsPerSecond": 100.0,
        },
        {"description": "RateStreamV2", "endOffset": 5, "numInputRows": 1},
    ],
    "sink": {"description": "KafkaTable", "numOutputRows": -1},
}


def test_a_progress_report() -> None:
    found = progress.read(json.dumps(REPORT))
    assert found.batch == 7
    assert found.input_rate == 0.0
    assert found.lag == 6
    assert found.state_rows == 7
    assert found.written is None
    assert found.topics == {"orders"}
    facet = found.facet
    topics = facet["offsets"][0]["topics"]
    assert topics == {"orders": {"partitions": 2, "end": 30, "latest": 36, "lag": 6}}
    assert "outputRows" not in facet


def test_odd_reports_do_no_harm() -> None:
    for text in ("{}", '{"sources": [{"endOffset": "not json"}]}', '{"sources": [{}]}'):
        assert progress.read(text).lag is None
