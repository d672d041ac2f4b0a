"""One small Spark session, with Iceberg tables in a folder, for the jobs' logic."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from pyspark.sql import SparkSession

from headwater.lab.files.jars import pipeline_jars

if TYPE_CHECKING:
    from collections.abc import Iterator

sys.path.insert(0, str(Path(__file__).parents[3] / "pipelines"))


@pytest.fixture(scope="package")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    builder = SparkSession.builder.master("local[1]").appName("logic")
    for key, value in {
        "spark.ui.enabled": "false",
        "spark.jars": ",".join(map(str, pipeline_jars())),
        "spark.sql.shuffle.partitions": "1",
        # A few rows are read sooner than code is made for them.
        "spark.sql.codegen.wholeStage": "false",
        "spark.sql.codegen.factoryMode": "NO_CODEGEN",
        "spark.sql.session.timeZone": "UTC",
        "spark.driver.bindAddress": "127.0.0.1",
        "spark.driver.host": "127.0.0.1",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=192m -XX:+UseSerialGC",
        "spark.sql.extensions": "org.apache.iceberg.spark.extensions.IcebergSparkSessionExtensions",
        "spark.sql.catalog.lab": "org.apache.iceberg.spark.SparkCatalog",
        "spark.sql.catalog.lab.type": "hadoop",
        # Settings of a lab stay in a JVM that tests before these have started.
        "spark.sql.catalog.lab.io-impl": "org.apache.iceberg.hadoop.HadoopFileIO",
        "spark.sql.catalog.lab.warehouse": str(tmp_path_factory.mktemp("warehouse")),
    }.items():
        builder = builder.config(key, value)
    session = builder.getOrCreate()
    yield session
    session.stop()
