"""Tables in a Hive metastore: Hive's own, those of a data source, and Iceberg's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

from headwater.lab.clients import unique
from headwater.lab.files.jars import pipeline_jars
from headwater.lineage.naming import DatasetName
from headwater.spark.plan.plan_lineage import read_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.clients import HiveClient
    from headwater.lineage.model import Dataset
    from headwater.spark.model import PlanLineage

pytestmark = pytest.mark.full

SHOP, LAKE = unique("shop"), unique("lake")


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, hive: HiveClient) -> Iterator[SparkSession]:
    folder: Path = tmp_path_factory.mktemp("hive")
    settings = {
        "spark.jars": ",".join(map(str, pipeline_jars())),
        "spark.driver.host": "127.0.0.1",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.ui.enabled": "false",
        "spark.sql.shuffle.partitions": "1",
        "spark.sql.warehouse.dir": f"file://{folder}/warehouse",
        "spark.hadoop.hive.metastore.uris": hive.url,
        "spark.sql.catalog.ice": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.ice.type": "hive",
        "spark.sql.catalog.ice.uri": hive.url,
        "spark.sql.catalog.ice.warehouse": f"file://{folder}/iceberg",
        "spark.hadoop.iceberg.engine.hive.lock-enabled": "false",
    }
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYSPARK_PYTHON", sys.executable)
        builder = SparkSession.builder.master("local[2]").appName("hive").enableHiveSupport()
        for key, value in settings.items():
            builder = builder.config(key, value)
        session = builder.getOrCreate()
        session.sparkContext.setLogLevel("ERROR")
        yield session
        session.stop()


def reading(spark: SparkSession, sql: str) -> PlanLineage:
    """The lineage of a statement, which is analysed and run."""
    frame: Any = spark.sql(sql)
    return read_batch(spark, frame._jdf.queryExecution())


def links(dataset: Dataset) -> list[DatasetName]:
    return [DatasetName(link.namespace, link.name) for link in dataset.symlinks]


def fields(found: PlanLineage) -> dict[str, list[str]]:
    (told,) = found.columns.values()
    return {name: [source.field for source in sources] for name, sources in told.fields.items()}


def test_a_table_of_hive(spark: SparkSession, hive: HiveClient) -> None:
    namespace = hive.url.replace("thrift://", "hive://")
    spark.sql(f"create database {SHOP}")
    spark.sql(f"create table {SHOP}.come (id bigint, city string) stored as orc")
    spark.sql(f"create table {SHOP}.go (a bigint, b string) stored as textfile")
    found = reading(spark, f"insert into {SHOP}.go select id, upper(city) from {SHOP}.come")
    (come,), (go,) = found.inputs, found.outputs
    assert come.id.name.endswith(f"/{SHOP}.db/come")
    assert links(come) == [DatasetName(namespace, f"{SHOP}.come")]
    assert links(go) == [DatasetName(namespace, f"{SHOP}.go")]
    assert go.catalog is not None
    assert (go.catalog.type, go.catalog.metadata_uri) == ("hive", hive.url)
    assert found.operation == "insert_into_hive_table"
    assert fields(found) == {"a": ["id"], "b": ["city"]}


def test_an_overwrite_of_a_partition_leaves_the_others(spark: SparkSession) -> None:
    spark.sql(f"create table {SHOP}.days (a bigint) partitioned by (day string) stored as textfile")
    spark.sql("set hive.exec.dynamic.partition.mode=nonstrict")

    def partial(sql: str) -> bool:
        (made,) = reading(spark, sql).outputs
        assert made.change is not None
        return made.change.partial

    assert partial(f"insert overwrite {SHOP}.days partition (day = 'x') select id from {SHOP}.come")
    assert partial(f"insert overwrite {SHOP}.days select id, city from {SHOP}.come")
    assert not partial(f"insert overwrite {SHOP}.go select id, city from {SHOP}.come")


def test_a_table_of_a_data_source(spark: SparkSession, hive: HiveClient) -> None:
    spark.sql(f"create table {SHOP}.plain (id bigint) using parquet")
    found = reading(spark, f"insert into {SHOP}.plain select id from {SHOP}.come")
    assert links(found.outputs[0]) == [
        DatasetName(hive.url.replace("thrift://", "hive://"), f"{SHOP}.plain")
    ]
    assert fields(found) == {"id": ["id"]}


def test_an_iceberg_table_in_hive(spark: SparkSession, hive: HiveClient) -> None:
    namespace = hive.url.replace("thrift://", "hive://")
    spark.sql(f"create namespace ice.{LAKE}")
    spark.sql(f"create table ice.{LAKE}.orders (id bigint) using iceberg")
    found = reading(spark, f"insert into ice.{LAKE}.orders select id from {SHOP}.come")
    (orders,) = found.outputs
    assert links(orders) == [DatasetName(namespace, f"{LAKE}.orders")]
    assert orders.catalog is not None
    assert (orders.catalog.framework, orders.catalog.type) == ("iceberg", "hive")
    assert fields(found) == {"id": ["id"]}
