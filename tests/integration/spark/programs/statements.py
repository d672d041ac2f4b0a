"""Statements that do more, or less, than one write: scripts, multi-inserts, globs, failures, RDDs."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path

import pyspark
from pyspark.errors import AnalysisException
from tests.integration.spark.programs import shapes

import headwater.spark

work = Path.cwd()
SCRIPTS, RECURSIVE = pyspark.__version__ >= "4", pyspark.__version__ >= "4.1"
spark = shapes.session("statements")
spark.sparkContext.setLogLevel("OFF")
rows = spark.range(20).selectExpr("id", "id * 2 v", "cast(id % 3 as int) k")
rows.repartition(4).write.parquet(str(work / "flat"))
rows.write.partitionBy("k").parquet(str(work / "parts"))
rows.write.saveAsTable("o")
for name in ("a", "b", "c", "d", "e", "f", "g"):
    spark.sql(f"create table {name} (x bigint, y bigint) using parquet")
headwater.spark.attach(spark)


def attempt(sql: str) -> None:
    with contextlib.suppress(AnalysisException):
        spark.sql(sql)


def save(source: str, name: str) -> None:
    spark.read.parquet(str(work / source)).write.parquet(str(work / name))


# Every statement has a target of its own, by which the test knows its runs.
spark.sql("FROM o INSERT INTO a SELECT id, v WHERE v > 3 INSERT INTO b SELECT id, k")
spark.sql(
    "WITH w AS (SELECT id, v FROM o) FROM w INSERT INTO f SELECT id, v INSERT INTO g SELECT v, id"
)
script = """-- four writes
    BEGIN
      INSERT INTO c SELECT id, v FROM o;
      CREATE TABLE made USING parquet AS SELECT * FROM c;
      FOR one AS SELECT 1 AS n UNION ALL SELECT 2 DO
        INSERT INTO d SELECT id, v + one.n FROM o;
      END FOR;
      SELECT count(*) FROM d;
    END"""
if SCRIPTS:
    spark.sql(script)
    attempt("BEGIN INSERT INTO made SELECT id, v FROM o; INSERT INTO e SELECT nope, v FROM o; END")
if RECURSIVE:
    spark.sql(
        "CREATE TABLE chain USING parquet AS WITH RECURSIVE r(n, m) AS (SELECT id, v FROM o UNION ALL"
        " SELECT m, id FROM r JOIN o ON n = k WHERE m < 2 AND n < m) SELECT n, m FROM r"
    )
elsewhere = spark.newSession()
elsewhere.sql("create database shop")
elsewhere.catalog.setCurrentDatabase("shop")
elsewhere.table("default.o").write.saveAsTable("short")
save("flat/*.parquet", "globbed")
save("parts/k=*/*.parquet", "globbed_parts")
save("parts/k=1", "one_part")
save("parts/k=1/*.parquet", "globbed_part")
one_part = spark.read.parquet(str(work / "flat")).where("k = 2").drop("k").write.mode("overwrite")
one_part.parquet(str(work / "parts" / "k=2"))
spark.read.parquet(str(work / "flat")).selectExpr("id", "_metadata.file_path p").where(
    "_metadata.file_size > 0"
).write.parquet(str(work / "about_files"))
spark.read.parquet(str(work / "flat")).rdd.map(str).saveAsTextFile(str(work / "lines"))
spark.read.parquet(str(work / "flat")).write.format("noop").mode("overwrite").save()
headwater.spark.flush(60)

print("-- failures", file=sys.stderr)
spark.sql("INSERT INTO e SELECT id, v FROM o")
attempt("INSERT INTO e SELECT nope, v FROM o")
attempt("/* again */ CREATE TABLE refused USING parquet AS SELECT nope FROM o")
evolving = "WITH SCHEMA EVOLUTION " if SCRIPTS else ""
attempt(f"MERGE {evolving}INTO gone t USING o s ON t.x = s.id WHEN MATCHED THEN DELETE")
with contextlib.suppress(AnalysisException):
    spark.table("o").select("id").write.insertInto("e")
with contextlib.suppress(AnalysisException):
    spark.table("o").writeTo("refused_too").using("parquet").create()
    spark.table("o").writeTo("refused_too").using("parquet").create()
assert headwater.spark.flush(60)
