"""A PySpark job of ours, which reads what Flink and a Spark with OpenLineage's jar have written."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

import options

import headwater.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

topic, dear, table, counted = sys.argv[1:]
spark = options.session("our_orders", options.arguments(None).parse_args([]), counted)
headwater.spark.attach(spark)


def records(name: str) -> DataFrame:
    """The texts in a topic."""
    read = spark.read.format("kafka").option("kafka.bootstrap.servers", os.environ["BOOTSTRAP"])
    return read.option("subscribe", name).load().selectExpr("CAST(value AS STRING) AS text")


both = records(topic).union(records(dear)).selectExpr("count(*) AS records")
both.crossJoin(spark.table(table).selectExpr("count(*) AS rows")).writeTo(counted).create()
spark.stop()
