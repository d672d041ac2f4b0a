"""A program that reads and writes tables of a format that is installed as a plug-in."""

from __future__ import annotations

from pathlib import Path

from headwater_ledger.source import LedgerSource
from pyspark.sql import functions as F  # noqa: N812
from tests.integration.spark.programs import shapes

import headwater.spark

work = Path.cwd()
orders, cities, stream = (str(work / name) for name in ("orders", "cities", "stream"))
spark = shapes.session("Ledger")
spark.dataSource.register(LedgerSource)
headwater.spark.attach(spark)

made = spark.range(3).select("id", F.lit("Oslo").alias("city"), F.lit(0).cast("long"))
made.toDF("id", "city", "_ledger_version").coalesce(1).write.parquet(str(work / "raw"))
raw = spark.read.parquet(str(work / "raw"))
raw.write.format("ledger").mode("append").save(orders)
read = spark.read.format("ledger").option("ledger.version", "0").load(orders)
upper = read.select("id", F.upper("city").alias("city"), "_ledger_version")
upper.write.format("ledger").mode("append").save(cities)

lines = spark.readStream.schema(raw.schema).parquet(str(work / "raw"))
query = (
    lines.writeStream.format("ledger")
    .queryName("to_ledger")
    .option("checkpointLocation", str(work / "checkpoint"))
    .trigger(availableNow=True)
    .start(stream)
)
query.awaitTermination(120)
assert spark.read.format("ledger").load(cities).collect()[0].city == "OSLO"
assert spark.read.format("ledger").load(stream).count() == 3
spark.stop()
