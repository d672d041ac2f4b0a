"""A Spark driver that writes one table after the other, and names each that the server has heard of."""

from __future__ import annotations

import sys

from pyspark.sql import SparkSession

import headwater.spark

folder, number = sys.argv[1], int(sys.argv[2])
session = (
    SparkSession.builder.master("local[1]").appName("killed").config("spark.ui.enabled", "false")
)
spark = headwater.spark.attach(session.getOrCreate())
while True:
    spark.range(10).write.parquet(f"{folder}/table-{number}")
    if headwater.spark.flush(60):
        print(f"table-{number}", flush=True)
    number += 1
