"""A Spark Connect client that does one of each, well or badly; started by the tests as a program."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

from pyspark.sql import functions as F  # noqa: N812
from pyspark.sql.connect.session import SparkSession

import headwater.spark
from headwater.lab.waiting import wait_until

address, mode = sys.argv[1:3]
work = Path.cwd()
made: Any = SparkSession.builder.remote(address).getOrCreate()
spark: Any = headwater.spark.attach(made, app_name="Supplier Stats")
assert headwater.spark.attach(spark) is spark


def batch() -> None:
    rows = spark.createDataFrame([("acme", 1.5), ("globex", 2.0)], "supplier string, price double")
    rows.write.mode("overwrite").parquet(str(work / "orders"))
    orders = spark.read.parquet(str(work / "orders"))
    orders.createOrReplaceTempView("fresh")
    spark.sql("create table stats using parquet as select supplier, price * 2 twice from fresh")
    spark.table("stats").count()
    spark.sql("insert into stats values ('initech', 3.0)")

    @F.udf("double")
    def slow(price: float) -> float:
        time.sleep(3)
        return price

    @F.udf("double")
    def bad(price: float) -> float:
        raise ValueError(price)

    orders.coalesce(1).select(slow("price")).write.parquet(str(work / "slow_out"))
    (work / "slow-is-over").touch()
    attempts: list[Any] = [
        lambda: orders.select(bad("price")).write.parquet(str(work / "bad_out")),
        lambda: spark.sql("insert into stats select nothing from fresh"),
    ]
    for attempt in attempts:
        try:
            attempt()
        except Exception as error:  # noqa: BLE001
            print(type(error).__name__)
    assert headwater.spark.flush(30)
    headwater.spark.detach(spark)
    orders.write.parquet(str(work / "unheard"))


def statements() -> None:
    """Statements that write more than one table."""
    rows = spark.range(20).selectExpr("id", "id * 2 v", "id % 3 k")
    rows.write.mode("overwrite").parquet(str(work / "rows"))
    spark.read.parquet(str(work / "rows")).createOrReplaceTempView("o")
    for name in ("first", "second", "third", "fourth"):
        spark.sql(f"create table {name} (x bigint, y bigint) using parquet")
    spark.sql(
        "from o insert into first select id, v where v > 3 insert overwrite second select id, k"
    )
    spark.sql("with p as (select * from o) from p insert into second select v, id insert into first"
              " select k, id")  # fmt: skip
    try:
        spark.sql("from o insert into third select id, v insert into fourth select id, nothing")
    except Exception as error:  # noqa: BLE001
        print(type(error).__name__)
    if spark.version >= "4":
        spark.sql("begin insert into third select id, v from o; insert into fourth select v, id from o;"
                  " end")  # fmt: skip
    spark.sql("from o select id").collect()
    # A table that is made after the script, by a name that it had used.
    spark.sql("create table parted (x bigint, k bigint) using parquet partitioned by (k)")
    spark.sql("insert overwrite parted partition (k = 1) select id from o")
    spark.sql("insert overwrite parted select id, k from o")
    frame = spark.table("o").selectExpr("id x", "k")
    frame.write.mode("overwrite").option("partitionOverwriteMode", "dynamic").partitionBy(
        "k"
    ).parquet(str(work / "days"))
    frame.where("k = 1").select("x").write.mode("overwrite").parquet(str(work / "days" / "k=1"))


def ticks(name: str) -> Any:
    read = spark.readStream.format("rate").load()
    writer = read.writeStream.queryName(name).format("parquet")
    writer = writer.option("path", str(work / name)).trigger(processingTime="300 milliseconds")
    query = writer.option("checkpointLocation", str(work / f"{name}_state")).start()
    wait_until(lambda: len(query.recentProgress) > 1, seconds=120, what="two batches")
    return query


def bounded() -> Any:
    spark.range(3).write.parquet(str(work / "come"))
    read = spark.readStream.schema("id bigint").parquet(str(work / "come"))
    writer = read.writeStream.format("json").option("path", str(work / "gone"))
    writer = writer.option("checkpointLocation", str(work / "bounded_state"))
    return writer.trigger(availableNow=True).start()


def failing() -> Any:
    @F.udf("long")
    def bad(value: int) -> int:
        raise ValueError(value)

    read = spark.readStream.schema("id bigint").parquet(str(work / "come"))
    writer = read.select(bad("id").alias("id")).writeStream.queryName("failing")
    writer = writer.format("json").option("path", str(work / "never"))
    return writer.option("checkpointLocation", str(work / "failing_state")).start()


def await_all(*queries: Any) -> None:
    for query in queries:
        try:
            query.awaitTermination(60)
        except Exception as error:  # noqa: BLE001
            print(type(error).__name__)


def stream() -> None:
    ticks("stopped").stop()
    await_all(bounded())
    await_all(failing())
    # Neither the query nor the session is stopped: the program must end all the same.
    ticks("left")


def last() -> None:
    """The program ends at once when its queries have."""
    await_all(bounded(), failing())


def wait() -> None:
    ticks("waiting")
    (work / "ready").touch()
    time.sleep(120)


def leave() -> None:
    spark.range(3).write.parquet(str(work / "left_out"))
    sys.exit(3)


{
    "batch": batch,
    "statements": statements,
    "stream": stream,
    "last": last,
    "wait": wait,
    "leave": leave,
}[mode]()
