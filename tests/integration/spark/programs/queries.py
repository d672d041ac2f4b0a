"""Queries that write, are named, refused and altered in every way a program may choose."""

from __future__ import annotations

import contextlib
import sys
import time
from functools import partial
from typing import TYPE_CHECKING, Any

from tests.integration.spark.programs import shapes

import headwater.spark

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.streaming.query import StreamingQuery

SECONDS = 60.0

place = shapes.Place(sys.argv[1])
spark = headwater.spark.attach(shapes.session("queries"))
folder = str(place.work)
totals, wide, grown = (f"lab.{place.namespace}.{n}" for n in ("totals", "wide", "grown"))


def writer(frame: DataFrame, checkpoint: str) -> Any:
    return frame.writeStream.option("checkpointLocation", f"{folder}/checkpoints/{checkpoint}")


def has_read(query: StreamingQuery) -> None:
    """Wait until a query has taken in what its topic has."""
    deadline = time.monotonic() + SECONDS
    while not any(progress["numInputRows"] for progress in query.recentProgress):
        if query.exception() is not None or time.monotonic() > deadline:
            raise RuntimeError(f"{query.name or query.id} reads nothing: {query.exception()}")
        time.sleep(0.1)


def own_session() -> None:
    """Writes of a micro-batch through the program's own session, by each way there is."""
    spark.createDataFrame([("acme", "Acme Ltd")], "supplier string, name string").write.parquet(
        f"{folder}/names"
    )
    spark.sql(f"create table {totals} (supplier string, price double) using iceberg")
    names = spark.read.parquet(f"{folder}/names")

    def write(batch: DataFrame, number: int) -> None:
        joined = names.join(batch, "supplier").select("order_id", "name")
        joined.write.mode("append").parquet(f"{folder}/joined")
        made = spark.createDataFrame([(number,)], "batch int")
        made.write.mode("append").parquet(f"{folder}/log")
        batch.createOrReplaceGlobalTempView("batch")
        spark.sql(f"insert into {totals} select supplier, price from global_temp.batch")
        spark.sql(f"delete from {totals} where price < 0")

    query = writer(shapes.orders(spark, place), "own").foreachBatch(write).queryName("own_session")
    query.trigger(availableNow=True).start().awaitTermination()


class Sink:
    """Writes with a method."""

    def __init__(self, name: str) -> None:
        self.name = name

    def write(self, batch: DataFrame, _: int) -> None:
        batch.write.mode("append").parquet(f"{folder}/{self.name}")


def copy(batch: DataFrame, _: int, target: str = "copied") -> None:
    batch.write.mode("append").parquet(f"{folder}/{target}")


def unnamed() -> None:
    """Queries without a name, on one topic and at the same time; one is started again."""
    functions: list[Any] = [
        copy,
        partial(copy, target="partial"),
        Sink("method").write,
        Sink("again").write,
        lambda batch, _: batch.write.mode("append").parquet(f"{folder}/lambda"),
        lambda batch, _: batch.write.mode("append").parquet(f"{folder}/other"),
    ]

    def start(number: int) -> StreamingQuery:
        stream = writer(shapes.orders(spark, place), f"unnamed{number}")
        made: StreamingQuery = stream.foreachBatch(functions[number]).start()
        return made

    running = [start(number) for number in range(len(functions))]
    for query in running:
        has_read(query)
    running[1].stop()
    running[1] = start(1)
    headwater.spark.flush(30)
    for query in running:
        query.stop()


def refused() -> None:
    """Queries that Spark does not start."""
    rate = spark.readStream.format("rate").load()
    for made in (
        writer(rate, "refused").queryName("refused_by_name").format("kafka").start,
        writer(rate.groupBy().count(), "unnamed").format("parquet").option("path", f"{folder}/x").start,
    ):  # fmt: skip
        with contextlib.suppress(Exception):
            made()


def continuous() -> None:
    """A continuous trigger, from topic to topic."""
    stream = writer(shapes.orders(spark, place).selectExpr("supplier as value"), "continuous")
    stream = stream.format("kafka").option("kafka.bootstrap.servers", place.bootstrap)
    query = stream.option("topic", place.out).trigger(continuous="1 second").start()
    headwater.spark.flush(30)
    query.stop()


def altered() -> None:
    """A table that gets a column while a query writes to it."""
    spark.sql(f"create table {wide} (order_id string, price double) using iceberg")
    orders = shapes.orders(spark, place).select("order_id", "price")
    query = writer(orders, "altered").queryName("altered").toTable(wide)
    has_read(query)
    spark.sql(f"alter table {wide} add column note string")
    headwater.spark.flush(30)
    query.stop()


def merged() -> None:
    """A table that a query gives a column with its first micro-batch."""
    anything = "tblproperties ('write.spark.accept-any-schema' = 'true')"
    spark.sql(f"create table {grown} (order_id string) using iceberg {anything}")
    stream = writer(shapes.orders(spark, place).select("order_id", "price"), "merged")
    query = stream.option("mergeSchema", "true").queryName("merged").toTable(grown)
    has_read(query)
    headwater.spark.flush(30)
    query.stop()


def detached() -> None:
    """A query that goes on without being followed."""
    query = writer(shapes.orders(spark, place), "detached").queryName("detached")
    running = query.format("noop").start()
    has_read(running)
    headwater.spark.detach(spark)
    running.stop()


own_session()
unnamed()
refused()
continuous()
altered()
merged()
detached()
