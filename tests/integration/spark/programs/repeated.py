"""Statements repeated without a flush between them, first by one thread and then by four."""

from __future__ import annotations

import contextlib
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyspark
from pyspark.errors import AnalysisException
from tests.integration.spark.programs import shapes

import headwater.spark

THREADS = 4
TABLES, ROUNDS = (int(number) for number in sys.argv[2:] or (40, 8))
namespace = sys.argv[1]
work = Path.cwd()
spark = shapes.session("repeated")
rows = spark.range(5).selectExpr("id a", "id * 2 b")
rows.write.parquet(str(work / "rows"))
for name in ("m", "n", "x", "y", "f"):
    for number in range(THREADS):
        spark.sql(f"CREATE TABLE {name}{number} (a bigint, b bigint) USING parquet")
headwater.spark.attach(spark)
spark.read.parquet(str(work / "rows")).createOrReplaceTempView("rows")

for number in range(TABLES):
    spark.sql("SELECT a x, b y FROM rows").toDF("a", "b").write.saveAsTable(f"t{number}")


def play(thread: int) -> None:
    iceberg = f"lab.{namespace}"
    for _ in range(ROUNDS):
        spark.sql(f"DROP TABLE IF EXISTS c{thread}")
        spark.sql(f"CREATE TABLE c{thread} USING parquet AS SELECT a, b FROM rows")
        spark.table("rows").write.mode("overwrite").saveAsTable(f"s{thread}")
        spark.sql(f"DROP TABLE IF EXISTS {iceberg}.i{thread}")
        spark.sql(f"CREATE TABLE {iceberg}.i{thread} USING iceberg AS SELECT a, b FROM rows")
        spark.sql(
            f"CREATE OR REPLACE TABLE {iceberg}.r{thread} USING iceberg AS SELECT a, b FROM rows"
        )
        spark.sql(f"INSERT INTO {iceberg}.r{thread} SELECT a, b FROM rows")
        spark.table("rows").writeTo(f"{iceberg}.w{thread}").using("iceberg").createOrReplace()
        spark.table("rows").write.mode("overwrite").parquet(str(work / f"o{thread}"))
        # Neither names its target where it is called.
        unnamed = (
            spark.table("rows").write.mode("overwrite").option("path", str(work / f"p{thread}"))
        )
        unnamed.format("json").save()
        spark.table("rows").count()
        spark.sql(
            f"FROM rows INSERT INTO m{thread} SELECT a, b INSERT INTO n{thread} SELECT a, b WHERE a > 1"
        )
        if pyspark.__version__ >= "4":
            spark.sql(
                f"BEGIN INSERT INTO x{thread} SELECT a, b FROM rows; INSERT INTO y{thread} SELECT b, a"
                " FROM rows; END"
            )
        with contextlib.suppress(AnalysisException):
            spark.sql(f"INSERT INTO f{thread} SELECT nope, b FROM rows")
        wide = spark.table("rows").selectExpr("a", "b", "a c")
        with contextlib.suppress(AnalysisException):
            wide.write.mode("append").saveAsTable(f"{iceberg}.r{thread}")
        with contextlib.suppress(AnalysisException):
            wide.write.insertInto(f"{iceberg}.w{thread}", overwrite=True)


with ThreadPoolExecutor(THREADS) as threads:
    # A thread that stops early fails the program, with what stopped it.
    list(threads.map(play, range(THREADS)))
assert headwater.spark.flush(240)
