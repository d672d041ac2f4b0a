"""Tables in a Hive metastore: Hive's own, those of a data source, and Iceberg's."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.sql import SparkSession

from headwater.lab.jars import pipeline_jars
from headwater.lineage.naming import DatasetName
from headwater.spark.read import read_batch

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from headwater.lab.used import UsedHive
    from headwater.spark.model import Dataset, PlanLineage

pytestmark = pytest.mark.full


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory, hive: UsedHive) -> Iterator[SparkSession]:
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
        "spark.sql.catalog.ice.lock-enabled": "false",
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


def test_a_table_of_hive(spark: SparkSession, hive: UsedHive) -> None:
    namespace = hive.url.replace("thrift://", "hive://")
    spark.sql("create database if not exists shop")
    spark.sql("create table shop.come (id bigint, city string) stored as orc")
    spark.sql("create table shop.go (a bigint, b string) stored as textfile")
    found = reading(spark, "insert into shop.go select id, upper(city) from shop.come")
    (come,), (go,) = found.inputs, found.outputs
    assert come.id.name.endswith("/shop.db/come")
    assert links(come) == [DatasetName(namespace, "shop.come")]
    assert links(go) == [DatasetName(namespace, "shop.go")]
    assert go.catalog is not None
    assert (go.catalog.type, go.catalog.metadata_uri) == ("hive", hive.url)
    assert found.operation == "insert_into_hive_table"
    assert fields(found) == {"a": ["id"], "b": ["city"]}


def test_a_table_of_a_data_source(spark: SparkSession, hive: UsedHive) -> None:
    spark.sql("create table shop.plain (id bigint) using parquet")
    found = reading(spark, "insert into shop.plain select id from shop.come")
    assert links(found.outputs[0]) == [
        DatasetName(hive.url.replace("thrift://", "hive://"), "shop.plain")
    ]
    assert fields(found) == {"id": ["id"]}


def test_an_iceberg_table_in_hive(spark: SparkSession, hive: UsedHive) -> None:
    namespace = hive.url.replace("thrift://", "hive://")
    spark.sql("create namespace if not exists ice.lake")
    spark.sql("create table ice.lake.orders (id bigint) using iceberg")
    found = reading(spark, "insert into ice.lake.orders select id from shop.come")
    (orders,) = found.outputs
    assert links(orders) == [DatasetName(namespace, "lake.orders")]
    assert orders.catalog is not None
    assert (orders.catalog.framework, orders.catalog.type) == ("iceberg", "hive")
    assert fields(found) == {"id": ["id"]}
