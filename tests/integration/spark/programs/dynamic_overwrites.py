"""Overwrites in dynamic mode, by statement and by writer, of tables with and without partitions: done, then refused."""

from __future__ import annotations

import contextlib
import sys

from pyspark.errors import AnalysisException
from tests.integration.spark.programs import shapes

import headwater.spark

namespace = sys.argv[1]
spark = shapes.session(
    "dynamic_overwrites", **{"spark.sql.sources.partitionOverwriteMode": "dynamic"}
)
good = spark.range(3).selectExpr("id a", "id % 2 b")
wide = good.selectExpr("a", "b", "a c")
good.createOrReplaceTempView("good")
wide.createOrReplaceTempView("wide")
for shape, divided in (("flat", ""), ("divided", "PARTITIONED BY (b)")):
    for how in ("sql", "writer"):
        table = f"lab.{namespace}.{shape}_{how}"
        spark.sql(f"CREATE TABLE {table} (a bigint, b bigint) USING iceberg {divided}")
headwater.spark.attach(spark)

for shape in ("flat", "divided"):
    name = f"lab.{namespace}.{shape}"
    spark.sql(f"INSERT OVERWRITE {name}_sql SELECT * FROM good")
    good.write.insertInto(f"{name}_writer", overwrite=True)
    with contextlib.suppress(AnalysisException):
        spark.sql(f"INSERT OVERWRITE {name}_sql SELECT * FROM wide")
    with contextlib.suppress(AnalysisException):
        wide.write.insertInto(f"{name}_writer", overwrite=True)
assert headwater.spark.flush(60)
